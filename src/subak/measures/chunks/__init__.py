"""What a run measures whose tasks are never all in memory: gathered in one pass over them."""
