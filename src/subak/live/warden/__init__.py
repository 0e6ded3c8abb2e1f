"""The warden of a machine: it begins attempts and keeps their ends; nothing here imports Numba, NumPy or Polars."""
