"""The claims of the Dodoor paper, measured here."""
