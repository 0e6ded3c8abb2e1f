"""What schedulers share that send whole batches of tasks to workers."""
