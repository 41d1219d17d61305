"""Refutation: samples, exact values, and a counterexample that is small."""
