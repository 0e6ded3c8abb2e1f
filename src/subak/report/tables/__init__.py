"""Tables of a report: what each says, and how it becomes part of a page or a file."""
