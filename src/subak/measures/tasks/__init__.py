"""What is measured of tasks and of their jobs, in one pass over them, some at a time."""
