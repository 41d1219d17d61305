"""Graphs of nodes: entries, canonical forms."""
