"""Sweeps over attempts to compute power and its integrals, vectorised.

What a machine holds, how many tasks run on it, its capacity and whether it is there are step functions of time; each is
the running total of what changes, in whole units, so that nothing drifts. Everything ends with the window, so the
changes of a machine add up to nothing: the totals of many machines, one behind the other, need no beginning of their
own, and each machine ends with a row of no power. Machines are swept in groups of one kind, which fit in the cache.
"""
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from subak.measures.energy.kinds import Curve
from subak.measures.energy.series import Steps

ATTEMPTS_OF_GROUP = 200_000  # about as many changes fit in the cache
MACHINES_OF_GROUP = 50_000  # their numbers in 16 bits, which sort fastest
USED, RUNNING, CAPACITY, PRESENT = range(4)  # rows of what changes
JOULES_PER_KWH = 3.6e6
SECONDS_PER_HOUR = 3600.0


class Attempts(NamedTuple):
    """What held a machine, from when to when, in any order."""

    machine: np.ndarray  # uint[attempt], row; one beyond the last is none
    stage: np.ndarray  # uint32[attempt]
    start: np.ndarray  # float64[attempt], seconds
    end: np.ndarray  # float64[attempt], seconds; inf where it goes on


class Presence(NamedTuple):
    """What changes of the machines themselves, in any order; of each machine it adds up to nothing."""

    machine: np.ndarray  # int64[change], row
    time: np.ndarray  # float64[change], seconds
    capacity: np.ndarray  # int64[resource, change], units
    present: np.ndarray  # int64[change]


class Kinds(NamedTuple):
    """Of which kind machines are, and what each kind draws."""

    kind: np.ndarray  # int64[machine], row of its curve
    curves: list[Curve]
    main: int  # row of the resource by whose use energy is shown


class Tariff(NamedTuple):
    """What a kWh costs, and emits, over time; None where it is not known."""

    price: Steps | None
    carbon: Steps | None


class Power(NamedTuple):
    """What was drawn in the time swept."""

    kwh: np.ndarray  # float64[machine]
    cost: np.ndarray  # float64[machine], of that energy
    carbon: np.ndarray  # float64[machine], kg
    hours: np.ndarray  # float64[machine], in which it was there
    held: np.ndarray  # float64[machine], unit-hours that tasks held of the main resource
    binned: np.ndarray  # float64[interval], kWh


class Group(NamedTuple):
    """Machines of one kind that are swept together, and their attempts."""

    machines: np.ndarray  # int64[place], rows
    attempts: np.ndarray  # uint32[attempt], those of the first machine first
    counts: np.ndarray  # int64[place], how many each machine has


class Own(NamedTuple):
    """The attempts of a group, in the time that is swept."""

    place: np.ndarray  # uint16[attempt], of its machine in the group
    stage: np.ndarray  # uint32[attempt]
    start: np.ndarray  # float64[attempt], seconds
    end: np.ndarray  # float64[attempt], seconds


def sweep(
    attempts: Attempts, presence: Presence, fleet: Kinds, request: np.ndarray, tariff: Tariff, edges: np.ndarray,
    size: int = ATTEMPTS_OF_GROUP,
) -> Power:
    """Return what machines drew between the first and the last of *edges* (float64[interval + 1], seconds).

    *request* (int64[resource, stage]) is in units; about *size* attempts are looked at together. Exact but for
    rounding: power is constant between two changes of a machine, and what a kWh costs is integrated between them.
    """
    machines = fleet.kind.size
    kwh, cost, carbon, hours, held = np.zeros((5, machines))
    found = Power(kwh, cost, carbon, hours, held, np.zeros(edges.size - 1))
    level = np.zeros(edges.size - 1)  # by which power changes in each interval, W
    by_machine = np.argsort(presence.machine, kind="stable")
    first = np.searchsorted(presence.machine[by_machine], np.arange(machines + 1))
    for group in _groups(attempts.machine, fleet.kind, size):
        rows = by_machine[_ranges(first[group.machines], first[group.machines + 1])]
        curve = fleet.curves[fleet.kind[group.machines[0]]]
        own = _inside(group, attempts, edges)
        seconds = np.bincount(own.place, request[fleet.main, own.stage] * (own.end - own.start), group.machines.size)
        found.held[group.machines] = seconds / SECONDS_PER_HOUR
        place, time, totals = _totals(group, own, request[curve.resource], presence, rows, curve.resource, edges)
        watts = _watts(totals, curve)
        _add(found, group.machines, place, time, totals[PRESENT], watts, tariff)
        _into_bins(found.binned, level, time, watts, edges)
    found.binned[1:] += np.cumsum(level)[:-1] * np.diff(edges)[1:] / JOULES_PER_KWH
    return found


def _groups(machine: np.ndarray, kind: np.ndarray, size: int) -> Iterator[Group]:
    """Return the machines in groups of one kind with about *size* attempts each."""
    machines = kind.size
    order = np.argsort(machine, kind="stable").astype(np.uint32)
    counts = np.bincount(machine, minlength=machines + 1)[:machines]
    last = np.cumsum(counts)
    for number in np.unique(kind):
        of_kind = np.flatnonzero(kind == number)
        part = np.maximum(counts[of_kind] / size, 1.0 / MACHINES_OF_GROUP)
        group = np.floor(np.cumsum(part) - part).astype(np.int64)
        for rows in np.split(of_kind, np.flatnonzero(np.diff(group)) + 1):
            yield Group(rows, order[_ranges(last[rows] - counts[rows], last[rows])], counts[rows])


def _ranges(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return int64[...]: the numbers from each begin to before its end, one range behind the other."""
    size = end - begin
    before = np.cumsum(size) - size
    return np.repeat(begin - before, size) + np.arange(int(size.sum()))


def _inside(group: Group, attempts: Attempts, edges: np.ndarray) -> Own:
    """Return the attempts of a group as far as they are in the time that is swept."""
    of = group.attempts
    place = np.repeat(np.arange(group.machines.size, dtype=np.uint16), group.counts)
    start, end = (np.clip(times[of], edges[0], edges[-1]) for times in (attempts.start, attempts.end))
    inside = end > start
    return Own(place[inside], attempts.stage[of[inside]], start[inside], end[inside])


def _totals(
    group: Group, own: Own, request: np.ndarray, presence: Presence, rows: np.ndarray, resource: int,
    edges: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return place, time and int64[4, change], what is so from each change on, by machine and time.

    *rows* are the changes of the group's machines themselves.
    """
    amount, count = request[own.stage], own.start.size
    there = np.searchsorted(group.machines, presence.machine[rows]).astype(np.uint16)
    place = np.concatenate([own.place, own.place, there])
    time = np.concatenate([own.start, own.end, np.clip(presence.time[rows], edges[0], edges[-1])])
    change = np.zeros((4, place.size), np.int64)
    change[USED, :count], change[USED, count:2 * count] = amount, -amount
    change[RUNNING, :count], change[RUNNING, count:2 * count] = 1, -1
    change[CAPACITY, 2 * count:] = presence.capacity[resource, rows]
    change[PRESENT, 2 * count:] = presence.present[rows]
    order = np.argsort(time)
    order = order[np.argsort(place[order], kind="stable")]
    return place[order], time[order], np.cumsum(change[:, order], axis=1)


def _watts(totals: np.ndarray, curve: Curve) -> np.ndarray:
    """Return float64[change]: the power of the machine from each change on; none where it is not there.

    A machine whose tasks use more than it has, or something where it has nothing, draws no more than a full one.
    """
    full = (totals[USED] > 0).astype(np.float64)
    share = np.divide(totals[USED], totals[CAPACITY], out=full, where=totals[CAPACITY] > 0)
    watts = np.interp(share, curve.share, curve.watts)
    watts[totals[RUNNING] == 0] = curve.empty
    watts[totals[PRESENT] == 0] = 0.0
    return watts


def _add(
    found: Power, machines: np.ndarray, place: np.ndarray, time: np.ndarray, present: np.ndarray, watts: np.ndarray,
    tariff: Tariff,
) -> None:
    """Add what each machine of a group drew; the last row of a machine lasts for nothing, since nothing is there."""
    seconds = np.diff(time, append=time[-1:])
    found.kwh[machines] = np.bincount(place, watts * seconds, machines.size) / JOULES_PER_KWH
    found.hours[machines] = np.bincount(place, present * seconds, machines.size) / SECONDS_PER_HOUR
    for total, steps in ((found.cost, tariff.price), (found.carbon, tariff.carbon)):
        if steps is not None:
            area = steps.integral(time)
            values = watts * np.diff(area, append=area[-1:])
            total[machines] = np.bincount(place, values, machines.size) / JOULES_PER_KWH


def _into_bins(binned: np.ndarray, level: np.ndarray, time: np.ndarray, watts: np.ndarray, edges: np.ndarray) -> None:
    """Add what the power of machines changes by within each interval: at once, and in *level* for those behind it."""
    change = np.diff(watts, prepend=0.0)
    place = np.minimum(np.searchsorted(edges, time, side="right") - 1, binned.size - 1)
    binned += np.bincount(place, change * (edges[place + 1] - time), binned.size) / JOULES_PER_KWH
    level += np.bincount(place, change, binned.size)
