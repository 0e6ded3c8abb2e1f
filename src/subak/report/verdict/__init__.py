"""The verdict: the recommended scheduler, by how much, how certainly, at whose cost, and why."""
