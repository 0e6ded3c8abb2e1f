"""Holds machines back for the first task of a lane that was passed over for too long.

A lane is passed over from its first turn in vain on, until a task of it runs. After `hold_back_after` seconds the
master holds machines back for the lane that has been passed over longest, one lane at a time: those that have most room
for its first now, as many as could hold all of it when idle; after each further such time twice as many, up to sixteen
times as many. Nobody else starts there, of this master or another. What runs there may never end: after
HELD_MAX times as long in vain the machines are everybody's for as long.

One master holds back at a time: of several that which has passed somebody over for longest, as far as they know.

What a master wants held it asks of local masters, which tell everybody in their ledgers who has a machine held back.
Where the ledger and what it wants differ, it asks again: so nothing is lost with a message, a local master or a global
one, and no hold outlasts its need.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.topology import Rules
from subak.federation.messages import NOBODY, PASSED_OVER, Outbox, post
from subak.fleet.index import note_freed_block
from subak.fleet.state import BLOCK, FleetState, all_open
from subak.marks import inlined, noinline
from subak.placement.hold_back import (
    NOT_PASSED_OVER,
    Room,
    build_room,
    close_to_others,
    open_to_others,
)
from subak.records import Numbers

HELD_MAX = 288  # times `hold_back_after`, as it is by default a day
FOREVER = float("inf")


class HoldingSearch(Numbers):
    """For which lane a master holds machines back, and when it looks again."""

    for_lane: int  # or NOBODY
    in_vain: int  # how often it was
    differing: int  # machines that are not held back as this master wants
    watching: int  # whether it will look again
    which_look: int  # of two that is: one that was settled before is not heeded, or comes early, to no harm
    look_at: float  # s: when more machines are held back


class Holding(NamedTuple):
    """The machines that are held back, as a global master believes and wants it."""

    since: np.ndarray  # float64[lane], s: since when it is passed over
    holder: np.ndarray  # int32[machine], the global master that has it held back, by the ledgers; NOBODY
    held_for: np.ndarray  # int64[machine], the task that it was said for, NOBODY
    held_at: np.ndarray  # float64[machine], s: when that was heard
    held_since: np.ndarray  # float64[machine], s: since when that task has been passed over
    wanted: np.ndarray  # int64[machine], the task that this master wants it held back for, NOBODY
    open: np.ndarray  # uint64[block], the machines that no other master has held back
    everything: np.ndarray  # uint64[block], all machines
    frontier: np.ndarray  # int64[2, shape], of searches among those
    room: Room
    search: HoldingSearch


def build_holding(view: FleetState, lanes: int) -> Holding:
    """Return that nothing is held back; for so many lanes."""
    machines = view.free.shape[1]
    return Holding(
        since=np.full(lanes, NOT_PASSED_OVER), holder=np.full(machines, NOBODY, np.int32),
        held_for=np.full(machines, NOBODY, np.int64), held_at=np.zeros(machines),
        held_since=np.zeros(machines),
        wanted=np.full(machines, NOBODY, np.int64), open=all_open(machines), everything=all_open(machines),
        frontier=np.zeros_like(view.frontier),
        room=build_room(machines), search=HoldingSearch(for_lane=NOBODY))


@noinline
def as_held_for(view: FleetState, holding: Holding, bits: np.ndarray) -> FleetState:
    """Return a view as the lane may use it for which machines are held back: those of uint64[block]."""
    return FleetState(
        view.free, view.capacity, view.block_free_max, view.block_at_max, view.allowed, bits,
        view.freed_blocks, holding.frontier, view.used, view.present, view.scale, view.random, view.lists,
        view.machines,
    )


@inlined
def set_holder(  # noqa: PLR0913, PLR0917  (a machine, and who has it held back)
    view: FleetState, holding: Holding, number: int, machine: int, holder: int, task: int, seconds: float,
    now: float,
) -> None:
    """Note who has a machine held back, for which task, and for how many seconds that has been passed over."""
    if holding.held_for[machine] != task:
        holding.search.differing -= differs(holding, number, machine)
        holding.holder[machine], holding.held_for[machine] = holder, task
        holding.held_at[machine], holding.held_since[machine] = now, now - seconds
        holding.search.differing += differs(holding, number, machine)
        open_or_close(view, holding, number, machine)


@inlined
def want(view: FleetState, holding: Holding, number: int, machine: int, task: int) -> None:
    """Want a machine held back for a task, or, NOBODY, for none."""
    holding.search.differing -= differs(holding, number, machine)
    holding.wanted[machine] = task
    holding.search.differing += differs(holding, number, machine)
    open_or_close(view, holding, number, machine)


@inlined
def differs(holding: Holding, number: int, machine: int) -> bool:
    """Whether a machine is not held back as this master wants it to be."""
    is_mine = holding.holder[machine] == number
    if holding.wanted[machine] == NOBODY:
        return bool(is_mine)
    return bool(not is_mine or holding.held_for[machine] != holding.wanted[machine])


@noinline
def open_or_close(view: FleetState, holding: Holding, number: int, machine: int) -> None:
    """Let searches find a machine, or not: those for the lane that machines are held back for, and all others."""
    holder, wanted = holding.holder[machine], holding.wanted[machine] != NOBODY
    if holder in (NOBODY, number):
        open_to_others(holding.open, machine)
    else:
        close_to_others(holding.open, machine)
    if holder == NOBODY and not wanted:
        open_to_others(view.open, machine)
    else:
        close_to_others(view.open, machine)
    note_freed_block(view, machine // BLOCK)


@inlined
def note_passed_over(holding: Holding, rules: Rules, number: int, lane: int, now: float, out: Outbox) -> None:
    """Note that the turn of the first of a lane came in vain."""
    if holding.since[lane] == NOT_PASSED_OVER and rules.hold_back_after < FOREVER:
        holding.since[lane] = now
        if holding.search.watching == 0:
            look_later(holding, number, rules.hold_back_after, out)


@noinline
def look_later(holding: Holding, number: int, delay: float, out: Outbox) -> None:
    """Look after a while, and not when that was settled before, who is passed over."""
    holding.search.watching = 1
    holding.search.which_look = 1 - holding.search.which_look
    row = post(out, PASSED_OVER, number, number, NOBODY, NOBODY)
    row["count"], row["delay"] = holding.search.which_look, delay


@inlined
def note_began(  # noqa: PLR0913, PLR0917  (a lane, and what became of its first)
    view: FleetState, holding: Holding, rules: Rules, number: int, lane: int, in_gang: bool, now: float, out: Outbox,
) -> None:
    """Note that a task of a lane, or a gang, runs.

    Where machines were held back for a single one, the next of its lane has been passed over just long enough: whoever
    has been for longer comes first.
    """
    is_it = holding.search.for_lane == lane
    if in_gang or not is_it:
        holding.since[lane] = NOT_PASSED_OVER
    else:
        holding.since[lane] = max(holding.since[lane], now - rules.hold_back_after)
    if is_it:
        let_go(view, holding, number)
        look_later(holding, number, 0.0, out)


@noinline
def let_go(view: FleetState, holding: Holding, number: int) -> None:
    """Want nothing held back any more."""
    for machine in range(holding.wanted.size):
        if holding.wanted[machine] != NOBODY:
            want(view, holding, number, machine, NOBODY)
    holding.search.for_lane, holding.search.in_vain, holding.search.look_at = NOBODY, 0, 0.0


@noinline
def forget_holding(view: FleetState, holding: Holding, number: int) -> None:
    """Know nothing of machines that are held back."""
    let_go(view, holding, number)
    for machine in range(holding.holder.size):
        set_holder(view, holding, number, machine, NOBODY, NOBODY, 0.0, 0.0)
    holding.since[:] = NOT_PASSED_OVER
    holding.search.watching = 0
    holding.search.which_look = 1 - holding.search.which_look
