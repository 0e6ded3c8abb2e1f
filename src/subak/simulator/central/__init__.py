"""The loops of central schedulers, which see everything at once."""
