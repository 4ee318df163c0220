"""Question to Answer: applicability, ranking, plans, evidence."""
