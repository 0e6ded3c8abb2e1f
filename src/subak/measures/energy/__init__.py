"""Energy, cost and carbon of a run."""
