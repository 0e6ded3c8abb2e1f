"""Reads any table of jobs."""
from subak.workload.readers.table.jobs import READER

__all__ = ["READER"]
