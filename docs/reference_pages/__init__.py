"""The pages of the reference, made from the program itself."""
