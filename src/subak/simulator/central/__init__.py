"""The loops of schedulers that see everything at once."""
