"""The executor interface between a worker and its machine: attempts, their ends and the rules."""
