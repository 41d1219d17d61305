"""Derivations: steps, statements and their verification."""
