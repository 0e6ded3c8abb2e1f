"""Placements that choose a machine for one task."""
