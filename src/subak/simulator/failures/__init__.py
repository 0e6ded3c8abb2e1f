"""Faults and failures of a simulation: of messages, roles and attempts."""
