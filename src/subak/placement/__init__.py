"""Chooses machines: the policies, and the check of every claim."""
