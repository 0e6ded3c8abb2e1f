"""Reads runs back, compares them, and shows them as pages, tables and charts."""
