"""The vocabulary: schemes, levels, bottlenecks, techniques and their declared effects (stdlib only)."""
