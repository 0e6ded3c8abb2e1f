"""Runs a whole federation on this machine: folder, processes and screen."""
