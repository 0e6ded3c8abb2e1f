"""What a policy is to the engine: two signatures, and what it may read and keep."""
