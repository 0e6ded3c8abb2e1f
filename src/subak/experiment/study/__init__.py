"""Studies: many points of settings, each simulated once for all; what is known of a run is kept by its digest."""
