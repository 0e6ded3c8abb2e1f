"""Commands that make workloads and fleets, or inspect them."""
