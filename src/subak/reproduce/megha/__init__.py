"""Megha's figures beside ours."""
