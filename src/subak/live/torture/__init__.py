"""Tortures live roles in one process under a seed, with simulated clock, network, disks and agents."""
