"""The command line: options in, tables out; the library does the work."""
