"""The command line: thin faces over the library."""
