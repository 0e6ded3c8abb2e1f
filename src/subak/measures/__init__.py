"""Computes the numbers of a run."""
