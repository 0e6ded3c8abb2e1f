"""What goes wrong in a simulation: with messages, and with attempts."""
