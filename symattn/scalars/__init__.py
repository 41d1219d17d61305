"""Scalar formulas: what an entry is written in."""
