"""What drives any scheduler: events, state, the timeline, attempts."""
