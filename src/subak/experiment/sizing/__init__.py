"""How many machines it takes: sizes are tried until the fewest that keep all objectives are known."""
