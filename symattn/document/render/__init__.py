"""A composed page in each medium: who renders knows no mathematics."""
