"""Reads Google's cluster traces of 2019."""
from subak.workload.readers.google.google2019.events import READER

__all__ = ["READER"]
