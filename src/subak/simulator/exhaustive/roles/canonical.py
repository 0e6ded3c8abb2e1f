"""The canonical form of roles' states and messages, field by field.

Two states are one where no handler can ever tell them apart. Of each field it is said how it enters a state:

  PLAIN     as it is
  PLACE     a row of a pool: rows are numbered anew, machine by machine, in the order of their lists
  LAPSE     a time, of which only is kept whether it is over: FRESH or OVER
  COUNTER   only grows: made relative to another of the same role
  TIME, TALLY, HINT, CACHE   not at all: when something was; how often, which nobody asks; where to look first; what can
            be computed again, or is brought by the next message
  CONSTANT  never changes

A field that is not named here stops `check_named`, which a test calls: whoever adds a field says what it is.
"""
from typing import Any, NamedTuple

import numpy as np

from subak.federation.megha.attempts import Attempts
from subak.federation.megha.global_master.state import (
    PHASE_ENDED,
    PHASE_UNKNOWN,
    PHASE_WAITING,
    GlobalMaster,
    phase_of,
)
from subak.federation.megha.jobs import SUBMISSION_ENDED, Jobs
from subak.federation.megha.ledger import (
    entries_between,
    ring_place,
)
from subak.federation.megha.local_master.state import (
    ATTEMPT_HELD,
    ATTEMPT_KILLING,
    ATTEMPT_OVER,
    ATTEMPT_RUNNING,
    ATTEMPT_STARTING,
    LISTED,
    LOST_MACHINE,
    SILENT,
    LocalMaster,
)
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.submitter import Submitter
from subak.federation.megha.worker import WORKER_ENDED, WORKER_RUNNING, Workers
from subak.federation.messages import DONE, FIELDS, FINISHED_WELL, KINDS, MESSAGE, NOBODY, RETRY, WATCH
from subak.fleet.index import SEEN
from subak.fleet.state import LOG
from subak.queues.lanes import ACTIVE_LANES, CONTENDERS, NO_PLACE
from subak.records import Numbers

PLAIN, PLACE, LAPSE, COUNTER, TIME, TALLY, HINT, CACHE, CONSTANT = (
    "plain", "place", "lapse", "counter", "time", "tally", "hint", "cache", "constant")
HOLDING = (ATTEMPT_HELD, ATTEMPT_STARTING, ATTEMPT_RUNNING, ATTEMPT_KILLING)  # attempts that have their amounts
KEPT = (PLAIN, PLACE, LAPSE, COUNTER)
FRESH, OVER = 0.0, -1e9  # of a LAPSE, when handlers are called at `NOW`
NOW, LATE = 0.0, 1e9  # seconds: what handlers are told; LATE is behind every lease that began at NOW
LONG_AGO = -1e9  # since when every order has waited: it may be repeated at any time

POOL_ROW = {
    "task": PLAIN, "row": PLAIN, "owner": PLAIN, "shape": PLAIN, "queue": PLAIN, "priority": PLAIN, "machine": PLAIN,
    "next": PLACE, "before": PLACE, "handle": HINT, "heir": PLACE, "awaits": PLAIN, "preempted": PLAIN, "round": PLAIN,
    "code": PLAIN, "in_gang": PLAIN, "state": PLAIN, "reason": PLAIN, "attempt": PLAIN, "start": PLAIN,
    "version": PLAIN, "limit": PLAIN, "since": TIME,
}
POOL = {"row": POOL_ROW, "first": PLACE, "counts": {"free_row": CACHE, "rows_used": PLAIN, "rows_ever": PLAIN}}
BOOKS = {  # of a local master's machines
    "free": PLAIN, "capacity": PLAIN, "block_free_max": PLAIN, "block_at_max": PLAIN, "allowed": CONSTANT,
    "open": CONSTANT,
    "freed_blocks": CACHE, "frontier": CACHE, "used": TALLY, "present": TALLY, "scale": CONSTANT,
    "random": CONSTANT, "lists": CONSTANT, "machines": CONSTANT,
}
VIEW = {**BOOKS, "open": PLAIN, "freed_blocks": COUNTER, "frontier": COUNTER, "present": PLAIN}  # a global master's
LANES = {
    "root": PLAIN, "length": PLAIN, "child": PLAIN, "sibling": PLAIN, "score": CONSTANT, "active": PLAIN,
    "position": PLAIN, "contender": PLAIN, "place": PLAIN, "size": CONSTANT, "by_shape": CONSTANT,
    "number": CONSTANT,  # that of the open tasks
}
OPEN_TASKS = {
    "number": PLAIN, "rank": PLAIN, "shape": PLAIN, "queue": PLAIN, "lane": PLAIN, "priority": PLAIN, "round": PLAIN,
    "losses_max": PLAIN, "limit": PLAIN, "gang": PLAIN, "next": PLAIN, "gangs": PLAIN,
    "counts": {"free_task": PLAIN, "tasks_ever": PLAIN, "free_gang": PLAIN, "gangs_ever": PLAIN, "tasks_open": PLAIN},
    "request": CONSTANT, "constraint_set": CONSTANT,
}


class Desk(NamedTuple):
    """A global master and the submitter beside it: one process, and one disk with the table of open tasks."""

    jobs: Jobs
    submitter: Submitter
    master: GlobalMaster


STATES: dict[type, dict[str, Any]] = {
    Jobs: {
        "number": CONSTANT, "mask": CONSTANT, "state": PLAIN, "row": PLAIN, "asked": CONSTANT, "rank": CONSTANT,
        "shape": CONSTANT, "gang": CONSTANT, "gang_size": CONSTANT,
        "gang_row": PLAIN, "gang_left": PLAIN, "gang_failed": PLAIN,
        "ending": {"outcome": PLAIN, "reason": PLAIN, "code": PLAIN, "failed": PLAIN, "lost": TALLY, "refusals": TALLY,
                   "repartitions": TALLY, "preempted": TALLY},
        "terms": CONSTANT, "given_up": PLAIN, "to_give_up": CACHE, "stages": CONSTANT,
    },
    Submitter: {
        "number": CONSTANT, "tasks": OPEN_TASKS,
        "submission": {"tries": TALLY, "reason": PLAIN, "settled": PLAIN},  # tries only says when it rings
        "counts": {"incarnation_known": PLAIN}, "retry": CONSTANT,
    },
    GlobalMaster: {
        "number": CONSTANT, "fleet": VIEW, "held": CONSTANT,  # used with preemption only
        "consumed": PLAIN, "total": PLAIN,
        "cluster": {"seen": PLAIN, "seen_at": TIME, "epoch": PLAIN, "numbers": PLAIN, "known": PLAIN, "closed": PLAIN},
        "listed": PLAIN, "own": CONSTANT, "lanes": LANES, "lane_span": CONSTANT,
        "lane_size": PLAIN,
        "task": {
            "tenant": PLAIN, "attempt": PLAIN, "machine": PLAIN, "sent_epoch": PLAIN, "sent_to": PLAIN, "sent": PLAIN,
            "round": PLAIN, "refusals": TALLY, "repartitioned": TALLY, "preempted": PLAIN,
            "lost": TALLY,  # may be lost without bound
            "code": PLAIN, "tried": TALLY, "phase": PLAIN, "reason": PLAIN, "withdrawn": PLAIN, "queued": PLAIN,
            "flying": PLAIN, "doubted": PLAIN,
        },
        "gang": {"tenant": PLAIN, "waiting": PLAIN, "failed": PLAIN},
        "queue_order": CONSTANT, "bins": CONSTANT,
        "holding": {
            "since": PLAIN, "holder": PLAIN, "held_for": PLAIN, "held_at": TIME, "held_since": TIME, "wanted": PLAIN,
            "open": PLAIN, "everything": CONSTANT, "frontier": COUNTER,
            "room": {"idle": CACHE, "now": CACHE, "chosen": CACHE},
            "search": PLAIN,
        },
        "counts": {
            "next_queue": PLAIN, "next_internal": PLAIN, "next_external": PLAIN, "placing": PLAIN, "incarnation": PLAIN,
            "scanned": COUNTER, "doubts": PLAIN, "queued": PLAIN, "beats": TALLY, "own_queues": PLAIN,
        },
        "tally": TALLY,
    },
    LocalMaster: {
        "number": CONSTANT, "cluster": CONSTANT, "fleet": BOOKS, "rows": POOL,
        "ledger": {"entry": CACHE,  # what of it may still be asked for: read_ledger
                   "counts": {"version": PLAIN, "whole_at": PLAIN, "epoch": PLAIN, "ring": CONSTANT,
                              "needed_from": CONSTANT}},
        "asker": {"known": PLAIN, "top": PLAIN, "bits": PLAIN, "incarnation": PLAIN, "heard": TIME,
                  "over_first": PLACE, "over_last": PLACE},
        "machine": {
            "configuration": PLAIN, "state": PLAIN, "heard": LAPSE, "worker_incarnation": PLAIN, "starts": PLAIN,
            "report": PLAIN, "reported": PLAIN, "reborn": PLAIN, "held_by": PLAIN, "held_for": PLAIN,
            "held_since": TIME, "passed_over": TIME,
        },
        "standing": {"epoch": PLAIN, "active": PLAIN, "pulse_at": LAPSE}, "tally": TALLY,
    },
    Workers: {
        "rows": POOL, "free": PLAIN,
        "machine": {"epoch": PLAIN, "incarnation": PLAIN, "top": PLAIN, "bits": PLAIN, "heard": TIME,
                    "configuration": PLAIN},
    },
}
STATES[Desk] = {"jobs": STATES[Jobs], "submitter": STATES[Submitter], "master": STATES[GlobalMaster]}
OF_MACHINES = ("free", "capacity", "first", "machine")  # attributes whose last axis is that of the machines

# Of messages every field that their kind has is kept (messages.py), but for these, which are as `post` makes them:
BLANK = {"delay": 0.0, "travelled": 0.0, "handle": NOBODY,
         "refusals": 0, "repartitions": 0, "lost": 0}  # tallies, in a DONE
BLANK_OF = {RETRY: {"count": 0}, WATCH: {"epoch": 0}, DONE: {"preempted": 0}}  # how often it rang; what nobody reads
UNSAID = {"reason": 0, "task": NOBODY, "machine": NOBODY, "row": NOBODY, "shape": NOBODY, "queue": NOBODY,
          "owner": NOBODY, "priority": 0, "epoch": 0, "count": 0, "victims": NOBODY, "batch": 0, "in_gang": 0,
          "round": 0, "code": 0, "limit": 0.0,
          "preempted": 0, "repeats": 0, "attempt": 0, "start": 0, "seen": 0, "incarnation": 0, "report": 0, "first": 0,
          "last": 0}


class Scope(NamedTuple):
    """What of a federation a role touches."""

    machines: list[int]
    lane_span: np.ndarray  # int32[queue, 2]


def check_named(state: Any, named: Any, path: str = "") -> None:
    """Raise KeyError where a state has a field that has no name here, or a name here is of no field."""
    if isinstance(named, str):
        return
    names: Any
    if hasattr(state, "_fields"):
        names = state._fields
    elif isinstance(state, Numbers):
        names = state.array.dtype.names
    elif state.dtype.names:
        names = state.dtype.names
    else:
        names = range(state.size)
    if set(names) != set(named):
        raise KeyError(f"{path or type(state).__name__}: {sorted(set(names) ^ set(named), key=str)} named in "
                       "canonical.py or there, not in both")
    if isinstance(state, tuple):
        for name in names:
            check_named(getattr(state, name), named[name], f"{path}.{name}")


def check_message_named() -> None:
    """Raise KeyError where messages have a field of which it is not said here what it is when nothing is said in it."""
    unnamed = set(MESSAGE.names or ()) ^ {"kind", "to", "sender", *BLANK, *UNSAID}
    if unnamed:
        raise KeyError(f"MESSAGE: {sorted(unnamed)} named in canonical.py or there, not in both")


def mark_kept(state: Any, named: Any, marks: Any, machines: list[int]) -> None:
    """Set in *marks*, uint8 arrays laid out as the state's bytes, what is kept of it; *machines*: whose are."""
    for name in state._fields:
        what, value, mark = named[name], getattr(state, name), marks.get(name)
        value = value.array if isinstance(value, Numbers) else value
        if isinstance(value, tuple) and what != CONSTANT:
            mark_kept(value, what, mark, machines)
        elif isinstance(value, np.ndarray) and mark is not None:
            there = mark[..., machines, :] if name in OF_MACHINES else mark
            _mark(value, what, there)
            if name in OF_MACHINES:
                mark[..., machines, :] = there


def _mark(value: np.ndarray, what: Any, mark: np.ndarray) -> None:
    if isinstance(what, str):
        mark[:] = what in KEPT
    elif value.dtype.names:
        for field, kind in what.items():
            dtype, offset = value.dtype.fields[field][:2]  # type: ignore[index]
            mark[..., offset : offset + dtype.itemsize] = kind in KEPT
    else:
        for word, kind in what.items():
            mark[word] = kind in KEPT


# -- messages ----------------------------------------------------------------------------------------------------------


def _blank_fields() -> list[list[tuple[str, Any]]]:
    return [[(field, value) for field, value in {**UNSAID, **BLANK}.items()
             if field not in FIELDS[kind] or field in BLANK or field in BLANK_OF.get(kind, {})]
            for kind in range(len(KINDS))]


BLANKS = _blank_fields()  # of each kind


def canonical_message(row: np.void) -> bytes:
    """Return the bytes of a message in its canonical form; the row is made it."""
    for field, value in BLANKS[row["kind"]]:
        row[field] = value
    return row.tobytes()


# -- states: each normaliser changes the arrays in place, to what no handler can tell from what was --------------------


def renumber(rows: Attempts, machines: list[int], blank: np.ndarray) -> dict[int, int]:
    """Renumber the rows of a pool; return the new number of each row, and of NOBODY."""
    order = []
    for machine in machines:
        number = int(rows.first[machine])
        while number != NOBODY:
            order.append(number)
            number = int(rows.row["next"][number])
    new = {NOBODY: NOBODY, **{number: place for place, number in enumerate(order)}}
    used = len(order)
    if order != list(range(used)):
        kept = rows.row[order]
        for field in ("next", "before", "heir"):
            kept[field] = [new.get(number, NOBODY) for number in kept[field].tolist()]
        rows.row[:used] = kept
        for machine in machines:
            rows.first[machine] = new[int(rows.first[machine])]
    rows.row[used:] = blank[used:]
    rows.counts.write(NOBODY, used, used)
    return new


def normalise_desk(desk: Desk, blank: Desk, scope: Scope) -> None:
    """Leave the submitter and the open tasks, whose rows messages name, and order what a global master keeps."""
    normalise_global(desk.master, blank.master, scope)


def normalise_worker(workers: Workers, blank: Workers, scope: Scope) -> None:
    """Renumber the rows of a worker's pool."""
    renumber(workers.rows, scope.machines, blank.rows.row)


def normalise_local(local: LocalMaster, blank: LocalMaster, scope: Scope) -> None:
    """Renumber the rows; of one that does not speak for its cluster, only what outlives its taking over is kept."""
    if not local.standing.active:
        _forget_what_does_not_last(local, blank, scope.machines)
        return
    new = renumber(local.rows, scope.machines, blank.rows.row)
    for asker in local.asker:
        asker["over_first"] = new[int(asker["over_first"])]
        asker["over_last"] = new[int(asker["over_last"])] if asker["over_first"] != NOBODY else NOBODY
    for machine in scope.machines:
        if local.machine["state"][machine] not in (LISTED, SILENT):
            local.machine["heard"][machine] = FRESH


def _forget_what_does_not_last(local: LocalMaster, blank: LocalMaster, machines: list[int]) -> None:
    for name in ("first", "row"):
        getattr(local.rows, name)[:] = getattr(blank.rows, name)
    local.rows.counts.write(*blank.rows.counts.values())
    for name in ("free", "capacity", "block_free_max", "block_at_max"):
        getattr(local.fleet, name)[:] = getattr(blank.fleet, name)
    local.ledger.counts.write(*blank.ledger.counts.values())
    local.asker[:], local.standing.pulse_at = blank.asker, blank.standing.pulse_at
    for field in ("state", "heard", "worker_incarnation", "report", "reported", "reborn"):
        local.machine[field][machines] = blank.machine[field][machines]


def ledger_kept(local: LocalMaster) -> tuple[int, int]:
    """Return from which entry to which the ledger may still be asked for."""
    last = local.ledger.counts.version
    asked = [int(version) for version in (*local.asker["known"], local.ledger.counts.whole_at) if version >= 0]
    return min(asked, default=last), last


def read_ledger(local: LocalMaster) -> bytes:
    """Return the entries that may still be asked for."""
    first, last = ledger_kept(local)
    return entries_between(local.ledger, first, last).tobytes() if local.standing.active else b""


def write_ledger(local: LocalMaster, entries: bytes) -> None:
    """Write what `read_ledger` returned, after all else of the state."""
    told = np.frombuffer(entries, local.ledger.entry.dtype)
    last = local.ledger.counts.version
    local.ledger.entry[ring_place(local.ledger, np.arange(last - len(told), last))] = told


def normalise_global(master: GlobalMaster, _blank: GlobalMaster, scope: Scope) -> None:
    """Forget requests that are over, say what was freed since the last round as a set, and put the lanes in order."""
    for task in master.task:
        if task["phase"] in (PHASE_UNKNOWN, PHASE_WAITING, PHASE_ENDED):
            task["attempt"], task["machine"], task["sent_epoch"] = 0, NOBODY, 0
        if task["phase"] != PHASE_ENDED:
            task["reason"] = 0  # of the last refusal or loss, which nobody asks for
    _normalise_freed(master)
    for lane in range(master.lanes.root.size):
        _normalise_lane(master, lane)
    for queue in range(len(master.lane_size)):
        _normalise_lists(master, queue, *scope.lane_span[queue].tolist())


def _normalise_freed(master: GlobalMaster) -> None:
    """Forget what was freed before the last round began; of what came after, keep which blocks."""
    freed, frontier = master.fleet.freed_blocks, master.fleet.frontier
    count, scanned = int(freed[LOG]), master.counts.scanned
    held = master.holding.frontier
    in_vain, held_in_vain = frontier[SEEN] == count + 1, held[SEEN] == count + 1
    blocks = sorted({int(freed[number % LOG]) for number in range(scanned, count)}) if count - scanned <= LOG else []
    freed[:] = 0
    freed[: len(blocks)] = blocks
    freed[LOG] = len(blocks)
    master.counts.scanned = 0 if count - scanned <= LOG else -LOG - 1
    for each, seen in ((frontier, in_vain), (held, held_in_vain)):
        each[:] = 0
        each[SEEN][seen] = freed[LOG] + 1


def _normalise_lane(master: GlobalMaster, lane: int) -> None:
    """Lay the tasks of a lane in a chain, the first of them above; a heap's shape is nothing that can be noticed."""
    lanes, inside, open_tasks = master.lanes, [], [int(master.lanes.root[lane])]
    while open_tasks:
        task = open_tasks.pop()
        if task != NOBODY:
            inside.append(task)
            open_tasks += [int(lanes.child[task]), int(lanes.sibling[task])]
    inside.sort(key=lambda row: lanes.number[row])  # ranks are equal: all tasks arrive at one time
    for task, after in zip(inside, [*inside[1:], NOBODY], strict=False):
        lanes.child[task], lanes.sibling[task] = after, NOBODY
    idle = ~master.task["queued"]
    lanes.child[idle], lanes.sibling[idle] = NOBODY, NOBODY
    lanes.root[lane] = inside[0] if inside else NOBODY


def _normalise_lists(master: GlobalMaster, queue: int, first: int, end: int) -> None:
    """Sort the lanes that hold tasks, and those that are served in this round; blank what is behind."""
    lanes, size = master.lanes, master.lane_size[queue]
    active = sorted(lanes.active[first : first + size[ACTIVE_LANES]].tolist())
    contending = sorted(lanes.contender[first : first + size[CONTENDERS]].tolist(),
                        key=lambda lane: lanes.number[lanes.root[lane]])
    lanes.active[first:end], lanes.contender[first:end] = 0, 0
    lanes.position[first:end], lanes.place[first:end] = 0, NO_PLACE
    for place, lane in enumerate(active):
        lanes.active[first + place], lanes.position[lane] = lane, place
    for place, lane in enumerate(contending):
        lanes.contender[first + place], lanes.place[lane] = lane, place


NORMALISERS: dict[type, Any] = {
    Desk: normalise_desk, LocalMaster: normalise_local,
    Workers: normalise_worker,
}


# -- what can be asked of a state --------------------------------------------------------------------------------------


def knows_ended(state: Any) -> int:
    """Return the tasks (bits) of which a role remembers that they have finished."""
    if isinstance(state, Desk):
        return over_for_good(state) | bits_of(_ended_at(state.submitter.tasks, state.master))
    if isinstance(state, LocalMaster):
        ended = _finished(state.rows, ATTEMPT_OVER) if state.standing.active else []
    else:
        ended = _finished(state.rows, WORKER_ENDED)
    return bits_of(ended)


def over_for_good(state: object) -> int:
    """Return the tasks (bits) of whose end a submitter has heard; 0 of other roles."""
    return bits_of(np.flatnonzero(state.jobs.state == SUBMISSION_ENDED).tolist()) if isinstance(state, Desk) else 0


def closed(state: object) -> int:
    """Return the tasks (bits) that have ended for their submitter and whose rows may be others'; 0 of other roles."""
    if not isinstance(state, Desk):
        return 0
    tasks = state.submitter.tasks
    return over_for_good(state) & ~bits_of(tasks.number[: tasks.counts.tasks_ever].tolist())


def _ended_at(tasks: OpenTasks, master: GlobalMaster) -> list[int]:
    return [int(tasks.number[row]) for row in range(tasks.counts.tasks_ever)
            if tasks.number[row] != NOBODY and phase_of(master, tasks, row) == PHASE_ENDED]


def bits_of(tasks: list[int]) -> int:
    """Return a set of tasks, a bit each; NOBODY has none."""
    return sum(1 << task for task in set(tasks) if task != NOBODY)


def _finished(rows: Attempts, over: int) -> list[int]:
    used = rows.row[: rows.counts.rows_used]
    return used["task"][(used["state"] == over) & (used["reason"] == FINISHED_WELL)].tolist()


def speaks(state: object) -> bool:
    """Whether it is a local master that speaks for its cluster."""
    return isinstance(state, LocalMaster) and bool(state.standing.active)


def epoch_of(state: object) -> int:
    """Return the epoch of a local master, or the latest that a worker obeys; 0 of other roles."""
    if isinstance(state, LocalMaster):
        return state.standing.epoch
    return int(state.machine["epoch"].max()) if isinstance(state, Workers) else 0


def running_on(workers: Workers, machine: int) -> dict[int, int]:
    """Return the attempt of each task that a worker believes to run."""
    found, number = {}, int(workers.rows.first[machine])
    while number != NOBODY:
        row = workers.rows.row[number]
        if row["state"] == WORKER_RUNNING:
            found[int(row["task"])] = int(row["attempt"])
        number = int(row["next"])
    return found


def has_too_much(workers: Workers, machine: int, request: np.ndarray, capacity: np.ndarray) -> bool:
    """Whether what runs on a machine is more than it has, or its worker counts otherwise.

    *request*: int32[resource, task], *capacity*: int32[resource], units.
    """
    free = capacity - request[:, list(running_on(workers, machine))].sum(axis=1)
    return bool((free < 0).any() or (free != workers.free[:, machine]).any())


def has_wrong_books(local: LocalMaster, machines: list[int], request: np.ndarray) -> bool:
    """Whether an active local master has other amounts free than its attempts leave, or a machine oversubscribed."""
    used = local.rows.row[: local.rows.counts.rows_used]
    for machine in machines if local.standing.active else []:
        mine = used[(used["machine"] == machine) & np.isin(used["state"], HOLDING)]
        free = local.fleet.capacity[:, machine] - request[:, mine["task"]].sum(axis=1)
        too_much = local.machine["state"][machine] == LISTED and (free < 0).any()
        if too_much or (free != local.fleet.free[:, machine]).any():
            return True
    return False


def highest_number(state: object, machines: list[int]) -> int:
    """Return the highest number of a start or report that a local master has given, 0 of other roles."""
    return int(state.machine["starts"][machines].max()) if isinstance(state, LocalMaster) else 0


# -- what the passing of time does to a local master's state -----------------------------------------------------------


def expire(local: LocalMaster, machine: int) -> None:
    """Let a lease be over in which nothing was heard of a worker."""
    if local.standing.active and local.machine["state"][machine] in (LISTED, SILENT):
        local.machine["heard"][machine] = OVER


def deconfirm(local: LocalMaster) -> None:
    """Let the other local master have taken over: nothing that it said before confirms this one any more."""
    if local.standing.active:
        local.standing.pulse_at = OVER


def is_deconfirmed(local: LocalMaster) -> bool:
    """Whether the other local master has taken over."""
    return bool(local.standing.active and local.standing.pulse_at == OVER)


def hear_no_pulse(local: LocalMaster) -> None:
    """Let a standby not have heard a pulse for long."""
    if not local.standing.active:
        local.standing.pulse_at = OVER


def spare(local: LocalMaster, machine: int) -> list[int]:
    """Let no lease be over but that of one machine, or NOBODY's; return whose had been."""
    over = np.flatnonzero((local.machine["heard"] == OVER) & (np.arange(local.machine.size) != machine))
    local.machine["heard"][over] = FRESH
    return over.tolist()


def unspare(local: LocalMaster, machines: list[int]) -> None:
    """Undo `spare`."""
    for machine in machines:
        expire(local, machine)


def is_over(local: LocalMaster, machine: int) -> bool:
    """Whether a lease is over in which nothing was heard of a worker that is not declared lost yet."""
    return bool(local.standing.active and local.machine["heard"][machine] == OVER)



def is_lost(local: LocalMaster, machine: int) -> bool:
    """Whether a machine has been declared lost."""
    return bool(local.machine["state"][machine] == LOST_MACHINE)
