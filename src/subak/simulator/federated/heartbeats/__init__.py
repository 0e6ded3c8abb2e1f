"""Heartbeats that change nothing are passed over."""
