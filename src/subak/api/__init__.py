"""The Python interface of the laboratory: `subak.load`, `subak.run`, `subak.compare` and their results."""
