"""Describes a fleet in plain values for tables, pages and JSON."""
import msgspec
import polars as pl

from subak.fleet.table import Fleet
from subak.resources import Resource
from subak.tables import Provenance

ALIKE = "machines alike"  # a column's name that no resource can have


class Configuration(msgspec.Struct, frozen=True):
    """Machines of the same capacity."""

    capacity: dict[str, float]  # in ``resource.of``
    machines: int
    share: float  # of all machines


class Attribute(msgspec.Struct, frozen=True):
    """An attribute and its most frequent values."""

    machines: int
    values: int
    most_frequent: dict[str, int]


class FleetDescription(msgspec.Struct, frozen=True):
    """What a fleet holds. Times are seconds, amounts in ``resource.of``."""

    name: str
    provenance: Provenance
    resources: tuple[Resource, ...]
    counts: dict[str, int]
    capacity: dict[str, float]  # of the machines present at time 0
    configurations: list[Configuration]  # the most frequent first
    clusters: dict[str, int]  # machines of each
    attributes: dict[str, Attribute]
    first_change: float | None
    last_change: float | None


def describe_fleet(fleet: Fleet) -> FleetDescription:
    """Return the description of a fleet."""
    here = fleet.machines.filter("present")
    changes = fleet.changes
    return FleetDescription(
        name=fleet.provenance.name,
        provenance=fleet.provenance,
        resources=fleet.resources,
        counts={"machines": len(fleet.machines), "present at time 0": len(here),
                "clusters": fleet.machines["cluster"].n_unique(), "changes": len(changes)},
        capacity={resource.name: int(here[resource.name].cast(pl.Int64).sum()) * resource.unit
                  for resource in fleet.resources},
        configurations=_configurations(fleet),
        clusters=dict(fleet.machines.group_by("cluster").len().sort("cluster").rows()),
        attributes={str(name[0]): _attribute(rows)
                    for name, rows in fleet.attributes.sort("attribute").group_by("attribute", maintain_order=True)},
        first_change=None if changes.is_empty() else float(changes["time"][0]),
        last_change=None if changes.is_empty() else float(changes["time"][-1]),
    )


def _configurations(fleet: Fleet) -> list[Configuration]:
    """All machines count, as in Table 1 of LoTES, also those that join later."""
    names = [resource.name for resource in fleet.resources]
    counts = fleet.machines.group_by(names).len(ALIKE).sort(ALIKE, *names, descending=True)
    return [
        Configuration({resource.name: row[resource.name] * resource.unit for resource in fleet.resources},
                      row[ALIKE], row[ALIKE] / len(fleet.machines))
        for row in counts.iter_rows(named=True)
    ]


def _attribute(rows: pl.DataFrame) -> Attribute:
    counts = rows.group_by("value").len().sort("len", "value", descending=[True, False])
    return Attribute(len(rows), len(counts), {str(value): count for value, count in counts.head(5).rows()})
