"""Measures the fairness of a run: what each queue held, was guaranteed and lacked.

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
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.fleet.capacity import Capacity, capacity_steps
from subak.fleet.table import Fleet
from subak.measures.fairness.integrals import Measured
from subak.measures.fairness.spans import Part, Trail, cuts_of
from subak.measures.fairness.sweep import Bins, Demand, sweep
from subak.measures.runs import FairnessFacts, LevelFacts
from subak.queues.tree import QueueTree, TreeFile, queue_leaves, tree_of_paths
from subak.workload.table import Workload

SHARE_QUEUES_MAX = 30  # that shares.parquet follows one by one
SHARE_INTERVALS_MAX = 5_000  # of shares.parquet
EVENTS_OF_CHUNK = 50_000  # so that a chunk fits in the cache, and its instants in 16 bits, which sort fastest


class Fairness(NamedTuple):
    """What a run says of fairness: two tables and a few numbers."""

    queues: pl.DataFrame
    shares: pl.DataFrame
    facts: FairnessFacts


class Field(NamedTuple):
    """What is known of a run without a look at its tasks: its queues, and what there is to share among them."""

    tree: QueueTree
    resources: list[str]
    leaf_of_job: np.ndarray  # int32[job]
    demand: Demand
    capacity: Capacity  # since the begin
    begin: float  # seconds: the time that is measured, which counts from there on
    span: float
    edges: np.ndarray  # float64[interval + 1], seconds, of shares.parquet


class Totals(NamedTuple):
    """What must be known of all attempts before the sweep."""

    tasks: np.ndarray  # int64[stage]
    held: np.ndarray  # float64[stage], seconds of attempts, added up in the order of a trail's rows
    sample: np.ndarray  # float64[change], seconds: of each so-many-th row
    rows: int


def field_of(timeline: pl.DataFrame, workload: Workload, fleet: Fleet, file: TreeFile | None) -> Field | None:
    """Return what is to be measured over a *timeline*; of the *workload* no tasks are read.

    None if it has only one queue, and where queues change while it goes on: there is no one tree to measure by. *file*
    lists weights; without it all queues weigh the same. Raises InputError where the names of queues make no tree.
    """
    paths = workload.jobs["queue"].unique(maintain_order=True)
    if len(paths) < 2 or (file is not None and file.change):
        return None
    tree = tree_of_paths(paths.to_list(), file)
    begin = float(timeline["time"].min() or 0.0)  # type: ignore[arg-type]
    span = float((timeline["time"] + timeline["span"]).max() or 0.0) - begin  # type: ignore[arg-type]
    leaf_of_job = queue_leaves(tree, paths.to_list())[workload.jobs["queue"].cast(pl.Enum(paths)).to_physical()]
    capacity = capacity_steps(fleet)
    return Field(
        tree, [resource.name for resource in workload.resources], leaf_of_job,
        Demand(leaf_of_job[workload.stages["job"].to_numpy()], workload.requests.astype(np.int64)),
        capacity._replace(time=capacity.time - begin), begin, span, timeline_edges(timeline, begin, span))


def seconds_held(trail: Trail, end: float) -> np.ndarray:
    """Return float64[row]: how long each attempt held something before *end* (s)."""
    return np.minimum(trail.ends, end) - np.minimum(trail.starts, end)


def fairness_of(field: Field, totals: Totals, parts: Iterable[Part]) -> Fairness:
    """Return the measures of a run whose attempts come in *parts*."""
    tree, demand = field.tree, field.demand
    bins = _bins(tree, _largest(field, totals.held), field.edges)
    cuts = cuts_of(totals.sample, totals.rows, field.span, EVENTS_OF_CHUNK)
    measured = sweep(parts, cuts, demand, tree, field.capacity, bins)
    queues = _queue_table(field, measured, totals.tasks)
    shares = _share_table(tree, bins, measured, field.resources).with_columns(pl.col("time") + field.begin)
    return Fairness(queues, shares, _facts(tree, measured, queues))


def _largest(field: Field, held: np.ndarray) -> np.ndarray:
    """Return float64[node]: about the share-seconds of each, by the largest capacity that there was."""
    tree, (leaf, request) = field.tree, field.demand
    of_leaf = np.stack([np.bincount(leaf, row * held, len(tree)) for row in request])
    of_node = tree.sums(of_leaf[:, tree.leaves].T)
    return np.asarray((of_node / np.maximum(field.capacity.amount.max(axis=1), 1)).max(axis=1))


def timeline_edges(timeline: pl.DataFrame, begin: float, span: float) -> np.ndarray:
    """Return float64[edge], seconds from *begin* on: edges of the timeline's intervals, joined evenly where many."""
    begins = timeline.filter(pl.col("span") > 0)["time"].to_numpy() - begin
    return np.append(begins[:: max(-(-begins.size // SHARE_INTERVALS_MAX), 1)], span)


def _bins(tree: QueueTree, size: np.ndarray, edges: np.ndarray) -> Bins:
    """Follow the largest queues one by one, and of each level the others together."""
    followed = np.sort(np.argsort(-size[1:], kind="stable")[:SHARE_QUEUES_MAX] + 1)
    place = np.full(len(tree), -1)
    place[followed] = np.arange(followed.size)
    return Bins(edges, place, followed.size + np.arange(int(tree.depth.max())))


def _queue_table(field: Field, measured: Measured, of_stage: np.ndarray) -> pl.DataFrame:
    """Return one row a queue of the tree, parents before children: weight, guarantee, shares, shortfall, starvation.

    *of_stage* is int64[stage], how many tasks it has.
    """
    tree, span = field.tree, field.span or 1.0
    of_leaf = np.zeros(len(tree), np.int64)
    np.add.at(of_leaf, field.demand.leaf, of_stage)
    of_job = np.bincount(field.leaf_of_job, minlength=len(tree))
    jobs, tasks = (tree.sums(each[tree.leaves]) for each in (of_job, of_leaf))
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
