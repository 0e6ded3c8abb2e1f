"""Skips heartbeats that change nothing."""
