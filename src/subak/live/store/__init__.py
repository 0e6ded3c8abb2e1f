"""Stores: what roles keep on disk, written in groups and durable before any effect leaves."""
