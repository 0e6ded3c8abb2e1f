"""The role of a worker, in plain Python: it loads no compiler."""
