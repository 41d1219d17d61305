"""Proofs of equalities."""
