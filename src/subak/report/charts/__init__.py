"""Charts, a file for each kind of thing they show."""
