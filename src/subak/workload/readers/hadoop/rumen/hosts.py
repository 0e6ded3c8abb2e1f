"""Reads Rumen's hosts and topology as a fleet of map and reduce slots."""
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl

from subak.errors import InputError
from subak.fleet.locality import LEVELS
from subak.fleet.locality import RACK_ATTRIBUTE as RACK
from subak.fleet.table import Fleet, make_fleet
from subak.tables import Provenance
from subak.workload.mapreduce_tables import SLOTS
from subak.workload.readers.conversion import Account, account_of
from subak.workload.readers.files.json_text import converted, json_values
from subak.workload.readers.files.stream import ignore_progress, single_file
from subak.workload.readers.options import Options
from subak.workload.readers.rulings import KEPT, ruling


class Node(msgspec.Struct, frozen=True):
    """A place of a topology: what has no children is a machine."""

    name: str
    children: tuple["Node", ...] | None = None


class Hosts(NamedTuple):
    """What there is to run on."""

    nodes: pl.DataFrame  # node, rack (null where nothing names it); one row a machine
    accounts: tuple[Account, ...]
    added: int  # nodes that only the attempts name


def hosts_of(attempts: pl.DataFrame, topology: str) -> Hosts:
    """Return the nodes of the topology (a file's name, or none) and those on which *attempts* ran.

    A host's name is /rack/node or the node alone; all names of one node are one machine.
    """
    ran = _ran_on(attempts)
    if not topology:
        return Hosts(ran, (), 0)
    nodes = _topology(Path(topology))
    named = nodes.filter(ruling=KEPT).select("node", RACK)
    added = ran.join(named, on="node", how="anti", maintain_order="left")
    return Hosts(pl.concat([named, added]), (account_of("nodes", nodes),), len(added))


def fleet_of(nodes: pl.DataFrame, options: Options, provenance: Provenance) -> Fleet:
    """Return a machine for each node with its slots; the rack, where it is known, is an attribute."""
    map_slot, reduce_slot = (resource.name for resource in SLOTS)
    machines = nodes.select(machine="node", cluster=pl.lit("0"), **{
        map_slot: pl.lit(float(options.map_slots)), reduce_slot: pl.lit(float(options.reduce_slots))})
    racks = nodes.with_row_index("machine").drop_nulls(RACK).select("machine", attribute=pl.lit(RACK), value=RACK)
    return make_fleet(machines, SLOTS, racks, provenance=provenance)


def with_nodes(attempts: pl.DataFrame) -> pl.DataFrame:
    """Return *attempts* with `node` and `rack`, null where the host does not name them."""
    parts = plain_name(pl.col("host")).str.strip_chars_start("/").str.split("/")
    several = parts.list.len() > 1
    named = parts.list.last()
    return attempts.with_columns(pl.when(named != "").then(named).alias("node"),
                                 pl.when(several).then(parts.list.get(-2, null_on_oob=True)).alias(RACK))


def with_levels(tasks: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """Add `level`, how near its input (`inputs`, nodes) the attempt on `host` ran: one of LEVELS, null if not known."""
    rack = dict(nodes.select("node", RACK).drop_nulls().rows())
    on = with_nodes(tasks.select("host", "inputs")).with_row_index("row").with_columns(
        rack=pl.coalesce(pl.col("node").replace_strict(rack, default=None, return_dtype=pl.String), RACK))
    homes = on.explode("inputs").drop_nulls(("node", "inputs"))
    home_rack = pl.col("inputs").replace_strict(rack, default=None, return_dtype=pl.String)
    near = homes.group_by("row").agg(node=(pl.col("inputs") == pl.col("node")).any(),
                                     rack=(home_rack == pl.col(RACK)).any())
    level = pl.when("node").then(0).when("rack").then(1).otherwise(2)
    found = on.select("row").join(near.select("row", level=level), on="row", how="left", maintain_order="left")
    return tasks.with_columns(level=found["level"].replace_strict(dict(enumerate(LEVELS)), return_dtype=pl.String))


def plain_name(name: pl.Expr) -> pl.Expr:
    """Return names without the backslashes that Rumen's anonymizer leaves before dots."""
    return name.str.replace_all("\\", "", literal=True)


def most_at_once(attempts: pl.DataFrame, stage: str) -> int:
    """Return how many attempts at tasks of a stage ran on one node at the same instant, at most."""
    ran = attempts.filter(pl.col("stage") == stage).drop_nulls("node").filter(pl.col("start") >= 0,
                                                                             pl.col("finish") > pl.col("start"))
    steps = pl.concat([ran.select("node", time="start", step=pl.lit(1)), ran.select("node", time="finish",
                                                                                   step=pl.lit(-1))])
    return int(steps.sort("node", "time", "step").select(pl.col("step").cum_sum().over("node").max()).item() or 0)


def _ran_on(attempts: pl.DataFrame) -> pl.DataFrame:
    """One row a node, sorted: its rack is the first that an attempt names."""
    named = attempts.drop_nulls("node").sort("node", maintain_order=True)
    return named.group_by("node", maintain_order=True).agg(pl.col(RACK).drop_nulls().first())


def _topology(path: Path) -> pl.DataFrame:
    """Return the leaves of the tree with their parents, and each row's ruling."""
    single_file(path)
    values = list(json_values(path, ignore_progress, frozenset(Node.__struct_encode_fields__)))
    if len(values) != 1:
        raise InputError(f"{path}: a topology must be one JSON object, not {len(values)}")
    root = converted(values[0], Node, f"{path}: topology")
    table = pl.DataFrame(_leaves(root), {"node": pl.String, RACK: pl.String}, orient="row")
    if table.is_empty():
        raise InputError(f"{path}: the topology has no nodes below {root.name!r}")
    return table.with_columns(plain_name(pl.col("node", RACK))).with_columns(ruling=ruling([
        (pl.col("node") == "", "node without a name"), (~pl.col("node").is_first_distinct(), "node seen before")]))


def _leaves(root: Node) -> list[tuple[str, str]]:
    """(node, rack) of all leaves below *root*, in the order of the file."""
    found = []
    waiting = [(root, child) for child in reversed(root.children or ())]
    while waiting:
        parent, node = waiting.pop()
        if node.children is None:
            found.append((node.name, parent.name))
        else:
            waiting.extend((node, child) for child in reversed(node.children))
    return found
