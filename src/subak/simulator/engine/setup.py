"""Builds the state of a run from tables, once, so that kernels can trust it."""
from dataclasses import dataclass

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.edits import overcommitted
from subak.fleet.shapes import Shapes, find_shapes, truth_of_sets
from subak.fleet.speeds import build_speeds
from subak.fleet.state import build_fleet_state
from subak.fleet.table import Fleet
from subak.placement.claims import TASK_NOT_ARRIVED, TASK_UNPLACEABLE, Claims, build_claims
from subak.placement.interface.instance import Instance
from subak.queues.johnson import johnson_ranks
from subak.queues.tree import TreeFile
from subak.resources import CPU, amount_words, cpu_row, largest_words, same_resources
from subak.simulator.engine.distinct import distinct_columns
from subak.simulator.engine.heap import build_events
from subak.simulator.engine.interference import Interference, build_interference, no_interference
from subak.simulator.engine.overuse import draw_overuse, draw_swings, no_overuse, with_errors, with_swing
from subak.simulator.engine.state import (
    FIRST_RESOURCE,
    PER_RESOURCE,
    Changes,
    Clock,
    Counts,
    Losses,
    Progress,
    Record,
    Simulation,
    SlowStart,
    Step,
)
from subak.simulator.settings import RunSettings
from subak.workload.predicates import Constraint
from subak.workload.table import Workload, expected_seconds
from subak.workload.tasks import Stages, Tasks

NO_ROW = -1  # no machine of the fleet
ROWS_HELD = 4096  # intervals held before the run loop takes them over


@dataclass(frozen=True)
class Prepared:
    """A simulation ready to run, and what is needed to read its results."""

    simulation: Simulation
    instance: Instance
    machine_order: np.ndarray  # int32[machine], the fleet's row of each machine of the simulation, or NO_ROW
    reason_of_shape: list[str]  # why no machine could ever hold the shape, empty where one can
    shapes: Shapes  # of all that is asked for


class Terms(RunSettings, kw_only=True):
    """What a run is told beside its workload, fleet and scheduler: its settings, and what they do not say."""

    interval: float  # seconds, of the timeline
    ranking: str = "fifo"  # the order that tasks are ranked by
    seed: int = 1
    queues: TreeFile | None = None  # fair orders: weights and limits
    arrival_of_stage: np.ndarray | None = None  # float64[stage], s, of its first task, where not all tasks are there


def prepare(
    workload: Workload, fleet: Fleet, order: np.ndarray, terms: Terms, shapes: Shapes | None = None
) -> Prepared:
    """Return the initial state.

    *order* is int32[machine], rows of the fleet, NO_ROW for a place that is left empty; *shapes* are the workload's, as
    far as the scheduler tells them apart. Raises InputError when workload and fleet do not speak of the same resources.
    """
    same_resources(workload.resources, fleet.resources, "workload and fleet")
    if len(workload.tasks) == 0:
        raise InputError("workload: there must be at least one task to simulate, this one has 0")
    shapes = shapes or find_shapes(workload)
    there = order != NO_ROW
    real, fleet = fleet, overcommitted(fleet, terms.interference)
    capacity = np.where(there, fleet.capacity[:, order], 0).astype(np.int32)
    truth = truth_of_sets(shapes.sets, fleet)[:, order] & there
    stage = workload.tasks["stage"].to_numpy()
    tasks, overuse = _tasks(workload, fleet, shapes, stage, terms.ranking), no_overuse()
    used = tasks.shape
    if terms.request_error:
        shapes = with_errors(shapes, terms.request_error, capacity.max(axis=1))
        shared = cpu_row(workload.resources) if terms.interference else None
        asked, overuse = draw_overuse(shapes, used, terms.seed, shared)
        tasks = tasks._replace(shape=asked, request=shapes.request, constraint_set=shapes.constraint_set)
    elif terms.usage_swing:
        held, overuse = draw_swings(used, shapes.constraint_set.size, terms.seed)
        shapes = with_swing(shapes, terms.usage_swing)
        tasks = tasks._replace(shape=held, request=shapes.request, constraint_set=shapes.constraint_set)
    changes = _changes(fleet, order)
    present = fleet.machines["present"].to_numpy()[order] & there
    reasons = unplaceable_reasons(shapes, truth, capacity, present, changes, workload)
    stages = _stages(workload, stage)
    ends_are_known = terms.slow_start == 1.0 and not terms.interference  # when attempts start
    simulation = Simulation(
        tasks=tasks,
        fleet=build_fleet_state(capacity, present, truth, len(reasons), terms.seed),
        speeds=build_speeds(workload, fleet, order),
        overuse=overuse,
        interference=_interference(real, order, shapes.request[:, used], terms.interference),
        cut=np.zeros(0),
        claims=_claims(reasons, tasks.shape, used),
        events=build_events((2 if ends_are_known else 3) * tasks.arrival.size + 2048),
        progress=_progress(tasks),
        stages=stages,
        slow=_slow_start(stages, terms.slow_start),
        changes=changes,
        losses=build_losses(tasks.arrival.size + 1),
        step=Step(
            np.empty(len(order), np.int32), np.zeros(len(order), bool), np.empty(tasks.arrival.size, np.int32),
            np.empty(tasks.arrival.size, np.int32),
        ),
        record=_record(shapes, len(workload.resources), capacity),
        clock=Clock(interval=terms.interval, boundary=terms.interval, until=terms.until, unread_from=np.inf),
        counts=Counts(),
    )
    units = np.array([resource.unit for resource in workload.resources])
    blocks = simulation.fleet.allowed.shape[1]
    instance = Instance(units, capacity, shapes.request, tasks.shape, tasks.estimate, blocks)
    return Prepared(simulation, instance, order, reasons, shapes)


def arriving(prepared: Prepared, workload: Workload, fleet: Fleet, terms: Terms) -> Simulation:
    """Return the state of a run, but with rows for other tasks of its workload, none of which has arrived.

    *workload* is the run's with these tasks alone. What has no row for each task is the run's own.
    """
    sim, stage = prepared.simulation, workload.tasks["stage"].to_numpy()
    tasks = _tasks(workload, fleet, prepared.shapes, stage, terms.ranking)
    of_task = stage.astype(np.int32) if sim.stages.left.size else sim.stages.of_task
    return sim._replace(
        tasks=tasks, speeds=build_speeds(workload, fleet, prepared.machine_order), progress=_progress(tasks),
        claims=_claims(prepared.reason_of_shape, tasks.shape, tasks.shape), stages=sim.stages._replace(of_task=of_task))


def machine_order(fleet: Fleet, kind: str) -> np.ndarray:
    """Return int32[machine]: the rows of the fleet in the order they are tried in.

    "configuration" sorts as LoTES's Table 1: the configuration with the most machines first, ties by capacity.
    """
    if kind == "given":
        return np.arange(len(fleet.machines), dtype=np.int32)
    names = [resource.name for resource in fleet.resources]
    ranked = fleet.machines.with_row_index("row").with_columns(pl.len().over(names).alias("count"))
    ranked = ranked.sort(["count", *names, "row"], descending=[True, *[False] * len(names), False])
    return ranked["row"].to_numpy().astype(np.int32)


def unplaceable_reasons(
    shapes: Shapes, truth: np.ndarray, capacity: np.ndarray, present: np.ndarray, changes: Changes, workload: Workload
) -> list[str]:
    """Return per shape why no machine could ever hold it, an empty text where one could at some time."""
    there = np.flatnonzero(present)
    machine = np.concatenate([there, changes.machine[changes.present]])
    every = np.concatenate([capacity[:, there], changes.capacity[:, changes.present]], axis=1)
    amounts, which = distinct_columns(every)  # machines are of few sizes
    met = np.zeros((len(shapes.sets), amounts.shape[1]), bool)  # whether a machine of that size meets the constraints
    fits = np.zeros(shapes.request.shape[1], bool)
    for size, there_is in enumerate(amounts.T):
        met[:, size] = truth[:, machine[which == size]].any(axis=1)
        fits |= met[shapes.constraint_set, size] & (there_is[:, None] >= shapes.request).all(axis=0)
    return ["" if fits[shape] else _reason(shapes.request[:, shape], shapes.sets[each], amounts[:, met[each]], workload)
            for shape, each in enumerate(shapes.constraint_set)]


def _reason(request: np.ndarray, constraints: tuple[Constraint, ...], amounts: np.ndarray, workload: Workload) -> str:
    """Say why a request fits none of the machines that meet its constraints, which have these *amounts*."""
    allowed = "machine" if not constraints else "machine that meets " + " and ".join(map(str, constraints))
    if amounts.shape[1] == 0:
        return f"no {allowed}"
    for resource, asked, most in zip(workload.resources, request, amounts.max(axis=1), strict=True):
        if asked > most:
            return (f"asks {resource.name} {amount_words(resource, asked)}, "
                    f"the largest {allowed} has {largest_words(resource, int(asked), int(most))}")
    return f"no {allowed} has all it asks together"


def _tasks(workload: Workload, fleet: Fleet, shapes: Shapes, stage: np.ndarray, order: str) -> Tasks:
    table = workload.tasks
    arrival = table["arrival"].to_numpy(writable=True)
    run_time = table["run_time"].to_numpy(writable=True)
    expected = expected_seconds(workload) if "estimate" in table.columns else run_time
    if order == "priority":
        rank = -workload.stages["priority"].to_numpy()[stage].astype(np.float64)
    elif order in ("johnson", "johnson-reversed"):
        rank = johnson_ranks(workload, fleet, shapes, expected, descending=order == "johnson-reversed")
    else:
        rank = expected if order == "shortest-first" else arrival.copy()
    return Tasks(arrival, run_time, expected, rank, shapes.of_stage[stage], shapes.request, shapes.constraint_set)


def _claims(reasons: list[str], asked: np.ndarray, used: np.ndarray) -> Claims:
    """Return an empty outbox, and who can never be placed: tasks that ask for, or come to use, a hopeless shape."""
    claims = build_claims(asked.size)
    if any(reasons):
        hopeless = np.array([bool(reason) for reason in reasons])
        claims.status[:] = np.where(hopeless[asked] | hopeless[used], TASK_UNPLACEABLE, TASK_NOT_ARRIVED)
    return claims


def _progress(tasks: Tasks) -> Progress:
    count = tasks.arrival.size
    return Progress(
        ready=tasks.arrival.copy(), start=np.full(count, np.nan), event=np.full(count, -1),
        machine=np.full(count, -1, np.int32), attempts=np.zeros(count, np.uint16),
    )


def _changes(fleet: Fleet, order: np.ndarray) -> Changes:
    place = np.empty(len(fleet.machines), np.int32)
    place[order[order != NO_ROW]] = np.flatnonzero(order != NO_ROW)
    table = fleet.changes
    amounts = [table[resource.name].to_numpy().astype(np.int32) for resource in fleet.resources]
    return Changes(
        table["time"].to_numpy(writable=True), place[table["machine"].to_numpy()],
        table["present"].to_numpy(writable=True), np.ascontiguousarray(np.vstack(amounts)),
    )


def _interference(real: Fleet, order: np.ndarray, used: np.ndarray, times: float) -> Interference:
    """Return who shares CPU, none where *times* is 0; *used* is int32[resource, task], *real* without promises."""
    if not times:
        return no_interference()
    row = cpu_row(real.resources)
    physical = np.where(order != NO_ROW, real.capacity[row, order], 0)
    return build_interference(used[row], physical, real.changes[CPU].to_numpy())


def build_losses(capacity: int) -> Losses:
    """Return room for as many lost attempts at once: those that run, and in a federation one that had ended."""
    return Losses(
        np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.empty(capacity), np.empty(capacity)
    )


def _record(shapes: Shapes, resources: int, capacity: np.ndarray) -> Record:
    columns = FIRST_RESOURCE + PER_RESOURCE * resources
    share = (shapes.request / np.maximum(capacity.max(axis=1), 1)[:, None]).max(axis=0)
    by_size = np.argsort(share, kind="stable").astype(np.int32)
    return Record(np.zeros((ROWS_HELD, columns)), np.zeros(columns), np.zeros(by_size.size, np.int32), by_size)


def _stages(workload: Workload, stage: np.ndarray) -> Stages:
    """Return which stage waits for which, seen from the parent; empty when nothing depends on anything."""
    if not workload.has_dependencies:
        empty = np.zeros(0, np.int32)
        return Stages(empty, empty, empty, np.zeros(1, np.int64), empty, np.zeros(1, np.int64), empty)
    count = len(workload.stages)
    edges = workload.stages.with_row_index("child").select("child", "depends_on").explode("depends_on").drop_nulls()
    edges = edges.sort("depends_on", "child")
    left = np.bincount(stage, minlength=count).astype(np.int32)
    return Stages(
        of_task=stage.astype(np.int32), left=left,
        waits=np.bincount(edges["child"].to_numpy(), minlength=count).astype(np.int32),
        child_first=_firsts(np.bincount(edges["depends_on"].to_numpy(), minlength=count)),
        child=edges["child"].to_numpy().astype(np.int32),
        task_first=_firsts(left),
        task=np.argsort(stage, kind="stable").astype(np.int32),
    )


def _slow_start(stages: Stages, share: float) -> SlowStart:
    """Return the state of a slow start, before which nothing is released but where *share* is 0."""
    if share == 1.0 or stages.of_task.size == 0:
        empty = np.zeros(0, np.int32)
        return SlowStart(empty, empty, np.zeros(0))
    unfinished = stages.waits.copy()
    if share == 0.0:
        stages.waits[:] = 0
    enough = stages.left - np.ceil(share * stages.left).astype(np.int32)
    return SlowStart(enough.astype(np.int32), unfinished, np.where(unfinished > 0, np.inf, 0.0))


def _firsts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
