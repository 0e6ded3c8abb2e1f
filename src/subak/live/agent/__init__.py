"""The node agent of a machine: starts attempts and keeps their ends; imports nothing heavy."""
