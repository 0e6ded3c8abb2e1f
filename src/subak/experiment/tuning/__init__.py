"""Tuning: which settings of a scheduler do best on some seeds, and whether they still do on others."""
