"""A heap drives the core: events in order of time, effects applied in one place."""
