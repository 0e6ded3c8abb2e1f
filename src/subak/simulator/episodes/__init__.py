"""Episodes: central runs over windows of a workload in which somebody outside decides what starts next."""
