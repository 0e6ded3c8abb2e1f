"""The tables of a report, for pages and files."""
