"""Tuning: searches for settings that do best on some seeds, and tests them on others."""
