"""The weighted tree of queues, read from TOML or made of a workload's queue paths.

```toml
capacity = { cpu = 200, memory = 200 }  # of all machines together; what `subak fair` divides

[[queue]]
name = "n1/1"                       # as jobs name it; its parent is n1, with weight 1 where n1 is not listed
parent = "n1"                       # only needed where the name does not say it
weight = 2.0                        # against its siblings; left out: 1
limit = 0.5                         # its largest dominant share, more than 0 and at most 1; left out: none
demand = { cpu = 1, memory = 0 }    # of one task; only of queues without children
tasks = 100                         # how many it has; left out: without end

[[change]]                          # of a federation that runs: from then on its queues are these, and no others
time = 3600                         # seconds
[[change.queue]]
name = "n1/1"
weight = 5.0
```

A queue that has children may have jobs of its own: they are in a leaf whose name ends with a slash, `n1/`, which may be
listed like any other. No queue is more than 64 levels deep.
"""
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from subak.errors import InputError
from subak.quantities import QUEUE_LEVELS_MAX, Seconds
from subak.toml_files import read_toml

ROOT = ""  # its name
WEIGHT_MIN, WEIGHT_MAX = 1e-9, 1e9
NO_PARENT = -1
# As in workload/table.py, and with a slash at the end where the queue's own jobs are meant.
NAME = re.compile(r"[^/\x00-\x1f\x7f]+(/[^/\x00-\x1f\x7f]+)*/?")
UNITS_MAX = 2**53  # above it a float64 is no longer exact


class Queue(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A queue as a file lists it; see the head of this file."""

    name: str
    parent: str | None = None
    weight: float = 1.0
    limit: float = math.inf
    demand: dict[str, float] = {}  # of one task, by resource
    tasks: int | None = None


class TreeChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What the queues are from a time on."""

    time: Seconds  # seconds
    queue: list[Queue] = []


class TreeFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A file of queues, checked by `read_tree`; *tree* returns what it lists."""

    capacity: dict[str, float] = {}
    queue: list[Queue] = []
    change: list[TreeChange] = []  # in the order of their times


@dataclass(frozen=True)
class QueueTree:
    """The weighted tree of queues; node 0 is the root, a queue's descendants follow it, siblings in the order listed.

    So the leaves, in the order of their numbers, are in depth-first order.
    """

    names: list[str]  # full name of each node; the root's is empty
    parent: np.ndarray  # int32[node], -1 for the root
    weight: np.ndarray  # float64[node], 1 for the root
    limit: np.ndarray  # float64[node], largest dominant share, inf where there is none

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.names)

    @cached_property
    def children(self) -> list[list[int]]:
        """The children of each node."""
        found: list[list[int]] = [[] for _ in self.names]
        for node in range(1, len(self)):
            found[self.parent[node]].append(node)
        return found

    @cached_property
    def leaves(self) -> np.ndarray:
        """int32[leaf], the nodes without children; the root of an empty tree is none."""
        has_children = np.zeros(len(self), bool)
        has_children[self.parent[1:]] = True
        return np.flatnonzero(~has_children & (self.parent >= 0)).astype(np.int32)

    @cached_property
    def depth(self) -> np.ndarray:
        """int32[node], 0 for the root."""
        depth = np.zeros(len(self), np.int32)
        for node in range(1, len(self)):
            depth[node] = depth[self.parent[node]] + 1
        return depth

    def above(self, node: int) -> Iterator[int]:
        """Yield the nodes on the way up: the node itself, its parent, and so on; the root is left out."""
        while self.parent[node] >= 0:
            yield node
            node = int(self.parent[node])

    def sums(self, of_leaf: np.ndarray) -> np.ndarray:
        """Return of every node the sum over its leaves; *of_leaf* and the answer have a row a leaf, a node."""
        total = np.zeros((len(self), *of_leaf.shape[1:]), of_leaf.dtype)
        total[self.leaves] = of_leaf
        for node in range(len(self) - 1, 0, -1):
            total[self.parent[node]] += total[node]
        return total

    def active(self, leaf: np.ndarray) -> np.ndarray:
        """Return bool[node]: whether some leaf at or below it is active; *leaf* is bool[leaf]."""
        return self.sums(np.asarray(leaf, np.int64)) > 0

    def guarantee(self, active: np.ndarray | None = None) -> np.ndarray:
        """Return float64[node]: the product over the path of weight / sum of the siblings' weights.

        With *active* (bool[node]) only active siblings count, and other nodes are guaranteed nothing.
        """
        weight = self.weight if active is None else np.where(active, self.weight, 0.0)
        total = np.zeros(len(self))
        np.add.at(total, self.parent[1:], weight[1:])
        share = np.ones(len(self))
        for node in range(1, len(self)):
            parent = self.parent[node]
            share[node] = share[parent] * weight[node] / total[parent] if weight[node] > 0 else 0.0
        return share


def read_tree(path: Path) -> TreeFile:
    """Read a file of queues. Raises InputError with the file and the mistake."""
    file = read_toml(path, TreeFile)
    try:
        _check(file)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return file


def refuse_changes(file: TreeFile, by: str) -> None:
    """Raise InputError where the queues of a file change while *by*, which does not look at them again, goes on."""
    if file.change:
        raise InputError(f"queues: change at {file.change[0].time:g} s; {by} keeps to one tree, only the federations "
                         "megha and central follow a change")


def changed(file: TreeFile, change: TreeChange) -> TreeFile:
    """Return the file as it is from a change on."""
    return TreeFile(capacity=file.capacity, queue=change.queue)


def tree_of_file(file: TreeFile) -> QueueTree:
    """Return the tree of the queues that a file lists."""
    return tree_of_paths([], file)


def tree_of_paths(paths: Iterable[str], file: TreeFile | None = None) -> QueueTree:
    """Return the tree of a workload's queues, with the weights and limits of *file*.

    *paths* are split at slashes. Siblings that the file lists come first, in its order, also those without a path, then
    others by their names. A queue with jobs of its own above others gets a leaf for them, whose name ends with a slash.
    Raises InputError where parents go round, and for a queue that is too deep.
    """
    listed = {queue.name: queue for queue in file.queue} if file else {}
    paths = sorted(set(paths))
    parents = _parents(list(dict.fromkeys([*listed, *paths])), listed)
    holders = set(parents.values())
    for path in paths:
        if path in holders:
            parents[_own(path)] = path
    return _ordered(parents, listed)


def queue_leaves(tree: QueueTree, paths: Sequence[str]) -> np.ndarray:
    """Return int32[path]: the leaf that holds the jobs of each queue of `tree_of_paths`."""
    number = {name: node for node, name in enumerate(tree.names)}
    return np.array([number[_own(path)] if _own(path) in number else number[path] for path in paths], np.int32)


def amounts(file: TreeFile) -> tuple[np.ndarray, np.ndarray]:
    """Return what one task of each leaf asks for, int64[leaf, resource], and the capacity, int64[resource].

    Units are the largest in which all are whole. Raises InputError where capacity or a leaf's demand is missing.
    """
    if not file.capacity:
        raise InputError("capacity: must be given, such as capacity = { cpu = 200, memory = 200 }")
    tree, listed = tree_of_file(file), {queue.name: queue for queue in file.queue}
    if not len(tree.leaves):
        raise InputError("queue: must list at least one")
    rows = [dict(file.capacity)]
    for leaf in tree.leaves:
        queue = listed.get(tree.names[leaf])
        if queue is None or not queue.demand:
            raise InputError(f"queue {tree.names[leaf]!r}: must have a demand, such as demand = {{ cpu = 1 }}")
        rows.append(queue.demand)
    columns = [_whole([row.get(name, 0.0) for row in rows], name) for name in file.capacity]
    table = np.array(columns, np.int64).T
    return table[1:], table[0]


def task_counts(file: TreeFile) -> np.ndarray | None:
    """Return int64[leaf], how many tasks each leaf has (int64's largest: without end); None where none says."""
    tree, listed = tree_of_file(file), {queue.name: queue for queue in file.queue}
    counts = [listed[tree.names[leaf]].tasks if tree.names[leaf] in listed else None for leaf in tree.leaves]
    if all(count is None for count in counts):
        return None
    return np.array([np.iinfo(np.int64).max if count is None else count for count in counts], np.int64)


def _whole(values: list[float], resource: str) -> list[int]:
    """Return decimal numbers as whole multiples of the largest unit that divides them all."""
    exact = [Fraction(repr(float(value))) for value in values]
    denominator = math.lcm(*(value.denominator for value in exact))
    units = [int(value * denominator) for value in exact]
    divisor = math.gcd(*units)
    if units[0] // divisor > UNITS_MAX:
        raise InputError(f"capacity.{resource}: must be at most 2^53 times the unit of all demands, "
                         f"not {values[0]:g} with a unit of {divisor / denominator:g}")
    return [value // divisor for value in units]


def _own(path: str) -> str:
    """Return the name of the leaf for the jobs of a queue that has children."""
    return f"{path}/"


def _implied(name: str) -> str:
    return name.rpartition("/")[0]


# From names to a tree


def _parents(names: list[str], listed: Mapping[str, Queue]) -> dict[str, str]:
    """Return the parent of every queue, those included that only a name implies."""
    parents: dict[str, str] = {}
    for name in names:
        _refuse_deep(name, name.count("/") + 1)
        queue = listed.get(name)
        parents[name] = _implied(name) if queue is None or queue.parent is None else queue.parent
    for name in names:
        if name in listed and listed[name].parent is not None:
            continue
        above = parents[name]
        while above != ROOT and above not in parents:
            parents[above] = _implied(above)
            above = parents[above]
    return parents


def _ordered(parents: Mapping[str, str], listed: Mapping[str, Queue]) -> QueueTree:
    """Return the tree with siblings in the order in which they, or a descendant, were first named."""
    children: dict[str, list[str]] = {ROOT: []}
    for name in parents:
        for each in reversed(_way_up(name, parents)):
            if each not in children:
                children[each] = []
                children[parents[each]].append(each)
    names, parent, number = [ROOT], [NO_PARENT], {ROOT: 0}
    to_visit = children[ROOT][::-1]
    while to_visit:
        name = to_visit.pop()
        number[name] = len(names)
        parent.append(number[parents[name]])
        names.append(name)
        to_visit += children[name][::-1]
    queues = [listed.get(name) for name in names]
    return QueueTree(names, np.array(parent, np.int32),
                     np.array([queue.weight if queue else 1.0 for queue in queues]),
                     np.array([queue.limit if queue else math.inf for queue in queues]))


def _way_up(name: str, parents: Mapping[str, str]) -> list[str]:
    """Return a queue and those above it, the root left out. Raises InputError for a cycle, an orphan, or too many."""
    way: dict[str, None] = {}
    queue = name
    while name != ROOT:
        if name in way:
            seen = list(way)
            cycle = [*seen[seen.index(name):], name]
            raise InputError(f"queue {name!r}: must not be above itself, as in {' -> '.join(cycle)}")
        way[name] = None
        _refuse_deep(queue, len(way))
        if name not in parents:
            child = list(way)[-2]
            raise InputError(f"queue {child!r}: its parent must be listed, {name!r} is not")
        name = parents[name]
    return list(way)


def _refuse_deep(name: str, levels: int) -> None:
    if levels > QUEUE_LEVELS_MAX:
        raise InputError(f"queue {name!r}: must be at most {QUEUE_LEVELS_MAX} levels deep")


# The rules of a file


def _check(file: TreeFile) -> None:
    """Raise InputError for the first rule that a file breaks."""
    _check_tree(file)
    before = 0.0
    for change in file.change:
        where = f"change at {change.time:g} s"
        if not (math.isfinite(change.time) and change.time >= 0):
            raise InputError(f"{where}: its time must be a number of seconds from 0 on")
        if change.time < before:
            raise InputError(f"{where}: must come before the one at {before:g} s, changes are in the order of time")
        before = change.time
        try:
            _check_tree(changed(file, change))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None


def _check_tree(file: TreeFile) -> None:
    """Raise InputError for the first rule that the queues of a file break."""
    for resource, amount in file.capacity.items():
        if not (math.isfinite(amount) and amount > 0):
            raise InputError(f"capacity.{resource}: must be a number more than 0, not {amount:g}")
    names: set[str] = set()
    for queue in file.queue:
        _check_queue(queue)
        if queue.name in names:
            raise InputError(f"queue {queue.name!r}: must be listed once, it comes again")
        names.add(queue.name)
    tree = tree_of_file(file)
    leaves = {tree.names[leaf] for leaf in tree.leaves}
    for queue in file.queue:
        _check_demand(queue, file.capacity, queue.name in leaves)


def _check_queue(queue: Queue) -> None:
    where = f"queue {queue.name!r}"
    if not NAME.fullmatch(queue.name):
        raise InputError(f"{where}: its name must be a path such as organisation/department/user")
    if queue.name.endswith("/") and queue.parent not in (None, _implied(queue.name)):
        raise InputError(f"{where}: holds the jobs of {_implied(queue.name)!r}, which must be its parent, "
                         f"not {queue.parent!r}")
    if not (math.isfinite(queue.weight) and queue.weight > 0):
        raise InputError(f"{where}: weight must be a number more than 0, not {queue.weight:g}")
    if not WEIGHT_MIN <= queue.weight <= WEIGHT_MAX:
        raise InputError(f"{where}: weight must be from {WEIGHT_MIN:g} to {WEIGHT_MAX:g}, not {queue.weight:g}")
    if queue.parent is not None and queue.parent.endswith("/"):
        raise InputError(f"{where}: its parent must be a queue, not {queue.parent!r}, the jobs of one")
    if not (0 < queue.limit <= 1 or queue.limit == math.inf):
        raise InputError(f"{where}: limit must be a share more than 0 and at most 1, not {queue.limit:g}")
    if queue.tasks is not None and not 0 <= queue.tasks < 2**63:
        raise InputError(f"{where}: tasks must be from 0 to 2^63 - 1, not {queue.tasks}")


def _check_demand(queue: Queue, capacity: Mapping[str, float], is_leaf: bool) -> None:
    where = f"queue {queue.name!r}"
    if not is_leaf and (queue.demand or queue.tasks is not None):
        field = "a demand" if queue.demand else "tasks"
        raise InputError(f"{where}: only a queue without children may have {field}, "
                         f"give it to a queue {_own(queue.name)!r}")
    for resource, amount in queue.demand.items():
        if resource not in capacity:
            known = ", ".join(capacity) or "none"
            raise InputError(f"{where}: demand must be of resources in capacity ({known}), not of {resource!r}")
        if not (math.isfinite(amount) and amount >= 0):
            raise InputError(f"{where}: demand.{resource} must be a number, 0 or more, not {amount:g}")
        if amount > capacity[resource]:
            raise InputError(f"{where}: demand.{resource} must be at most the capacity of {capacity[resource]:g}, "
                             f"not {amount:g}")
    if queue.demand and not any(queue.demand.values()):
        raise InputError(f"{where}: demand must ask for something, it is 0 of {', '.join(queue.demand)}")
