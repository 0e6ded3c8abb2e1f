"""The profile of free amounts over future time, from expected ends and reservations.

Rules: a pool's segments follow each other in time, the first contains now, the last never ends; two neighbours differ.
A profile is open while somebody has a reservation, and for some decisions more; else nothing is written into it.

A pool is a set of machines between which tasks may be exchanged: where all tasks ask for the same, machines that meet
the same constraints are one pool of slots, and what fits its total fits (intervals can be coloured greedily by their
begin, so a gang that was promised a number of slots finds them). Otherwise a total says nothing of what is free on
one machine, and each machine is a pool of its own.

Sources: Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling the
IBM SP2 with backfilling", IEEE TPDS 12(6), 2001; Slurm's backfill plugin keeps such a list of machines.
"""
from typing import NamedTuple

import numpy as np

from subak.fleet.state import FleetState
from subak.kernels.kernel import kernel
from subak.marks import inlined
from subak.workload.tasks import Tasks

NO_SEGMENT = -1
MOST = 2**31 - 1
SPARES, RESERVATIONS, IS_OPEN, UNUSED = range(4)  # of `size`


class Profile(NamedTuple):
    """Free amounts over time, pool by pool; a segment lasts until the next one begins."""

    first: np.ndarray  # int32[pool], the segment that now lies in
    next: np.ndarray  # int32[segment], NO_SEGMENT behind the last
    time: np.ndarray  # float64[segment], seconds, when it begins
    free: np.ndarray  # int64[amount, segment]: of each resource in units, or slots
    demand: np.ndarray  # int64[amount, shape]
    pool: np.ndarray  # int32[padded machine]
    allows: np.ndarray  # bool[constraint_set, pool]
    room: np.ndarray  # int64[pool], scratch: how many would fit
    spare: np.ndarray  # int32[segment], those not in use, the first SPARES
    now: np.ndarray  # float64[1], seconds: the time of the present decision
    size: np.ndarray  # int64[4]: SPARES; RESERVATIONS, how many gangs have one; IS_OPEN, whether it is kept at present;
    # UNUSED, for how many decisions nobody has had one
    by_slots: bool


def build_profile(fleet: FleetState, tasks: Tasks, is_kept: bool) -> Profile:
    """Return the profile of an idle fleet; one that is not *is_kept* has no room for what runs."""
    by_slots = bool((tasks.request == tasks.request[:, :1]).all())
    bits = np.unpackbits(fleet.allowed.view(np.uint8), axis=1, bitorder="little")[:, : fleet.machines]
    pool = np.zeros(fleet.free.shape[1], np.int32)
    if by_slots:
        kinds, found = np.unique(bits, axis=1, return_inverse=True)
        pool[: fleet.machines], allows = found.reshape(-1), kinds.astype(bool)
    else:
        pool[: fleet.machines], allows = np.arange(fleet.machines), bits.astype(bool)
    pools = allows.shape[1]
    demand = np.ones((1, tasks.request.shape[1]), np.int64) if by_slots else tasks.request.astype(np.int64)
    segments = pools + 2 + (2 * tasks.arrival.size if is_kept else 0)  # each task holds or is to hold something
    return Profile(
        first=np.arange(pools, dtype=np.int32), next=np.full(segments, NO_SEGMENT, np.int32), time=np.zeros(segments),
        free=np.zeros((len(demand), segments), np.int64), demand=np.ascontiguousarray(demand), pool=pool,
        allows=np.ascontiguousarray(allows), room=np.zeros(pools, np.int64),
        spare=np.arange(segments, dtype=np.int32)[::-1].copy(), now=np.zeros(1),
        size=np.array([segments - pools, 0, 0, 0]),
        by_slots=by_slots,
    )


@kernel
def clear(profile: Profile, fleet: FleetState, tasks: Tasks) -> None:
    """Open the profile as that of the machines that are there now, with nothing running and nothing reserved."""
    for pool in range(profile.first.size):
        segment = profile.first[pool]
        while profile.next[segment] != NO_SEGMENT:
            drop(profile, profile.next[segment])
            profile.next[segment] = profile.next[profile.next[segment]]
        profile.time[segment] = profile.now[0]
        for row in range(profile.free.shape[0]):
            profile.free[row, segment] = 0
    for machine in range(fleet.machines):
        segment = profile.first[profile.pool[machine]]
        if profile.by_slots:
            profile.free[0, segment] += slots_of(fleet, tasks, machine)
        else:
            for row in range(profile.free.shape[0]):
                profile.free[row, segment] = fleet.capacity[row, machine]
    profile.size[RESERVATIONS], profile.size[IS_OPEN], profile.size[UNUSED] = 0, 1, 0


@inlined
def slots_of(fleet: FleetState, tasks: Tasks, machine: int) -> int:
    """Return how many tasks of the first shape an idle machine holds."""
    slots = np.int64(MOST)
    for row in range(fleet.capacity.shape[0]):
        if tasks.request[row, 0] > 0:
            slots = min(slots, np.int64(fleet.capacity[row, machine] // tasks.request[row, 0]))
    return int(slots)


@inlined
def present(profile: Profile, pool: int) -> int:
    """Return the segment of a pool that now lies in; those before it are forgotten."""
    segment = profile.first[pool]
    following = profile.next[segment]
    while following != NO_SEGMENT and profile.time[following] <= profile.now[0]:
        drop(profile, segment)
        segment, following = following, profile.next[following]
    profile.first[pool] = segment
    return segment


@inlined
def drop(profile: Profile, segment: int) -> None:
    """Put a segment among the spare ones."""
    profile.spare[profile.size[SPARES]] = segment
    profile.size[SPARES] += 1


@inlined
def end_of(profile: Profile, segment: int) -> float:
    """Return when a segment ends, inf for the last."""
    following = profile.next[segment]
    return float(profile.time[following]) if following != NO_SEGMENT else np.inf


@inlined
def has_room(profile: Profile, shape: int, segment: int, count: int) -> bool:
    """Whether *count* tasks of a shape fit a segment."""
    for row in range(profile.demand.shape[0]):
        if profile.free[row, segment] < count * profile.demand[row, shape]:
            return False
    return True


@inlined
def room_in(profile: Profile, shape: int, segment: int) -> int:
    """Return how many tasks of a shape fit a segment."""
    room = np.int64(MOST)
    for row in range(profile.demand.shape[0]):
        asked = profile.demand[row, shape]
        if asked > 0:
            room = min(room, profile.free[row, segment] // asked)
    return int(max(room, np.int64(0)))


@kernel
def room_during(profile: Profile, pool: int, shape: int, begin: float, end: float) -> int:
    """Return how many tasks of a shape fit a pool from *begin* until *end* (at *begin* alone, if it is no later)."""
    segment = present(profile, pool)
    while end_of(profile, segment) <= begin:
        segment = profile.next[segment]
    room = room_in(profile, shape, segment)
    segment = profile.next[segment]
    while segment != NO_SEGMENT and profile.time[segment] < end and room > 0:
        room = min(room, room_in(profile, shape, segment))
        segment = profile.next[segment]
    return int(room)


@kernel
def first_room(
    profile: Profile, pool: int, shape: int, count: int, after: float, seconds: float, before: float
) -> float:
    """Return the first time at or after *after* from which *count* tasks fit a pool for *seconds*.

    inf where there is none before *before*.
    """
    segment = present(profile, pool)
    begin = np.inf
    while segment != NO_SEGMENT:
        end = end_of(profile, segment)
        if end > after:
            if not has_room(profile, shape, segment, count):
                begin = np.inf
            elif begin == np.inf:
                begin = max(after, profile.time[segment])
            if begin >= before and end >= before:
                return np.inf
            if begin < np.inf and end >= begin + seconds:
                return float(begin)
        segment = profile.next[segment]
    return np.inf


@kernel
def earliest(profile: Profile, tasks: Tasks, shape: int, count: int, seconds: float) -> float:
    """Return the first time from now on from which *count* tasks of a shape fit the pools together for *seconds*.

    The sum can only become large enough when a pool comes to hold more than it does, so the search goes from one such
    time to the next; a pool that is alone must hold them all.
    """
    allows, begin = profile.allows[tasks.constraint_set[shape]], profile.now[0]
    while begin < np.inf:
        total = 0
        for pool in range(allows.size):
            if allows[pool]:
                profile.room[pool] = room_during(profile, pool, shape, begin, begin + seconds)
                total += profile.room[pool]
                if total >= count:
                    return begin
        following = np.inf
        alone = count_allowed(allows) == 1
        for pool in range(allows.size):
            if allows[pool]:
                wanted = count if alone else profile.room[pool] + 1
                rise = first_room(profile, pool, shape, wanted, begin, seconds, following)
                following = min(following, rise)
        begin = following
    return np.inf


@inlined
def count_allowed(allows: np.ndarray) -> int:
    """Return how many of bool[pool] are true, two at most."""
    found = 0
    for pool in range(allows.size):
        if allows[pool]:
            found += 1
            if found > 1:
                break
    return found


@kernel
def hold(profile: Profile, pool: int, shape: int, count: int, begin: float, end: float) -> None:
    """Let *count* tasks of a shape hold a pool from *begin* until *end*; a negative count gives back."""
    if end <= profile.now[0] or end <= begin or profile.size[IS_OPEN] == 0:
        return
    before = present(profile, pool)
    begin = begin if begin > profile.now[0] else float(profile.time[before])
    while end_of(profile, before) < begin:
        before = profile.next[before]
    if profile.time[before] == begin:
        segment = before
    else:
        if end_of(profile, before) > begin:
            split(profile, before, begin)
        segment = profile.next[before]
    while True:
        if end_of(profile, segment) > end:
            split(profile, segment, end)
        for row in range(profile.demand.shape[0]):
            profile.free[row, segment] -= count * profile.demand[row, shape]
        if end_of(profile, segment) >= end:
            break
        segment = profile.next[segment]
    join(profile, segment)
    if profile.time[before] < begin:
        join(profile, before)


@inlined
def split(profile: Profile, segment: int, time: float) -> None:
    """Let another segment, as free, begin at *time* within a segment."""
    profile.size[SPARES] -= 1
    added = profile.spare[profile.size[SPARES]]
    profile.time[added], profile.next[added] = time, profile.next[segment]
    for row in range(profile.free.shape[0]):
        profile.free[row, added] = profile.free[row, segment]
    profile.next[segment] = added


@inlined
def join(profile: Profile, segment: int) -> None:
    """Let a segment go on where the one behind it has as much free."""
    following = profile.next[segment]
    if following == NO_SEGMENT:
        return
    for row in range(profile.demand.shape[0]):
        if profile.free[row, segment] != profile.free[row, following]:
            return
    profile.next[segment] = profile.next[following]
    drop(profile, following)
