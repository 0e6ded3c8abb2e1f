"""Where tasks wait, and in which order they are served."""
