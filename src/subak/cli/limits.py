"""Bounds the numbers that options take."""

COUNT_MAX = 2**31 - 1  # of what is counted
SEED_MAX = 2**62  # of what is drawn with an int64, and with those behind it
