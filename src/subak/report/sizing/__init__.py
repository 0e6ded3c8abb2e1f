"""Shows the answer of `subak size`: in words, in the terminal, on a page."""
