"""A role by itself, as a function: from the bytes of its state and a message to its next state and its answers."""
from typing import Any

import numpy as np

from subak.federation.megha.ledger import Ledger, bring, carried
from subak.federation.megha.roles import SERVE, GlobalMasterTables, LocalMasterTables, SubmitterTables, WorkerTables
from subak.federation.messages import (
    ENDED,
    GLOBAL_MASTER,
    LAUNCHED,
    LOCAL_MASTER,
    MESSAGE,
    REFUSED,
    SUBMITTER,
    UPDATE,
    build_outbox,
)
from subak.federation.serving import compiled_service
from subak.simulator.exhaustive.canonical import (
    CONSTANT,
    LONG_AGO,
    NORMALISERS,
    STATES,
    Scope,
    canonical_message,
    mark_kept,
    read_ledger,
    write_ledger,
)
from subak.simulator.federated.simulate import Opened

NEWS = (LAUNCHED, REFUSED, ENDED, UPDATE)  # carry entries of a ledger
ANSWERS_MAX = 256  # messages of one handler
ALIGNED = 16  # bytes


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
    """Return the members of a state that change: arrays, and states of such."""
    return [(name, getattr(state, name)) for name in state._fields
            if named[name] != CONSTANT and isinstance(getattr(state, name), np.ndarray | tuple)]


def _size(state: Any, named: Any) -> int:
    return sum(_size(value, named[name]) if isinstance(value, tuple) else -(-value.nbytes // ALIGNED) * ALIGNED
               for name, value in _arrays(state, named))


def _taken(value: np.ndarray, memory: np.ndarray, place: list[int]) -> np.ndarray:
    """Return the next bytes of the memory, as many as an array has."""
    first = place[0]
    place[0] += -(-value.nbytes // ALIGNED) * ALIGNED
    return memory[first : first + value.nbytes]


def _laid(state: Any, named: Any, memory: np.ndarray, place: list[int]) -> Any:
    """Return a state like *state*, in the memory."""
    changed = {}
    for name, value in _arrays(state, named):
        if isinstance(value, tuple):
            changed[name] = _laid(value, named[name], memory, place)
        elif value.size:
            changed[name] = _taken(value, memory, place).view(value.dtype).reshape(value.shape)
            changed[name][...] = value
    return state._replace(**changed)


def _marks(state: Any, named: Any, memory: np.ndarray, place: list[int]) -> dict[str, Any]:
    """Return by name the bytes of each array, an axis more than it has."""
    return {name: _marks(value, named[name], memory, place) if isinstance(value, tuple)
            else _taken(value, memory, place).reshape(*value.shape, value.dtype.itemsize)
            for name, value in _arrays(state, named) if isinstance(value, tuple) or value.size}


class Actor:
    """One role of a federation, with tables that it shares with nobody."""

    def __init__(self, opened: Opened, role: int, number: int, compiled: bool) -> None:
        self.role, self.number = role, number
        there = np.flatnonzero(opened.roles.topology.machine["configuration"] >= 0).tolist()
        self.machines = [number] if role not in (SUBMITTER, GLOBAL_MASTER, LOCAL_MASTER) else there
        states = _states(opened, role)
        own = states[number if role in (GLOBAL_MASTER, LOCAL_MASTER) else 0]
        self.image, self.blank = Image(own, self.machines), Image(own, self.machines)
        self.state = self.image.state
        for state in (self.state, self.blank.state):
            if hasattr(state, "rows"):
                state.rows.row["since"] = LONG_AGO
        self.ledgers = [Ledger(np.zeros_like(local.ledger.entry), np.zeros(3, np.int64))
                        for local in opened.roles.locals]
        self.inbox, self.out = np.zeros(1, MESSAGE), build_outbox(ANSWERS_MAX)
        states[number if role in (GLOBAL_MASTER, LOCAL_MASTER) else 0] = self.state
        self.tables = _tables(opened, role, states, self.ledgers, self.inbox, self.out)
        self.serve = compiled_service(SERVE[role], self.tables) if compiled else self.plainly
        self.scope = Scope(self.machines, opened.roles.topology.lane_first)
        self.normalise = NORMALISERS[type(self.state)]

    def plainly(self, now: float, count: int) -> int:
        """Serve in plain Python."""
        with np.errstate(over="ignore"):
            return SERVE[self.role](self.tables, now, count)

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
        self.out.size[0] = 0
        self.serve(now, 1)
        return self.out.row[: self.out.size[0]]

    def bring(self, entries: bytes) -> None:
        """Let the copy of a ledger hold what the message in the inbox carries, and nothing else."""
        message = self.inbox[0]
        copy = self.ledgers[message["sender"]]
        copy.size[:] = 0, -1, 0
        bring(copy, message["epoch"], message["first"], np.frombuffer(entries, copy.entry.dtype))


def _states(opened: Opened, role: int) -> list[Any]:
    roles = opened.roles
    return {SUBMITTER: [roles.submitter], GLOBAL_MASTER: list(roles.masters), LOCAL_MASTER: list(roles.locals)}.get(
        role, [roles.workers])


def _tables(
    opened: Opened, role: int, states: list[Any], ledgers: list[Ledger], inbox: np.ndarray, out: Any
) -> Any:
    topology, rules, tasks = opened.roles.topology, opened.roles.rules, opened.simulation.tasks
    if role == SUBMITTER:
        return SubmitterTables(states[0], topology, inbox, out)
    if role == GLOBAL_MASTER:
        return GlobalMasterTables(states, ledgers, topology, rules, tasks, inbox, out)
    if role == LOCAL_MASTER:
        return LocalMasterTables(states, topology, rules, tasks, inbox, out)
    return WorkerTables(states[0], topology, rules, tasks, opened.simulation.losses.task, inbox, out)
