"""Rigid jobs: gangs that start together or not at all, and backfilling with reservations."""
