"""Makes checked tables of a workload chunk by chunk, carrying state between chunks.

Without jobs, tasks that are alike in kind, priority, request, user and constraints share one job of one stage, which
is numbered when its first task arrives; 25 million tasks then make some thousand jobs. A task's index is its number.
"""
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import polars as pl

from subak.tables import Rule, refuse_rows
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.google_like.draw import FINISHES, IS_KILLED, Units
from subak.workload.google_like.laws import diurnal_times
from subak.workload.google_like.parameters import Parameters
from subak.workload.table import KINDS, OUTCOMES, make_workload

ORGANISATION = "organisation"
KIND_NAMES = pl.Series(["TASK", "SERVICE"], dtype=KINDS)
ENDING_NAMES = pl.Series(["FINISH", "FAIL", "KILL"], dtype=OUTCOMES)


@dataclass(frozen=True)
class Chunk:
    """Rows to append to the three tables, numbered as in the whole workload."""

    jobs: pl.DataFrame
    stages: pl.DataFrame
    tasks: pl.DataFrame


@dataclass
class Carried:
    """What one chunk hands to the next."""

    clock: float = 0.0  # seconds, the even stream's time of the last unit
    arrival: float = 0.0  # seconds, when the last unit arrived
    jobs: int = 0
    stages: int = 0
    tasks: int = 0
    groups: dict[tuple[int, int], int] = field(default_factory=dict)  # (traits, constraints) -> stage, without jobs


def arrivals(parameters: Parameters, gap: np.ndarray, carried: Carried) -> np.ndarray:
    """Return float64[unit], seconds, never falling, and advance the clock.

    The sum runs from left to right with the clock as its start, so that it is the same for every chunking.
    """
    times = np.cumsum(np.concatenate([[carried.clock], gap]))[1:]
    carried.clock = float(times[-1])
    if parameters.diurnal is not None:  # rounding may swap neighbours: the running maximum undoes it
        times = diurnal_times(times, parameters.diurnal)
    times = np.maximum.accumulate(np.concatenate([[carried.arrival], times]))[1:]
    carried.arrival = float(times[-1])
    return times


def chunk_of(parameters: Parameters, units: Units, arrival: np.ndarray, carried: Carried) -> Chunk:
    """Return the checked rows of *units* that arrive at *arrival* (float64[unit]), and count them in *carried*.

    Raises InputError where the parameters lead out of what a table can hold.
    """
    return (_grouped if parameters.jobs is None else _with_jobs)(parameters, units, arrival, carried)


def _with_jobs(parameters: Parameters, units: Units, arrival: np.ndarray, carried: Carried) -> Chunk:
    job = np.repeat(np.arange(len(units.sizes)), units.stages)  # of each stage
    first = np.cumsum(units.stages) - units.stages  # stage, of each job
    within = np.arange(len(job)) - first[job]
    stages = _stage_table(parameters, units, job, units.constraints[within, job], within)
    stages = stages.with_columns(depends_on=_dependencies(units, job, first, within))
    owner = np.repeat(np.arange(len(units.sizes)), units.sizes)  # job, of each task
    index = np.arange(len(owner)) - (np.cumsum(units.sizes) - units.sizes)[owner]
    stage = first[owner] + index * units.stages[owner] // units.sizes[owner]
    tasks = _task_table(parameters, units, stage, index, arrival[owner])
    names = [f"j{carried.jobs + number}" for number in range(len(units.sizes))]
    chunk = _checked(parameters, _job_table(parameters, names, units.user), stages, tasks)
    moved = Chunk(
        chunk.jobs,
        chunk.stages.with_columns(pl.col("job") + carried.jobs,
                                  pl.col("depends_on").list.eval(pl.element() + carried.stages)),
        chunk.tasks.with_columns(pl.col("stage") + carried.stages),
    )
    _count(moved, carried)
    return moved


def _grouped(parameters: Parameters, units: Units, arrival: np.ndarray, carried: Carried) -> Chunk:
    first, group = _first_of_groups(parameters, units)
    mask = units.constraints[0, first]
    stages = _stage_table(parameters, units, first, mask, np.zeros(len(first), np.int64))
    stages = stages.with_columns(job=np.arange(len(first)))
    tasks = _task_table(parameters, units, group, carried.tasks + np.arange(len(arrival)), arrival)
    jobs = _job_table(parameters, _group_names(parameters, units, first), units.user[first])
    chunk = _checked(parameters, jobs, stages, tasks)
    known = len(carried.groups)
    row = np.array([carried.groups.setdefault(key, len(carried.groups)) for key in zip(
        _traits(parameters, units)[first].tolist(), mask.tolist(), strict=True)], dtype=np.uint32)
    fresh = row >= known
    moved = Chunk(
        chunk.jobs.filter(fresh),
        chunk.stages.filter(fresh).with_columns(job=pl.Series(row[fresh])),
        chunk.tasks.with_columns(stage=pl.Series(row[group])),
    )
    _count(moved, carried)
    return moved


def _count(chunk: Chunk, carried: Carried) -> None:
    carried.jobs += len(chunk.jobs)
    carried.stages += len(chunk.stages)
    carried.tasks += len(chunk.tasks)


def _traits(parameters: Parameters, units: Units) -> np.ndarray:
    """int64[unit]: level, kind, request and user as the digits of one number."""
    traits = (units.level * 2 + units.service) * len(parameters.requests) + units.request
    return traits * parameters.queues.users + units.user


def _first_of_groups(parameters: Parameters, units: Units) -> tuple[np.ndarray, np.ndarray]:
    """Find the first unit of each group, in order of appearance, and int64[unit]: the group of each unit."""
    _, code = np.unique(_traits(parameters, units), return_inverse=True)
    masks, mask = np.unique(units.constraints[0], return_inverse=True)
    if len(masks) > 1:
        code = code * len(masks) + mask
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return first[order], place[group]


def _checked(parameters: Parameters, jobs: pl.DataFrame, stages: pl.DataFrame, tasks: pl.DataFrame) -> Chunk:
    """Apply the rules of every workload to the chunk by itself; a generated run time must end, too."""
    refuse_rows(tasks, "tasks", [
        Rule(~pl.col("run_time").is_finite(), "mass and disparity give a run time that never ends", "run_time")])
    workload = make_workload(jobs, stages, tasks, parameters.resources)
    return Chunk(workload.jobs, workload.stages, workload.tasks)


def _job_table(parameters: Parameters, names: Sequence[str], user: np.ndarray) -> pl.DataFrame:
    departments = parameters.queues.departments
    people, owner = np.unique(user, return_inverse=True)
    users = pl.Series([f"user {number + 1}" for number in people], dtype=pl.String)
    queues = pl.Series([f"{ORGANISATION}/department {number % departments + 1}/user {number + 1}"
                        for number in people], dtype=pl.String)
    return pl.DataFrame({"job": pl.Series(names, dtype=pl.String), "queue": queues.gather(owner),
                         "user": users.gather(owner)})


def _stage_table(
    parameters: Parameters, units: Units, unit: np.ndarray, mask: np.ndarray, within: np.ndarray,
) -> pl.DataFrame:
    """One row a stage, of units *unit*; the job's row is *unit*, and no stage waits."""
    columns = {
        "job": unit,
        "name": pl.Series([f"stage {number}" for number in range(int(within.max(initial=0)) + 1)]).gather(within),
        "depends_on": pl.Series([[]], dtype=pl.List(pl.UInt32)).gather(np.zeros(len(unit), np.int64)),
        "kind": KIND_NAMES.gather(units.service[unit].astype(np.int64)),
        "priority": _priority_column(parameters, units.service[unit], units.level[unit], 0),
        "constraints": _constraint_lists(parameters, mask),
        **{resource.name: np.array([request.amounts[resource.name] for request in parameters.requests],
                                   np.float64)[units.request[unit]] for resource in parameters.resources},
    }
    if parameters.priorities is not None:
        columns["scheduling_class"] = _priority_column(parameters, units.service[unit], units.level[unit], 1)
    if parameters.gangs > 0:
        columns["gang"] = units.gang[unit]
    return pl.DataFrame(columns)


def _task_table(
    parameters: Parameters, units: Units, stage: np.ndarray, index: np.ndarray, arrival: np.ndarray,
) -> pl.DataFrame:
    columns = {"stage": stage.astype(np.uint32), "index": index.astype(np.uint32), "arrival": arrival,
               "run_time": units.run_time}
    table = pl.DataFrame(columns)
    if parameters.failures is None:
        return table
    stopped = np.repeat(units.service, units.sizes) & (units.ending == FINISHES)  # a service ends when it is stopped
    ending = np.where(stopped, IS_KILLED, units.ending)
    return table.with_columns(outcome=ENDING_NAMES.gather(ending.astype(np.int64)))


def _dependencies(units: Units, job: np.ndarray, first: np.ndarray, within: np.ndarray) -> pl.Series:
    """list[uint32][stage]: the stage before (a chain), or all others for the last one (a fan-in)."""
    fan_in = units.fan_in[job]
    last = within == units.stages[job] - 1
    count = np.where(fan_in, np.where(last, within, 0), np.minimum(within, 1))
    start = np.where(fan_in, first[job], first[job] + within - 1)
    stage = np.repeat(np.arange(len(job)), count)
    place = np.arange(len(stage)) - (np.cumsum(count) - count)[stage]
    return _lists(stage, pl.Series((start[stage] + place).astype(np.uint32)), len(job))


def _constraint_lists(parameters: Parameters, mask: np.ndarray) -> pl.Series:
    """list[constraint][stage], in the order of the choices."""
    choices = parameters.constraints.choices if parameters.constraints else ()
    structs = pl.Series([msgspec.structs.asdict(constraint) for constraint, _ in choices], dtype=CONSTRAINT_TYPE)
    masks, row = np.unique(mask, return_inverse=True)
    owner, bit = np.nonzero(masks[:, None] >> np.arange(len(choices)) & 1)
    return _lists(owner, structs.gather(bit), len(masks)).gather(row)


def _lists(row: np.ndarray, values: pl.Series, count: int) -> pl.Series:
    """Return list[count]: the *values* of each *row* (rising), in their order; empty where there is none."""
    lists = pl.DataFrame({"row": row, "value": values}).group_by("row", maintain_order=True).agg("value")
    rows = pl.DataFrame({"row": np.arange(count)})
    found = rows.join(lists, on="row", how="left", maintain_order="left")["value"]
    return found.fill_null(pl.Series([[]], dtype=pl.List(values.dtype)))


def _priority_column(parameters: Parameters, service: np.ndarray, level: np.ndarray, part: int) -> np.ndarray:
    """int32[row]: thousandths, or with a table of priorities the *part* of PRIORITY/CLASS."""
    table = parameters.priorities
    if table is None:
        return (level * 1000 // parameters.priority_levels).astype(np.int32)
    tasks, services = (np.array([int(name.split("/")[part]) for name in weights], np.int32)
                       for weights in (table.tasks, table.services))
    rows = np.where(service, 0, level)
    return np.where(service, services[np.where(service, level, 0)], tasks[rows])


def _group_names(parameters: Parameters, units: Units, first: np.ndarray) -> list[str]:
    """Return ids such as ``TASK p168 r2 u0 c0``: kind, priority, request, user and the bits of the constraints."""
    kinds = KIND_NAMES.gather(units.service[first].astype(np.int64)).to_list()
    priorities = _priority_names(parameters, units.service[first], units.level[first])
    numbers = (column[first].tolist() for column in (units.request, units.user, units.constraints[0]))
    return [f"{kind} p{priority} r{request} u{user} c{mask:x}"
            for kind, priority, request, user, mask in zip(kinds, priorities, *numbers, strict=True)]


def _priority_names(parameters: Parameters, service: np.ndarray, level: np.ndarray) -> list[str]:
    priority = _priority_column(parameters, service, level, 0).tolist()
    if parameters.priorities is None:
        return [str(number) for number in priority]
    classes = _priority_column(parameters, service, level, 1).tolist()
    return [f"{number}/{latency}" for number, latency in zip(priority, classes, strict=True)]
