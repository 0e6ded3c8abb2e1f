"""Reads the machines of Borg's traces: at time 0, as last seen, or with their changes.

A row without a capacity keeps the capacity and platform last known of its machine (or, before any, the first known).
"""
from pathlib import Path
from typing import NamedTuple

import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet, make_fleet
from subak.resources import AMOUNT_MAX
from subak.tables import ColumnType, Provenance
from subak.workload.readers.conversion import Account, account, notes
from subak.workload.readers.files.stream import Block, refuse_lines
from subak.workload.readers.google.tasks import AFTER, RESOURCES, SECOND, UNIT
from subak.workload.readers.options import FleetChoice

MACHINE_ADD, MACHINE_REMOVE, MACHINE_UPDATE = range(3)  # of the trace of 2011
ATTRIBUTE_COLUMNS: dict[str, ColumnType] = {
    "time": pl.Int64, "machine": pl.Int64, "attribute": pl.String, "value": pl.String, "deleted": pl.Int64,
}
AMOUNTS = ("cpu", "memory")


class Machines(NamedTuple):
    """The fleet, if the trace has one, and what became of its rows."""

    fleet: Fleet | None
    accounts: tuple[Account, ...]
    remarks: dict[str, int | float | str]


NO_MACHINES = Machines(None, (), {"fleet": "none written: there is no machine_events"})


def machines_of(
    rows: pl.DataFrame, attributes: pl.DataFrame | None, where: Path, choice: FleetChoice, provenance: Provenance,
) -> Machines:
    """Return the fleet of the rows of machine_events, and of machine_attributes if there are any.

    *rows* have time, machine, event, platform, cpu, memory; *attributes* ATTRIBUTE_COLUMNS. Raises InputError,
    beginning with *where*, when no machine is left.
    """
    known, used, counted = _chosen(_filled(rows), len(rows), choice)
    if known.is_empty():
        raise InputError(f"{where}: a fleet needs at least one machine, --fleet {choice} gives 0")
    machines = _machine_table(known, choice)
    of_machines, attribute_accounts = _attributes(machines, known, attributes, choice)
    accounts = (counted, *attribute_accounts)
    remarks: dict[str, int | float | str] = {"machines": len(machines)}
    fleet = make_fleet(
        machines.drop("id"), RESOURCES, of_machines,
        _change_table(used, machines) if choice == "changing" else None,
        Provenance(provenance.name, provenance.origin, provenance.licence, notes(accounts, remarks, {"fleet": choice})),
    )
    return Machines(fleet, accounts, remarks)


def refuse_capacities(table: pl.DataFrame, block: Block) -> None:
    """Raise InputError for the first row with a capacity that no machine has."""
    for name in AMOUNTS:
        amount = pl.col(name)
        refuse_lines(table, amount.is_nan() | (amount < 0), block, f"{name} must be a number, 0 or more", name)
        refuse_lines(table, amount > AMOUNT_MAX * UNIT, block, f"{name} must be at most {AMOUNT_MAX * UNIT:g}", name)


def _filled(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort by machine and time (REMOVE, ADD, UPDATE at one instant) and fill in the capacities left out."""
    rank = pl.col("event").replace_strict({MACHINE_REMOVE: 0, MACHINE_ADD: 1, MACHINE_UPDATE: 2}, return_dtype=pl.Int8)
    ordered = rows.filter(pl.col("time") < AFTER).sort("machine", "time", rank, *AMOUNTS, "platform")
    whole = pl.all_horizontal(pl.col(name).is_not_null() for name in AMOUNTS)
    known = ordered.with_columns(pl.when(whole).then(pl.col(name)).alias(name) for name in (*AMOUNTS, "platform"))
    return known.with_columns(pl.col(*AMOUNTS, "platform").forward_fill().backward_fill().over("machine"))


def _chosen(
    filled: pl.DataFrame, row_count: int, choice: FleetChoice,
) -> tuple[pl.DataFrame, pl.DataFrame, Account]:
    """Return one row a machine (its state where the run begins), the rows used, and their account."""
    certain = filled.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in AMOUNTS))
    start = certain.filter(pl.col("time") == 0)
    used = start if choice == "at-start" else certain
    dropped = {"event after the window (time 2^63-1)": row_count - len(filled),
               "capacity of the machine never given": len(filled) - len(certain),
               "after time 0": len(certain) - len(used)}
    counted = account("machine_events", row_count, {f"rows of the fleet as chosen ({choice})": len(used)}, dropped)
    at_start = start.group_by("machine", maintain_order=True).last()
    if choice == "at-start":
        return at_start.filter(pl.col("event") != MACHINE_REMOVE), used, counted
    if choice == "last":
        return certain.group_by("machine", maintain_order=True).last(), used, counted
    later = certain.join(at_start, on="machine", how="anti").group_by("machine", maintain_order=True).first()
    later = later.with_columns(event=pl.lit(MACHINE_REMOVE, pl.Int64))
    return pl.concat([at_start, later]).sort("machine"), used, counted


def _machine_table(known: pl.DataFrame, choice: FleetChoice) -> pl.DataFrame:
    present = pl.col("event") != MACHINE_REMOVE if choice == "changing" else pl.lit(True)
    return known.select(id="machine", machine=pl.col("machine").cast(pl.String), cluster=pl.lit("0"),
                        present=present, cpu="cpu", memory="memory")


def _change_table(used: pl.DataFrame, machines: pl.DataFrame) -> pl.DataFrame:
    """Every event after time 0; an UPDATE leaves a machine there, or away, as it was."""
    is_there = pl.col("event") == MACHINE_ADD
    there = pl.when(pl.col("event") != MACHINE_UPDATE).then(is_there).forward_fill().over("machine")
    rows = machines.select("id").with_row_index("row")
    return (
        used.with_columns(present=there.fill_null(False))
        .filter(pl.col("time") > 0)
        .join(rows, left_on="machine", right_on="id", how="inner", maintain_order="left")
        .sort("time", "row", maintain_order=True)
        .select(time=pl.col("time") / SECOND, machine="row", present="present", cpu="cpu", memory="memory")
    )


def _attributes(
    machines: pl.DataFrame, known: pl.DataFrame, given: pl.DataFrame | None, choice: FleetChoice,
) -> tuple[pl.DataFrame, tuple[Account, ...]]:
    """Return machine (row), attribute, value: the platform, and of each attribute the value at time 0.

    Unless the fleet is that of time 0, an attribute that appears later counts with the first value seen.
    """
    numbers = machines.select(id="id").with_row_index("row")
    platform = known.select("machine", attribute=pl.lit("platform"), value="platform")
    rows = pl.DataFrame(schema=ATTRIBUTE_COLUMNS) if given is None else given
    standing = rows.filter(pl.col("deleted") != 1)
    of_fleet = standing.join(numbers, left_on="machine", right_on="id", how="semi")
    in_time = of_fleet.filter(pl.col("time") == 0) if choice == "at-start" else of_fleet
    first = in_time.sort("machine", "attribute", "time", "value").unique(["machine", "attribute"], keep="first")
    table = (
        pl.concat([platform.drop_nulls("value"), first.select("machine", "attribute", "value")])
        .unique(["machine", "attribute"], keep="first")
        .join(numbers, left_on="machine", right_on="id")
        .select(machine="row", attribute="attribute", value="value")
        .sort("machine", "attribute")
    )
    if given is None:
        return table, ()
    return table, (account("machine_attributes", len(rows), {"values of the fleet's machines": len(first)}, {
        "deletion": len(rows) - len(standing), "of a machine that is not in the fleet": len(standing) - len(of_fleet),
        "after time 0": len(of_fleet) - len(in_time), "later value": len(in_time) - len(first)}),)
