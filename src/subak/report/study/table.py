"""Writes runs.parquet of a study: one row per run with its settings and measures."""
import io
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from subak.experiment.study.document import EVERY
from subak.experiment.study.plan import Plan
from subak.experiment.study.records import Record
from subak.output.writing import write_file
from subak.report.study.columns import columns_of
from subak.report.study.results import NOT_RUN
from subak.tables import PACKED

TABLE = "runs.parquet"


def run_table(plan: Plan, records: Mapping[str, Record]) -> pl.DataFrame:
    """Return the table: first what tells runs apart, then settings that all share, then measures that any run has."""
    found = [records.get(row.digest, Record(error=NOT_RUN)) for row in plan.rows]
    words: dict[str, list[str]] = {}
    for number, axis in enumerate(plan.axes):
        if axis.named or len(axis.keys) > 1:
            words[axis.title] = [axis.names[row.places[number]] for row in plan.rows]
        for place, key in enumerate(axis.keys):
            if key not in EVERY:
                words.setdefault(key.removeprefix("federation."),
                                 [axis.values[row.places[number]][place] for row in plan.rows])
    for key, value in plan.fixed.items():
        if key not in EVERY:
            words.setdefault(key.removeprefix("federation."), [value] * len(plan.rows))
    columns = [pl.Series("run", [row.digest for row in plan.rows], dtype=pl.String),
               *(_numbers(name, values) for name, values in words.items()),
               pl.Series("scheduler", [row.scheduler for row in plan.rows], dtype=pl.String),
               pl.Series("seed", [row.seed for row in plan.rows], dtype=pl.Int64),
               pl.Series("error", [record.error or None for record in found], dtype=pl.String)]
    taken = {column.name for column in columns}
    for name, column in columns_of(list(plan.resources), plan.objectives).items():
        values = [None if record.summary is None else column.measure.value(record.summary) for record in found]
        if any(value is not None for value in values):
            columns.append(pl.Series(f"{name}_" if name in taken else name, values, dtype=pl.Float64, strict=False))
    return pl.DataFrame(columns)


def write_run_table(folder: Path, plan: Plan, records: Mapping[str, Record]) -> None:
    """Write the table into the folder of a study."""
    content = io.BytesIO()
    run_table(plan, records).write_parquet(content, **PACKED)
    write_file(folder / TABLE, content.getvalue())


def _numbers(name: str, words: list[str]) -> pl.Series:
    """Return a setting as numbers, where all of its values are some."""
    texts = pl.Series(name, words, dtype=pl.String)
    for kind in (pl.Int64, pl.Float64):
        numbers = texts.cast(kind, strict=False)
        if numbers.null_count() == 0:
            return numbers
    return texts
