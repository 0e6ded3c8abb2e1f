"""The fleet's tables: machines, attributes and their changes; checked once, with a folder form.

- machines: one row a machine; one int32 column per resource (its capacity at time 0, in declared units);
  `present` tells whether it is there at time 0.
- attributes: one row a machine and attribute.
- changes: one row an event, sorted by time: the machine's capacity and whether it is there from then on.
- speeds: one row a speed group: what the run time of a task of that group is multiplied by on each machine. Optional.
"""
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.quantities import Amount, amount_text
from subak.resources import Resource, held_units, natural
from subak.tables import (
    ColumnType,
    Provenance,
    Rule,
    amount_columns,
    amount_rules,
    in_units,
    read_table,
    refuse_rows,
    shaped,
    write_table,
)
from subak.toml_files import read_toml, write_toml

MACHINE_COLUMNS: dict[str, ColumnType] = {
    "machine": pl.String,  # the machine's id, no two alike
    "cluster": pl.String,  # the cluster it belongs to
    "present": pl.Boolean,  # whether it is there at time 0
}
ATTRIBUTE_COLUMNS: dict[str, ColumnType] = {
    "machine": pl.UInt32,  # row of the machine
    "attribute": pl.String,  # the attribute's name
    "value": pl.String,  # its value; constraints that order compare it as a number
}
CHANGE_COLUMNS: dict[str, ColumnType] = {
    "time": pl.Float64,  # seconds
    "machine": pl.UInt32,  # row of the machine
    "present": pl.Boolean,  # whether it is there from then on
}
SPEED_COLUMNS: dict[str, ColumnType] = {
    "factors": pl.List(pl.Float64),  # one for each machine; 0.1 is ten times as fast as 1 (hmhs 2.1: V_ij)
}
PRESENT_OR_NOT = Rule(pl.col("present").is_null(), "present must be true or false", "machine")


@dataclass(frozen=True)
class Fleet:
    """Machines that passed every check; build one with `make_fleet`, `uniform_fleet` or `read_fleet`."""

    resources: tuple[Resource, ...]
    machines: pl.DataFrame
    attributes: pl.DataFrame
    changes: pl.DataFrame
    provenance: Provenance
    # float64[group, machine], factors of run times; no groups where every machine is as fast for every task
    speeds: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def capacity(self) -> np.ndarray:
        """int32[resource, machine], units, as of time 0 (also of machines that join later)."""
        return np.vstack([self.machines[resource.name].to_numpy() for resource in self.resources])

    def attribute(self, name: str) -> pl.Series:
        """Return string[machine]: the attribute's value, null where a machine has none."""
        rows = self.attributes.filter(pl.col("attribute") == name)
        values: list[str | None] = [None] * len(self.machines)
        for machine, value in zip(rows["machine"], rows["value"], strict=True):
            values[machine] = value
        return pl.Series(name, values, dtype=pl.String)

    def write(self, folder: Path) -> None:
        """Write fleet.toml and three Parquet files, four where there are speeds, into an existing *folder*."""
        write_toml(_Header(self.resources, self.provenance), folder / "fleet.toml")
        for name in ("machines", "attributes", "changes"):
            write_table(getattr(self, name), folder / f"{name}.parquet")
        if len(self.speeds):
            factors = pl.Series("factors", self.speeds, dtype=pl.Array(pl.Float64, len(self.machines)))
            write_table(pl.DataFrame([factors.arr.to_list()]), folder / "speeds.parquet")


class _Header(msgspec.Struct):
    resources: tuple[Resource, ...]
    provenance: Provenance


def make_fleet(
    machines: pl.DataFrame,
    resources: tuple[Resource, ...],
    attributes: pl.DataFrame | None = None,
    changes: pl.DataFrame | None = None,
    provenance: Provenance | None = None,
    speeds: np.ndarray | None = None,
) -> Fleet:
    """Build a checked fleet from tables that hold float capacities (in ``resource.of``).

    Without a `present` column every machine is there at time 0; without *changes* the fleet stays as it is; without
    *speeds* (float[group, machine]) every machine is as fast. Raises InputError naming the rule and the row.
    """
    if "present" not in machines.columns:
        machines = machines.with_columns(present=pl.lit(True))
    amount_columns(resources)
    empty_changes = pl.DataFrame(schema={**CHANGE_COLUMNS, **{r.name: pl.Float64 for r in resources}})
    return _checked(
        resources,
        in_units(machines, resources, "machines", held_units),
        pl.DataFrame(schema=ATTRIBUTE_COLUMNS) if attributes is None else attributes,
        in_units(empty_changes if changes is None else changes, resources, "changes", held_units),
        provenance or Provenance(),
        np.zeros((0, len(machines))) if speeds is None else speeds,
    )


def uniform_fleet(
    count: int, capacity: Mapping[str, Amount], resources: tuple[Resource, ...], asked: Container[str] | None = None,
    what: str = "capacity",
) -> Fleet:
    """Return *count* alike machines of one cluster, each with *capacity* (a number is in ``resource.of``).

    They have none of a resource that *capacity* does not name and nobody *asked* for; None: all must be named. Raises
    InputError, naming *what* the capacity was given by, for other names.
    """
    names, text = [resource.name for resource in resources], _said(capacity)
    if asked is not None:
        capacity = {**dict.fromkeys((name for name in names if name not in asked), 0.0), **capacity}
    unknown, missing = sorted(set(capacity) - set(names)), [name for name in names if name not in capacity]
    if unknown or missing:
        wrong = [f"unknown {', '.join(unknown)}"] if unknown else []
        why = "" if asked is None else ", which tasks ask for"
        part = "; --only-queue for a part of the tasks" if what.startswith("--") and why else ""
        hint = f"{missing[0]}=0 for machines without it{part}" if missing else ""
        lacking = [f"missing {', '.join(missing)}{why} ({hint})"] if missing else []
        needed = [name for name in names if asked is None or name in asked] or names
        raise InputError(f"{what}: must name each of {', '.join(needed)} once; {'; '.join(wrong + lacking)}")
    machines = pl.DataFrame({"machine": [str(number) for number in range(count)]}, schema={"machine": pl.String})
    columns = {name: pl.lit(amount) for name, amount in natural(capacity, resources, what).items()}
    machines = machines.with_columns(cluster=pl.lit("0"), **columns)
    return make_fleet(machines, resources, provenance=Provenance(f"{text} each", "made by hand"))


def _said(capacity: Mapping[str, Amount]) -> str:
    return ", ".join(f"{name} {amount_text(amount)}" for name, amount in capacity.items())


def read_fleet(folder: Path) -> Fleet:
    """Read a fleet folder and check it again. Raises InputError naming the file or the row."""
    header = read_toml(folder / "fleet.toml", _Header)
    machines, attributes, changes = (
        read_table(folder / f"{name}.parquet") for name in ("machines", "attributes", "changes")
    )
    speeds = _read_speeds(folder / "speeds.parquet", len(machines))
    return _checked(header.resources, machines, attributes, changes, header.provenance, speeds)


def _read_speeds(path: Path, machine_count: int) -> np.ndarray:
    """Return float64[group, machine], without groups where there is no such file."""
    if not path.exists():
        return np.zeros((0, machine_count))
    factors = shaped(read_table(path), SPEED_COLUMNS, "speeds")["factors"]
    widths = factors.list.len().fill_null(0).unique(maintain_order=True).to_list()
    if widths != [machine_count]:
        _refuse_shape((len(factors), next((width for width in widths if width != machine_count), 0)), machine_count)
    return factors.explode().fill_null(np.nan).to_numpy().reshape(len(factors), machine_count)


def _checked(
    resources: tuple[Resource, ...], machines: pl.DataFrame, attributes: pl.DataFrame, changes: pl.DataFrame,
    provenance: Provenance, speeds: np.ndarray,
) -> Fleet:
    amounts = amount_columns(resources)
    machines = shaped(machines, {**MACHINE_COLUMNS, **amounts}, "machines")
    attributes = shaped(attributes, ATTRIBUTE_COLUMNS, "attributes")
    changes = shaped(changes, {**CHANGE_COLUMNS, **amounts}, "changes")
    _check_machines(machines, list(amounts))
    _check_attributes(attributes, len(machines))
    _check_changes(changes, len(machines), list(amounts))
    return Fleet(tuple(resources), machines, attributes, changes.sort("time", maintain_order=True), provenance,
                 _checked_speeds(speeds, machines["machine"]))


def _checked_speeds(speeds: np.ndarray, machine: pl.Series) -> np.ndarray:
    """Return the matrix as kernels need it: float64, rows contiguous, writable."""
    if np.ndim(speeds) != 2 or np.shape(speeds)[1] != len(machine):
        _refuse_shape(np.shape(speeds), len(machine))
    speeds = np.require(speeds, np.float64, ["C", "W"])
    bad = ~(np.isfinite(speeds) & (speeds > 0))
    if bad.any():
        group, row = np.argwhere(bad)[0]
        raise InputError(f"speeds: a factor must be a finite number above 0, group {group} has "
                         f"{speeds[group, row]:g} for machine {machine[int(row)]}")
    return speeds


def _refuse_shape(shape: tuple[int, ...], machine_count: int) -> None:
    said = " x ".join(map(str, shape))
    raise InputError(f"speeds: must be a matrix of groups x {machine_count} machines, a factor for each machine; "
                     f"this one is {said}")


def _check_machines(machines: pl.DataFrame, amounts: list[str]) -> None:
    if machines.is_empty():
        raise InputError("machines: a fleet needs at least one machine, this one has 0")
    machine = pl.col("machine")
    refuse_rows(machines, "machines", [
        Rule(machine.is_null() | (machine == ""), "a machine needs an id", "machine"),
        Rule(~machine.is_first_distinct(), "machine ids must differ", "machine"),
        Rule(pl.col("cluster").is_null(), "a machine needs a cluster", "machine"),
        PRESENT_OR_NOT,
        *amount_rules(amounts),
    ])


def _check_attributes(attributes: pl.DataFrame, machine_count: int) -> None:
    refuse_rows(attributes, "attributes", [
        _row_of_a_machine(machine_count),
        Rule(pl.col("attribute").is_null() | (pl.col("attribute") == ""), "an attribute needs a name", "attribute"),
        Rule(~pl.struct("machine", "attribute").is_first_distinct(), "a machine has one value for an attribute",
             "attribute"),
    ])


def _check_changes(changes: pl.DataFrame, machine_count: int, amounts: list[str]) -> None:
    time = pl.col("time")
    refuse_rows(changes, "changes", [
        Rule(time.is_null() | ~time.is_finite() | (time < 0), "time must be a finite number of seconds, 0 or more",
             "time"),
        _row_of_a_machine(machine_count),
        PRESENT_OR_NOT,
        *amount_rules(amounts),
    ])


def _row_of_a_machine(machine_count: int) -> Rule:
    machine = pl.col("machine")
    return Rule(machine.is_null() | (machine >= machine_count),
                f"machine must be a row of the {machine_count} machines", "machine")
