"""Reads files: compressed or plain, by lines, by columns, as JSON."""
