"""`subak torture`: command.py, the command; live.py, nodes; exhaustive.py, every interleaving."""
