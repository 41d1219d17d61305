"""The normal form of entries: sums of products of atoms over bound indices, one way of writing for one meaning."""
