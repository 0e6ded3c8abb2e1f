"""A local master: holds the truth of its cluster."""
