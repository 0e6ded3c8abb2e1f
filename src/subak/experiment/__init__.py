"""Runs: what to simulate, one run and its folder, many at once."""
