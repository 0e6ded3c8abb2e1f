"""Calls policies that stay plain Python: compiled code asks back through one C function, for every run.

The engine takes a policy as the address of a compiled function. For a plain one that function calls `_ANSWER`, which
asks the policy of the run that this thread is in (`PlainPolicy.during`). No exception crosses compiled code: the first
is kept, every later question is answered with what no claim accepts, so the loop stops, and the exception is raised.
"""
import ctypes
import functools
import operator
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numba import types

from subak.errors import PolicyError, first_line
from subak.fleet.feasible import next_fitting
from subak.fleet.state import FleetState
from subak.kernels.kernel import by_address, kernel_of
from subak.kernels.state import At, StateAt, type_of, typed
from subak.placement.claims import KEPT, NO_SUCH_MACHINE, VIOLATED_RULE, Claims
from subak.placement.interface.hooks import Memory
from subak.placement.interface.read_only import as_told, read_only
from subak.placement.schedulers import RUN_TIMES, AnyFunction, Scheduler, loaded
from subak.queues.lanes import Lanes
from subak.workload.tasks import Tasks

ASKED_PLACE, ASKED_ARRIVAL, ASKED_DEPARTURE = range(3)  # what is asked: a task's machine, or one of the hooks
NO_ANSWER = -2  # what a policy that failed answers: a machine that does not exist
MACHINE_END = 2**63


class Tables(NamedTuple):
    """The tables of a run that its policy is called with."""

    fleet: FleetState
    tasks: Tasks
    claims: Claims
    arrived: np.ndarray  # int32[task], the first of them are those that wait now
    freed: np.ndarray  # int32[machine], likewise
    lanes: Lanes | None = None  # this and the next of a pair of hooks
    memory: Memory | None = None


class SearchedFleet(FleetState):
    """A fleet as a plain policy is given it, with the search for machines that fit compiled."""

    search: Callable[[int, int], int] | None = None  # `next_fitting` of a task, from a machine on


class _Untold(Tasks):
    """The tasks for a policy whose code does not name run times; so the run says rightly that it knows none."""

    __slots__ = ()

    @property
    def estimate(self) -> NoReturn:
        """Refuse what the policy is not known to read."""
        raise PolicyError("reads tasks.estimate out of sight; name it in the policy's function or in one that this "
                          "calls, so that the run can say what the policy knows")

    run_time = estimate


class PlainPolicy:
    """A user's policy in one run, called as the Python function that it is."""

    def __init__(self, scheduler: Scheduler, tables: Tables, hooks: tuple[AnyFunction, ...] = ()) -> None:
        """Begin a run; *hooks*, on arrival and on departure, are called in the place of the scheduler's functions."""
        self.name = scheduler.name
        self.fault: BaseException | None = None  # what the policy raised
        self.decisions = 0  # times that it was called
        self.functions = [None if each is None else loaded(each) for each in
                          (scheduler.select_machine, *(hooks or (scheduler.on_arrival, scheduler.on_departure)))]
        self.tables = tables
        self.fleets = {_places(tables.fleet): _told(tables.fleet, tables.tasks)}  # by where they differ
        told = read_only(as_told(tables.tasks))
        self.tasks = told if scheduler.knows == RUN_TIMES else _Untold(*told)
        self.claims = read_only(tables.claims)
        self.items = {ASKED_ARRIVAL: read_only(tables.arrived), ASKED_DEPARTURE: read_only(tables.freed)}

    def during(self, run: Callable[[], int]) -> int:
        """Do *run*, in which this policy is asked, and return what it does. Raises what the policy raised, worded."""
        before = getattr(_asked, "policy", None)
        _asked.policy = self
        try:
            why = run()
        finally:
            _asked.policy = before
        if self.fault is not None:
            raise self.fault
        return why

    def answer(self, what: int, item: int, places: tuple[int, int, int]) -> int:
        """Ask the policy; *item* is the task, or how many there are. After the first exception nobody is asked."""
        if self.fault is None:
            self.decisions += 1
            try:
                return self._placed(item, places) if what == ASKED_PLACE else self._hooked(what, item)
            except PolicyError as error:
                self.fault = PolicyError(f"scheduler {self.name} {error}{self._line(error)}")
            except (Exception, SystemExit) as error:  # whatever a user's policy may raise is the policy's fault
                self.fault = PolicyError(f"scheduler {self.name} raised {type(error).__name__}: {first_line(error)}"
                                         f"{self._line(error)}")
            except BaseException as error:  # Ctrl-C
                self.fault = error
        if self.tables.claims.violation[VIOLATED_RULE] == KEPT:
            self.tables.claims.violation[VIOLATED_RULE] = NO_SUCH_MACHINE  # the loop stops here
        return NO_ANSWER

    def _placed(self, task: int, places: tuple[int, int, int]) -> int:
        function = self.functions[ASKED_PLACE]
        assert function is not None
        fleet = self.fleets.get(places)
        if fleet is None:
            fleet = self.fleets[places] = _told(_elsewhere(self.tables.fleet, places), self.tables.tasks)
        return _machine(function(fleet, self.tasks, task))

    def _hooked(self, what: int, count: int) -> int:
        function, tables = self.functions[what], self.tables
        assert function is not None
        function(self.fleets[_places(tables.fleet)], self.tasks, tables.lanes, tables.memory,
                 self.items[what][:count], self.claims)
        return 0

    def _line(self, error: BaseException) -> str:
        """Return the last line of the policy's file that led to the error."""
        files = [each.__code__.co_filename for each in self.functions if isinstance(each, FunctionType)]
        at, found = error.__traceback__, ""
        while at is not None:
            if at.tb_frame.f_code.co_filename in files:
                found = f" ({Path(files[0]).name}, line {at.tb_lineno})"
            at = at.tb_next
        return found


def _machine(answer: Any) -> int:
    """Return a policy's answer as a whole number. Raises PolicyError for what is none."""
    is_whole = hasattr(answer, "__index__") and not isinstance(answer, bool | np.bool_)
    if not is_whole or not -MACHINE_END <= operator.index(answer) < MACHINE_END:
        raise PolicyError(f"must return a whole number on every path, a machine's or -1 for none; it returned "
                          f"{answer!r:.100}")
    return operator.index(answer)


def _told(fleet: FleetState, tasks: Tasks) -> FleetState:
    told = SearchedFleet(*read_only(fleet))
    if by_address():
        kinds = [StateAt(typed(each, type_of)) for each in (fleet, tasks)]
        told.search = partial(_search(*kinds), At(fleet, kinds[0]), At(tasks, kinds[1]))
    return told


@functools.cache
def _search(fleet: StateAt, tasks: StateAt) -> Callable[..., int]:
    return kernel_of(types.int64(fleet, tasks, types.int64, types.int64), next_fitting)


# -- how compiled code asks --------------------------------------------------------------------------------------------

_asked = threading.local()  # its policy: that of the run in this thread


def _answer(what: int, item: int, allowed: int, opened: int, frontier: int) -> int:
    policy: PlainPolicy = _asked.policy
    return policy.answer(what, item, (allowed, opened, frontier))


_ANSWER = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 6)(_answer)


def ask_select_machine(fleet: FleetState, _tasks: Tasks, task: int) -> int:
    """Ask the run's policy for a machine; compiled in the place of a policy's own function."""
    return _ANSWER(ASKED_PLACE, task, fleet.allowed.ctypes.data, fleet.open.ctypes.data, fleet.frontier.ctypes.data)


def ask_on_arrival(
    _fleet: FleetState, _tasks: Tasks, _lanes: Lanes, _memory: Memory, items: np.ndarray, _claims: Claims
) -> None:
    """Call the run's policy for tasks that wait now."""
    _ANSWER(ASKED_ARRIVAL, items.size, 0, 0, 0)


def ask_on_departure(
    _fleet: FleetState, _tasks: Tasks, _lanes: Lanes, _memory: Memory, items: np.ndarray, _claims: Claims
) -> None:
    """Call the run's policy for machines that were freed."""
    _ANSWER(ASKED_DEPARTURE, items.size, 0, 0, 0)


def _places(fleet: FleetState) -> tuple[int, int, int]:
    """Return the addresses of those tables in which what a task may use differs from the whole fleet."""
    return fleet.allowed.ctypes.data, fleet.open.ctypes.data, fleet.frontier.ctypes.data


def _elsewhere(fleet: FleetState, places: tuple[int, int, int]) -> FleetState:
    """Return the fleet with the tables at these addresses: what others have reserved, or have held back, is masked."""
    allowed, opened, frontier = places
    return fleet._replace(allowed=_at(allowed, fleet.allowed), open=_at(opened, fleet.open),
                          frontier=_at(frontier, fleet.frontier))


def _at(address: int, like: np.ndarray) -> np.ndarray:
    """Return the array at an address, of the same shape and type as another one."""
    words = (ctypes.c_char * like.nbytes).from_address(address)
    return np.frombuffer(memoryview(words), like.dtype).reshape(like.shape)

