"""Reproduces papers: each one's figures beside those measured here, with reasons for differences."""
