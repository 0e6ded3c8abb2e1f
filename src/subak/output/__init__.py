"""What a command writes: folders and files that appear whole or not at all, in places that were checked first."""
