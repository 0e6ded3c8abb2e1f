"""Logs of Slurm: sacct.py, its own export; helios.py, a published one; states.py, how jobs end."""
