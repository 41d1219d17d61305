"""Random tensors: their laws, and the moments of what is made of them, exact and symbolic."""
