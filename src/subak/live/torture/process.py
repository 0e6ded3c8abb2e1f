"""The parts of a world: processes, their connections, and machines."""
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from subak.live.agent.attempts.simulated import SimulatedAgent
from subak.live.role.base import Drop, DropRange, Put, PutLarge, Role, Write
from subak.live.role.frames import Join
from subak.live.role.layout import Peer
from subak.live.torture.case import MachineCase

Disk = dict[str, dict[Any, bytes]]


@dataclass(eq=False)
class Process:
    """A role, or the place where one will be again, and what it has on disk."""

    name: str
    make: Callable[["Process"], Role]
    peer: Peer | None  # as whom others see it; None of a worker that has no number yet
    disk: Disk = field(default_factory=dict)
    role: Role | None = None
    machine: "Machine | None" = None  # of a worker
    connections: dict[Peer, "Connection"] = field(default_factory=dict)
    inbox: list[tuple[Peer, bytes]] = field(default_factory=list)
    writing: bool = False  # whether a write is under way
    is_wanted: bool = False  # whether it is to be called as soon as it has written
    life: int = 0  # how often it was started: what belongs to a former life does not happen
    is_dead: bool = False  # whether it never comes back
    trap: str = ""  # step of its next write at which it is killed
    full: int = 0  # how many faults keep its disk full
    slow: float = 0.0  # seconds that a write takes beyond the usual
    wake: float = float("inf")  # when it is called next

    def begin(self, role: Role) -> None:
        """Let a role be here."""
        self.role, self.inbox, self.writing, self.wake, self.is_wanted = role, [], False, float("inf"), False


@dataclass(eq=False)
class Connection:
    """Two ends, each with the peer that it sees, and when the last frame that each has sent arrives."""

    ends: tuple[Process, Process]
    peers: tuple[Peer, Peer]  # as whom each end sees the other
    is_open: bool = True
    lives: tuple[int, int] = (0, 0)
    last: list[float] = field(default_factory=lambda: [0.0, 0.0])


@dataclass(eq=False)
class Machine:
    """A machine: its worker, its agent, and what it has; *boots*: how often it was switched on."""

    process: Process
    join: Join
    case: MachineCase
    agent: SimulatedAgent | None = None
    records: list[Any] = field(default_factory=list)  # what its agent has on disk
    boots: int = 0
    state_at_boot: bytes | None = None  # what its worker had on disk when it was switched on last
    look_at: float = float("inf")  # when its agent is looked at next


def write(process: Process, writes: list[Write]) -> None:
    """Carry writes out."""
    for each in writes:
        table = process.disk.setdefault(each.table, {})
        if isinstance(each, Put):
            table.update(zip(each.keys, each.bodies, strict=True))
        elif isinstance(each, PutLarge):
            table[each.key] = each.body()
        elif isinstance(each, DropRange):
            for key in [key for key in table if each.first <= key < each.end]:
                del table[key]
        elif isinstance(each, Drop):
            for key in each.keys:
                table.pop(key, None)
