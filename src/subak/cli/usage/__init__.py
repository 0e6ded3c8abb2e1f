"""What is typed: the arguments, options and help of commands; what they do is loaded when one is called."""
