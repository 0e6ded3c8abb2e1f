"""Numbers the shapes of a global master's tasks, as long as a job needs them.

A number that no open job names may stand for something else later: the one that was given up longest ago goes first.
Its fact is of a later version then, and every local master is told, before anything names it or as soon as it is
connected. Whoever has amounts of the former meaning in its books counts them anew (see the `on_fact` of each role); a
local master writes its whole state down again where its ledger may name the number, and so views follow.

A version is an incarnation and a count within it: what a store says that took over is later than all that was said from
the former one.
"""
from collections import Counter
from collections.abc import Iterable

from msgspec import structs

from subak.errors import InputError
from subak.federation.messages import LOCAL_MASTER
from subak.live.jobfile.spec import TASKS, Stage
from subak.live.role.base import Put
from subak.live.role.facts import SHAPE, ShapeFact, encoded, read_shape, shape_fact
from subak.live.role.global_master.base import GlobalRoleBase
from subak.workload.predicates import Constraint

COUNT_BITS = 32  # of a version
Key = tuple[tuple[int, ...], tuple[Constraint, ...]]


class OwnShapes:
    """See the head of the file."""

    def __init__(self, role: GlobalRoleBase, incarnation: int) -> None:
        self.role, self.version = role, incarnation << COUNT_BITS
        own = role.layout.shapes_of(role.number)
        self.next, self.end = own.start, own.stop
        self.shape: dict[int, ShapeFact] = {}
        self.of: dict[Key, int] = {}
        self.uses = Counter[int]()  # stages of open jobs that name each
        self.idle: dict[int, None] = {}  # numbers that none names, in the order in which they were given up

    def restore(self) -> None:
        """Begin with what is on disk."""
        for number, body in sorted(self.role.disk.get("shape", {}).items()):
            self._note(int(number), read_shape(body))
            self.role.learn(shape_fact(int(number), self.shape[int(number)]))

    def numbers(self, stages: Iterable[Stage]) -> tuple[int, ...]:
        """Return the shapes of stages of a job; what is new is said and written.

        Raises InputError where a stage asks for what there is not, or open jobs have taken all numbers.
        """
        found = list[int]()
        try:
            for stage in stages:
                found.append(self._number(stage))
                self.idle.pop(found[-1], None)
        finally:
            self.idle |= dict.fromkeys(number for number in found if not self.uses[number])
        return tuple(found)

    def use(self, shapes: Iterable[int]) -> None:
        """Note that the stages of a job name shapes."""
        for number in shapes:
            self.uses[number] += 1
            self.idle.pop(number, None)

    def leave(self, shapes: Iterable[int]) -> None:
        """Note that a job is over whose stages named shapes."""
        for number in shapes:
            self.uses[number] -= 1
            if not self.uses[number]:
                self.idle[number] = None

    def hear(self, number: int, shape: ShapeFact) -> None:
        """Take in what a number stands for by a former store of this global master.

        Where open jobs name it, it goes on to stand for what they ask for: that is said anew.
        """
        if self.uses[number]:
            self.version = max(self.version, shape.version)
            self._say(number, self.shape[number])
        else:
            self._note(number, shape)
            self.role.writes.append(Put("shape", [number], [encoded(shape)]))

    def _number(self, stage: Stage) -> int:
        layout = self.role.layout
        unknown = sorted(set(stage.resources) - set(layout.resources))
        if unknown:
            known = [name for name in layout.resources if name != TASKS]
            raise InputError(f"resources: this federation has no {unknown[0]!r}; it has {', '.join(known)}; "
                             f"subak up FOLDER --capacity {unknown[0]}=N makes another one whose machines have it")
        request = layout.amounts(stage.resources, tasks=1)
        wanted = ShapeFact(request, tuple((each.attribute, each.operator, each.value) for each in stage.constraints))
        number = self.of.get(_key(wanted))
        if number is None:
            number = self._unused()
            self._say(number, wanted)
        return number

    def _unused(self) -> int:
        """Return a number that stands for nothing any more."""
        if self.next < self.end:
            self.next += 1
            return self.next - 1
        if not self.idle:
            raise InputError(f"resources: the tasks of open jobs ask for {self.role.layout.rooms.shapes:,} different "
                             "amounts and constraints, and no more can be told apart; wait for some jobs to end, "
                             "or raise [rooms] shapes in the file of the federation")
        number = next(iter(self.idle))
        del self.idle[number]
        return number

    def _say(self, number: int, shape: ShapeFact) -> None:
        """Let a number stand for a shape from now on."""
        self.version += 1
        shape = structs.replace(shape, version=self.version)
        self._note(number, shape)
        self.role.learn(shape_fact(number, shape))
        self.role.writes.append(Put("shape", [number], [encoded(shape)]))
        for peer in self.role.links:
            if peer[0] == LOCAL_MASTER:
                self.role.say(peer, [(SHAPE, number)])

    def _note(self, number: int, shape: ShapeFact) -> None:
        before = self.shape.get(number)
        if before is not None and self.of.get(_key(before)) == number:
            del self.of[_key(before)]
        self.shape[number] = shape
        self.of.setdefault(_key(shape), number)
        self.idle |= dict.fromkeys(range(self.next, number + 1))
        if not self.uses[number]:
            self.idle[number] = None
        self.next = max(self.next, number + 1)


def _key(shape: ShapeFact) -> Key:
    return shape.request, shape.predicates
