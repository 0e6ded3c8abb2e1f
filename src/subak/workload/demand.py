"""Computes the demand of a workload over time if every task started on arrival."""
import math

import msgspec
import numpy as np
import polars as pl

from subak.fleet.table import Fleet
from subak.resources import Resource, same_resources
from subak.workload.table import Workload


class Demand(msgspec.Struct, frozen=True):
    """Amounts over time, in ``resource.of``; the requested ones hold if every task started on arrival."""

    times: list[float]  # seconds, evenly spaced over the workload's span
    requested: dict[str, list[float]]  # of each resource, at those times
    requested_mean: dict[str, float]  # over the span
    requested_max: dict[str, float]  # at any time, not only at those above
    requested_max_time: dict[str, float]
    capacity: dict[str, list[float]] | None  # of the machines present at those times; None without a fleet


def demand(workload: Workload, fleet: Fleet | None = None, point_count: int = 240) -> Demand:
    """Return the demand of a non-empty workload at *point_count* times, and the capacity present at them.

    Raises InputError when workload and fleet count different resources.
    """
    if fleet is not None:
        same_resources(workload.resources, fleet.resources, "workload and fleet")
    arrivals, ends = _starts_and_ends(workload)
    times = np.linspace(arrivals[0], span_end(workload), point_count)
    requested, means, peaks, peak_times = {}, {}, {}, {}
    for resource in workload.resources:
        curve = _Curve(arrivals, ends, _amounts(workload, resource))
        name, unit = resource.name, resource.unit
        requested[name] = (curve.at(times) * unit).tolist()
        means[name] = curve.mean(times[0], times[-1]) * unit
        peak_times[name], peaks[name] = curve.peak(unit)
    capacity = None if fleet is None else capacity_over_time(fleet, times)
    return Demand(times.tolist(), requested, means, peaks, peak_times, capacity)


def most_at_once(workload: Workload) -> int:
    """Return the most tasks of a non-empty workload that would run at once if every task started on arrival."""
    arrivals, ends = _starts_and_ends(workload)
    return int(_Curve(arrivals, ends, np.ones(len(arrivals), np.int64)).peak(1.0)[1])


def most_recorded(workload: Workload, begin: float = -math.inf, end: float = math.inf) -> tuple[int, ...]:
    """Return the most of each resource, in units, that tasks held at once in the log; its starts must be known.

    Only instants from *begin* to *end* count; who started before and still runs does, too.
    """
    starts = workload.tasks["recorded_start"].to_numpy()
    order = np.argsort(starts, kind="stable")
    begun, ends = starts[order], (starts + workload.tasks["run_time"].to_numpy())[order]
    times = np.append(begun[(begun >= begin) & (begun <= end)], begin)
    return tuple(int(_Curve(begun, ends, _amounts(workload, each)[order]).at(times).max())
                 for each in workload.resources)


def span_end(workload: Workload) -> float:
    """Return when the last task would end (endless ones aside) if every task started on arrival."""
    _, ends = _starts_and_ends(workload)
    finite = ends[np.isfinite(ends)]
    last_arrival = float(workload.tasks["arrival"][-1])
    return max(last_arrival, float(finite.max())) if len(finite) else last_arrival


def _starts_and_ends(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    arrivals = workload.tasks["arrival"].to_numpy()
    return arrivals, arrivals + workload.tasks["run_time"].to_numpy()


def _amounts(workload: Workload, resource: Resource) -> np.ndarray:
    """Return int64[task], units."""
    amounts = workload.stages[resource.name].cast(pl.Int64).gather(workload.tasks["stage"])
    return amounts.to_numpy()


class _Curve:
    """The amount in use as a step function: each task takes its amount from its start until its end."""

    def __init__(self, starts: np.ndarray, ends: np.ndarray, amounts: np.ndarray) -> None:
        order = np.argsort(ends, kind="stable")
        self.starts, self.ends = starts, ends[order]  # both sorted
        self.taken = np.append(0, np.cumsum(amounts))
        self.given_back = np.append(0, np.cumsum(amounts[order]))
        self.spans = (starts, ends, amounts)

    def at(self, times: np.ndarray) -> np.ndarray:
        """Return int64[time], units."""
        starts = np.searchsorted(self.starts, times, side="right")
        ends = np.searchsorted(self.ends, times, side="right")
        in_use: np.ndarray = self.taken[starts] - self.given_back[ends]
        return in_use

    def mean(self, low: float, high: float) -> float:
        """Return the mean between two times, in units."""
        starts, ends, amounts = self.spans
        if high <= low:
            return float(self.at(np.array([low]))[0])
        return float(((np.minimum(ends, high) - starts) * amounts).sum() / (high - low))

    def peak(self, unit: float) -> tuple[float, float]:
        """Return when the most is in use, and how much; it can only be at a start."""
        values = self.at(self.starts)
        place = int(values.argmax())
        return float(self.starts[place]), float(values[place] * unit)


def capacity_over_time(fleet: Fleet, times: np.ndarray) -> dict[str, list[float]]:
    """Return of each resource the capacity (in ``resource.of``) of the machines present at each time.

    *times*: float64[time], seconds.
    """
    changes = fleet.changes.sort("machine", "time", maintain_order=True)
    machine = np.append(np.arange(len(fleet.machines)), changes["machine"].to_numpy())
    order = np.argsort(machine, kind="stable")  # of each machine its state at time 0, then its changes
    machine = machine[order]
    when = np.append(np.full(len(fleet.machines), -np.inf), changes["time"].to_numpy())[order]
    present = np.append(fleet.machines["present"].to_numpy(), changes["present"].to_numpy())[order]
    by_time = np.argsort(when, kind="stable")
    places = np.searchsorted(when[by_time], times, side="right")
    result = {}
    for resource in fleet.resources:
        amounts = np.append(fleet.machines[resource.name].to_numpy(), changes[resource.name].to_numpy())[order]
        held = np.where(present, amounts.astype(np.int64), 0)
        before = np.where(np.append(True, machine[1:] != machine[:-1]), 0, np.append(0, held[:-1]))
        total = np.append(0, np.cumsum((held - before)[by_time]))
        result[resource.name] = (total[places] * resource.unit).tolist()
    return result
