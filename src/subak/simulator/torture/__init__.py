"""Random federations under random faults, and what must hold."""
