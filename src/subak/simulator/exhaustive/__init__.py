"""A model checker: walks every interleaving of a tiny Megha federation, with its real handlers."""
