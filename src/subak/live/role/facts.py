"""Sends what message numbers stand for, ahead of the messages and once per connection.

A shape, a configuration, a machine, a job, the queues, a token. Whoever gives a number writes down what it stands for;
whoever sends a message that names it, and has not said it on this connection yet, says it in the same frame. What was
learnt is passed on in the same way, as it came: a local master tells a worker of a job that a global master told it of.
"""
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct, msgpack

from subak.workload.predicates import Constraint

SHAPE, CONFIGURATION, MACHINE, JOB, QUEUES, IDENTITY = range(6)  # kinds of facts


class Fact(Struct, frozen=True, array_like=True):
    """What a number stands for; of a later *version* than another of the same name, it holds in its place."""

    kind: int
    number: int
    body: bytes
    version: int = 0


class ShapeFact(Struct, frozen=True, array_like=True):
    """What tasks of a shape ask for: units of each resource, and constraints (attribute, operator, value).

    *version*: how often its number stood for something else before.
    """

    request: tuple[int, ...]
    constraints: tuple[tuple[str, str, str], ...] = ()
    version: int = 0

    @property
    def predicates(self) -> tuple[Constraint, ...]:
        """The constraints, each once, in order."""
        return tuple(sorted({Constraint(*each) for each in self.constraints}))


def shape_fact(number: int, shape: ShapeFact) -> Fact:
    """Return what is said of a shape."""
    return Fact(SHAPE, number, encoded(shape), shape.version)


class ConfigurationFact(Struct, frozen=True, array_like=True):
    """What machines of a configuration have: units of each resource."""

    capacity: tuple[int, ...]


class MachineFact(Struct, frozen=True, array_like=True):
    """What a machine is called, and which attributes it has; *identity* is that of its worker's folder.

    *joining*: not every local master of its cluster knows it yet, and nothing runs there before.
    *removed*: it was taken out for good, and its number may be another's later.
    """

    name: str
    identity: str
    attributes: dict[str, str] = {}
    cordoned: bool = False
    gone: bool = False
    joining: bool = False
    capacity: tuple[int, ...] = ()  # units of each resource, whether tasks may start there or not
    removed: bool = False


class StageFact(Struct, frozen=True, array_like=True):
    """How the tasks of a stage are run; see `AttemptToRun`."""

    tasks: int
    command: tuple[str, ...]
    environment: dict[str, str] = {}
    folder: str = "/"
    user: str = ""
    umask: int = 0o022
    memory: int = 0  # bytes
    cpu: int = 0  # thousandths of a core
    cpu_limited: bool = False
    grace_s: float = 10.0


class JobFact(Struct, frozen=True, array_like=True):
    """How the tasks of a job are run; *first* is the place of its first task."""

    name: str  # as people know it
    queue: str
    first: int
    stages: tuple[StageFact, ...]
    submitter: str = ""  # who submitted it

    def stage_of(self, place: int) -> StageFact:
        """Return the stage of the task at a place."""
        behind = self.first
        for stage in self.stages:
            behind += stage.tasks
            if place < behind:
                return stage
        raise IndexError(place)


encoded = msgpack.Encoder().encode
read_shape = msgpack.Decoder(ShapeFact).decode
read_configuration = msgpack.Decoder(ConfigurationFact).decode
read_machine = msgpack.Decoder(MachineFact).decode
read_job = lru_cache(64)(msgpack.Decoder(JobFact).decode)  # it is asked for with each task


class Facts:
    """All that a role knows."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], Fact] = {}
        self.kinds: dict[int, dict[int, Fact]] = {}  # the same by kind, for those who look at all of one

    def note(self, fact: Fact) -> bool:
        """Note a fact; return whether it is news."""
        before = self.known.get((fact.kind, fact.number))
        if before is not None and before.version >= fact.version:
            return False
        self.known[fact.kind, fact.number] = self.kinds.setdefault(fact.kind, {})[fact.number] = fact
        return True

    def of_kind(self, kind: int) -> dict[int, Fact]:
        """Return all facts of a kind, by their numbers."""
        return self.kinds.get(kind, {})

    def forget(self, kind: int, number: int) -> None:
        """Drop a fact that no message will name any more."""
        self.known.pop((kind, number), None)
        self.kinds.get(kind, {}).pop(number, None)

    def unsaid(self, said: dict[tuple[int, int], int], names: Iterable[tuple[int, int]]) -> Iterator[Fact]:
        """Yield those of the facts called *names* that are not *said* yet, in their present version, and note that.

        *said*: the version that was said of each.
        """
        for name in names:
            fact = self.known.get(name)
            if fact is not None and said.get(name, -1) < fact.version:
                said[name] = fact.version
                yield fact
