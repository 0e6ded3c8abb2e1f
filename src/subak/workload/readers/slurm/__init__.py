"""Reads logs of Slurm."""
