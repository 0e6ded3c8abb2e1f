"""Where tasks wait, and the orders in which they are served."""
