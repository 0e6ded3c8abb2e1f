"""Reads Google's cluster trace of 2011."""
from subak.workload.readers.google.google2011.events import READER

__all__ = ["READER"]
