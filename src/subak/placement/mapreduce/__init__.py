"""Plans for batches of MapReduce jobs, made before a run: HMHS and its relatives, and lower bounds on the makespan."""
