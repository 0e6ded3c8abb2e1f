"""Write a scheduler of your own: decorate one function, or a pair of them, and name the file on the command line.

A *placement* answers one question: on which machine does this task start?

    from subak.policy import next_fitting, policy

    @policy
    def last_fit(fleet, tasks, task):
        found = -1
        machine = next_fitting(fleet, tasks, task, 0)
        while machine != -1:
            found = machine
            machine = next_fitting(fleet, tasks, task, machine + 1)
        return found

    subak compare W --schedulers first-fit,my_policy.py:last_fit,my_policy.py:last_fit+backfill

It is called with the fleet (free amounts, see `FleetState`), the tasks (see `Tasks`) and a task's number, and returns
a machine's number or -1. It is compiled, and can only read what it is given. Who is asked about next is the order's
business (options ``fifo``, ``shortest-first``, ``priority``, ``backfill``). What it may know of a task's run time is
``tasks.estimate[task]``, in seconds (``tasks.run_time`` is the same to it); a policy that names it is one that knows
run times. A task that got -1 is asked about again when a machine that could take it is freed.

A *pair of hooks* chooses task and machine together. `on_arrival` is called with the tasks that now wait, `on_departure`
with the machines that were freed (or left: nothing is free there). Both keep their waiting tasks in lanes (`push`,
`pop`, `Lanes.root`) and start tasks with `claim`, which checks each claim and takes the resources; lanes and memory are
theirs to change, all else can only be read:

    from subak.policy import claim, hooks, next_fitting, pop, push

    def on_arrival(fleet, tasks, lanes, memory, arrived, claims):
        for task in arrived:
            machine = next_fitting(fleet, tasks, task, 0)
            if machine == -1 or not claim(claims, fleet, tasks, task, machine):
                push(lanes, tasks.rank, 0, task)

    def on_departure(fleet, tasks, lanes, memory, freed, claims):
        while lanes.root[0] != -1:
            machine = next_fitting(fleet, tasks, lanes.root[0], 0)
            if machine == -1:
                return
            claim(claims, fleet, tasks, pop(lanes, tasks.rank, 0), machine)

    impatient = hooks(on_arrival, on_departure, lanes="one")
"""
import functools
import importlib.util
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

from subak.errors import InputError, PolicyError
from subak.fleet.feasible import fits, next_fitting
from subak.fleet.state import FleetState
from subak.marks import inlined
from subak.placement import claims as outbox
from subak.placement.claims import Claims
from subak.placement.fits.random_fit import random_below
from subak.placement.interface.compiled import compiled_hooks, compiled_select_machine
from subak.placement.interface.hooks import Memory, build_memory, refuse_memory
from subak.placement.interface.read_only import writable
from subak.placement.schedulers import (
    NOTHING,
    ORDERS,
    ORDERS_KNOW,
    PLACEMENT_OPTIONS,
    RUN_TIMES,
    SCHEDULERS,
    Scheduler,
    with_options,
)
from subak.queues.lanes import Lanes, pop, push
from subak.tables import first_line
from subak.workload.tasks import Tasks

__all__ = [
    "FleetState", "Lanes", "Memory", "Tasks", "claim", "find_scheduler", "fits", "hooks", "next_fitting",
    "policy", "pop", "push", "random_below",
]


TOLD = frozenset({"estimate", "run_time"})  # arrays of `Tasks` from which a policy knows run times
NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR  # flags of a function's code


@inlined
def claim(claims: Claims, fleet: FleetState, tasks: Tasks, task: int, machine: int) -> bool:
    """Start a waiting task on a machine, if every rule is kept; the run stops at the first broken one."""
    return outbox.claim(writable(claims), writable(fleet), tasks, task, machine)


def policy(function: Callable[..., int]) -> Scheduler:
    """Make a placement of ``function(fleet, tasks, task) -> machine or -1``; it is compiled when it is first used."""
    _refuse_no_function("policy", function)
    summary = (function.__doc__ or "A placement from a file.").strip().splitlines()[0]
    return Scheduler(function.__name__, summary, function, accepts=PLACEMENT_OPTIONS, built_in=False,
                     knows=_knows(function))


def hooks(
    on_arrival: Callable[..., None],
    on_departure: Callable[..., None],
    lanes: str = "one",
    order: str = "fifo",
    memory: tuple[tuple[int, int], tuple[int, int], list[float]] = ((0, 0), (0, 0), []),
) -> Scheduler:
    """Make a scheduler of a pair of hooks ``(fleet, tasks, lanes, memory, items, claims)``.

    *lanes*: where tasks wait, "one" lane, one per "shape" or per "machine" (and one more); *order*: the rank of a task
    within its lane; *memory*: sizes of the int64 and the float64 table, and the parameters. Raises InputError for
    an unknown word, or memory that cannot be.
    """
    for function in (on_arrival, on_departure):
        _refuse_no_function("hooks", function)
    try:
        refuse_memory(memory)
    except InputError as error:
        raise InputError(f"hooks: {error}") from None
    if lanes not in ("one", "shape", "machine"):
        raise InputError(f"hooks: lanes must be one, shape or machine, not {lanes!r}")
    if order not in ORDERS:
        raise InputError(f"hooks: order must be one of {', '.join(ORDERS)}, not {order!r}")
    summary = (on_arrival.__doc__ or "A pair of hooks from a file.").strip().splitlines()[0]
    return Scheduler(
        "hooks", summary, on_arrival=on_arrival, on_departure=on_departure, lanes=lanes, order=order,
        memory=lambda _: build_memory(*memory), built_in=False,
        knows=ORDERS_KNOW.get(order) or _knows(on_arrival, on_departure),
    )


def _knows(*functions: Any) -> str:
    """Return what a user's functions know of run times: those, if the code of one, or of one it calls, names them."""
    seen: set[Any] = set()
    pending = list(functions)
    while pending:
        function = pending.pop()
        seen.add(function)
        names, values = function.__code__.co_names, inspect.getclosurevars(function)
        if not TOLD.isdisjoint(names):
            return RUN_TIMES
        known = [*values.globals.values(), *values.nonlocals.values()]
        pending += [each for each in known if isinstance(each, FunctionType) and each not in seen
                    and not each.__module__.startswith("subak.")]
    return NOTHING


def _refuse_no_function(where: str, function: Any) -> None:
    if not isinstance(function, FunctionType) or function.__code__.co_flags & NOT_PLAIN:
        raise InputError(f"{where}: must be given a plain function, not {function!r:.100}")


def find_scheduler(text: str, checked: bool = False) -> Scheduler:
    """Return the scheduler of a name such as ``first-fit+backfill`` or ``my_policy.py:last_fit+shortest-first``.

    A policy from a file is compiled; *checked*: with bounds checks, slower, so that it says where it leaves an array.
    Raises InputError for an unknown name or option, PolicyError for a file that cannot be used.
    """
    scheduler = replace(named_scheduler(text), checked=checked)
    if not scheduler.built_in:
        try:
            compiled_hooks(scheduler) if scheduler.select_machine is None else compiled_select_machine(scheduler)
        except PolicyError as error:
            raise PolicyError(f"{policy_file(text)}: {error}") from None
    return scheduler


def named_scheduler(text: str) -> Scheduler:
    """Return what `find_scheduler` does, not compiled yet. Raises the same, but for functions that do not compile."""
    file = policy_file(text)
    if file is not None:
        name, *options = policy_name(text).split("+")
        return with_options(replace(_from_file(file, name), name=f"{file.name}:{name}"), options)
    name, *options = text.split("+")
    if name not in SCHEDULERS:
        raise InputError(f"scheduler must be a name that `subak schedulers` lists, or FILE.py:NAME; not {name!r}")
    return with_options(SCHEDULERS[name], options)


def policy_file(text: str) -> Path | None:
    """Return the file of ``FILE.py:NAME``, None for a built-in scheduler."""
    file, separator, _ = text.rpartition(".py:")
    return Path(file + ".py") if separator else None


def policy_name(text: str) -> str:
    """Return what follows the file in ``FILE.py:NAME+option``."""
    return text.rpartition(".py:")[2]


def _from_file(file: Path, name: str) -> Scheduler:
    if not file.is_file():
        raise InputError(f"{file}: no such policy file")
    module = _imported(file, file.stat().st_mtime_ns)
    found: Any = getattr(module, name, None)
    if not isinstance(found, Scheduler):
        known = ", ".join(key for key, value in vars(module).items() if isinstance(value, Scheduler)) or "none"
        raise PolicyError(f"{file}: must define {name} with @policy or hooks(); it defines {known}")
    return found


@functools.lru_cache
def _imported(file: Path, _modified: int) -> ModuleType:
    """Import a policy file, once: its functions are compiled once then, too."""
    spec = importlib.util.spec_from_file_location(f"subak_policy_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    fault: BaseException | None = None
    with _ends_noted() as ends:
        try:
            spec.loader.exec_module(module)
        except BaseException as error:  # whatever a user's file may raise is the file's fault ..
            fault = error
    if ends:  # .. but for what a signal raised, whatever the file made of it
        raise ends[0]
    if fault is not None:
        raise PolicyError(f"{file}: {_why(fault)}") from None
    return module


def _why(fault: BaseException) -> str:
    if isinstance(fault, PolicyError):
        return str(fault)
    said = "raised by the file, not by Ctrl-C" if isinstance(fault, KeyboardInterrupt) else first_line(fault)
    return f"cannot be imported: {type(fault).__name__}: {said}"


@contextmanager
def _ends_noted() -> Iterator[list[BaseException]]:
    """Give a list to which is added what handlers of SIGINT and SIGTERM raise meanwhile; then they are as before.

    So Ctrl-C is told from a KeyboardInterrupt that the code raises itself, and heard though that code catches it.
    """
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler is not None}  # None: not Python's
    ends: list[BaseException] = []

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            before[number](number, frame)
        except BaseException as raised:
            ends.append(raised)
            raise

    try:
        for number, handler in before.items():
            signal.signal(number, handle if callable(handler) else handler)
        yield ends
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
