"""The executor: runs attempts on a machine and says how they ended; nothing here imports Numba, NumPy or Polars."""
