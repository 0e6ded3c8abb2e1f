"""The processes of attempts: how the node agent starts, follows, limits and ends them."""
