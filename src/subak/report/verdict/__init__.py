"""The verdict: which scheduler is recommended, by how much, how certainly, at whose cost, and why."""
