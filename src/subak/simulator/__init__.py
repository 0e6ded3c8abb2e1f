"""Runs the core on a heap of events, in order of time, with effects applied in one place."""
