"""Measures tasks and jobs in one pass, block by block."""
