"""Answers people's questions to a global master from its role."""
