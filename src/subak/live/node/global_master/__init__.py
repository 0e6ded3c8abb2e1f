"""A global master as a process runs it: its tables, its jobs, and how they come back from disk."""
