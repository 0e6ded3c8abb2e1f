"""Commands for a running federation: they ask over HTTP and load nothing of the simulator."""
