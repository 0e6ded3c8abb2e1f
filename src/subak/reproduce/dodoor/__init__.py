"""What the Dodoor paper says of its scheduler, measured here."""
