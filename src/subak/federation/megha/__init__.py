"""Megha: global masters place on stale views, local masters check, workers run."""
