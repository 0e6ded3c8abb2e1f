"""Subak: a scheduler for federated data centers, and the simulator in which its policies are compared."""

__version__ = "0.1.0"
