"""Writes files and folders whole or not at all, in places checked first."""
