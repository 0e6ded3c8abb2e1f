"""Megha's prototype (section V-C, Fig. 12): a live federation on this machine with CPU-bound tasks."""
