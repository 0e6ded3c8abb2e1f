"""Episodes: central runs over windows of a workload in which an agent decides."""
