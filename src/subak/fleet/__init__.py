"""The machines: their free amounts, and a fast search over them."""
