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


PEAK_OF = 0.95  # of the time


class Use(NamedTuple):
    """Shares of capacity that tasks held, the means over the window but for the peak."""

    all_machines: Shares
    peak: Shares  # below it for 95 % of the time
    least_used: Shares  # of the machine that is used least, for each resource the one with the least of it in use


def use_of(
    outcome: Outcome, tables: tuple[pl.DataFrame, pl.DataFrame], workload: Workload, fleet: Fleet, window: Window
) -> Use:
    """Return how much of a fleet was used; *tables* are the task table and the timeline of its run."""
    tasks, timeline = tables
    facts = window_facts(tasks, timeline, window)
    names = [resource.name for resource in workload.resources]
    inside = cut(timeline, facts)
    of_all = utilisation(inside, names)
    lost, on, start, end = np.hstack(outcome.loop_result.losses)
    task = np.concatenate([np.arange(len(tasks)), lost.astype(np.int64)])
    machine = np.concatenate([machine_rows(outcome), outcome.prepared.machine_order[on.astype(np.int64)]])
    begun = np.concatenate([_numbers(tasks["start"]), start])
    ended = np.concatenate([_numbers(tasks["finish"]), end])
    seconds = np.fmin(ended, facts.end) - np.fmax(begun, facts.begin)
    ran = ~np.isnan(begun) & (seconds > 0)
    held = workload.requests[:, workload.tasks["stage"].to_numpy()[task[ran]]] * seconds[ran]
    return Use(tuple(of_all.values()), tuple(_peak(inside, name) for name in names), tuple(
        _least(np.bincount(machine[ran], row, len(fleet.machines)), capacity, facts.end - facts.begin)
        for row, capacity in zip(held, fleet.capacity, strict=True)))


def _peak(timeline: pl.DataFrame, name: str) -> float | None:
    """Return the least share of a resource that was used that no more was for PEAK_OF of the time."""
    shares = timeline.filter(pl.col(f"capacity_{name}") > 0).select(
        "span", share=pl.col(f"used_{name}") / pl.col(f"capacity_{name}")).sort("share")
    if shares.is_empty():
        return None
    within = shares["span"].cum_sum().to_numpy()
    return float(shares["share"][int(np.searchsorted(within, PEAK_OF * within[-1]))])


def _numbers(column: pl.Series) -> np.ndarray:
    """Return float64[row]; nan where a task did not start, or finish."""
    return column.fill_null(float("nan")).to_numpy()


def _least(held: np.ndarray, capacity: np.ndarray, span: float) -> float | None:
    """Return the least share of float64[machine] unit-seconds that were there; None where none were."""
    there = capacity * span
    return float((held[there > 0] / there[there > 0]).min()) if (there > 0).any() else None
