"""Finds the machine that costs a shape least, by short lists (fleet/shortlists.py).

A search (1) looks at the machines that changed since the shape was last asked about, and lists those that go before the
list's end; (2) takes the best of the list, if it costs what its entry says, else puts it where it belongs, and looks
again; (3) if none is left, and there may be machines behind the end, gathers the list anew from all machines. A block
of machines is left out whose least cost is behind the end, and the cost of others is worked out for a block at once.
"""
import numpy as np

from subak.fleet.feasible import NOWHERE, shape_fits
from subak.fleet.index import LANES_OF_BLOCK, block_may_fit, fitting_word, lowest_bit
from subak.fleet.shortlists import FACTOR_A, FACTOR_B, Shortlists
from subak.fleet.state import BLOCK, NO_BITS, ONE, FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.workload.tasks import Shapes

FURTHER, STEP = 0.02, 4.0  # by which share of the cost at its end a list goes further next; if in vain, STEP times that


@inlined
def cheapest(fleet: FleetState, shapes: Shapes, shape: int) -> int:
    """Return the machine that fits and costs least, the first of equals, or NOWHERE."""
    lists, number = fleet.lists, shape % fleet.lists.head.size
    room = lists.changed.size - 1
    if lists.head[number]["shape"] != shape:
        lists.head[number]["shape"] = shape
        gather(fleet, shapes, number, np.inf)
    elif lists.changed[room] - lists.head[number]["seen"] > room:
        gather(fleet, shapes, number, further(lists, number, FURTHER))
    else:
        follow(fleet, shapes, number)
    share = FURTHER
    while True:
        machine = best_listed(fleet, shapes, number)
        if machine != NOWHERE or lists.head[number]["end"] == np.inf:
            return machine
        gather(fleet, shapes, number, further(lists, number, share))
        share *= STEP


@inlined
def further(lists: Shortlists, number: int, share: float) -> float:
    """Return a cost that is a share of itself behind the end of a list, inf from a share of 1 on."""
    end = lists.head[number]["end"]
    return end + share * abs(end) if share < 1.0 else np.inf


@inlined
def cost_of(fleet: FleetState, shape: int, machine: int) -> float:
    """Return what a machine costs a shape."""
    total = 0.0
    for resource in range(fleet.free.shape[0]):
        first, second = fleet.lists.weight[FACTOR_A, resource, shape], fleet.lists.weight[FACTOR_B, resource, shape]
        total += fleet.free[resource, machine] * first * second
    return total


@inlined
def is_before_end(lists: Shortlists, number: int, cost: float, machine: int) -> bool:
    """Whether a machine of this cost goes before the end of a list."""
    end = lists.head[number]["end"]
    return cost < end or (cost == end and machine < lists.head[number]["end_machine"])


@inlined
def follow(fleet: FleetState, shapes: Shapes, number: int) -> None:
    """List the machines that changed since the list was last seen and go before its end."""
    lists, shape = fleet.lists, lists_shape(fleet.lists, number)
    room = lists.changed.size - 1
    for change in range(lists.head[number]["seen"], lists.changed[room]):
        machine = lists.changed[change & (room - 1)]
        cost = cost_of(fleet, shape, machine)
        if is_before_end(lists, number, cost, machine) and shape_fits(fleet, shapes, shape, machine):
            enlist(lists, number, cost, machine)
    lists.head[number]["seen"] = lists.changed[room]


@inlined
def lists_shape(lists: Shortlists, number: int) -> int:
    """Return whose list it is."""
    return lists.head[number]["shape"]


@inlined
def best_listed(fleet: FleetState, shapes: Shapes, number: int) -> int:
    """Return the first machine of a list that has seen all changes, or NOWHERE; entries that are too low are raised."""
    lists, shape = fleet.lists, lists_shape(fleet.lists, number)
    while lists.head[number]["size"] > 0:
        entry = lists.entry[number, lists.head[number]["size"] - 1]
        machine, cost = entry["machine"], cost_of(fleet, shape, entry["machine"])
        fits = shape_fits(fleet, shapes, shape, machine)
        if fits and cost == entry["cost"]:
            return machine
        lists.head[number]["size"] -= 1
        if fits and is_before_end(lists, number, cost, machine):
            enlist(lists, number, cost, machine)
    return NOWHERE


@kernel
def enlist(lists: Shortlists, number: int, cost: float, machine: int) -> None:
    """Put a machine that goes before the end of a list into its place; one too many moves the end."""
    head, entry = lists.head[number], lists.entry[number]
    size = head["size"]
    place = size  # all before it go behind the machine
    while place > 0 and goes_before(entry[place - 1], cost, machine):
        place -= 1
    if place > 0 and entry[place - 1]["machine"] == machine and entry[place - 1]["cost"] == cost:
        return
    if size < entry.size:
        for after in range(size, place, -1):
            entry[after] = entry[after - 1]
        head["size"] = size + 1
    elif place == 0:
        head["end"], head["end_machine"] = cost, machine
        return
    else:
        head["end"], head["end_machine"] = entry[0]["cost"], entry[0]["machine"]
        place -= 1
        for before in range(place):
            entry[before] = entry[before + 1]
    entry[place]["cost"] = cost
    entry[place]["machine"] = machine


@inlined
def goes_before(entry: np.void, cost: float, machine: int) -> bool:
    """Whether an entry goes before a machine of a cost."""
    return entry["cost"] < cost or (entry["cost"] == cost and entry["machine"] < machine)


@kernel
def gather(fleet: FleetState, shapes: Shapes, number: int, end: float) -> None:
    """List, of all machines that fit, the first of those that cost less than *end*."""
    lists, shape = fleet.lists, lists_shape(fleet.lists, number)
    head = lists.head[number]
    head["size"], head["end"], head["end_machine"] = 0, end, -1
    head["seen"] = lists.changed[lists.changed.size - 1]
    for block in range(fleet.allowed.shape[1]):
        if not block_may_fit(fleet, shapes, shape, block) or least_cost(fleet, shapes, shape, block) > head["end"]:
            continue
        word = cheap_word(fleet, shape, block, head["end"])
        if word != NO_BITS:
            word &= fitting_word(fleet, shapes, shape, block)
        while word != NO_BITS:
            machine = block * BLOCK + lowest_bit(word)
            word &= word - ONE
            cost = cost_of(fleet, shape, machine)
            if is_before_end(lists, number, cost, machine):
                enlist(lists, number, cost, machine)


@inlined
def least_cost(fleet: FleetState, shapes: Shapes, shape: int, block: int) -> float:
    """Return what every machine of a block costs at least that fits the shape."""
    total = 0.0
    for resource in range(fleet.free.shape[0]):
        first, second = fleet.lists.weight[FACTOR_A, resource, shape], fleet.lists.weight[FACTOR_B, resource, shape]
        amount = fleet.block_free_max[resource, block] if second < 0.0 else shapes.request[resource, shape]
        total += amount * first * second
    return total


@kernel
def cheap_word(fleet: FleetState, shape: int, block: int, end: float) -> np.uint64:
    """Return the word of the block's machines that cost the shape no more than *end*."""
    costs, start = fleet.lists.costs, np.uint64(block) * LANES_OF_BLOCK
    for lane in range(LANES_OF_BLOCK):
        costs[lane] = 0.0
    for resource in range(fleet.free.shape[0]):
        first, second = fleet.lists.weight[FACTOR_A, resource, shape], fleet.lists.weight[FACTOR_B, resource, shape]
        for lane in range(LANES_OF_BLOCK):
            costs[lane] += fleet.free[resource, start + lane] * first * second
    word = NO_BITS
    for lane in range(LANES_OF_BLOCK):
        word |= np.uint64(costs[lane] <= end) << lane
    return word
