"""Knows where inputs lie, and how much longer a task takes that reads from afar.

Three levels, as Hadoop has them: an attempt runs on a machine that holds its input (node-local), on another machine of
such a machine's rack (rack-local), or anywhere else (off-rack).
"""
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet
from subak.marks import inlined
from subak.workload.table import Workload

LEVELS = ("node-local", "rack-local", "off-rack")
NODE_LOCAL, RACK_LOCAL, OFF_RACK = range(3)
LOCALITY_COLUMNS = ("rack_local", "off_rack")  # of stages: factors of the run time at the levels but the first
RACK_ATTRIBUTE = "rack"  # of machines
NO_HOLDER, NO_RACK, NO_HOLDERS_RACK = -1, -1, -2  # no rack is that of a machine whose rack is not known
Number = TypeVar("Number", int, np.ndarray)  # one, or an array of many


class Inputs(NamedTuple):
    """Which machines hold the tasks' inputs; without columns where no task is known to have any."""

    holder: np.ndarray  # int32[copy, task], machine, NO_HOLDER behind the last one
    holder_rack: np.ndarray  # int32[copy, task], NO_HOLDERS_RACK where there is none
    rack: np.ndarray  # int32[machine], NO_RACK where it is not known
    factor: np.ndarray  # float64[level, task], of the run time; 1 for a task whose input nobody holds


@inlined
def input_level(inputs: Inputs, task: Number, machine: Number) -> Number:
    """Return the level of *task* on *machine*; called from Python, both may be arrays of one length."""
    on_machine = inputs.holder[0, task] == machine
    on_rack = inputs.holder_rack[0, task] == inputs.rack[machine]
    for copy in range(1, inputs.holder.shape[0]):
        on_machine = on_machine | (inputs.holder[copy, task] == machine)
        on_rack = on_rack | (inputs.holder_rack[copy, task] == inputs.rack[machine])
    return OFF_RACK - (on_machine | on_rack) - on_machine


def build_inputs(workload: Workload, fleet: Fleet, order: np.ndarray) -> Inputs:
    """Return the inputs of a run whose machines are the fleet's rows in *order* (int32[machine]).

    Machines that the fleet does not have hold nothing, and a task whose input nobody holds is at home everywhere.
    """
    if not has_inputs(workload):
        return no_inputs()
    held, rack = _holders(workload, fleet, order), _racks(fleet)[order]
    copies = int(held["copy"].max() or 0) + 1  # type: ignore[arg-type]
    holder = np.full((copies, len(workload.tasks)), NO_HOLDER, np.int32)
    holder[held["copy"].to_numpy(), held["task"].to_numpy()] = held["machine"].to_numpy()
    known = np.where(holder == NO_HOLDER, NO_RACK, rack[holder])
    known = np.where(known == NO_RACK, NO_HOLDERS_RACK, known).astype(np.int32)
    return Inputs(holder, known, rack, _factors(workload, holder))


def no_inputs() -> Inputs:
    """Return those of a run in which it does not matter where tasks run."""
    empty = np.zeros((1, 0), np.int32)
    return Inputs(empty, empty.copy(), np.zeros(0, np.int32), np.ones((len(LEVELS), 0)))


def has_inputs(workload: Workload) -> bool:
    """Whether the workload says of any task where its input lies."""
    return "inputs" in workload.tasks.columns and bool(workload.tasks["inputs"].list.len().sum())


def refuse_inputs(workload: Workload, scheduler: str) -> None:
    """Raise InputError when reading from afar takes longer, which a federation does not support."""
    for name in LOCALITY_COLUMNS:
        if has_inputs(workload) and name in workload.stages.columns and (workload.stages[name] != 1.0).any():
            raise InputError(f"{name}: {scheduler} is a federation, in which all machines are as far from every input; "
                             "this workload has stages that take longer far from theirs")


def _holders(workload: Workload, fleet: Fleet, order: np.ndarray) -> pl.DataFrame:
    """Return task, copy (0 for the first) and machine of the run, of the inputs that the fleet holds."""
    there = np.flatnonzero(order >= 0)
    places = pl.DataFrame([fleet.machines["machine"].gather(order[there]).alias("inputs"),
                           pl.Series("machine", there, pl.Int32)])
    named = workload.tasks.select("inputs").with_row_index("task").explode("inputs").drop_nulls("inputs")
    found = named.unique(maintain_order=True).join(places, on="inputs", maintain_order="left")
    return found.select("task", pl.int_range(pl.len(), dtype=pl.UInt32).over("task").alias("copy"), "machine")


def _racks(fleet: Fleet) -> np.ndarray:
    """Return int32[row], the rack of each machine of the fleet."""
    code = fleet.attribute(RACK_ATTRIBUTE).cast(pl.Categorical).to_physical().cast(pl.Int32)
    racks: np.ndarray = code.fill_null(NO_RACK).to_numpy()
    return racks


def _factors(workload: Workload, holder: np.ndarray) -> np.ndarray:
    """Return float64[level, task]."""
    factor = np.ones((len(LEVELS), holder.shape[1]))
    stage = workload.tasks["stage"].to_numpy()
    for level, name in enumerate(LOCALITY_COLUMNS, RACK_LOCAL):
        if name in workload.stages.columns:
            factor[level] = np.where(holder[0] == NO_HOLDER, 1.0, workload.stages[name].to_numpy()[stage])
    return factor
