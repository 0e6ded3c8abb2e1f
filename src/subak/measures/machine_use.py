"""Measures how much of the machines tasks hold, and of the machine that is used least."""
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.fleet.table import Fleet
from subak.measures.of_run import utilisation
from subak.measures.window import Window, cut, window_facts
from subak.simulator.outcome import Outcome
from subak.simulator.results import machine_rows
from subak.workload.table import Workload

Shares = tuple[float | None, ...]  # of each resource; None where no machine has any of it


class Use(NamedTuple):
    """Shares of capacity that tasks held, the mean over the window."""

    all_machines: Shares
    least_used: Shares  # of the machine that is used least, for each resource the one with the least of it in use


def use_of(
    outcome: Outcome, tables: tuple[pl.DataFrame, pl.DataFrame], workload: Workload, fleet: Fleet, window: Window
) -> Use:
    """Return how much of a fleet was used; *tables* are the task table and the timeline of its run."""
    tasks, timeline = tables
    facts = window_facts(tasks, timeline, window)
    of_all = utilisation(cut(timeline, facts), [resource.name for resource in workload.resources])
    lost, on, start, end = np.hstack(outcome.loop_result.losses)
    task = np.concatenate([np.arange(len(tasks)), lost.astype(np.int64)])
    machine = np.concatenate([machine_rows(outcome), outcome.prepared.machine_order[on.astype(np.int64)]])
    begun = np.concatenate([_numbers(tasks["start"]), start])
    ended = np.concatenate([_numbers(tasks["finish"]), end])
    seconds = np.fmin(ended, facts.end) - np.fmax(begun, facts.begin)
    ran = ~np.isnan(begun) & (seconds > 0)
    held = workload.requests[:, workload.tasks["stage"].to_numpy()[task[ran]]] * seconds[ran]
    return Use(tuple(of_all.values()), tuple(
        _least(np.bincount(machine[ran], row, len(fleet.machines)), capacity, facts.end - facts.begin)
        for row, capacity in zip(held, fleet.capacity, strict=True)))


def _numbers(column: pl.Series) -> np.ndarray:
    """Return float64[row]; nan where a task did not start, or finish."""
    return column.fill_null(float("nan")).to_numpy()


def _least(held: np.ndarray, capacity: np.ndarray, span: float) -> float | None:
    """Return the least share of float64[machine] unit-seconds that were there; None where none were."""
    there = capacity * span
    return float((held[there > 0] / there[there > 0]).min()) if (there > 0).any() else None
