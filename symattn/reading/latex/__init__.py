"""LaTeX in: words, statements, a small syntax tree, names, shapes, and then tensors; each stage is a file."""
