"""Recurrences: loops with a symbolic number of steps, as one operation."""
