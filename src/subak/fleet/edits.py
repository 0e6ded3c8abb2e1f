"""Adds machines to a fleet, removes some, or scales it with the same mix.

Which machines a smaller fleet keeps, and which a larger one has again, is said by one row, in which kinds (machines of
the same capacity that are there at time 0, or are not) are spread evenly, and within a kind its clusters. The first
part of the row has the mix of the whole, nearly: each kind is within about a machine of its share. A machine more never
takes another one's place, as in Webster's method of apportionment (Balinski and Young, Fair Representation, 1982),
which gives the next seat to the kind with the least (seats + 1/2) / machines; here the half is another part of a seat
for each kind, so that kinds of one machine do not all come at once. A fleet larger than the whole begins the row again.
"""
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet, make_fleet, uniform_fleet
from subak.quantities import Amount, amount_text
from subak.resources import AMOUNT_MAX, CPU, Resource, bare_words, cpu_row, held_units, natural
from subak.tables import Provenance

GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, are spread more evenly than those of any other number
ROUNDING = 1e-6  # of a unit: 1.15 times 100 is 115, not 114.99999999999999
TIMES = "\N{MULTIPLICATION SIGN}"


def resized(fleet: Fleet, count: int) -> Fleet:
    """Return *count* machines of the fleet's mix; a machine that comes again is a copy, with all that befalls it."""
    return _of_rows(fleet, rows_in_mix(fleet, count))


def rows_in_mix(fleet: Fleet, count: int) -> np.ndarray:
    """Return int64[machine]: which rows *count* machines of the fleet's mix are of, a row as often as it occurs."""
    number = np.arange(count)
    row, again = _in_mix(fleet.machines)[number % len(fleet.machines)], number // len(fleet.machines)
    return row[np.lexsort((row, again))]


def scaled(fleet: Fleet, factor: float) -> Fleet:
    """Return the fleet with *factor* times as many machines, of the same mix. Raises InputError where none is left."""
    count = round(factor * len(fleet.machines))
    if count == 0:
        raise InputError(f"scale: must leave a machine, {factor:g} of {len(fleet.machines):,} is none")
    return _renamed(resized(fleet, count), f"{TIMES} {factor:g}")


def removed(fleet: Fleet, amount: float, share: bool, capacity: Mapping[str, Amount]) -> Fleet:
    """Return the fleet without *amount* machines, or that *share* (of one) of them, evenly over its kinds.

    With *capacity* (in ``resource.of``), machines that have just that much of what it names. Raises InputError where
    there are not so many, where none is left, and for resources that the fleet does not have.
    """
    what = f"remove {_amount_text(amount, share)}" + (f" of {_capacity_text(capacity)}" if capacity else "")
    alike = np.flatnonzero(_are_of(fleet, capacity, what))
    count = round(amount * alike.size) if share else int(amount)
    if count > alike.size or alike.size == 0:
        raise InputError(f"{what}: the fleet has {alike.size:,} such machines"
                         f"{bare_words(capacity, fleet.resources)}")
    if count == len(fleet.machines):
        raise InputError(f"{what}: must leave a machine, the fleet has {count:,}")
    stays = np.ones(len(fleet.machines), bool)
    stays[alike[_in_mix(fleet.machines[alike])[alike.size - count:]]] = False
    return _renamed(_of_rows(fleet, np.flatnonzero(stays)), f"- {what.removeprefix('remove ')}")


def added(fleet: Fleet, count: int, capacity: Mapping[str, Amount]) -> Fleet:
    """Return the fleet with *count* alike machines more, each with *capacity* (in ``resource.of``).

    They have no attributes, are there from time 0 on, and belong to its clusters as its machines do. Raises InputError
    for resources that are not the fleet's, and where it has a factor of run times for each machine.
    """
    what = f"{count:,} of {_capacity_text(capacity)}"
    if len(fleet.speeds):
        raise InputError(f"add_machines {what}: the fleet says how fast each machine is, of these it would not be "
                         "known; scale copies machines")
    try:
        new = uniform_fleet(count, capacity, fleet.resources).machines
    except InputError as error:
        raise InputError(f"add_machines {what}: {error}") from None
    taken = set(fleet.machines["machine"])
    ids = pl.Series("machine", [_unused(f"added-{number}", taken) for number in range(count)], dtype=pl.String)
    in_turn = np.argsort(_evenly(fleet.machines["cluster"].rank("dense"), np.zeros(len(fleet.machines))), kind="stable")
    clusters = fleet.machines["cluster"].gather(in_turn[np.arange(count) % len(fleet.machines)])
    machines = pl.concat([fleet.machines, new.with_columns(ids, clusters).select(fleet.machines.columns)])
    return _renamed(replace(fleet, machines=machines, speeds=np.zeros((0, len(machines)))), f"+ {what}")


def overcommitted(fleet: Fleet, times: float) -> Fleet:
    """Return the fleet whose machines promise *times* the CPU that they have, in whole units; 0 leaves it as it is.

    Raises InputError where no resource is the CPU, and where a machine would promise more units than there may be.
    """
    if not times:
        return fleet
    cpu_row(fleet.resources)

    def promised(table: pl.DataFrame) -> pl.DataFrame:
        units = np.floor(table[CPU].to_numpy() * times + ROUNDING)
        if units.size and units.max() > AMOUNT_MAX:
            raise InputError(f"interference: machines may promise at most {AMOUNT_MAX} units of {CPU}, one would "
                             f"promise {units.max():.0f}")
        return table.with_columns(pl.Series(CPU, units).cast(table.schema[CPU]))
    return replace(fleet, machines=promised(fleet.machines), changes=promised(fleet.changes))


def completed(fleet: Fleet, resources: tuple[Resource, ...], asked: Container[str]) -> Fleet:
    """Return the fleet with none of those *resources* that it does not have and nobody *asked* for.

    A fleet that lacks another one, or counts one otherwise, is returned as it is.
    """
    missing = [each for each in resources if each not in fleet.resources]
    if not missing or any(each.name in asked for each in missing) or tuple(
            each for each in resources if each not in missing) != fleet.resources:
        return fleet
    none = [pl.lit(0, pl.Int32).alias(each.name) for each in missing]
    return replace(fleet, resources=resources, machines=fleet.machines.with_columns(none),
                   changes=fleet.changes.with_columns(none))


def mixed(
    parts: Sequence[tuple[int, Mapping[str, Amount]]], resources: tuple[Resource, ...],
    asked: Container[str] | None = None, what: str = "capacity",
) -> Fleet:
    """Return a fleet of one cluster of so many machines of each capacity (in ``resource.of``), in their order.

    See `uniform_fleet` for what is *asked*, and *what* the capacity was given by.
    """
    fleets = [uniform_fleet(count, capacity, resources, asked, what) for count, capacity in parts]
    machines = pl.concat([each.machines for each in fleets]).with_columns(
        machine=pl.int_range(pl.len()).cast(pl.String))
    amounts = [(pl.col(resource.name) * resource.unit).alias(resource.name) for resource in resources]
    name = " and ".join(f"{count:,} of {_capacity_text(capacity)}" for count, capacity in parts)
    return make_fleet(machines.with_columns(amounts), resources, provenance=Provenance(name, "made by hand"))


def _in_mix(machines: pl.DataFrame) -> np.ndarray:
    """Return int64[machine]: the row in which any first part has the mix of the whole."""
    kind = [name for name in machines.columns if name not in ("machine", "cluster")]
    rows = machines.select(kind=pl.struct(kind).rank("dense"), part=pl.struct(*kind, "cluster").rank("dense"))
    spread = np.arange(len(rows)) * GOLDEN % 1.0  # machines with the same attributes often follow each other
    return np.argsort(_evenly(rows["kind"], _evenly(rows["part"], spread)), kind="stable")


def _evenly(group: pl.Series, before: np.ndarray) -> np.ndarray:
    """Return float64[row] from 0 to 1: rows of a group, in the order of *before*, are equally far from each other."""
    table = pl.DataFrame({"group": group, "before": before})
    place = table.select(pl.col("before").rank("ordinal").over("group"))["before"].to_numpy().astype(np.float64)
    size = table.select(pl.len().over("group"))["len"].to_numpy()
    first = 1.0 - (group.to_numpy().astype(np.float64) * GOLDEN) % 1.0
    return np.asarray((place - first) / size)


def _are_of(fleet: Fleet, capacity: Mapping[str, Amount], what: str) -> np.ndarray:
    """Return bool[machine]: which have just this much of what *capacity* names."""
    known = {resource.name: resource for resource in fleet.resources}
    alike = np.ones(len(fleet.machines), bool)
    for name, amount in natural(capacity, fleet.resources, what).items():
        alike &= fleet.machines[name].to_numpy() == held_units(np.array([amount]), known[name], what)[0]
    return alike


def _of_rows(fleet: Fleet, rows: np.ndarray) -> Fleet:
    """Return the fleet of these rows, int64[machine]; one that occurs again is named 7~2, then 7~3."""
    place = pl.DataFrame({"machine": rows, "place": np.arange(len(rows))}).cast(pl.UInt32)
    attributes, changes = (
        table.join(place, on="machine", maintain_order="left").with_columns(machine="place").select(table.columns)
        for table in (fleet.attributes, fleet.changes))
    return replace(
        fleet, machines=fleet.machines[rows].with_columns(_ids(fleet.machines["machine"], rows)),
        attributes=attributes.sort("machine", maintain_order=True), changes=changes,
        speeds=np.ascontiguousarray(fleet.speeds[:, rows]))


def _ids(ids: pl.Series, rows: np.ndarray) -> pl.Series:
    """Return the ids of machines; a copy's is none that there is."""
    nth = pl.DataFrame({"row": rows}).select(pl.int_range(1, pl.len() + 1).over("row").alias("nth"))["nth"]
    copies = pl.DataFrame([ids.gather(rows), nth]).select(
        pl.when(nth > 1).then(pl.format("{}~{}", "machine", "nth")).otherwise("machine").alias("machine"))["machine"]
    if not copies.is_duplicated().any():
        return copies
    taken = set(ids)
    found = [name if again == 1 else _unused(name, taken) for name, again in zip(copies, nth, strict=True)]
    return pl.Series("machine", found, dtype=pl.String)


def _unused(name: str, taken: set[str]) -> str:
    """Return the name, or with a higher number at its end one that is not taken, and take it."""
    while name in taken:
        stem = name.rstrip("0123456789")
        name = f"{stem}{int(name[len(stem):]) + 1}"
    taken.add(name)
    return name


def _renamed(fleet: Fleet, edit: str) -> Fleet:
    provenance = fleet.provenance
    return replace(fleet, provenance=msgspec.structs.replace(provenance, name=f"{provenance.name} {edit}"))


def _amount_text(amount: float, share: bool) -> str:
    return f"{100 * amount:g}%" if share else f"{amount:,.0f}"


def _capacity_text(capacity: Mapping[str, Amount]) -> str:
    return ", ".join(f"{name} {amount_text(amount)}" for name, amount in capacity.items())
