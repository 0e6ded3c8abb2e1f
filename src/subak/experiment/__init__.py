"""Runs: a scenario is simulated, measured and written as a folder; many run at once."""
