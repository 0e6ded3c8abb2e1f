"""Studies: many combinations of settings, each simulated once; results are kept by digest."""
