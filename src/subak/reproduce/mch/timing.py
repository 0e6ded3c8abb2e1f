"""Times how long an order takes to schedule jobs on one pooled machine (Fig. 5).

All jobs are there from the beginning. A decision is: whose turn is it; while its task does not fit, the task that has
run longest ends; the task starts. A job that has ended stays in the tree as an idle leaf.
"""
import time
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.kernels.kernel import kernel
from subak.queues.hierarchy import (
    NOBODY,
    ORDER,
    Hierarchy,
    begin_task,
    end_task,
    next_leaf,
    refresh_all,
)
from subak.queues.layout import Branches, build_hierarchy
from subak.queues.orders import FAIR_ORDERS, HDRF, HDRF_FAST
from subak.workload.table import Workload

POOLED = 0.1  # of what all tasks ask for: so much the machine holds, so that it is full nearly all the time
NOTHING_SATURATED = 0
MARK_OLDEST, MARK_LATEST, MARK_ALIVE, MARK_ALIVE_SUM = range(4)  # of `marks`
REPETITIONS_MAX, SHORT_S = 30, 0.3  # a shorter measurement is repeated, and the best is taken
PARTS = 5  # of a measurement on a full machine; the best is taken


class Jobs(NamedTuple):
    """What is scheduled; units are those of the trace."""

    request: np.ndarray  # int64[shape, resource], of a task
    shape: np.ndarray  # int32[job]
    tasks: np.ndarray  # int64[job]


class Bout(NamedTuple):
    """One measurement."""

    decisions: int
    seconds: float
    alive: float  # mean share of the jobs that had not ended yet


class Pool(NamedTuple):
    """A tree of jobs, and the machine they share."""

    tree: Hierarchy
    request: np.ndarray  # int64[shape, resource]
    free: np.ndarray  # int64[resource]
    started: np.ndarray  # int32[task], the leaves in order of the starts
    marks: np.ndarray  # int64[4]: MARK_OLDEST ... MARK_ALIVE_SUM


@kernel
def decide(pool: Pool, most: int) -> int:
    """Make *most* decisions, or as many as there are; return how many."""
    tree, request, free, started, marks = pool
    for made in range(most):
        leaf = next_leaf(tree, NOTHING_SATURATED)
        if leaf == NOBODY:
            return made
        shape = tree.shape[leaf]
        for resource in range(free.size):
            while free[resource] < request[shape, resource]:
                ended = started[marks[MARK_OLDEST]]
                marks[MARK_OLDEST] += 1
                for each in range(free.size):
                    free[each] += request[tree.shape[ended], each]
                end_task(tree, ended)
                marks[MARK_ALIVE] -= tree.waiting[ended] + tree.running[ended] == 0
        for resource in range(free.size):
            free[resource] -= request[shape, resource]
        begin_task(tree, leaf)
        started[marks[MARK_LATEST]] = leaf
        marks[MARK_LATEST] += 1
        marks[MARK_ALIVE_SUM] += marks[MARK_ALIVE]
    return most


def binary_tree(nodes: int) -> np.ndarray:
    """Return int32[node]: the parents in a binary tree that is filled level by level, -1 for the root."""
    parent = (np.arange(nodes) - 1) // 2
    return parent.astype(np.int32)


def full_tree(levels: int) -> np.ndarray:
    """Return the full binary tree with so many levels below the root, as the paper counts: 2 levels have 4 leaves."""
    return binary_tree(2 ** (levels + 1) - 1)


def jobs_of(workload: Workload, count: int, tasks_max: int, seed: int) -> Jobs:
    """Return *count* jobs of a workload, drawn with replacement; the first of them are those of a lesser count.

    A job has all its tasks, but *tasks_max* at most, and each asks for what most of them do.
    """
    stages = workload.stages.with_row_index("stage").join(workload.tasks.group_by("stage").len(), on="stage")
    main = stages.sort("len", "stage", descending=[True, False]).group_by("job", maintain_order=True).first()
    total = stages.group_by("job").agg(total=pl.col("len").sum())
    table = main.join(total, on="job").sort("job")
    asked = table.select(resource.name for resource in workload.resources).to_numpy().astype(np.int64)
    table, asked = table.filter(asked.max(axis=1) > 0), asked[asked.max(axis=1) > 0]
    drawn = np.random.default_rng((seed, 21)).integers(len(table), size=count)
    request, shape = np.unique(asked[drawn], axis=0, return_inverse=True)
    tasks = np.minimum(table["total"].to_numpy()[drawn], tasks_max).astype(np.int64)
    return Jobs(request, shape.reshape(-1).astype(np.int32), tasks)


def make_pool(parent: np.ndarray, jobs: Jobs, order: str) -> Pool:
    """Return a pool at rest: the jobs are dealt in turn to the queues of the tree that have no children."""
    lowest = np.setdiff1d(np.arange(len(parent)), parent)
    queue = lowest[np.arange(len(jobs.tasks)) % len(lowest)]
    by_queue = np.argsort(queue, kind="stable")
    shape, tasks = jobs.shape[by_queue], jobs.tasks[by_queue]
    asked = (jobs.request[shape] * tasks[:, None]).sum(axis=0)
    capacity = np.maximum((asked * POOLED).astype(np.int64), np.maximum(jobs.request.max(axis=0), 1))
    branches = Branches(parent, np.ones(len(parent)), queue[by_queue].astype(np.int32), np.ones(len(tasks)), shape)
    fair = FAIR_ORDERS[order]
    tree = build_hierarchy(branches, jobs.request / capacity, fair.code, int(fair.collapsed == "memory"))
    tree.waiting[:] = tasks
    marks = np.zeros(4, np.int64)
    marks[MARK_ALIVE] = len(tasks)
    return Pool(tree, np.ascontiguousarray(jobs.request), capacity, np.empty(int(tasks.sum()), np.int32), marks)


def time_all(parent: np.ndarray, jobs: Jobs, order: str) -> Bout:
    """Measure the scheduling of all tasks; the tree is flattened once, laying it out is not measured."""
    best, spent = Bout(0, np.inf, 0.0), 0.0
    for _ in range(REPETITIONS_MAX):
        pool = make_pool(parent, jobs, order)
        begun = time.perf_counter()
        refresh_all(pool.tree)
        flattened = time.perf_counter() - begun
        bout = _bout(pool, len(pool.started))
        bout = bout._replace(seconds=bout.seconds + flattened)
        best, spent = min(best, bout, key=lambda each: each.seconds), spent + bout.seconds
        if spent > SHORT_S:
            break
    return best


def time_full(parent: np.ndarray, jobs: Jobs, order: str, most: int, seconds_max: float) -> Bout:
    """Measure decisions on a machine that is full: *most*, as many as there are, or for how many there is time.

    They are made in parts, and the fastest is returned.
    """
    pool = make_pool(parent, jobs, order)
    code = pool.tree.mode[ORDER]
    if code == HDRF:
        pool.tree.mode[ORDER] = HDRF_FAST  # makes the same choices, and filling takes long
    refresh_all(pool.tree)
    while pool.marks[MARK_OLDEST] == 0 and decide(pool, 1):
        pass
    pool.tree.mode[ORDER] = code
    refresh_all(pool.tree)
    most = min(most, int(pool.tree.waiting.sum()) - PARTS - 1)
    if code == HDRF:  # a first decision says for how many there is time
        most = min(most, int(seconds_max / _bout(pool, 1).seconds))
    bouts = [_bout(pool, max(most // PARTS, 1)) for _ in range(PARTS)]
    return min(bouts, key=lambda bout: bout.seconds / bout.decisions)


def _bout(pool: Pool, most: int) -> Bout:
    """Make *most* decisions, or as many as there are."""
    pool.marks[MARK_ALIVE_SUM] = 0
    begun = time.perf_counter()
    made = decide(pool, most)
    seconds = time.perf_counter() - begun
    return Bout(made, seconds, float(pool.marks[MARK_ALIVE_SUM]) / max(made, 1) / len(pool.tree.running))
