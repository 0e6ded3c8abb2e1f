"""Google's cluster trace of 2011: events.py, tasks and the whole; constraints.py; machines.py."""
from subak.workload.readers.google.google2011.events import READER

__all__ = ["READER"]
