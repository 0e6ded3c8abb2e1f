"""Sums what a workload asks for in each queue of a tree."""
from dataclasses import dataclass

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.queues.tree import QueueTree, queue_leaves
from subak.workload.demand import span_end
from subak.workload.table import Workload


@dataclass(frozen=True)
class QueueFacts:
    """Counts and demand by node of the tree; a queue counts what is below it."""

    jobs: np.ndarray  # int64[node]
    tasks: np.ndarray  # int64[node]
    volume: dict[str, np.ndarray]  # float64[node], of each resource: its part of all amounts x seconds requested
    peak: dict[str, np.ndarray]  # float64[node], of each resource, in resource.of: the most at any time


def queue_facts(workload: Workload, tree: QueueTree) -> QueueFacts:
    """Return what a workload asks for in the queues of `tree_of_paths`.

    Peaks are those if every task started on arrival; services count until the last other task would end. Raises
    InputError for a workload without tasks.
    """
    if workload.tasks.is_empty():
        raise InputError(f"workload {workload.provenance.name}: has no tasks")
    row = np.full(len(tree), -1)
    row[tree.leaves] = np.arange(len(tree.leaves))
    leaf_of_job = row[queue_leaves(tree, workload.jobs["queue"].to_list())]
    stage = workload.tasks["stage"].to_numpy()
    leaf = leaf_of_job[workload.stages["job"].to_numpy()[stage]]
    order = np.argsort(leaf, kind="stable")
    starts = workload.tasks["arrival"].to_numpy()[order]
    ends = np.minimum(starts + workload.tasks["run_time"].to_numpy()[order], span_end(workload))
    tasks = np.bincount(leaf, minlength=len(tree.leaves))
    bounds = _task_bounds(tree, tasks)
    volume, peak = {}, {}
    for resource in workload.resources:
        amount = workload.stages[resource.name].cast(pl.Int64).to_numpy()[stage][order]
        seconds = np.bincount(leaf[order], amount * (ends - starts), len(tree.leaves))
        total = tree.sums(seconds)
        volume[resource.name] = total / total[0] if total[0] > 0 else total
        peak[resource.name] = np.array([_peak(starts[low:high], ends[low:high], amount[low:high])
                                        for low, high in bounds]) * resource.unit
    jobs = np.bincount(leaf_of_job, minlength=len(tree.leaves))
    return QueueFacts(tree.sums(jobs), tree.sums(tasks), volume, peak)


def _task_bounds(tree: QueueTree, tasks: np.ndarray) -> np.ndarray:
    """Return int64[node, 2]: where a node's tasks begin and end, sorted by leaf; *tasks* is how many of each leaf."""
    last = np.cumsum(tasks)
    bounds = np.zeros((len(tree), 2), np.int64)
    bounds[tree.leaves] = np.column_stack([last - tasks, last])
    for node in range(len(tree) - 1, -1, -1):
        if tree.children[node]:
            first, final = tree.children[node][0], tree.children[node][-1]
            bounds[node] = bounds[first, 0], bounds[final, 1]
    return bounds


def _peak(starts: np.ndarray, ends: np.ndarray, amounts: np.ndarray) -> int:
    """Return the most that is in use at any time; what ends at an instant makes room for what begins."""
    times, changes = np.concatenate([ends, starts]), np.concatenate([-amounts, amounts])
    in_use = np.cumsum(changes[np.argsort(times, kind="stable")])
    return int(in_use.max(initial=0))
