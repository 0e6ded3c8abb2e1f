"""Backfills under four rules: which gang gets a reservation, and which may pass which.

- strict: nobody passes the first that does not fit.
- backfill: whoever fits may pass; nobody has a reservation, so a large gang may wait for ever.
- EASY (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995): the first that does not fit gets a reservation, at the
  earliest time at which the machines are expected to be free; others may pass if they do not delay it.
- conservative (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001): everyone gets a reservation on arrival, and starts then
  or, when something ended before it was expected to, earlier: everyone in order is then given the earliest time that
  delays nobody else's, until nobody's becomes earlier.

A reservation is an entry in the profile. With one, a placement is asked about a fleet in which no machine is allowed
that somebody else's reservation needs; so any placement goes with any rule. A reservation is only given up for a better
one, but where the fleet changed or a task has outlived its estimate: then all are made anew, in order.
"""
from collections.abc import Callable

import numpy as np

from subak.fleet.feasible import NOWHERE, first_fitting, shape_fits_any
from subak.fleet.state import FleetState
from subak.marks import inlined, noinline
from subak.placement.claims import Claims
from subak.placement.rigid.gangs import NOBODY
from subak.placement.rigid.profile import RESERVATIONS, earliest
from subak.placement.rigid.reservations import (
    CONSERVATIVE,
    EASY,
    FIRST_RESERVED,
    STRICT_ORDER,
    TO_REVISE,
    Rigid,
    open_profile,
    reserve,
    unreserve,
)
from subak.placement.rigid.start import start
from subak.queues.lanes import ACTIVE_LANES, CONTENDERS, contend, drop_top, settle_top
from subak.queues.line import ABSENT, NO_MEMBER, first_below, key_of
from subak.workload.tasks import Tasks


@noinline
def serve(
    rigid: Rigid, fleet: FleetState, tasks: Tasks, select_machine: Callable[..., int], freed: np.ndarray,
    claims: Claims,
) -> None:
    """Start the gangs whose turn has come after *freed* (int32[:]) machines came to have more free."""
    if rigid.rule == CONSERVATIVE:
        keep_reservations(rigid, fleet, tasks, select_machine, claims)
    elif rigid.rule == STRICT_ORDER:
        gang = first_below(rigid.all, 0, ABSENT)
        while gang != NO_MEMBER and start(rigid, fleet, tasks, select_machine, gang, claims):
            gang = first_below(rigid.all, 0, ABSENT)
    else:
        moved = rigid.rule == EASY and serve_head(rigid, fleet, tasks, select_machine, claims)
        serve_others(rigid, fleet, tasks, select_machine, freed, moved, claims)
    rigid.notes[TO_REVISE] = 0


@noinline
def keep_reservations(
    rigid: Rigid, fleet: FleetState, tasks: Tasks, select_machine: Callable[..., int], claims: Claims
) -> None:
    """Conservative: start those whose time has come, and reserve for those who came; everybody, after news.

    Who moved up leaves room for those before it, so everybody is asked again until nobody moves. Each reservation then
    begins when something is expected to end, and does not miss its time for want of an event.
    """
    all_, moved = rigid.notes[TO_REVISE] != 0, True
    bound = ABSENT if all_ else np.nextafter(rigid.profile.now[0], np.inf)
    while moved:
        moved = False
        gang = first_below(rigid.all, 0, bound)
        while gang != NO_MEMBER:
            before = rigid.gangs.reserved[gang]
            started = start_or_reserve(rigid, fleet, tasks, select_machine, gang, claims)
            after = rigid.profile.now[0] if started else rigid.gangs.reserved[gang]
            moved |= all_ and after < before < np.inf
            gang = first_below(rigid.all, rigid.all.place[gang] + 1, bound)


@noinline
def start_or_reserve(
    rigid: Rigid, fleet: FleetState, tasks: Tasks, select_machine: Callable[..., int], gang: int,
    claims: Claims,
) -> bool:
    """Let a gang start at the earliest time that delays nobody who has a reservation: now, or by one of its own.

    The time of a reservation that it had is still free for it, so it gets none that is later.
    """
    gangs = rigid.gangs
    if gangs.reserved[gang] < np.inf:
        unreserve(rigid, claims, gang)
    if rigid.profile.size[RESERVATIONS] == 0 and start(rigid, fleet, tasks, select_machine, gang, claims):
        return True
    open_profile(rigid, fleet, tasks, claims)
    begin = earliest(rigid.profile, tasks, rigid.table.shape[gangs.lane[gang]], gangs.left[gang], gangs.seconds[gang])
    if begin <= rigid.profile.now[0] and start(rigid, fleet, tasks, select_machine, gang, claims):
        return True
    reserve(rigid, tasks, claims, gang, begin)
    return False


@inlined
def serve_head(
    rigid: Rigid, fleet: FleetState, tasks: Tasks, select_machine: Callable[..., int], claims: Claims
) -> bool:
    """EASY: start gangs in order until one must have a reservation; return whether reservations are other than before.

    Those that fit at no time, as long as the fleet is as it is, are passed over.
    """
    gang, moved = first_below(rigid.all, 0, ABSENT), False
    while gang != NO_MEMBER:
        head = rigid.notes[FIRST_RESERVED]
        if gang == head and rigid.gangs.reserved[gang] > rigid.profile.now[0] and not rigid.notes[TO_REVISE]:
            return moved
        moved = True
        if head not in (NOBODY, gang):
            unreserve(rigid, claims, head)
        rigid.notes[FIRST_RESERVED] = NOBODY
        started = start_or_reserve(rigid, fleet, tasks, select_machine, gang, claims)
        if not started and rigid.gangs.reserved[gang] < np.inf:
            rigid.notes[FIRST_RESERVED] = gang
            return moved
        gang = first_below(rigid.all, rigid.all.place[gang] + 1, ABSENT)
    return moved


@noinline
def serve_others(
    rigid: Rigid, fleet: FleetState, tasks: Tasks, select_machine: Callable[..., int], freed: np.ndarray, all_: bool,
    claims: Claims,
) -> None:
    """Ask the lanes that may have a chance, in the order of their gangs, until none has a gang that may start.

    A lane had none before: it may have where a machine was freed that fits, where a gang came, or, *all_*, where
    reservations are other than before. What fits does so for less time the longer it is asked for, so after a refusal
    only gangs with shorter estimates are asked.
    """
    rounds = rigid.rounds
    for place in range(rounds.size[ACTIVE_LANES]):
        lane = rounds.active[place]
        if all_ or rigid.fresh[lane] or shape_fits_any(fleet, tasks, rigid.table.shape[lane], freed):
            rigid.fresh[lane] = False
            rigid.below[lane] = np.inf
            if find_next(rigid, lane):
                contend(rounds, rigid.gangs.rank, lane)
    while rounds.size[CONTENDERS] > 0:
        lane = rounds.contender[0]
        gang = rounds.root[lane]
        if gang == rigid.notes[FIRST_RESERVED] or not start(rigid, fleet, tasks, select_machine, gang, claims):
            rigid.below[lane] = key_of(rigid.by_lane, gang) if is_tight(rigid, fleet, tasks, gang) else 0.0
        if find_next(rigid, lane):
            settle_top(rounds, rigid.gangs.rank)
        else:
            drop_top(rounds, rigid.gangs.rank)


@inlined
def find_next(rigid: Rigid, lane: int) -> bool:
    """Find the gang of a lane that a round asks next; return whether there is one."""
    table = rigid.table
    gang = first_below(rigid.by_lane, table.first[lane], rigid.below[lane])
    rigid.rounds.root[lane] = gang
    return gang != NO_MEMBER and rigid.by_lane.place[gang] < table.first[lane + 1]


@inlined
def is_tight(rigid: Rigid, fleet: FleetState, tasks: Tasks, gang: int) -> bool:
    """Whether a gang that was refused may have been for a reservation, so that a shorter one might not be."""
    gangs = rigid.gangs
    return bool(rigid.profile.size[RESERVATIONS] > 0
                and first_fitting(fleet, tasks, gangs.task[gangs.first[gang]]) != NOWHERE)
