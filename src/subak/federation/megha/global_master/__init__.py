"""A global master: places tasks on its view of all clusters."""
