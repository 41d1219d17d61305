"""Proofs of what an output does not depend on."""
