"""Commands for a federation that runs: each asks it over HTTP, and loads nothing of the simulator."""
