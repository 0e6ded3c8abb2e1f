"""What `subak size` has found: in words, in the terminal, and on a page."""
