"""Traces of Microsoft: azure.py, virtual machines; philly.py, training on GPUs."""
