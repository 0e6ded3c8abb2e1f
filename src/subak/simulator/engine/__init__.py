"""What the loops of all schedulers share: events, state, the timeline, attempts."""
