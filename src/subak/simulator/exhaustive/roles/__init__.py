"""A tiny federation of Megha, and each of its roles by itself."""
