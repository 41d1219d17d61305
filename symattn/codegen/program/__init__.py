"""Programs: what is computed whole, what block by block along an axis, and in which order, before any text."""
