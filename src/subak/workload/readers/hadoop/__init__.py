"""Reads histories of Hadoop jobs."""
