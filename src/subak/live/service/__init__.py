"""What people ask of a global master, answered from its node."""
