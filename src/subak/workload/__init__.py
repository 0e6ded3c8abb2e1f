"""What arrives: jobs, stages and tasks."""
