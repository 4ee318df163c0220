"""Arithmetic: numbers in, numbers out. No SQL, no HTTP, no printing."""
