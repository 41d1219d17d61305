"""Proofs of inequalities."""
