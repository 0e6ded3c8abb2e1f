"""Drives federations in the simulator, message by message."""
