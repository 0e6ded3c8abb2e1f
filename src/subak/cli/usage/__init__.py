"""The arguments, options and help of commands; it loads nothing heavy."""
