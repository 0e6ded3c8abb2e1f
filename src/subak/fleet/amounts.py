"""Takes and gives amounts of machines; the only place where they change, with the index kept true."""
import numpy as np

from subak.fleet.index import lower_summary, note_freed_block, raise_summary
from subak.fleet.shortlists import note_change
from subak.fleet.state import BLOCK, FREE_WHEN_ABSENT, FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined, noinline
from subak.workload.tasks import Shapes


@inlined
def take(fleet: FleetState, shapes: Shapes, shape: int, machine: int) -> None:
    """Take a request from the machine; the caller has checked that it fits."""
    block = machine // BLOCK
    for resource in range(fleet.free.shape[0]):
        amount = shapes.request[resource, shape]
        if amount > 0:
            before = fleet.free[resource, machine]
            fleet.free[resource, machine] = before - amount
            fleet.used[resource] += amount
            if before == fleet.block_free_max[resource, block]:
                fleet.block_at_max[resource, block] -= 1
                if fleet.block_at_max[resource, block] == 0:
                    lower_summary(fleet, resource, block)
    if fleet.lists.follows_takes:
        note_change(fleet.lists, machine)


@inlined
def give_back(fleet: FleetState, shapes: Shapes, shape: int, machine: int) -> None:
    """Return a request to the machine, which must be present."""
    block = machine // BLOCK
    for resource in range(fleet.free.shape[0]):
        amount = shapes.request[resource, shape]
        if amount > 0:
            after = fleet.free[resource, machine] + amount
            fleet.free[resource, machine] = after
            fleet.used[resource] -= amount
            raise_summary(fleet, resource, block, after)
    note_freed_block(fleet, block)
    note_change(fleet.lists, machine)


@kernel
def resize(fleet: FleetState, machine: int, capacity: np.ndarray, change: int) -> None:
    """Give an idle or shrinking machine the capacities of row *change* of int32[resource, change]."""
    for resource in range(fleet.free.shape[0]):
        new = capacity[resource, change]
        held = fleet.capacity[resource, machine] - max(fleet.free[resource, machine], np.int32(0))
        fleet.present[resource] += new - fleet.capacity[resource, machine]
        fleet.capacity[resource, machine] = new
        fleet.free[resource, machine] = new - held
        lower_summary(fleet, resource, machine // BLOCK)
    note_freed_block(fleet, machine // BLOCK)
    note_change(fleet.lists, machine)


@kernel
def remove(fleet: FleetState, machine: int) -> None:
    """Take an idle machine out of the fleet."""
    for resource in range(fleet.free.shape[0]):
        fleet.present[resource] -= fleet.capacity[resource, machine]
        fleet.capacity[resource, machine] = 0
        fleet.free[resource, machine] = FREE_WHEN_ABSENT
        lower_summary(fleet, resource, machine // BLOCK)


@noinline
def shift(fleet: FleetState, machine: int, capacity: np.ndarray, configuration: int) -> None:
    """Give a machine the capacity of a column of int32[resource, configuration], -1 for none, whatever it holds.

    For beliefs, where more may be held than there is: free amounts may become negative.
    """
    for resource in range(fleet.free.shape[0]):
        new = capacity[resource, configuration] if configuration >= 0 else np.int32(0)
        change = new - fleet.capacity[resource, machine]
        fleet.present[resource] += change
        fleet.capacity[resource, machine] = new
        fleet.free[resource, machine] += change
        lower_summary(fleet, resource, machine // BLOCK)
    note_freed_block(fleet, machine // BLOCK)
    note_change(fleet.lists, machine)
