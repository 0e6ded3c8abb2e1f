"""Computes what each way of sharing gives each queue of a tree, beside its guarantee."""
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from subak.queues.flatten import exact_weights
from subak.queues.tree import QueueTree, TreeFile, amounts, task_counts, tree_of_file

# Returns int64[leaf], the tasks of each, from tree, demand, capacity, order, tasks: `queues.fair_orders.share_out`.
ShareOut = Callable[[QueueTree, np.ndarray, np.ndarray, str, np.ndarray | None], np.ndarray]

SHARED_TASKS_MAX = 1_000_000  # that are handed out one at a time
EXACT = "exact"  # the fluid shares, in which tasks are infinitely small
ORDERS = {"H-DRF": "hdrf-fast", "MCH": "mch", "MCH exact": "mch-exact"}
COLLAPSED = {"cpu": "C-CH", "memory": "M-CH"}  # the paper's names; others are called CH and the resource
WITHOUT_END = np.iinfo(np.int64).max


@dataclass(frozen=True)
class FairShares:
    """Dominant shares by node of the tree and by way of sharing; the last way is EXACT."""

    tree: QueueTree
    guarantee: np.ndarray  # float64[node], among queues with tasks; no more than the limits leave
    share: dict[str, np.ndarray]  # float64[node], of each way
    tasks: dict[str, np.ndarray]  # int64[leaf], of each way but the exact
    violated: dict[str, np.ndarray]  # bool[node]: below its guarantee, and could use more
    bundle: np.ndarray  # int64[leaf], how many tasks were handed out as one

    @property
    def ways(self) -> list[str]:
        """The ways of sharing, the exact one last."""
        return list(self.share)


def fair_shares(file: TreeFile, share_out: ShareOut) -> FairShares:
    """Return what each way gives. Raises InputError where the file lacks a capacity or a demand."""
    (demand, capacity), tasks, tree = amounts(file), task_counts(file), tree_of_file(file)
    vector, left = demand / capacity, np.full(len(demand), WITHOUT_END) if tasks is None else tasks
    exact = exact_weights(tree, demand, capacity, tasks)
    bundle = bundles(exact / vector.max(axis=1))
    given = _handed_out(list(file.capacity), tree, demand, capacity, tasks, bundle, share_out)
    guarantee = guaranteed(tree, left > 0)
    share = {way: tree.sums(count[:, None] * vector).max(axis=1) for way, count in given.items()}
    violated = {way: violations(tree, share[way], guarantee, left - given[way] >= bundle, bundle * vector.max(axis=1))
                for way in given}
    count = exact / vector.max(axis=1)
    share[EXACT] = tree.sums(count[:, None] * vector).max(axis=1)
    violated[EXACT] = violations(tree, share[EXACT], guarantee, count < left * (1 - 1e-9), np.zeros(len(count)))
    return FairShares(tree, guarantee, share, given, violated, bundle)


def bundles(count: np.ndarray) -> np.ndarray:
    """Return int64[leaf]: how many of a leaf's tasks to hand out as one, so that SHARED_TASKS_MAX suffice in all.

    *count* is about how many tasks it will get.
    """
    if count.sum() <= SHARED_TASKS_MAX:
        return np.ones(len(count), np.int64)
    return np.maximum(np.ceil(count * len(count) / SHARED_TASKS_MAX), 1).astype(np.int64)


def _handed_out(
    names: list[str], tree: QueueTree, demand: np.ndarray, capacity: np.ndarray, tasks: np.ndarray | None,
    bundle: np.ndarray, share_out: ShareOut,
) -> dict[str, np.ndarray]:
    """Return int64[leaf], the tasks that each way gives; *names* are the resources'."""
    bundled, left = demand * bundle[:, None], None if tasks is None else tasks // bundle
    given = {way: share_out(tree, bundled, capacity, order, left) * bundle for way, order in ORDERS.items()}
    for place, name in enumerate(names):
        columns = [place, *(other for other in range(len(names)) if other != place)]  # c-ch collapses for the first
        way = COLLAPSED.get(name, f"CH {name}")
        given[way] = share_out(tree, bundled[:, columns], capacity[columns], "c-ch", left) * bundle
    return given


def guaranteed(tree: QueueTree, active: np.ndarray) -> np.ndarray:
    """Return float64[node]: the guarantee among queues that have tasks (bool[leaf]), cut at the limits above."""
    full = tree.guarantee(tree.active(active))
    cut = full.copy()
    for node in range(1, len(tree)):
        above = tree.parent[node]
        part = full[node] / full[above] if full[above] > 0 else 0.0
        cut[node] = min(cut[above] * part, tree.limit[node])
    return cut


def violations(
    tree: QueueTree, share: np.ndarray, guarantee: np.ndarray, wants: np.ndarray, grain: np.ndarray,
) -> np.ndarray:
    """Return bool[node]: whether a leaf below it wants more (bool[leaf]), and it has less than its guarantee.

    Less by more than one task: *grain* is the dominant share of one, float64[leaf], 0 where tasks are divisible.
    """
    largest = np.zeros(len(tree))
    largest[tree.leaves] = grain
    for node in range(len(tree) - 1, 0, -1):
        largest[tree.parent[node]] = max(largest[tree.parent[node]], largest[node])
    below = share + largest < guarantee * (1 - 1e-9)
    below[0] = False  # what is left over may be of no use to anybody
    found: np.ndarray = below & tree.active(wants)
    return found
