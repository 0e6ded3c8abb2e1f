"""What all loops share: events, state, timeline, attempts."""
