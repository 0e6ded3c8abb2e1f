"""Stores: what nodes keep on disk, written in groups and durable before any effect leaves."""
