"""Calls: what a compiled function takes, the gate that it goes through, and what one call shares with the next."""
