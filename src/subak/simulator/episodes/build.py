"""Builds the state of episodes from a workload and a fleet, and a run's outcome from an episode."""
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.state import FleetState
from subak.fleet.table import Fleet
from subak.placement.claims import TASK_UNPLACEABLE, build_claims
from subak.placement.fits.best_fit import ALIGNED, LEAST_FREE, MOST_FREE
from subak.placement.schedulers import SCHEDULERS
from subak.simulator.central.gangs import gangs_of_tasks, most_at_once
from subak.simulator.engine.estimates import with_estimates
from subak.simulator.engine.heap import build_events
from subak.simulator.engine.run_loop import LoopResult
from subak.simulator.engine.setup import Prepared, Terms, machine_order, prepare
from subak.simulator.engine.state import Clock, Counts, Losses, Progress, Record, Simulation, Step
from subak.simulator.episodes.decide import FIRST_FITTING
from subak.simulator.episodes.observe import FIRST_REQUEST, PER_RESOURCE_OF_FLEET
from subak.simulator.episodes.state import (
    NEVER_S,
    NO_HEAD,
    NOBODY_FOLLOWS,
    PARTS,
    STATE_SIZE,
    TASKS_HERE,
    Answers,
    Episode,
    Episodes,
    Gangs,
    Source,
    Waiting,
)
from subak.simulator.outcome import Outcome
from subak.workload.table import Workload
from subak.workload.tasks import Stages, Tasks

RULES = {"first-fit": FIRST_FITTING, "best-fit": LEAST_FREE, "worst-fit": MOST_FREE, "aligned-fit": ALIGNED}
RANKINGS = ("fifo", "shortest-first", "priority")  # of those who wait


class Asked(NamedTuple):
    """What episodes are like."""

    episodes: int
    jobs: int  # of a window
    shown: int  # of those who wait
    placements: tuple[str, ...]  # of RULES
    ranking: str  # of RANKINGS
    estimates: str  # of run times: see engine/estimates.py
    begin: float  # seconds: windows are of jobs that arrive then or later
    end: float  # seconds: and then or earlier
    weights: np.ndarray  # float64[part], of a reward


@dataclass(frozen=True)
class Cut:
    """Which jobs windows are made of, and how large they can be."""

    order: np.ndarray  # int64[job], rows of the workload's jobs by arrival
    window: np.ndarray  # int64[3], as of `Source`
    tasks_max: int
    stages_max: int
    edges_max: int


@dataclass(frozen=True)
class World:
    """Episodes, and what their results are read with."""

    asked: Asked
    workload: Workload
    fleet: Fleet
    prepared: Prepared
    cut: Cut
    state: Episodes


def build_world(workload: Workload, fleet: Fleet, asked: Asked) -> World:
    """Return the state of episodes, none of which has begun.

    Raises InputError for what no episode could be, as `prepare` does, and for tasks that are given wrong requests.
    """
    refuse_asked(asked)
    workload = with_estimates(workload, asked.estimates, seed=1)
    terms = Terms(ranking=asked.ranking, interval=NEVER_S)
    prepared = prepare(workload, fleet, machine_order(fleet, "given"), terms)
    cut = _cut(workload, asked)
    source = _source(workload, prepared, cut)
    count, actions = asked.episodes, asked.shown * len(asked.placements) + 1
    features = FIRST_REQUEST + len(workload.resources)
    answers = Answers(
        action=np.zeros(count, np.int64), chosen=np.zeros(count, bool), first_job=np.zeros(count, np.int64),
        waiting=np.zeros((count, asked.shown, features), np.float32),
        fleet=np.zeros((count, PER_RESOURCE_OF_FLEET * len(workload.resources) + 2), np.float32),
        mask=np.zeros((count, actions), np.int8), parts=np.zeros((count, len(PARTS))), reward=np.zeros(count),
        ended=np.zeros(count, bool), state=np.zeros((count, STATE_SIZE), np.int64))
    rules = np.array([RULES[name] for name in asked.placements], np.int64)
    episodes = [_episode(prepared.simulation, cut, asked.shown) for _ in range(count)]
    return World(asked, workload, fleet, prepared, cut, Episodes(source, rules, asked.weights, answers, episodes))


def refuse_asked(asked: Asked) -> None:
    """Raise InputError, naming the rule, for numbers out of their range and for unknown or doubled words."""
    for name, value in (("episodes", asked.episodes), ("jobs", asked.jobs), ("shown", asked.shown)):
        if value < 1:
            raise InputError(f"{name}: must be 1 or more, not {value}")
    if asked.ranking not in RANKINGS:
        raise InputError(f"order: must be one of {', '.join(RANKINGS)}, not {asked.ranking!r}")
    unknown = next((name for name in asked.placements if name not in RULES), None)
    if unknown is not None or not asked.placements:
        raise InputError(f"placements: must be some of {', '.join(RULES)}, not {unknown!r}")
    if len(set(asked.placements)) < len(asked.placements):
        raise InputError(f"placements: each must be named once, not {', '.join(asked.placements)}")
    assert RULES.keys() <= SCHEDULERS.keys()


def _cut(workload: Workload, asked: Asked) -> Cut:
    """Order the jobs by arrival, and find where windows may begin. Raises InputError where there are too few jobs."""
    stage = workload.tasks["stage"].to_numpy()
    job = workload.stages["job"].to_numpy().astype(np.int64)
    arrival = np.full(len(workload.jobs), np.inf)
    np.minimum.at(arrival, job[stage], workload.tasks["arrival"].to_numpy())
    order = np.argsort(arrival, kind="stable")
    order = order[: int(np.isfinite(arrival).sum())]  # jobs without tasks never arrive
    first, last = np.searchsorted(arrival[order], [asked.begin, asked.end], side="left")
    last += int((arrival[order] == asked.end).sum())
    if last - first < asked.jobs:
        raise InputError(f"jobs: a window must have at most the {last - first:,} jobs that arrive from {asked.begin:g} "
                         f"to {asked.end:g} s, not {asked.jobs:,}")
    edges = workload.stages["depends_on"].list.len().to_numpy().astype(np.int64)
    sizes = [np.bincount(job[stage], minlength=arrival.size), np.bincount(job, minlength=arrival.size),
             np.bincount(job, weights=edges, minlength=arrival.size)]
    tasks, stages, edge_count = (_largest(size[order[first:last]], asked.jobs) for size in sizes)
    return Cut(order, np.array([first, last - first - asked.jobs + 1, asked.jobs]), tasks, stages, edge_count)


def _largest(size: np.ndarray, jobs: int) -> int:
    """Return the largest sum of *jobs* neighbours."""
    total = np.concatenate([[0], np.cumsum(size)])
    return int((total[jobs:] - total[:-jobs]).max())


def _source(workload: Workload, prepared: Prepared, cut: Cut) -> Source:
    sim, count = prepared.simulation, prepared.simulation.tasks.arrival.size
    gang = gangs_of_tasks(workload)
    size = np.bincount(gang)[gang]
    status = sim.claims.status.copy()
    if size.max() > 1:
        status[size > most_at_once(sim)[sim.tasks.shape]] = TASK_UNPLACEABLE
    members = np.argsort(gang, kind="stable")
    head, follows = np.empty(count, np.int32), np.full(count, NOBODY_FOLLOWS, np.int32)
    _, first = np.unique(gang, return_index=True)
    head[:] = first[gang]
    same = gang[members[1:]] == gang[members[:-1]]
    follows[members[:-1][same]] = members[1:][same]
    stage = workload.tasks["stage"].to_numpy()
    job = workload.stages["job"].to_numpy().astype(np.int64)
    task_first, job_task = _by_job(job[stage], cut.order, len(workload.jobs))
    stage_first, job_stage = _by_job(job, cut.order, len(workload.jobs))
    return Source(sim.tasks, status, head, follows, sim.speeds.group, sim.speeds.shuffle, sim.stages, sim.fleet,
                  task_first, job_task, stage_first, job_stage, cut.window)


def _by_job(job: np.ndarray, order: np.ndarray, jobs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the rows of each job begin, jobs in *order*, and the rows, those of a job in theirs."""
    place = np.full(jobs, order.size)
    place[order] = np.arange(order.size)
    rows = np.argsort(place[job], kind="stable").astype(np.int32)
    return np.searchsorted(place[job][rows], np.arange(order.size + 1)).astype(np.int64), rows


def _episode(whole: Simulation, cut: Cut, shown: int) -> Episode:
    """Return an episode with room for the largest window; what never changes is shared."""
    tasks, stages = cut.tasks_max, cut.stages_max if whole.stages.of_task.size else 0
    changing = {name: getattr(whole.fleet, name).copy() for name in FleetState._fields
                if name not in ("allowed", "scale", "lists", "machines")}
    sim = Simulation(
        tasks=Tasks(np.full(tasks, np.inf), np.zeros(tasks), np.zeros(tasks), np.zeros(tasks),
                    np.zeros(tasks, np.int32), whole.tasks.request, whole.tasks.constraint_set),
        fleet=whole.fleet._replace(**changing),
        speeds=whole.speeds._replace(
            group=_like(whole.speeds.group, tasks), shuffle=_like(whole.speeds.shuffle, tasks)),
        overuse=whole.overuse, interference=whole.interference, cut=whole.cut, claims=build_claims(tasks),
        events=build_events(2 * tasks + 2048),
        progress=Progress(np.zeros(tasks), np.full(tasks, np.nan), np.full(tasks, -1), np.full(tasks, -1, np.int32),
                          np.zeros(tasks, np.uint16)),
        stages=_stages(tasks if stages else 0, stages, cut.edges_max if stages else 0), slow=whole.slow,
        changes=whole.changes,
        losses=Losses(np.empty(2 * tasks, np.int32), np.empty(2 * tasks, np.int32), np.empty(2 * tasks),
                      np.empty(2 * tasks)),
        step=Step(np.empty_like(whole.step.freed), np.zeros_like(whole.step.is_freed), np.empty(tasks, np.int32),
                  np.empty(tasks, np.int32)),
        record=Record(np.zeros((2, whole.record.current.size)), np.zeros_like(whole.record.current),
                      np.zeros_like(whole.record.waiting_by_shape), whole.record.shape_by_size),
        clock=Clock(), counts=Counts())
    none = np.zeros(tasks, np.int32)
    return Episode(
        sim, Waiting(np.full(tasks + 1, tasks, np.int32), np.full(tasks + 1, tasks, np.int32)),
        Gangs(none, none.copy(), none.copy(), none.copy()), none.copy(), np.zeros(stages, np.int32),
        np.full(shown, NO_HEAD, np.int32), np.zeros(1, np.uint64), np.zeros(STATE_SIZE, np.int64))


def _like(column: np.ndarray, count: int) -> np.ndarray:
    """Return room for *count* of a column that may be empty, where nothing is told of anybody."""
    return np.zeros(count if column.size else 0, column.dtype)


def _stages(tasks: int, stages: int, edges: int) -> Stages:
    return Stages(
        np.zeros(tasks, np.int32), np.zeros(stages, np.int32), np.zeros(stages, np.int32),
        np.zeros(stages + 1, np.int64), np.zeros(edges, np.int32), np.zeros(stages + 1, np.int64),
        np.zeros(tasks, np.int32))


# -- from an episode back to tables ------------------------------------------------------------------------------------


def window_workload(world: World, first_job: int) -> Workload:
    """Return the window that begins with a job (in the order of arrival) as a workload of its own."""
    chosen = np.sort(world.cut.order[first_job : first_job + int(world.cut.window[2])])
    place = pl.DataFrame({"job": chosen.astype(np.uint32), "new": np.arange(chosen.size, dtype=np.uint32)})
    workload = world.workload
    stages = workload.stages.with_row_index("row").join(place, on="job", how="inner", maintain_order="left")
    moved = pl.DataFrame({"stage": stages["row"], "place": np.arange(len(stages), dtype=np.uint32)})
    place_of = np.zeros(len(workload.stages), np.uint32)
    place_of[moved["stage"].to_numpy()] = moved["place"].to_numpy()
    depends = stages["depends_on"].to_list()
    stages = stages.with_columns(
        pl.col("new").alias("job"),
        pl.Series("depends_on", [[int(place_of[row]) for row in rows] for rows in depends], pl.List(pl.UInt32)),
    ).drop("row", "new")
    tasks = workload.tasks.join(moved, on="stage", how="inner", maintain_order="left").with_columns(
        stage=pl.col("place")).drop("place")
    return replace(workload, jobs=workload.jobs[chosen], stages=stages, tasks=tasks)


def outcome_of(world: World, number: int, name: str) -> Outcome:
    """Return an episode as a run's outcome, under the *name* of a scheduler; its tasks are the window's, in order."""
    episode = world.state.episodes[number]
    sim, count = episode.sim, int(episode.state[TASKS_HERE])
    by_task = ("arrival", "run_time", "estimate", "rank", "shape")
    trimmed = sim._replace(
        tasks=sim.tasks._replace(**{name: getattr(sim.tasks, name)[:count] for name in by_task}),
        claims=sim.claims._replace(status=sim.claims.status[:count]),
        progress=Progress(*(column[:count] for column in sim.progress)))
    result = LoopResult(np.zeros((0, sim.record.current.size)), NEVER_S, sim.clock.accounted,
                        [np.vstack([column[: sim.counts.losses] for column in sim.losses])],
                        sim.counts.events, 0.0)
    scheduler = replace(SCHEDULERS["first-fit"], name=name)
    return Outcome(replace(world.prepared, simulation=trimmed), scheduler, 1, result)
