"""A tiny Megha federation, and each of its roles by itself."""
