"""Proofs about recurrences for every number of steps, by induction."""
