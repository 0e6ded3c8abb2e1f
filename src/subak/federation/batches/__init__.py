"""What schedulers that send whole batches of tasks to workers share."""
