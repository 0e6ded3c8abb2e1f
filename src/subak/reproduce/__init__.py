"""The papers: each one's figures beside what is measured here, with the reason where they differ."""
