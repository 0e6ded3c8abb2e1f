"""Who decides in a federation: roles that take a message and answer with messages."""
