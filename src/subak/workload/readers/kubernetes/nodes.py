"""Reads nodes as a fleet: allocatable amounts; labels and taints as attributes."""
from collections.abc import Mapping

import polars as pl

from subak.fleet.table import Fleet, make_fleet
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.readers.kubernetes.affinity import NODE_NAME, Places
from subak.workload.readers.kubernetes.objects import Item, Node
from subak.workload.readers.kubernetes.requests import amounts, in_unit_of


def fleet_of(items: list[Item], resources: Mapping[str, Resource], places: Places, provenance: Provenance) -> Fleet:
    """Return the machines that nodes are. Raises InputError naming the item with a bad quantity."""
    machines, attributes = [], []
    for row, item in enumerate(items):
        node = item.value
        assert isinstance(node, Node)
        status = node.status
        has = amounts(status.capacity if status.allocatable is None else status.allocatable, item.where)
        capacity = {each.name: in_unit_of(name, has.get(name, 0.0), each, item.where)
                    for name, each in resources.items()}
        machines.append({"machine": node.metadata.name, "cluster": "0", **capacity})
        labels = {**(node.metadata.labels or {}), NODE_NAME: node.metadata.name}
        found = places.attributes(labels, node.spec.taints or ())
        attributes += [(row, name, value) for name, value in sorted(found.items()) if name]
    schema = {"machine": pl.UInt32, "attribute": pl.String, "value": pl.String}
    return make_fleet(pl.DataFrame(machines, infer_schema_length=None), tuple(resources.values()),
                      pl.DataFrame(attributes, schema, orient="row"), provenance=provenance)
