"""Runs that keep only open tasks in memory: they read tasks in chunks and write ended ones to disk."""
