"""Forms of a compiled function: straight for small arrays, in blocks for large ones; and a program in words."""
