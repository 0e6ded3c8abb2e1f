"""The interface between engine and policy: two signatures, and what a policy may read and keep."""
