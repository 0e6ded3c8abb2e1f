"""Torture: random federations under random faults, and their invariants."""
