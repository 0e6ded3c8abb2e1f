"""Chooses the leaf to serve next in a weighted tree, by the least key at each node.

A leaf holds tasks that are alike (of one shape) and belong to one job; its share is its dominant share. The children of
a node meet pairwise in joins, so that the next leaf is found, and a change is told to the root, in a logarithm of the
children per level. A node hands up the least key below it through a map of its own, and which map that is makes the
order: see docs/fairness.md.

Rules:
- a slot's row is a function of its children's rows: a change is told upwards, and sums have no history to drift with
- ties, up to rounding, go to the leaf with the lowest number
- leaves of one parent and shape stand behind a gate: a shape that fits no machine is closed with few writes
- saturated resources and the resource that MCH turns on belong to the whole tree: when one changes, all is refreshed

Sources: Ghodsi et al., DRF, NSDI 2011; Bhattacharya et al., H-DRF, SoCC 2013; You et al., MCH, section III.
"""
from typing import NamedTuple

import numpy as np

from subak.kernels.kernel import kernel
from subak.marks import inlined, noinline
from subak.queues.orders import COLLAPSED, DRF, HDRF, HDRF_FAST, MCH, MCH_EXACT

NOBODY = -1
NEVER = np.inf  # the key of what cannot be served
TIE = 1e-12  # keys that differ by less of themselves are equal: thirds have no exact sums

LEAF, JOIN, GATE, NODE = range(4)  # kinds of a slot
KIND, OF, LEFT, RIGHT, UP, BEST, BEST_APART = range(7)  # columns of `link`; OF: the leaf, shape or node it is
# columns of `value`: the least key of what can be served; another least key (MCH: of leaves that stand apart from the
# hierarchy; H-DRF and MCH made exact: the same again); then, per resource, the sum of directions, what is held by the
# blocked, and what is held by those that a gate may block (of MCH only the first of each: the weights of the active
# children, and their number)
KEY, KEY_APART, FIRST_UNIT = range(3)

ORDER, RESOURCE, SATURATED = range(3)  # of `mode`: the order; MCH's or the collapse's resource; a bit per resource


class Hierarchy(NamedTuple):
    """A tree laid out in slots, children before parents; the last slot is the root's."""

    link: np.ndarray  # int32[slot, 7]: KIND ... BEST_APART
    value: np.ndarray  # float64[slot, 2 + 3 * resources]: KEY, KEY_APART, then UNIT, HELD and MOVING of each resource
    weight: np.ndarray  # float64[slot], of leaves and nodes
    slot: np.ndarray  # int32[leaf], where it is
    shape: np.ndarray  # int32[leaf]
    waiting: np.ndarray  # int64[leaf], tasks
    running: np.ndarray  # int64[leaf], tasks
    capped: np.ndarray  # bool[leaf], whether a queue above it has reached its limit
    vector: np.ndarray  # float64[shape, resource], share of the capacity that a task takes
    dominant: np.ndarray  # float64[shape], the largest of them
    is_open: np.ndarray  # bool[shape], whether a machine may have room for it
    gate_first: np.ndarray  # int64[shape + 1]
    gate: np.ndarray  # int32[place], slots of the gates of a shape
    closed: np.ndarray  # int32[shape], the closed shapes first
    size: np.ndarray  # int64[1]: how many are closed
    mode: np.ndarray  # int64[3]: ORDER, RESOURCE, SATURATED


@inlined
def refresh(tree: Hierarchy, slot: int) -> None:
    """Work a slot's row out from its children's."""
    kind = tree.link[slot, KIND]
    if kind == JOIN:
        refresh_join(tree, slot)
    elif kind == LEAF:
        refresh_leaf(tree, slot)
    elif kind == GATE:
        refresh_gate(tree, slot)
    else:
        refresh_node(tree, slot)


@inlined
def refresh_leaf(tree: Hierarchy, slot: int) -> None:
    """Refresh a leaf: its share by its weight, its direction, and what it holds."""
    leaf = tree.link[slot, OF]
    shape, order, value = tree.shape[leaf], tree.mode[ORDER], tree.value[slot]
    resources = tree.vector.shape[1]
    wants = tree.waiting[leaf] > 0 and not tree.capped[leaf]
    tree.link[slot, BEST] = leaf
    tree.link[slot, BEST_APART] = leaf
    value[KEY] = leaf_share(tree, leaf) / tree.weight[slot] if wants else NEVER
    value[KEY_APART] = NEVER
    if order == DRF:
        for resource in range(resources):
            value[FIRST_UNIT + resource] = tree.running[leaf] * tree.vector[shape, resource]
        return
    if order == COLLAPSED:
        value[FIRST_UNIT] = tree.weight[slot] if wants or tree.running[leaf] > 0 else 0.0
        return
    if order == MCH:
        is_active = wants or tree.running[leaf] > 0
        for resource in range(resources):
            direction = tree.vector[shape, resource] / tree.dominant[shape]
            value[FIRST_UNIT + resource] = tree.weight[slot] * direction if is_active else 0.0
        value[FIRST_UNIT + resources] = tree.weight[slot] if is_active else 0.0
        value[FIRST_UNIT + 2 * resources] = is_active
        if wants and tree.vector[shape, tree.mode[RESOURCE]] == 0.0:
            value[KEY], value[KEY_APART] = NEVER, value[KEY]
        return
    wants = wants and not asks_saturated(tree, shape)
    if not wants:
        value[KEY] = NEVER
    value[KEY_APART] = value[KEY]
    for resource in range(resources):
        holds = tree.running[leaf] * tree.vector[shape, resource]
        direction = tree.vector[shape, resource] / tree.dominant[shape]
        value[FIRST_UNIT + resource] = tree.weight[slot] * direction if wants else 0.0
        value[FIRST_UNIT + resources + resource] = 0.0 if wants else holds
        value[FIRST_UNIT + 2 * resources + resource] = holds if wants else 0.0


@inlined
def leaf_share(tree: Hierarchy, leaf: int) -> float:
    """Return a leaf's dominant share; in a collapse its share of that resource, if it asks for it."""
    shape = tree.shape[leaf]
    share = tree.dominant[shape]
    if tree.mode[ORDER] == COLLAPSED and tree.vector[shape, tree.mode[RESOURCE]] > 0.0:
        share = tree.vector[shape, tree.mode[RESOURCE]]
    return float(tree.running[leaf] * share)


@inlined
def asks_saturated(tree: Hierarchy, shape: int) -> bool:
    """Whether a shape asks for a saturated resource."""
    for resource in range(tree.vector.shape[1]):
        if tree.mode[SATURATED] >> resource & 1 and tree.vector[shape, resource] > 0.0:
            return True
    return False


@inlined
def refresh_join(tree: Hierarchy, slot: int) -> None:
    """Refresh a join: the lesser key of two, and their sums."""
    left, right = tree.link[slot, LEFT], tree.link[slot, RIGHT]
    join_keys(tree, slot, left, right)
    for column in range(FIRST_UNIT, tree.value.shape[1]):
        tree.value[slot, column] = tree.value[left, column] + tree.value[right, column]


@inlined
def join_keys(tree: Hierarchy, slot: int, left: int, right: int) -> None:
    """Take the lesser of two keys, of each sort; of equals that of the lower leaf."""
    for sort in range(2):
        first, second = tree.value[left, KEY + sort], tree.value[right, KEY + sort]
        if first == second or abs(first - second) <= TIE * min(first, second):
            winner = left if tree.link[left, BEST + sort] < tree.link[right, BEST + sort] else right
        else:
            winner = left if first < second else right
        tree.value[slot, KEY + sort] = tree.value[winner, KEY + sort]
        tree.link[slot, BEST + sort] = tree.link[winner, BEST + sort]


@inlined
def refresh_gate(tree: Hierarchy, slot: int) -> None:
    """Refresh a gate: what is below it, or, where its shape fits no machine, what is blocked below it."""
    below, resources = tree.link[slot, LEFT], tree.vector.shape[1]
    for column in range(tree.value.shape[1]):
        tree.value[slot, column] = tree.value[below, column]
    tree.link[slot, BEST], tree.link[slot, BEST_APART] = tree.link[below, BEST], tree.link[below, BEST_APART]
    if tree.is_open[tree.link[slot, OF]]:
        return
    tree.value[slot, KEY] = NEVER
    tree.value[slot, KEY_APART] = NEVER
    if tree.mode[ORDER] in (HDRF, HDRF_FAST, MCH_EXACT):
        for resource in range(resources):
            tree.value[slot, FIRST_UNIT + resource] = 0.0
            moving = tree.value[below, FIRST_UNIT + 2 * resources + resource]
            tree.value[slot, FIRST_UNIT + resources + resource] += moving


@inlined
def refresh_node(tree: Hierarchy, slot: int) -> None:
    """Refresh a queue or a job: the least key below through the order's map, and one direction for all of it."""
    below, order = tree.link[slot, LEFT], tree.mode[ORDER]
    tree.link[slot, BEST], tree.link[slot, BEST_APART] = tree.link[below, BEST], tree.link[below, BEST_APART]
    for column in range(tree.value.shape[1]):
        tree.value[slot, column] = tree.value[below, column]
    if tree.link[slot, UP] == NOBODY:
        return
    if order == DRF:
        if tree.value[slot, KEY] < NEVER:
            tree.value[slot, KEY] = steepest(tree, slot) / tree.weight[slot]
    elif order == COLLAPSED:
        if tree.value[slot, FIRST_UNIT] > 0.0:
            tree.value[slot, KEY] *= tree.value[slot, FIRST_UNIT] / tree.weight[slot]
            tree.value[slot, FIRST_UNIT] = tree.weight[slot]
    elif order == MCH:
        scale_by_demand(tree, slot)
    else:
        scale_by_holdings(tree, slot)


@inlined
def scale_by_demand(tree: Hierarchy, slot: int) -> None:
    """MCH: a node's share is mu times its children's, where mu is the largest sum of their directions.

    Of leaves that stand apart only weights count, each by the mean of its active siblings': all 1 in the paper.
    """
    mu, resources = 0.0, tree.vector.shape[1]
    for resource in range(tree.vector.shape[1]):
        mu = max(mu, tree.value[slot, FIRST_UNIT + resource])
    if mu > 0.0:
        tree.value[slot, KEY] *= mu / tree.weight[slot]
        for resource in range(resources):
            tree.value[slot, FIRST_UNIT + resource] *= tree.weight[slot] / mu
        mean = tree.value[slot, FIRST_UNIT + resources] / tree.value[slot, FIRST_UNIT + 2 * resources]
        tree.value[slot, KEY_APART] *= mean / tree.weight[slot]
        tree.value[slot, FIRST_UNIT + resources] = tree.weight[slot]
        tree.value[slot, FIRST_UNIT + 2 * resources] = 1.0


@inlined
def scale_by_holdings(tree: Hierarchy, slot: int) -> None:
    """H-DRF: the children that can be served, rescaled to the least share among them, and what the blocked hold."""
    level, key = tree.value[slot, KEY_APART], tree.value[slot, KEY]
    resources, value, weight = tree.vector.shape[1], tree.value[slot], tree.weight[slot]
    if level == NEVER:
        value[KEY] = NEVER
        return
    top = dominant_at(tree, slot, level)
    value[KEY_APART] = top / weight
    value[KEY] = value[KEY_APART] if key == level else NEVER
    if level < key < NEVER:
        value[KEY] = dominant_at(tree, slot, key) / weight
    if top > 0.0:
        for resource in range(resources):
            vector = level * value[FIRST_UNIT + resource] + value[FIRST_UNIT + resources + resource]
            value[FIRST_UNIT + resource] = weight * (vector / top)
    else:
        slope = steepest(tree, slot)
        slope = slope if slope > 0.0 else 1.0
        for resource in range(resources):
            value[FIRST_UNIT + resource] *= weight / slope
    for resource in range(resources):
        value[FIRST_UNIT + resources + resource] = 0.0


@inlined
def dominant_at(tree: Hierarchy, slot: int, level: float) -> float:
    """Return a node's dominant share over the resources that are not saturated when its children are at a level."""
    resources, top = tree.vector.shape[1], 0.0
    for resource in range(resources):
        if not tree.mode[SATURATED] >> resource & 1:
            unit, held = tree.value[slot, FIRST_UNIT + resource], tree.value[slot, FIRST_UNIT + resources + resource]
            top = max(top, level * unit + held)
    return top


@inlined
def steepest(tree: Hierarchy, slot: int) -> float:
    """Return the largest sum of directions (in DRF of what is held) at a node, of what is not saturated."""
    slope = 0.0
    for resource in range(tree.vector.shape[1]):
        if not tree.mode[SATURATED] >> resource & 1:
            slope = max(slope, tree.value[slot, FIRST_UNIT + resource])
    return slope


@noinline
def climb(tree: Hierarchy, slot: int) -> None:
    """Refresh a slot and everything above it."""
    while slot != NOBODY:
        refresh(tree, slot)
        slot = tree.link[slot, UP]


@kernel
def refresh_all(tree: Hierarchy) -> None:
    """Refresh every slot, children before parents."""
    for slot in range(tree.link.shape[0]):
        refresh(tree, slot)


@inlined
def tell(tree: Hierarchy, slot: int) -> None:
    """Tell a change at a slot: to all of the tree as H-DRF is defined, else to those above it."""
    if tree.mode[ORDER] == HDRF:
        refresh_all(tree)
    else:
        climb(tree, slot)


@noinline
def next_leaf(tree: Hierarchy, saturated: int) -> int:
    """Return the leaf that is served next, NOBODY if none can be served; *saturated* has a bit for each resource."""
    order, root = tree.mode[ORDER], tree.link.shape[0] - 1
    if saturated == (1 << tree.vector.shape[1]) - 1:
        return NOBODY
    if order in (HDRF, HDRF_FAST, MCH_EXACT) and saturated != tree.mode[SATURATED]:
        tree.mode[SATURATED] = saturated
        refresh_all(tree)
    if order == MCH and first_to_saturate(tree) != tree.mode[RESOURCE]:
        tree.mode[RESOURCE] = first_to_saturate(tree)
        refresh_all(tree)
    key, apart = tree.value[root, KEY], tree.value[root, KEY_APART]
    best, best_apart = tree.link[root, BEST], tree.link[root, BEST_APART]
    if order == MCH and (apart < key or (apart == key and best_apart < best)):
        key, best = apart, best_apart
    return int(best) if key < NEVER else NOBODY


@inlined
def first_to_saturate(tree: Hierarchy) -> int:
    """Return the root's dominant resource, of equals the first: the first that a fluid allocation uses up."""
    root, best = tree.link.shape[0] - 1, 0
    for resource in range(tree.vector.shape[1]):
        if tree.value[root, FIRST_UNIT + resource] > tree.value[root, FIRST_UNIT + best] * (1.0 + TIE):
            best = resource
    return best


@inlined
def begin_task(tree: Hierarchy, leaf: int) -> None:
    """Let a waiting task of a leaf start."""
    tree.waiting[leaf] -= 1
    tree.running[leaf] += 1
    tell(tree, tree.slot[leaf])


@inlined
def end_task(tree: Hierarchy, leaf: int) -> None:
    """Let a running task of a leaf end."""
    tree.running[leaf] -= 1
    tell(tree, tree.slot[leaf])


@inlined
def add_task(tree: Hierarchy, leaf: int) -> None:
    """Let one more task of a leaf wait."""
    tree.waiting[leaf] += 1
    if tree.waiting[leaf] == 1:
        tell(tree, tree.slot[leaf])


@inlined
def cap_leaf(tree: Hierarchy, leaf: int, is_capped: bool) -> None:
    """Let a leaf be served no more, or again: a queue above it is at its limit."""
    tree.capped[leaf] = is_capped
    tell(tree, tree.slot[leaf])


@inlined
def close_shape(tree: Hierarchy, shape: int) -> None:
    """Serve no leaf of a shape, because no machine has room for it."""
    tree.is_open[shape] = False
    tree.closed[tree.size[0]] = shape
    tree.size[0] += 1
    tell_gates(tree, shape)


@inlined
def open_closed(tree: Hierarchy, place: int) -> None:
    """Serve the leaves of a closed shape again; the last of the closed takes its *place*."""
    shape = tree.closed[place]
    tree.size[0] -= 1
    tree.closed[place] = tree.closed[tree.size[0]]
    tree.is_open[shape] = True
    tell_gates(tree, shape)


@noinline
def tell_gates(tree: Hierarchy, shape: int) -> None:
    """Tell that a shape was opened or closed, where one of its leaves would be served next."""
    for place in range(tree.gate_first[shape], tree.gate_first[shape + 1]):
        below = tree.link[tree.gate[place], LEFT]
        if tree.value[below, KEY] < NEVER or tree.value[below, KEY_APART] < NEVER:
            if tree.mode[ORDER] == HDRF:
                refresh_all(tree)
                return
            climb(tree, tree.gate[place])
