"""Interference: tasks that together want more CPU than there is share it, and take longer.

Machines promise more CPU than they have (`subak.fleet.edits.overcommitted`), or tasks want more than they asked for
(overuse.py). A task wants the CPU that the workload says it uses, for as long as it runs. Where the tasks of a machine
want more together than it has, each gets the same part of what it wants, the machine's pace, and runs by so much more
slowly: it ends when it has had its CPU-seconds, and not before. So the work of an attempt is kept, whoever comes and
goes: the integral of the pace over an attempt that finished is its run time. Memory is not shared so, nor is what asks
for no CPU slowed.

Rules, whenever a step is over:
- pace = min(1, physical / wanted), where wanted is what all attempts want that run on the machine
- `left` is what an attempt still had to run, at full pace, when the pace last changed or when it started, whichever is
  later; where anybody was or is slowed down, a start and an end count as a change
- an attempt ends that much later, over the pace
"""
from typing import NamedTuple

import numpy as np

from subak.marks import inlined, noinline
from subak.simulator.engine.heap import Events, push_event

NOBODY = -1


class Interference(NamedTuple):
    """Who shares which machine's CPU; all arrays are empty in a run in which nobody does."""

    wants: np.ndarray  # int32[task], units of CPU that it uses
    physical: np.ndarray  # int32[machine], units of CPU that are there
    physical_changed: np.ndarray  # int32[change], the same from each change of the fleet on
    wanted: np.ndarray  # int64[machine], units of CPU that those that run there want together
    pace: np.ndarray  # float64[machine], the part of what it wants that each of them gets
    since: np.ndarray  # float64[machine], seconds: when what is left of them was last counted
    left: np.ndarray  # float64[task], seconds at full pace, of an attempt that runs
    end: np.ndarray  # float64[task], seconds: when it finished, nan before
    first: np.ndarray  # int32[machine], those that run there, in the order of their starts, NOBODY behind the last
    last: np.ndarray  # int32[machine]
    next: np.ndarray  # int32[task]
    before: np.ndarray  # int32[task]
    touched: np.ndarray  # int32[machine], where somebody came or went since CPU was last shared
    is_touched: np.ndarray  # bool[machine]
    size: np.ndarray  # int64[1], how many are touched


def no_interference() -> Interference:
    """Return that every task gets what it asked for."""
    return build_interference(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))


def build_interference(wants: np.ndarray, physical: np.ndarray, physical_changed: np.ndarray) -> Interference:
    """Return that nothing runs yet, from int32[task], int32[machine] and int32[change], units of CPU."""
    tasks, machines = wants.size, physical.size
    return Interference(
        wants.astype(np.int32), physical.astype(np.int32), physical_changed.astype(np.int32),
        np.zeros(machines, np.int64), np.ones(machines), np.zeros(machines), np.zeros(tasks), np.full(tasks, np.nan),
        np.full(machines, NOBODY, np.int32), np.full(machines, NOBODY, np.int32), np.full(tasks, NOBODY, np.int32),
        np.full(tasks, NOBODY, np.int32), np.empty(machines, np.int32), np.zeros(machines, bool), np.zeros(1, np.int64),
    )


@inlined
def interferes(shared: Interference) -> bool:
    """Whether tasks of this run share CPU."""
    return shared.wants.size > 0


@inlined
def touch(shared: Interference, machine: int) -> None:
    """Note that a machine's CPU is to be shared anew."""
    if not shared.is_touched[machine]:
        shared.is_touched[machine] = True
        shared.touched[shared.size[0]] = machine
        shared.size[0] += 1


@noinline
def join(shared: Interference, task: int, machine: int, seconds: float) -> None:
    """Let an attempt that has *seconds* to run share a machine's CPU from now on."""
    if shared.wants[task] == 0:
        return
    last = shared.last[machine]
    shared.before[task], shared.next[task] = last, NOBODY
    if last == NOBODY:
        shared.first[machine] = task
    else:
        shared.next[last] = task
    shared.last[machine] = task
    shared.left[task] = seconds
    shared.wanted[machine] += shared.wants[task]
    touch(shared, machine)


@noinline
def leave(shared: Interference, task: int, machine: int) -> None:
    """Let an attempt that ended share nothing any more."""
    if shared.wants[task] == 0:
        return
    before, behind = shared.before[task], shared.next[task]
    if before == NOBODY:
        shared.first[machine] = behind
    else:
        shared.next[before] = behind
    if behind == NOBODY:
        shared.last[machine] = before
    else:
        shared.before[behind] = before
    shared.wanted[machine] -= shared.wants[task]
    touch(shared, machine)


@noinline
def change_physical(shared: Interference, machine: int, change: int) -> None:
    """Let a machine have the CPU that a change of the fleet gives it."""
    shared.physical[machine] = shared.physical_changed[change]
    touch(shared, machine)


@inlined
def pace_of(shared: Interference, machine: int) -> float:
    """Return the part of what it wants that each task on a machine gets."""
    wanted, physical = shared.wanted[machine], shared.physical[machine]
    return 1.0 if wanted <= physical else physical / wanted


@noinline
def share_anew(shared: Interference, start: np.ndarray, event: np.ndarray, events: Events, now: float) -> int:
    """Give the attempts on every machine that was touched their new ends; return how many events these replaced.

    *start* and *event* are `Progress`'s. Where nobody was slowed down nor is, the ends are right as they are.
    """
    replaced = 0
    for place in range(shared.size[0]):
        machine = shared.touched[place]
        shared.is_touched[machine] = False
        old, new = shared.pace[machine], pace_of(shared, machine)
        if old == 1.0 and new == 1.0:
            continue
        task = shared.first[machine]
        while task != NOBODY:
            shared.left[task] -= old * (now - max(shared.since[machine], start[task]))
            event[task] = push_event(events, now + shared.left[task] / new, task, machine)
            replaced += 1
            task = shared.next[task]
        shared.pace[machine], shared.since[machine] = new, now
    shared.size[0] = 0
    return replaced
