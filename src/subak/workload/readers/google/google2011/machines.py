"""Reads machine_events and machine_attributes of Google 2011."""
from pathlib import Path

import polars as pl

from subak.errors import InputError
from subak.tables import ColumnType, Provenance
from subak.workload.readers.files.stream import Advance, Block, blocks, csv_rows, refuse_lines
from subak.workload.readers.google.machines import (
    ATTRIBUTE_COLUMNS,
    MACHINE_UPDATE,
    NO_MACHINES,
    Machines,
    machines_of,
    refuse_capacities,
)
from subak.workload.readers.options import FleetChoice

MACHINE_EVENT_COLUMNS: dict[str, ColumnType] = {
    "time": pl.Int64, "machine": pl.Int64, "event": pl.Int64, "platform": pl.String,
    "cpu": pl.Float64, "memory": pl.Float64,
}


def read_machines(
    events: list[Path], attributes: list[Path], choice: FleetChoice, provenance: Provenance, advance: Advance,
) -> Machines:
    """Read machine_events and machine_attributes. Raises InputError naming the file and the line."""
    if not events:
        return NO_MACHINES
    tables = [_checked(csv_rows(block, MACHINE_EVENT_COLUMNS), block)
              for path in events for block in blocks(path, advance)]
    if not tables:
        raise InputError(f"{events[0].parent}: has no rows")
    of_machines = [_checked_attributes(csv_rows(block, ATTRIBUTE_COLUMNS), block)
                   for path in attributes for block in blocks(path, advance)]
    given = pl.concat([pl.DataFrame(schema=ATTRIBUTE_COLUMNS), *of_machines]) if attributes else None
    return machines_of(pl.concat(tables), given, events[0].parent, choice, provenance)


def _checked(table: pl.DataFrame, block: Block) -> pl.DataFrame:
    for name in ("time", "machine", "event"):
        refuse_lines(table, pl.col(name).is_null(), block, f"{name} must be given", name)
        refuse_lines(table, pl.col(name) < 0, block, f"{name} must not be negative", name)
    refuse_lines(table, pl.col("event") > MACHINE_UPDATE, block, "event must be 0 (ADD), 1 (REMOVE) or 2 (UPDATE)",
                 "event")
    refuse_capacities(table, block)
    return table


def _checked_attributes(table: pl.DataFrame, block: Block) -> pl.DataFrame:
    for name in ("time", "machine", "attribute"):
        refuse_lines(table, pl.col(name).is_null(), block, f"{name} must be given", name)
    refuse_lines(table, pl.col("time") < 0, block, "time must not be negative", "time")
    return table.with_columns(pl.col("value").fill_null(""), pl.col("deleted").fill_null(0))
