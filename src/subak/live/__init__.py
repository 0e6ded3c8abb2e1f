"""The roles of a federation on real machines, driven by sockets instead of a heap of events."""
