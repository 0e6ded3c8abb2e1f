"""Live federations in one process, under a seed: nodes as they are; the clock, network, disks, executors of a test."""
