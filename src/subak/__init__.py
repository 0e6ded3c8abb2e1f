"""Subak: a scheduler for federated data centers, and the laboratory in which its policies are compared."""

__version__ = "0.1.0"
