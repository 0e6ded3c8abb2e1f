"""What a study found: a table with a row a run, and a page."""
