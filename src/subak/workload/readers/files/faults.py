"""Notes faulty fields by line and column; their rows are dropped."""
from typing import NamedTuple

import polars as pl

from subak.workload.readers.files.stream import Block

FIELDS = ("fault", "fault_column", "fault_value")
NONE = pl.DataFrame(schema={"row": pl.UInt32, **dict.fromkeys(FIELDS, pl.String)})
VALUE_SHOWN = 60  # characters


class Rows(NamedTuple):
    """Some rows: a table of text with the column `line`, empty fields null, where they are, and the faults so far."""

    table: pl.DataFrame
    block: Block
    faults: pl.DataFrame = NONE


def faults_of(rows: pl.Series, rule: str, column: str, values: pl.Series) -> pl.DataFrame:
    """Return faults of the same kind as a table, as NONE is."""
    return pl.DataFrame({"row": rows.cast(pl.UInt32), "fault": rule, "fault_column": column, "fault_value": values},
                        schema=NONE.schema)


class Faults:
    """The faults of some rows; the first that is found of a row counts."""

    def __init__(self, rows: Rows) -> None:
        self._found = [rows.faults]

    def add(self, table: pl.DataFrame, bad: pl.Expr, rule: str, column: str, named: str = "") -> None:
        """Note the rows of *table* in which *bad* holds: they break *rule* with what stands in *column*.

        *named* is what the file calls the column, where that is not its name in the table.
        """
        rows = table.select(bad.fill_null(False).arg_true().alias("row"))["row"]
        if len(rows):
            values = table[column].gather(rows).cast(pl.String).str.head(VALUE_SHOWN)
            self._found.append(faults_of(rows, rule, named or column, values))

    def missing(self, table: pl.DataFrame, *names: str) -> None:
        """Note the rows in which one of the columns is empty."""
        for name in names:
            self.add(table, pl.col(name).is_null(), f"{name} must be given", name)

    def onto(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the rows' table with the columns `fault`, `fault_column`, `fault_value`: null where there is none."""
        found = pl.concat(self._found)
        if found.is_empty():
            return table.with_columns(pl.lit(None, pl.String).alias(name) for name in FIELDS)
        first = found.unique("row", keep="first", maintain_order=True)
        return table.with_row_index("row").join(first, on="row", how="left", maintain_order="left").drop("row")
