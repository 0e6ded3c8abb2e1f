"""Computes how long an attempt takes: input copying, then run time times the machine's speed factor.

What it reads from afar lengthens it too (locality.py).

The factor is V_ij of hmhs 2.1: of the tasks of a stage's speed group on a machine; 0.1 is ten times as fast as 1.
"""
from typing import NamedTuple, overload

import numpy as np

from subak.errors import InputError
from subak.fleet.locality import Inputs, Number, build_inputs, input_level, refuse_inputs
from subak.fleet.table import Fleet
from subak.marks import inlined
from subak.workload.table import Workload
from subak.workload.tasks import Tasks


class Speeds(NamedTuple):
    """What a run's attempts are slowed down or sped up by; arrays are empty where nothing is."""

    factor: np.ndarray  # float64[group, machine], of the run time: V_ij
    group: np.ndarray  # int32[task]
    shuffle: np.ndarray  # float64[task], seconds before the run time, as long on every machine
    inputs: Inputs  # where they lie, and what reading them from afar multiplies the run time by


@overload
def attempt_seconds(speeds: Speeds, tasks: Tasks, task: int, machine: int) -> float: ...
@overload
def attempt_seconds(speeds: Speeds, tasks: Tasks, task: np.ndarray, machine: np.ndarray) -> np.ndarray: ...
@inlined
def attempt_seconds(speeds: Speeds, tasks: Tasks, task: Number, machine: Number) -> float | np.ndarray:
    """Return how long an attempt of *task* on *machine* takes, in seconds; the one function that says so.

    Called from Python, both may be arrays of one length.
    """
    seconds = run_seconds(speeds, tasks, task, machine)
    if speeds.shuffle.size > 0:
        seconds = speeds.shuffle[task] + seconds
    return seconds


@overload
def run_seconds(speeds: Speeds, tasks: Tasks, task: int, machine: int) -> float: ...
@overload
def run_seconds(speeds: Speeds, tasks: Tasks, task: np.ndarray, machine: np.ndarray) -> np.ndarray: ...
@inlined
def run_seconds(speeds: Speeds, tasks: Tasks, task: Number, machine: Number) -> float | np.ndarray:
    """Return what of it is left when the inputs are there."""
    seconds = tasks.run_time[task]
    if speeds.factor.shape[0] > 0:
        seconds = seconds * speeds.factor[speeds.group[task], machine]
    if speeds.inputs.holder.shape[1] > 0:
        seconds = seconds * speeds.inputs.factor[input_level(speeds.inputs, task, machine), task]
    return seconds


def build_speeds(workload: Workload, fleet: Fleet, order: np.ndarray) -> Speeds:
    """Return the speeds of a run whose machines are the fleet's rows in *order* (int32[machine]).

    Raises InputError when a stage's speed group is none of the fleet's.
    """
    stage = workload.tasks["stage"].to_numpy()
    shuffle = stage_shuffle(workload)
    of_task = shuffle[stage] if shuffle.any() else np.zeros(0)
    inputs = build_inputs(workload, fleet, order)
    if not len(fleet.speeds):
        return Speeds(np.zeros((0, 0)), np.zeros(0, np.int32), of_task, inputs)
    as_given = np.array_equal(order, np.arange(fleet.speeds.shape[1]))
    factor = fleet.speeds if as_given else np.ascontiguousarray(fleet.speeds[:, order])
    return Speeds(factor, stage_groups(workload, fleet)[stage], of_task, inputs)


def stage_groups(workload: Workload, fleet: Fleet) -> np.ndarray:
    """Return int32[stage]: the row of ``fleet.speeds`` of each stage; without such a column all are of the only one.

    Raises InputError when there is no such row.
    """
    groups = len(fleet.speeds)
    if "speed_group" not in workload.stages.columns:
        if groups > 1:
            raise InputError(f"workload and fleet: stages need a column speed_group, the fleet has {groups} groups")
        return np.zeros(len(workload.stages), np.int32)
    group = workload.stages["speed_group"].to_numpy()
    bad = np.flatnonzero(group >= groups)
    if bad.size and groups:
        raise InputError(f"workload and fleet: speed_group must be one of the fleet's {groups} groups, from 0 on; "
                         f"stage {bad[0]} has {group[bad[0]]}")
    return group.astype(np.int32)


def stage_shuffle(workload: Workload) -> np.ndarray:
    """Return float64[stage], seconds that copying inputs adds to each attempt."""
    if "shuffle" not in workload.stages.columns:
        return np.zeros(len(workload.stages))
    return workload.stages["shuffle"].to_numpy()


def refuse_speeds(workload: Workload, fleet: Fleet, scheduler: str) -> None:
    """Raise InputError when run times depend on machines, or inputs are copied, which a federation does not support."""
    if len(fleet.speeds):
        raise InputError(f"speeds: {scheduler} is a federation, whose workers are all as fast; the fleet has "
                         f"{len(fleet.speeds)} speed groups")
    seconds = stage_shuffle(workload)
    if seconds.any():
        stage = int(np.argmax(seconds > 0))
        raise InputError(f"shuffle: {scheduler} is a federation, which copies no inputs; stage {stage} has "
                         f"{seconds[stage]:g} s")
    refuse_inputs(workload, scheduler)
