"""Text: how records, scalars and whole graphs are written as NumPy."""
