"""Federations, driven by the engine message by message."""
