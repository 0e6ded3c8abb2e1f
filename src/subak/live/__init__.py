"""Live: the roles of a federation on real machines, driven by sockets in place of a heap of events."""
