"""Commands about workloads and fleets: they come from traces and models, and are looked at."""
