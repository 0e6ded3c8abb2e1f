"""Reads traces of Microsoft."""
