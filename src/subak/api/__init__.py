"""The laboratory from Python: what `subak.load`, `subak.run` and `subak.compare` are, and what they give."""
