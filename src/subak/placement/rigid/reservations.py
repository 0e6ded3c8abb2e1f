"""The state of backfilling: waiting gangs, expected ends and reservations.

Rules: a gang is in the lines `all` and `by_lane` while it waits, in `ending` while it runs; `reserved` of it is finite
exactly while the profile holds its tasks from then on for as long as they are estimated to run.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.state import FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined, noinline
from subak.placement.claims import TASK_RUNNING, TASK_WAITING, Claims
from subak.placement.rigid.gangs import NOBODY, NOT_RUNNING, Gangs, LaneTable, build_gangs, expected_end
from subak.placement.rigid.profile import (
    IS_OPEN,
    RESERVATIONS,
    UNUSED,
    Profile,
    build_profile,
    clear,
    hold,
    room_during,
)
from subak.queues.lanes import ACTIVE_LANES, Lanes, build_lanes, deactivate
from subak.queues.line import ABSENT, LAST_KEY, NO_MEMBER, Line, build_line, first_below, set_key
from subak.workload.tasks import Tasks

BACKFILL_RULES = ("strict", "backfill", "easy", "conservative")
STRICT_ORDER, BACKFILL, EASY, CONSERVATIVE = range(len(BACKFILL_RULES))
WAITS, NOT_YET = 0.0, -1.0  # keys in the line of all: that it waits; of conservative, that it has no reservation yet
FIRST_RESERVED, TO_REVISE, LATE, CHANGES_SEEN = range(4)  # of `notes`
UNUSED_MAX = 16  # decisions without a reservation that a profile is kept for


class Rigid(NamedTuple):
    """What the rules keep of a run."""

    gangs: Gangs
    table: LaneTable
    all: Line  # the gangs that wait, in order; their keys are WAITS, or under conservative when they are to start
    by_lane: Line  # the same, lane by lane; their keys are their estimates
    ending: Line  # the gangs that run; their keys are when they are expected to end
    rounds: Lanes  # `root` of a lane is the gang that a round would start next
    below: np.ndarray  # float64[lane]: the estimates that a round still considers are less
    fresh: np.ndarray  # bool[lane]: a gang came to wait in it
    waiting: np.ndarray  # int32[lane], gangs that wait in it
    profile: Profile
    mask: np.ndarray  # uint64[constraint_set, block], scratch: the machines that no reservation keeps a task from
    frontier: np.ndarray  # int64[2, shape], scratch, of searches among them
    sorted: np.ndarray  # int32[gang], scratch
    notes: np.ndarray  # int64[4]: FIRST_RESERVED, EASY's gang with a reservation; TO_REVISE, whether reservations may
    # become earlier; LATE, whether something ended later than expected; CHANGES_SEEN, changes of the fleet so far
    rule: int


def build_rigid(fleet: FleetState, tasks: Tasks, gang_of_task: np.ndarray, rule: int) -> Rigid:
    """Return that nobody waits and nothing runs; *gang_of_task* is int32[task], numbered by first tasks."""
    gangs, table = build_gangs(tasks, gang_of_task)
    numbers, lanes = np.arange(gangs.rank.size), table.shape.size
    return Rigid(
        gangs=gangs, table=table, all=build_line(np.lexsort((numbers, gangs.rank))),
        by_lane=build_line(np.lexsort((numbers, gangs.rank, gangs.lane))), ending=build_line(numbers),
        rounds=build_lanes(lanes, 0), below=np.zeros(lanes), fresh=np.zeros(lanes, np.bool_),
        waiting=np.zeros(lanes, np.int32), profile=build_profile(fleet, tasks, is_kept=rule >= EASY),
        mask=np.zeros_like(fleet.allowed), frontier=np.zeros_like(fleet.frontier),
        sorted=np.empty(numbers.size, np.int32), notes=np.array([NOBODY, 0, 0, 0], np.int64), rule=rule,
    )


@inlined
def reserves(rigid: Rigid) -> bool:
    """Whether the rule makes reservations."""
    return rigid.rule >= EASY


@inlined
def let_wait(rigid: Rigid, gang: int) -> None:
    """Let a gang wait from now on."""
    lane, rounds = rigid.gangs.lane[gang], rigid.rounds
    set_key(rigid.all, gang, NOT_YET if rigid.rule == CONSERVATIVE else WAITS)
    set_key(rigid.by_lane, gang, min(rigid.gangs.seconds[gang], LAST_KEY))
    rigid.fresh[lane] = True
    rigid.waiting[lane] += 1
    if rigid.waiting[lane] == 1:
        rounds.position[lane] = rounds.size[ACTIVE_LANES]
        rounds.active[rounds.size[ACTIVE_LANES]] = lane
        rounds.size[ACTIVE_LANES] += 1


@inlined
def note_start(rigid: Rigid, gang: int) -> None:
    """Note that a gang that waited runs from now on."""
    gangs, lane = rigid.gangs, rigid.gangs.lane[gang]
    set_key(rigid.all, gang, ABSENT)
    set_key(rigid.by_lane, gang, ABSENT)
    rigid.waiting[lane] -= 1
    if rigid.waiting[lane] == 0:
        deactivate(rigid.rounds, lane)
    gangs.missing[gang] = gangs.left[gang]
    if reserves(rigid):
        gangs.until[gang] = expected_end(rigid.profile.now[0], gangs.seconds[gang])
        set_key(rigid.ending, gang, min(gangs.until[gang], LAST_KEY))


@inlined
def note_rest(rigid: Rigid, gang: int) -> None:
    """Note that nothing of a gang runs any more."""
    rigid.gangs.until[gang] = NOT_RUNNING
    if reserves(rigid):
        set_key(rigid.ending, gang, ABSENT)


@inlined
def note_end(rigid: Rigid, task: int) -> None:
    """Note that a task has ended by itself; what it was expected to hold for longer is free."""
    gangs, gang, now = rigid.gangs, rigid.gangs.of_task[task], rigid.profile.now[0]
    gangs.missing[gang] -= 1
    gangs.left[gang] -= 1
    if reserves(rigid) and gangs.until[gang] != now:
        rigid.notes[TO_REVISE if gangs.until[gang] > now else LATE] = 1
        hold(rigid.profile, gangs.pool[task], rigid.table.shape[gangs.lane[gang]], -1, now, gangs.until[gang])
    if gangs.left[gang] == 0:
        note_rest(rigid, gang)


@kernel
def reserve(rigid: Rigid, tasks: Tasks, claims: Claims, gang: int, begin: float) -> None:
    """Give a gang a reservation from *begin* on, in the first pools that have room; none where *begin* is inf."""
    gangs, profile = rigid.gangs, rigid.profile
    gangs.reserved[gang] = begin
    if rigid.rule == CONSERVATIVE:
        set_key(rigid.all, gang, min(begin, LAST_KEY))
    if begin == np.inf:
        return
    profile.size[RESERVATIONS] += 1
    shape, end = rigid.table.shape[gangs.lane[gang]], expected_end(begin, gangs.seconds[gang])
    wanted = gangs.left[gang]
    if profile.first.size == 1:  # all are in it, which need not be noted task by task
        hold(profile, 0, shape, wanted, begin, end)
        return
    place = gangs.first[gang]
    for pool in range(profile.first.size):
        if wanted > 0 and profile.allows[tasks.constraint_set[shape], pool]:
            room = min(room_during(profile, pool, shape, begin, end), wanted)
            if room > 0:
                hold(profile, pool, shape, room, begin, end)
                place = note_pool(gangs, claims, place, room, pool)
                wanted -= room


@inlined
def note_pool(gangs: Gangs, claims: Claims, place: int, count: int, pool: int) -> int:
    """Note the pool of the next *count* tasks that wait, from a place in `task` on; return the place behind them."""
    while count > 0:
        if claims.status[gangs.task[place]] == TASK_WAITING:
            gangs.pool[gangs.task[place]] = pool
            count -= 1
        place += 1
    return place


@kernel
def unreserve(rigid: Rigid, claims: Claims, gang: int) -> None:
    """Give a gang's reservation up, if it has one."""
    gangs, profile, begin = rigid.gangs, rigid.profile, rigid.gangs.reserved[gang]
    if begin == np.inf:
        return
    gangs.reserved[gang] = np.inf
    profile.size[RESERVATIONS] -= 1
    shape, end = rigid.table.shape[gangs.lane[gang]], expected_end(begin, gangs.seconds[gang])
    if profile.first.size == 1:
        hold(profile, 0, shape, -gangs.left[gang], begin, end)
        return
    for place in range(gangs.first[gang], gangs.first[gang + 1]):
        if claims.status[gangs.task[place]] == TASK_WAITING:
            hold(profile, gangs.pool[gangs.task[place]], shape, -1, begin, end)


@noinline
def drop_reservations(rigid: Rigid, claims: Claims) -> None:
    """Give all reservations up; they are made anew, in order, when gangs are served next."""
    rigid.notes[TO_REVISE], rigid.notes[LATE] = 1, 0
    if rigid.notes[FIRST_RESERVED] != NOBODY:
        unreserve(rigid, claims, rigid.notes[FIRST_RESERVED])
        rigid.notes[FIRST_RESERVED] = NOBODY
    if rigid.profile.size[RESERVATIONS] > 0:
        gang = first_below(rigid.all, 0, ABSENT)
        while gang != NO_MEMBER:
            unreserve(rigid, claims, gang)
            gang = first_below(rigid.all, rigid.all.place[gang] + 1, ABSENT)


@noinline
def open_profile(rigid: Rigid, fleet: FleetState, tasks: Tasks, claims: Claims) -> None:
    """Write what runs into a profile that is closed: what ends last comes first, so that all else lies before it."""
    gangs, profile, now = rigid.gangs, rigid.profile, rigid.profile.now[0]
    if profile.size[IS_OPEN]:
        return
    clear(profile, fleet, tasks)
    count, gang = 0, first_below(rigid.ending, 0, ABSENT)
    while gang != NO_MEMBER:
        rigid.sorted[count] = gang
        count += 1
        gang = first_below(rigid.ending, gang + 1, ABSENT)
    sort_down(rigid.sorted[:count], gangs.until)
    for gang in rigid.sorted[:count]:
        shape = rigid.table.shape[gangs.lane[gang]]
        for task in gangs.task[gangs.first[gang] : gangs.first[gang + 1]]:
            if claims.status[task] == TASK_RUNNING:
                hold(profile, gangs.pool[task], shape, 1, now, gangs.until[gang])


@inlined
def somebody_waits(rigid: Rigid) -> bool:
    """Whether any gang waits."""
    return bool(rigid.rounds.size[ACTIVE_LANES] > 0)


@inlined
def close_if_unused(rigid: Rigid) -> None:
    """Close the profile when nobody has had a reservation for some decisions.

    To keep it costs a walk for each start, to open it again a sort: so neither is paid more than twice over.
    """
    size = rigid.profile.size
    size[UNUSED] = size[UNUSED] + 1 if size[RESERVATIONS] == 0 else 0
    if size[UNUSED] > UNUSED_MAX:
        size[IS_OPEN] = 0


@kernel
def sort_down(gangs: np.ndarray, key: np.ndarray) -> None:
    """Sort int32[:] in place by float64[gang], the largest first (heapsort)."""
    for place in range(gangs.size // 2 - 1, -1, -1):
        sink(gangs, key, place, gangs.size)
    for size in range(gangs.size - 1, 0, -1):
        gangs[0], gangs[size] = gangs[size], gangs[0]
        sink(gangs, key, 0, size)


@kernel
def sink(gangs: np.ndarray, key: np.ndarray, place: int, size: int) -> None:
    """Let the gang at *place* sink to where those below it have larger keys."""
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and key[gangs[child + 1]] < key[gangs[child]]:
            child += 1
        if key[gangs[place]] <= key[gangs[child]]:
            return
        gangs[place], gangs[child] = gangs[child], gangs[place]
        place = child
