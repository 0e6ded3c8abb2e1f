"""A batch as arrays by job: what a plan of maps and reduces needs."""
from dataclasses import dataclass

import numpy as np

from subak.errors import InputError
from subak.fleet.shapes import Shapes, find_shapes, holding_machines
from subak.fleet.speeds import stage_groups, stage_shuffle
from subak.fleet.table import Fleet
from subak.placement.mapreduce.dispatch import Problem
from subak.resources import same_resources
from subak.workload.maps_and_reduces import fault, reduce_stages
from subak.workload.table import Workload, expected_seconds


@dataclass(frozen=True)
class Half:
    """The maps, or the reduces, of every job, and the machines that may run them."""

    task: np.ndarray  # int64[task], rows of its tasks, by job and then by number
    tasks: np.ndarray  # int64[job], how many: T_i
    seconds: np.ndarray  # float64[job], the mean of what is expected of their run times: P_i
    shuffle: np.ndarray  # float64[job], seconds before each
    arrival: np.ndarray  # float64[job], seconds: of the last of them
    group: np.ndarray  # int32[job], column of `factor`
    machine: np.ndarray  # int32[row], the fleet's rows of machines that have a slot for it
    slots: np.ndarray  # int64[row], tasks of it that the machine runs at once
    factor: np.ndarray  # float64[row, group], V_ij; inf where the machine may not run the job

    @property
    def row_of_column(self) -> np.ndarray:
        """int32[column], row of `machine`: a column is a slot."""
        return np.repeat(np.arange(self.machine.size, dtype=np.int32), self.slots)

    def problem(self, ready: np.ndarray, available: np.ndarray) -> Problem:
        """Return what is to be dispatched, from *ready* (float64[job]) on, to columns *available* (float64[column])."""
        return Problem(self.tasks, self.seconds, self.shuffle, ready, self.group, self.factor, self.row_of_column,
                       available)

    def mean_seconds(self) -> np.ndarray:
        """Return float64[job]: how long a task takes, the mean over the machines that may run it; 0 without tasks."""
        allowed = np.isfinite(self.factor)
        mean = np.where(allowed, self.factor, 0.0).sum(axis=0) / np.maximum(allowed.sum(axis=0), 1)
        return np.where(self.tasks > 0, self.shuffle + self.seconds * mean[self.group], 0.0)


@dataclass(frozen=True)
class Batch:
    """Both halves."""

    maps: Half
    reduces: Half
    shares: bool  # whether maps and reduces compete for a resource on some machine


def find_batch(workload: Workload, fleet: Fleet) -> Batch:
    """Return the batch of a workload and a fleet.

    Raises InputError, in one line, for what no plan can be made for: more stages than two in a job, tasks that never
    end or differ in what they ask, a stage that no machine can hold, a fleet that changes.
    """
    same_resources(workload.resources, fleet.resources, "workload and fleet")
    _refuse_workload(workload)
    if len(fleet.changes):
        time, machine = fleet.changes["time"][0], fleet.machines["machine"][fleet.changes["machine"][0]]
        raise InputError(f"plan: a plan is for machines that stay as they are; machine {machine} changes at {time:g} s")
    shapes = find_shapes(workload)
    holds = holding_machines(shapes, fleet) & fleet.machines["present"].to_numpy()
    is_reduce = reduce_stages(workload)
    maps, reduces = (_half(workload, fleet, shapes, holds, np.flatnonzero(kind)) for kind in (~is_reduce, is_reduce))
    asked = [(shapes.request[:, shapes.of_stage[kind]] > 0).any(axis=1) for kind in (~is_reduce, is_reduce)]
    common = np.intersect1d(maps.machine, reduces.machine).size > 0
    return Batch(maps, reduces, bool(common and (asked[0] & asked[1]).any()))


def _refuse_workload(workload: Workload) -> None:
    found = fault(workload)
    if found:
        raise InputError(f"plan: a job must have at most a stage of maps and one of reduces; {found}")
    if len(workload.tasks) == 0:
        raise InputError("workload: there must be at least one task to simulate, this one has 0")
    expected = expected_seconds(workload)
    if not np.isfinite(expected).all():
        row = int(np.argmin(np.isfinite(expected)))
        raise InputError(f"plan: a task must be expected to end, row {row} of tasks has {expected[row]:g} s")


def _half(workload: Workload, fleet: Fleet, shapes: Shapes, holds: np.ndarray, stages: np.ndarray) -> Half:
    """Return one half; *holds* is bool[shape, machine], *stages* its rows of stages."""
    job_of_task = workload.stages["job"].to_numpy()[workload.tasks["stage"].to_numpy()]
    counted = np.bincount(workload.tasks["stage"].to_numpy(), minlength=len(workload.stages))
    stages = stages[counted[stages] > 0]
    stages = stages[np.argsort(workload.stages["job"].to_numpy()[stages], kind="stable")]
    task = np.flatnonzero(np.isin(workload.tasks["stage"].to_numpy(), stages))
    task = task[np.argsort(job_of_task[task], kind="stable")]
    _refuse_unplaceable(workload, holds[shapes.of_stage[stages]], stages)
    machine, slots = _slots(workload, fleet, shapes, holds, stages)
    group, factor = _factors(workload, fleet, shapes, holds, stages, machine)
    by_job = _ByJob(len(workload.jobs), workload.stages["job"].to_numpy()[stages])
    first = np.cumsum(counted[stages]) - counted[stages]
    return Half(
        task, by_job.of(counted[stages]), by_job.of(_means(expected_seconds(workload)[task], first, counted[stages])),
        by_job.of(stage_shuffle(workload)[stages]), by_job.of(_latest(workload, task, first)), by_job.of(group),
        machine, np.minimum(slots, len(workload.tasks)), factor,  # more slots would stay empty
    )


@dataclass(frozen=True)
class _ByJob:
    """From values by stage to values by job, 0 for a job without such a stage."""

    jobs: int
    job: np.ndarray  # int64[stage]

    def of(self, values: np.ndarray) -> np.ndarray:
        result = np.zeros(self.jobs, values.dtype)
        result[self.job] = values
        return result


def _means(expected: np.ndarray, first: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Return float64[stage], exact where all tasks of the stage are alike: a sum of equal numbers need not be."""
    if not first.size:
        return np.zeros(0)
    means = np.add.reduceat(expected, first) / counted
    return np.clip(means, np.minimum.reduceat(expected, first), np.maximum.reduceat(expected, first))


def _latest(workload: Workload, task: np.ndarray, first: np.ndarray) -> np.ndarray:
    arrival = workload.tasks["arrival"].to_numpy()[task]
    return np.maximum.reduceat(arrival, first) if first.size else np.zeros(0)


def _refuse_unplaceable(workload: Workload, holds: np.ndarray, stages: np.ndarray) -> None:
    nowhere = np.flatnonzero(~holds.any(axis=1))
    if nowhere.size:
        stage = workload.stages.row(int(stages[nowhere[0]]), named=True)
        raise InputError(f"plan: no machine for a stage: job {workload.jobs['job'][stage['job']]!r}, stage "
                         f"{stage['name']!r} fits none of the machines that are there")


def _slots(workload: Workload, fleet: Fleet, shapes: Shapes, holds: np.ndarray,
           stages: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int32[row] of machines that hold some of the stages, and int64[row], how many of their tasks at once."""
    if not stages.size:
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    of_stages = shapes.of_stage[stages]
    request = shapes.request[:, of_stages]
    other = np.flatnonzero((request != request[:, :1]).any(axis=0))
    if other.size:
        names = [f"{workload.jobs['job'][workload.stages['job'][int(stages[row])]]!r} asks "
                 + " ".join(f"{resource.name} {amount * resource.unit:g}" for resource, amount
                            in zip(workload.resources, request[:, row], strict=True))
                 for row in (0, int(other[0]))]
        raise InputError(f"plan: all maps must ask for the same, and all reduces; a task of job {names[0]}, one of job "
                         f"{names[1]}")
    machine = np.flatnonzero(holds[np.unique(of_stages)].any(axis=0)).astype(np.int32)
    asks = request[:, 0] > 0
    return machine, (fleet.capacity[asks][:, machine] // request[asks, :1]).min(axis=0).astype(np.int64)


def _factors(workload: Workload, fleet: Fleet, shapes: Shapes, holds: np.ndarray, stages: np.ndarray,
             machine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int32[stage of *stages*], the column of each, and float64[row of *machine*, column]."""
    if not stages.size:
        return np.zeros(0, np.int32), np.ones((machine.size, 1))
    pair = np.stack([stage_groups(workload, fleet)[stages], shapes.of_stage[stages]])
    distinct, column = np.unique(pair, axis=1, return_inverse=True)
    factor = np.ones((machine.size, distinct.shape[1]))
    if len(fleet.speeds):
        factor = np.ascontiguousarray(fleet.speeds[np.ix_(distinct[0], machine)].T)
    allowed = holds[:, machine]
    for shape in np.unique(distinct[1]):
        columns = np.flatnonzero(distinct[1] == shape)
        factor[np.ix_(~allowed[shape], columns)] = np.inf
    return column.ravel().astype(np.int32), factor
