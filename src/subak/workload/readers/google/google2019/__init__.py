"""Google's cluster traces of 2019: events.py, tasks and the whole; fields.py, rows of JSON, CSV and Parquet."""
from subak.workload.readers.google.google2019.events import READER

__all__ = ["READER"]
