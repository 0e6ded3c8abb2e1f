"""A worker as a process runs it, in plain Python: what runs on every machine loads no compiler."""
