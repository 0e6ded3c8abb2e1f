"""Plans batches of MapReduce jobs before a run: HMHS, its baselines, and lower bounds on the makespan."""
