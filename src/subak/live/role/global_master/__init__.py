"""The role of a global master: its tables, its jobs, and their recovery from disk."""
