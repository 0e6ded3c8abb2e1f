"""Megha: global masters place on views that may be stale, local masters check, workers run."""
