"""Shows a study: a table with a row per run, and a page."""
