"""The workload: jobs, stages and tasks."""
