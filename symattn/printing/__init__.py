"""From tensors to text and LaTeX."""
