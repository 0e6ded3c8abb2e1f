"""Traces of the published simulators, in their format."""
from dataclasses import replace
from pathlib import Path

import polars as pl

from subak.workload.readers.options import Options
from subak.workload.readers.tr import read
from subak.workload.table import Workload


def published_trace(path: Path) -> Workload:
    """Return a trace with run times in whole seconds, to which these simulators cut them."""
    workload = read(path, Options(), lambda *_: None).workload
    return replace(workload, tasks=workload.tasks.with_columns(pl.col("run_time", "estimate").floor()))
