"""Consequences of equalities of matrices that are given: products are words, and rules on them are completed."""
