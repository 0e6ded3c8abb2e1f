"""A role as a function: from the bytes of its state and a message to a new state and answers."""
from collections.abc import Callable
from typing import Any

import numpy as np

from subak.federation.megha.ledger import bring, build_ledger, carried
from subak.federation.megha.roles import SERVE, GlobalMasterTables, LocalMasterTables, SubmitterTables
from subak.federation.megha.worker_role import WorkerTables
from subak.federation.messages import (
    ENDED,
    GLOBAL_MASTER,
    HANDLER,
    LAUNCHED,
    LOCAL_MASTER,
    MESSAGE,
    REFUSED,
    SUBMITTER,
    UPDATE,
    WORKER,
    build_outbox,
)
from subak.federation.serving import compiled_service
from subak.records import Numbers
from subak.simulator.exhaustive.roles.canonical import (
    CONSTANT,
    LONG_AGO,
    NORMALISERS,
    STATES,
    Desk,
    Scope,
    canonical_message,
    mark_kept,
    read_ledger,
    write_ledger,
)
from subak.simulator.federated.simulate import Opened
from subak.workload.tasks import Requests

NEWS = (LAUNCHED, REFUSED, ENDED, UPDATE)  # carry entries of a ledger
ANSWERS_MAX = 256  # messages of one handler
ALIGNMENT = 16  # bytes


class Image:
    """A state of which every array that changes lies in one piece of memory."""

    def __init__(self, state: Any, machines: list[int]) -> None:
        named = STATES[type(state)]
        self.memory = np.zeros(_size(state, named), np.uint8)
        self.state = _laid(state, named, self.memory, [0])
        marked = np.zeros_like(self.memory)
        mark_kept(state, named, _marks(state, named, marked, [0]), machines)
        self.kept = np.flatnonzero(marked)

    def read(self) -> bytes:
        """Return what is kept of the state."""
        return self.memory[self.kept].tobytes()

    def write(self, kept: bytes) -> None:
        """Write what `read` returned."""
        self.memory[self.kept] = np.frombuffer(kept, np.uint8)


def _arrays(state: Any, named: Any) -> list[tuple[str, Any]]:
    """Return the members of a state that change: arrays, records, and states of such."""
    return [(name, getattr(state, name)) for name in state._fields
            if named[name] != CONSTANT and isinstance(getattr(state, name), np.ndarray | Numbers | tuple)]


def _size(state: Any, named: Any) -> int:
    return sum(_size(value, named[name]) if isinstance(value, tuple) else _room(_array(value))
               for name, value in _arrays(state, named))


def _array(value: np.ndarray | Numbers) -> np.ndarray:
    return value.array if isinstance(value, Numbers) else value


def _room(value: np.ndarray) -> int:
    """Return how many bytes an array takes; a column of records has gaps, so that it keeps its type."""
    nbytes = value.nbytes if value.flags.c_contiguous else 2 * value.nbytes
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _taken(value: np.ndarray, memory: np.ndarray, place: list[int]) -> np.ndarray:
    """Return the next bytes of the memory, as many as an array has, an axis more than it has."""
    first, step, size = place[0], 1 if value.flags.c_contiguous else 2, value.dtype.itemsize
    place[0] += _room(value)
    taken = memory[first : first + step * value.nbytes].reshape(-1, size)[::step]
    return taken.reshape(*value.shape, size) if step == 1 else taken


def _laid(state: Any, named: Any, memory: np.ndarray, place: list[int]) -> Any:
    """Return a state like *state*, in the memory."""
    changed = {}
    for name, value in _arrays(state, named):
        if isinstance(value, tuple):
            changed[name] = _laid(value, named[name], memory, place)
        elif isinstance(value, Numbers):
            changed[name] = type(value).at(_taken(value.array, memory, place).reshape(-1))
            changed[name].write(*value.values())
        elif value.size:
            changed[name] = _taken(value, memory, place).view(value.dtype)[..., 0]
            changed[name][...] = value
    return state._replace(**changed)


def _marks(state: Any, named: Any, memory: np.ndarray, place: list[int]) -> dict[str, Any]:
    """Return by name the bytes of each array, an axis more than it has."""
    return {name: _marks(value, named[name], memory, place) if isinstance(value, tuple)
            else _taken(_array(value), memory, place)
            for name, value in _arrays(state, named) if isinstance(value, tuple) or _array(value).size}


class Actor:
    """One role of a federation, with tables that it shares with nobody; a global master's submitter is part of it."""

    def __init__(self, opened: Opened, role: int, number: int, compiled: bool) -> None:
        self.role, self.number = role, number
        there = np.flatnonzero(opened.roles.topology.machine["configuration"] >= 0).tolist()
        self.machines = [number] if role == WORKER else there
        own = _state(opened, role, number)
        self.image, self.blank = Image(own, self.machines), Image(own, self.machines)
        self.state = _joined(self.image.state)
        for state in (self.state, self.blank.state):
            if hasattr(state, "rows"):
                state.rows.row["since"] = LONG_AGO
        self.ledgers = [build_ledger(local.ledger.entry.size, local.ledger.entry.size)
                        for local in opened.roles.locals]
        self.inbox, self.out = np.zeros(1, MESSAGE), build_outbox(ANSWERS_MAX)
        self.tables = self.served(opened)
        self.serve = {each: compiled_service(SERVE[each], tables) if compiled else _plainly(SERVE[each], tables)
                      for each, tables in self.tables.items()}
        self.scope = Scope(self.machines, opened.roles.masters[0].lane_span)
        self.normalise = NORMALISERS[type(self.state)]

    def served(self, opened: Opened) -> dict[int, tuple[object, ...]]:
        """Return what the functions of its roles work on."""
        topology, rules, tasks = opened.roles.topology, opened.roles.rules, opened.simulation.tasks
        shapes, inbox, out = Requests(tasks.request, tasks.constraint_set), self.inbox, self.out
        if self.role == LOCAL_MASTER:
            locals_ = _with(opened.roles.locals, self.number, self.state)
            return {LOCAL_MASTER: LocalMasterTables(locals_, topology, rules, shapes, inbox, out)}
        if self.role == WORKER:
            lost, number = opened.simulation.losses.task, opened.roles.jobs.number
            return {WORKER: WorkerTables(self.state, topology, rules, shapes, lost, number, inbox, out)}
        submitters = _with(opened.roles.submitters, self.number, self.state.submitter)
        masters = _with(opened.roles.masters, self.number, self.state.master)
        return {
            SUBMITTER: SubmitterTables(submitters, self.state.jobs, inbox, out),
            GLOBAL_MASTER: GlobalMasterTables(masters, [each.tasks for each in submitters], self.ledgers, topology,
                                              rules, inbox, out),
        }

    def load(self, key: bytes) -> None:
        """Take on a state."""
        size = self.image.kept.size
        self.image.memory[:] = self.blank.memory
        self.image.write(key[:size])
        if self.role == LOCAL_MASTER:
            write_ledger(self.state, key[size:])

    def key(self) -> bytes:
        """Return the state that the role is in; it is made canonical."""
        self.normalise(self.state, self.blank.state, self.scope)
        return self.image.read() + (read_ledger(self.state) if self.role == LOCAL_MASTER else b"")

    def tell(self, message: bytes, entries: bytes, now: float) -> list[tuple[bytes, bytes]]:
        """Hand a message to the role as it stands; return its answers, each with the entries that it carries."""
        answers = []
        for row in self.answered(message, entries, now):
            taken = b""
            if self.role == LOCAL_MASTER and row["kind"] in NEWS:
                taken = carried(self.state.ledger, row["epoch"], row["first"], row["last"]).tobytes()
            answers.append((canonical_message(row), taken))
        return answers

    def answered(self, message: bytes, entries: bytes, now: float) -> np.ndarray:
        """Hand a message to the role as it stands; return its answers as they are."""
        self.inbox.view(np.uint8)[:] = np.frombuffer(message, np.uint8)
        if self.role == GLOBAL_MASTER and self.inbox[0]["kind"] in NEWS:
            self.bring(entries)
        self.out.counts.posted = 0
        kind = int(self.inbox[0]["kind"])
        self.serve[SUBMITTER if HANDLER[kind] == SUBMITTER else self.role](now, 1)
        return self.out.row[: self.out.counts.posted]

    def bring(self, entries: bytes) -> None:
        """Let the copy of a ledger hold what the message in the inbox carries, and nothing else."""
        message = self.inbox[0]
        copy = self.ledgers[message["sender"]]
        copy.counts.version = copy.counts.epoch = 0
        bring(copy, message["epoch"], message["first"], np.frombuffer(entries, copy.entry.dtype))


def _state(opened: Opened, role: int, number: int) -> Any:
    roles = opened.roles
    if role == WORKER:
        return roles.workers
    if role == LOCAL_MASTER:
        return roles.locals[number]
    return Desk(roles.jobs, roles.submitters[number], roles.masters[number])


def _joined(state: Any) -> Any:
    """Return a state in which a global master's lanes go by the numbers of its open tasks, as they are."""
    if not isinstance(state, Desk):
        return state
    lanes = state.master.lanes._replace(number=state.submitter.tasks.number)
    return state._replace(master=state.master._replace(lanes=lanes))


def _with(states: list[Any], number: int, state: Any) -> list[Any]:
    return [state if place == number else each for place, each in enumerate(states)]


def _plainly(serve: Callable[..., int], tables: Any) -> Callable[[float, int], int]:
    """Return a function that serves in plain Python."""
    def call(now: float, count: int) -> int:
        with np.errstate(over="ignore"):
            return serve(tables, now, count)

    return call
