"""Sizing: finds the fewest machines that meet all objectives."""
