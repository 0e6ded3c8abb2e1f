"""Charts, one file per subject."""
