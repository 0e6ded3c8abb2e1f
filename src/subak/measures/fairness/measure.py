"""Fairness of a run between the queues of a tree: who held what, was guaranteed what, and went without.

Of every queue, at every instant, exactly:
- its share of a resource is what its attempts hold, lost ones too, over what the machines that are there have; its
  dominant share is the largest over the resources (Ghodsi et al., DRF, NSDI 2011)
- it demands while a task of it waits, and is active while it demands or holds something
- its guarantee is the product along its path of weight / sum of the weights of the active siblings, and 0 while it is
  not active; limits do not change it
- it is short by its guarantee less its dominant share, if that is positive, while it demands; over time this adds up to
  its shortfall, in share-seconds
- it starves while it demands and holds nothing

Jain's index of siblings that demand, with x = dominant share / guarantee of each, is (sum x)^2 / (n sum x^2): 1 when
all have the same part of what they are guaranteed, 1 / n when one has everything (Jain, Chiu and Hawe, 1984); 1 also
when none has anything. Of a level of the tree it is the mean over the groups of siblings and over the time in which at
least two of a group demand, a second of each group counting as much; None where there is no such time.

Tasks that no machine could ever hold are no demand, nor is one that was given up after its last attempt. A queue above
others that has jobs of its own has them in a leaf whose name ends with a slash. The sums are in `sweep.py`.
"""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.fleet.capacity import Capacity, capacity_steps
from subak.fleet.table import Fleet
from subak.measures.fairness.rows import Trail
from subak.measures.fairness.sweep import Bins, Measured, sweep
from subak.measures.runs import FairnessFacts, LevelFacts
from subak.queues.tree import QueueTree, TreeFile, queue_leaves, tree_of_paths
from subak.workload.table import Workload

SHARE_QUEUES_MAX = 30  # that shares.parquet follows one by one
SHARE_INTERVALS_MAX = 5_000  # of shares.parquet


class Fairness(NamedTuple):
    """What a run says of fairness: two tables and a few numbers."""

    queues: pl.DataFrame
    shares: pl.DataFrame
    facts: FairnessFacts


def fairness(
    tasks: pl.DataFrame, attempts: pl.DataFrame, timeline: pl.DataFrame, workload: Workload, fleet: Fleet,
    file: TreeFile | None = None,
) -> Fairness | None:
    """Return the measures of a run over its *timeline*, with all tasks and lost attempts.

    None if it has only one queue, and where queues change while it goes on: there is no one tree to measure by.

    *file* lists weights; without it all queues weigh the same. Raises InputError where the names make no tree.
    """
    if workload.jobs["queue"].n_unique() < 2 or (file is not None and file.change):
        return None
    tree = tree_of_paths(workload.jobs["queue"].unique(maintain_order=True).to_list(), file)
    begin = float(timeline["time"].min() or 0.0)  # type: ignore[arg-type]
    span = float((timeline["time"] + timeline["span"]).max() or 0.0) - begin  # type: ignore[arg-type]
    trail, capacity = _since(begin, attempt_trail(tasks, attempts, workload, tree), capacity_steps(fleet))
    request = workload.requests.astype(np.int64)
    bins = _bins(tree, _largest(trail, request, tree, capacity, span), timeline_edges(timeline, begin, span))
    measured = sweep(trail, request, tree, capacity, bins, span)
    names = [resource.name for resource in workload.resources]
    queues = _queue_table(tree, measured, span, workload, trail.leaf[: len(tasks)])
    shares = _share_table(tree, bins, measured, names).with_columns(pl.col("time") + begin)
    return Fairness(queues, shares, _facts(tree, measured, queues))


def _since(begin: float, trail: Trail, capacity: Capacity) -> tuple[Trail, Capacity]:
    """Count time from *begin* (s) on: what was there before is there from then on, and what had ended is of no time."""
    if begin == 0.0:
        return trail, capacity
    times = {name: np.maximum(getattr(trail, name) - begin, 0.0) for name in ("waits", "starts", "ends")}
    return trail._replace(**times), capacity._replace(time=capacity.time - begin)


def attempt_trail(tasks: pl.DataFrame, attempts: pl.DataFrame, workload: Workload, tree: QueueTree) -> Trail:
    """Return what every task did: a row a task with its last attempt, then a row a lost attempt; its task waited on."""
    paths = workload.jobs["queue"].unique(maintain_order=True)
    leaf = queue_leaves(tree, paths.to_list())[tasks["queue"].cast(pl.Enum(paths)).to_physical().to_numpy()]
    stage, lost = workload.tasks["stage"].to_numpy(), attempts["end"].to_numpy()
    rows = rows_of_tasks(attempts, tasks)
    trail = Trail(joined(leaf, leaf[rows]), joined(stage, stage[rows]), joined(times(tasks["ready"]), lost),
                  joined(times(tasks["start"]), attempts["start"].to_numpy()), joined(times(tasks["finish"]), lost))
    idle = np.concatenate([_standing(tasks, "UNPLACEABLE"), _last_rows(_standing(tasks, "GIVEN_UP"), rows, len(tasks))])
    if idle.size == 0:
        return trail
    waits = trail.waits.copy()
    waits[idle] = np.inf
    return trail._replace(waits=waits)


def _standing(tasks: pl.DataFrame, status: str) -> np.ndarray:
    """Return the rows of the tasks that stand so at the end."""
    kind = tasks.schema["status"]
    if isinstance(kind, pl.Enum) and status not in kind.categories:
        return np.zeros(0, np.int64)
    return tasks.select((pl.col("status") == status).arg_true())["status"].to_numpy()


def _last_rows(tasks: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Return the row of a trail in which each of *tasks* begins to wait for the last time.

    It is that of its last attempt, or its own of the first *count*; *rows* are the tasks of the attempts, in time.
    """
    if tasks.size == 0:
        return tasks
    last = np.arange(count)
    np.maximum.at(last, rows, count + np.arange(rows.size))
    return np.asarray(last[tasks])


def rows_of_tasks(attempts: pl.DataFrame, tasks: pl.DataFrame) -> np.ndarray:
    """Return int64[attempt]: the row of each attempt's task. A join would need a hundred bytes a task."""
    if attempts.is_empty():
        return np.zeros(0, np.int64)
    number = (pl.col("job").cast(pl.UInt64) * 2**32 + pl.col("index")).alias("number")
    of_task = tasks.select(number)["number"].to_numpy()
    wanted, place = np.unique(attempts.select(number)["number"].to_numpy(), return_inverse=True)
    near = np.minimum(np.searchsorted(wanted, of_task), wanted.size - 1).astype(np.uint32)
    rows = np.flatnonzero(wanted[near] == of_task)
    return rows[np.argsort(near[rows])][place]


def joined(column: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return both, one behind the other; a column of a month is not copied for nothing."""
    return np.concatenate([column, more]) if more.size else column


def times(column: pl.Series) -> np.ndarray:
    """Return instants, in seconds; inf where they are null, which is never."""
    return (column.fill_null(float("inf")) if column.null_count() else column).to_numpy()


def _largest(trail: Trail, request: np.ndarray, tree: QueueTree, capacity: Capacity, end: float) -> np.ndarray:
    """Return float64[node]: about the share-seconds of each, by the largest capacity that there was."""
    held = np.bincount(trail.stage, np.minimum(trail.ends, end) - np.minimum(trail.starts, end), request.shape[1])
    leaf = np.zeros(request.shape[1], np.int64)
    leaf[trail.stage] = trail.leaf  # all of a stage is in one queue
    of_leaf = np.stack([np.bincount(leaf, row * held, len(tree)) for row in request])
    of_node = tree.sums(of_leaf[:, tree.leaves].T)
    return np.asarray((of_node / np.maximum(capacity.amount.max(axis=1), 1)).max(axis=1))


def timeline_edges(timeline: pl.DataFrame, begin: float, span: float) -> np.ndarray:
    """Return the edges of the timeline's intervals, from *begin* on, joined in equal numbers where there are many."""
    begins = timeline.filter(pl.col("span") > 0)["time"].to_numpy() - begin
    return np.append(begins[:: max(-(-begins.size // SHARE_INTERVALS_MAX), 1)], span)


def _bins(tree: QueueTree, size: np.ndarray, edges: np.ndarray) -> Bins:
    """Follow the largest queues one by one, and of each level the others together."""
    followed = np.sort(np.argsort(-size[1:], kind="stable")[:SHARE_QUEUES_MAX] + 1)
    place = np.full(len(tree), -1)
    place[followed] = np.arange(followed.size)
    return Bins(edges, place, followed.size + np.arange(int(tree.depth.max())))


def _queue_table(
    tree: QueueTree, measured: Measured, span: float, workload: Workload, leaf: np.ndarray
) -> pl.DataFrame:
    """Return one row a queue of the tree, parents before children: weight, guarantee, shares, shortfall, starvation."""
    span = span or 1.0
    of_job = queue_leaves(tree, workload.jobs["queue"].to_list())
    jobs, tasks = (tree.sums(np.bincount(of, minlength=len(tree))[tree.leaves]) for of in (of_job, leaf))
    table = pl.DataFrame({
        "queue": tree.names, "level": tree.depth, "leaf": np.isin(np.arange(len(tree)), tree.leaves),
        "weight": tree.weight, "guarantee": tree.guarantee(),
        "jobs": jobs, "tasks": tasks,
        "share_mean": measured.share / span, "guarantee_mean": measured.guarantee / span,
        "shortfall": measured.shortfall,
        "shortfall_mean": measured.shortfall / np.where(measured.demanding > 0, measured.demanding, np.nan),
        "starved_longest": measured.starved, "demanding": measured.demanding,
    })
    return table[1:].with_columns(pl.col("shortfall_mean").fill_nan(None))


def _share_table(tree: QueueTree, bins: Bins, measured: Measured, resources: list[str]) -> pl.DataFrame:
    """Return one row an interval and queue that is followed; means over the interval."""
    followed = np.flatnonzero(bins.place >= 0)
    levels = np.unique(tree.depth[1:][bins.place[1:] < 0])
    place = np.concatenate([bins.place[followed], bins.others[levels - 1]])
    means = measured.binned[place] / np.diff(bins.edges)
    count = bins.edges.size - 1
    names = [*(tree.names[node] for node in followed), *[None] * levels.size]
    columns = [*(f"share_{name}" for name in resources), "share", "guarantee", "waiting"]
    return pl.DataFrame([
        pl.Series("time", np.repeat(bins.edges[:-1], place.size)),
        pl.Series("span", np.repeat(np.diff(bins.edges), place.size)),
        pl.Series("queue", names * count, dtype=pl.Enum([tree.names[node] for node in followed])),
        pl.Series("level", np.tile(np.concatenate([tree.depth[followed], levels]), count)),
        *(pl.Series(name, means[:, row].T.ravel()) for row, name in enumerate(columns)),
    ]).with_columns(pl.when(pl.col("queue").is_not_null()).then(pl.col("guarantee")).alias("guarantee"))


def _facts(tree: QueueTree, measured: Measured, queues: pl.DataFrame) -> FairnessFacts:
    """Return the few numbers of summary.json; over all queues means over the leaves of the tree."""
    leaves = queues.filter("leaf")
    demanding = float(leaves["demanding"].sum())
    levels = queues.group_by("level").agg(
        pl.len().alias("queues"), pl.col("shortfall").sum(), (pl.col("shortfall") > 0).sum().alias("short"),
        pl.col("starved_longest").max()).sort("level")
    jain = [_ratio(*pair) for pair in zip(measured.jain, measured.jain_time, strict=True)]
    return FairnessFacts(
        levels=tuple(LevelFacts(jain=jain[row["level"] - 1], **row) for row in levels.iter_rows(named=True)),
        queues=len(leaves), short=int((leaves["shortfall"] > 0).sum()), shortfall=float(leaves["shortfall"].sum()),
        shortfall_mean=_ratio(float(leaves["shortfall"].sum()), demanding), demanding=demanding,
        starved_longest=float(leaves["starved_longest"].max()),  # type: ignore[arg-type]
    )


def _ratio(part: float, whole: float) -> float | None:
    return float(part) / float(whole) if whole > 0 else None
