"""Role processes: the roles of a federation as processes run them, without clock, sockets or files."""
