"""Placements that look for a machine for one task."""
