"""How files are read: packed or not, by lines, by columns, as JSON."""
