"""A run that has rows for open tasks alone: it reads tasks in chunks, and writes those that ended."""
