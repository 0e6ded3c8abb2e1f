"""Schedulers that see everything at once, driven by the engine."""
