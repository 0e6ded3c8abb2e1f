"""Reads task constraints of Google 2011; those first seen for a task count."""
from pathlib import Path

import polars as pl

from subak.tables import ColumnType
from subak.workload.readers.conversion import Account, account
from subak.workload.readers.files.stream import Advance, Block, blocks, csv_rows, refuse_lines
from subak.workload.readers.google.tasks import Constraints

CONSTRAINT_COLUMNS: dict[str, ColumnType] = {
    "time": pl.Int64, "job": pl.Int64, "index": pl.Int64, "operator": pl.Int64,
    "attribute": pl.String, "value": pl.String,
}
SET_COLUMNS: dict[str, ColumnType] = {"job": pl.Int64, "index": pl.Int32, "constraint_set": pl.UInt32}
OPERATOR_NAMES = {0: "=", 1: "!=", 2: "<", 3: ">"}


def read_constraints(paths: list[Path], advance: Advance) -> Constraints:
    """Read task_constraints; without files no task has any. Raises InputError naming the file and the line."""
    tables = [_checked(csv_rows(block, CONSTRAINT_COLUMNS), block) for path in paths for block in blocks(path, advance)]
    if not tables:
        return Constraints([], pl.DataFrame(schema=SET_COLUMNS), ())
    rows = pl.concat(tables)
    distinct = rows.unique()
    first = distinct.filter(pl.col("time") == pl.col("time").min().over("job", "index"))
    counted = account("task_constraints", len(rows), {"first seen of a task": len(first)},
                      {"seen later of the same task": len(distinct) - len(first),
                       "exact repetition of a row": len(rows) - len(distinct)})
    return _by_task(first, (counted,))


def _checked(table: pl.DataFrame, block: Block) -> pl.DataFrame:
    for name in ("time", "job", "index", "operator", "attribute"):
        refuse_lines(table, pl.col(name).is_null(), block, f"{name} must be given", name)
    for name in ("time", "job", "index"):
        refuse_lines(table, pl.col(name) < 0, block, f"{name} must not be negative", name)
    refuse_lines(table, pl.col("index") >= 2**31, block, "index must be below 2^31", "index")
    refuse_lines(table, ~pl.col("operator").is_in(list(OPERATOR_NAMES)), block,
                 "operator must be 0 (=), 1 (!=), 2 (<) or 3 (>)", "operator")
    number = pl.col("value").cast(pl.Float64, strict=False)
    refuse_lines(table, (pl.col("operator") >= 2) & (number.is_null() | number.is_nan()), block,
                 "an order needs a number to compare with", "value")
    return table.with_columns(pl.col("index").cast(pl.Int32), pl.col("value").fill_null(""))


def _by_task(rows: pl.DataFrame, accounts: tuple[Account, ...]) -> Constraints:
    text = pl.struct("attribute", pl.col("operator").replace_strict(OPERATOR_NAMES, return_dtype=pl.String), "value")
    sets = (
        rows.sort("job", "index", "attribute", "operator", "value")
        .group_by("job", "index", maintain_order=True)
        .agg(constraints=text)
    )
    distinct = sets.select("constraints").unique(maintain_order=True).with_row_index("constraint_set")
    sets = sets.join(distinct, on="constraints", how="left", maintain_order="left")
    return Constraints(distinct["constraints"].to_list(), sets.select("job", "index", "constraint_set"), accounts)
