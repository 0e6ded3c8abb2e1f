"""Job files: a YAML or JSON text becomes a typed, checked, normalised job; nothing here imports NumPy or Polars."""
