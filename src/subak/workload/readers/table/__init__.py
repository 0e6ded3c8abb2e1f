"""Any table of jobs: mapping.py, which column is what; units.py, what its fields say; jobs.py, the whole."""
from subak.workload.readers.table.jobs import READER

__all__ = ["READER"]
