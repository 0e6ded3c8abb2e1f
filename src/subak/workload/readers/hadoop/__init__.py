"""Histories of Hadoop's jobs."""
