"""A whole federation on this machine: its folder, its processes, and what is to be seen of it."""
