"""The static knowledge of all roles: machines, partitions, queues, lanes and configurations.

Machines are numbered by local master, then by partition; a partition begins at a block of 64, the places that this
leaves empty are machines that are never there.
"""
from typing import NamedTuple

import numpy as np

from subak.marks import inlined

MACHINE_PLACE = np.dtype([
    ("cluster", np.int32),  # its local master
    ("home", np.int32),  # the global master of its partition
    ("configuration", np.int32),  # at time 0; NOBODY where it is absent
])
QUEUE_PLACE = np.dtype([
    ("owner", np.int32),  # its global master
    ("share", np.float64),  # of the federation
])
INCARNATION_BITS = 40  # of an attempt's number: so many requests has an incarnation before it would run into the next


class Topology(NamedTuple):
    """The federation on paper."""

    global_masters: int
    local_masters: int
    machine: np.ndarray  # MACHINE_PLACE[machine]
    size: np.ndarray  # int32[cluster], machines without the empty places
    block: np.ndarray  # int64[partition + 1], first blocks; partition = local master * global masters + global master
    queue: np.ndarray  # QUEUE_PLACE[queue]
    capacity: np.ndarray  # int32[resource, configuration], units
    placement: int  # how a machine of a partition is chosen (placement.py)
    standbys: int  # number of the standby of cluster 0; those of the others follow
    is_there: np.ndarray  # bool[cluster]; no machine is ever in one that is not


class Rules(NamedTuple):
    """The settings that roles follow; times are in seconds."""

    heartbeat: float
    retry: float  # inf: the network loses nothing
    lease: float
    timer_slack: float  # by which timers may be late
    full_updates: bool  # updates carry, and cost, the whole cluster
    preemption: int  # OFF, STRICT, PAPER
    preemptions_max: int
    standby: bool
    hold_back_after: float  # inf: machines are held back for nobody


OFF, STRICT, PAPER = range(3)


def records(kind: np.dtype, **columns: np.ndarray) -> np.ndarray:
    """Return an array of records from their columns."""
    table = np.zeros(len(next(iter(columns.values()))), kind)
    for name, values in columns.items():
        table[name] = values
    return table


@inlined
def speaker(topology: Topology, cluster: int, epoch: int) -> int:
    """Return the number of the local master that speaks for a cluster: epochs of a standby are odd."""
    return int(cluster + topology.standbys * (epoch % 2))
