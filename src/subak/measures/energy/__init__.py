"""Measures the energy, cost and carbon of a run."""
