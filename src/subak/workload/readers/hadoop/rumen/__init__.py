"""Hadoop job histories by Rumen: jobs.py, the whole; history.py, jobs in JSON; hosts.py, racks and nodes."""
from subak.workload.readers.hadoop.rumen.jobs import READER

__all__ = ["READER"]
