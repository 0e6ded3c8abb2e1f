"""Reads Hadoop job histories by Rumen."""
from subak.workload.readers.hadoop.rumen.jobs import READER

__all__ = ["READER"]
