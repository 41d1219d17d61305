"""Printed formulas from their boxes, one file a medium."""
