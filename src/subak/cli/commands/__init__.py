"""What each command does, one file per command."""
