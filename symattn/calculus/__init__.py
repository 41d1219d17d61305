"""Derivatives: gradients, forward and reverse, jacobians, and their tidy forms."""
