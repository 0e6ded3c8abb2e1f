"""The commands that reproduce papers."""
