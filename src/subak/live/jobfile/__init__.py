"""Reads job files: YAML or JSON becomes a typed, checked, normalised job; imports no NumPy or Polars."""
