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

A policy that needs more than the compiler knows, a library or a trained model, is decorated with
``@policy(compiled=False)``. It is then called as the plain Python that it is, with the same checks and, for the same
function, the same result; `docs/policies.md` says what that costs.

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

Numbers that a policy goes by may be declared at the head of its file, ``DEPTH = parameter("depth", 4, 1, 32)``, for
`--parameter depth=7` to set and `subak tune` to look for.
"""
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import CodeType, FunctionType
from typing import Any, overload

import numpy as np

from subak.errors import InputError, PolicyError
from subak.fleet import feasible
from subak.fleet.feasible import fits
from subak.fleet.state import FleetState
from subak.marks import inlined, standing_for
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
    Scheduler,
    with_options,
)
from subak.policy_files import named_scheduler, parameter, policy_file
from subak.queues.lanes import Lanes, pop, push
from subak.workload.tasks import Tasks

__all__ = [
    "FleetState", "Lanes", "Memory", "Tasks", "claim", "find_scheduler", "fits", "fitting", "hooks", "next_fitting",
    "parameter", "policy", "pop", "push", "random_below",
]


TOLD = frozenset({"estimate", "run_time"})  # arrays of `Tasks` from which a policy knows run times
NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR  # flags of a function's code


@standing_for(feasible.next_fitting)
def next_fitting(fleet: FleetState, tasks: Tasks, task: int, machine: int) -> int:
    """Return the first machine at or after *machine* that fits the task, or NOWHERE."""
    search = getattr(fleet, "search", None)  # a plain policy's fleet has it compiled
    return feasible.next_fitting(fleet, tasks, task, machine) if search is None else search(task, machine)


def fitting(fleet: FleetState, tasks: Tasks, task: int) -> np.ndarray:
    """Return bool[padded machine], which machines fit the task; for policies in plain Python alone."""
    shape = tasks.shape[task]
    words = fleet.allowed[tasks.constraint_set[shape]] & fleet.open
    meets = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
    found: np.ndarray = meets & (fleet.free >= tasks.request[:, shape, None]).all(axis=0)
    return found


@inlined
def claim(claims: Claims, fleet: FleetState, tasks: Tasks, task: int, machine: int) -> bool:
    """Start a waiting task on a machine, if every rule is kept; the run stops at the first broken one."""
    return outbox.claim(writable(claims), writable(fleet), tasks, task, machine)


@overload
def policy(function: Callable[..., int], *options: str, name: str | None = None, compiled: bool = True) -> Scheduler:
    ...


@overload
def policy(*, name: str | None = None, compiled: bool = True) -> Callable[[Callable[..., int]], Scheduler]:
    ...


def policy(
    function: Callable[..., int] | None = None, *options: str, name: str | None = None, compiled: bool = True
) -> Scheduler | Callable[[Callable[..., int]], Scheduler]:
    """Make a placement of ``function(fleet, tasks, task) -> machine or -1``; it is compiled when it is first used.

    *options*: as behind plus signs, such as "backfill", "shortest-first"; *name*: what it is called, by default as the
    function is; *compiled*: False to have it called as plain Python, with any library, slowly. Without a function, as
    in ``@policy(compiled=False)``, returns what makes one of it. Raises InputError for what is no function of Python,
    and for an option that does not exist.
    """
    if function is None:
        return partial(policy, name=name, compiled=compiled)
    _refuse_no_function("policy", function)
    summary = (function.__doc__ or "A placement of somebody's.").strip().splitlines()[0]
    return with_options(Scheduler(name or function.__name__, summary, function, accepts=PLACEMENT_OPTIONS,
                                  built_in=False, compiled=compiled, knows=_knows(function)), list(options))


def hooks(
    on_arrival: Callable[..., None],
    on_departure: Callable[..., None],
    lanes: str = "one",
    order: str = "fifo",
    memory: tuple[tuple[int, int], tuple[int, int], list[float]] = ((0, 0), (0, 0), []),
    name: str = "hooks",
    compiled: bool = True,
) -> Scheduler:
    """Make a scheduler of a pair of hooks ``(fleet, tasks, lanes, memory, items, claims)``.

    *lanes*: where tasks wait, "one" lane, one per "shape" or per "machine" (and one more); *order*: the rank of a task
    within its lane; *memory*: sizes of the int64 and the float64 table, and the parameters; *name*: what it is
    called; *compiled*: False to have both called as plain Python. Raises InputError for an unknown word, or memory
    that cannot be.
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
    summary = (on_arrival.__doc__ or "A pair of hooks of somebody's.").strip().splitlines()[0]
    return Scheduler(
        name, summary, on_arrival=on_arrival, on_departure=on_departure, lanes=lanes, order=order,
        memory=lambda _: build_memory(*memory), built_in=False, compiled=compiled,
        knows=ORDERS_KNOW.get(order) or _knows(on_arrival, on_departure),
    )


def _knows(*functions: Any) -> str:
    """Return what a user's functions know of run times: those, if the code of one, or of one it calls, names them."""
    seen: set[Any] = set()
    pending = list(functions)
    while pending:
        function = pending.pop()
        seen.add(function)
        names = _named_in(function.__code__)
        if not TOLD.isdisjoint(names):
            return RUN_TIMES
        known = [*(function.__globals__.get(name) for name in names),
                 *inspect.getclosurevars(function).nonlocals.values()]
        pending += [each for each in known if isinstance(each, FunctionType) and each not in seen
                    and not each.__module__.startswith("subak.")]
    return NOTHING


def _named_in(code: CodeType) -> set[str]:
    """Return the names of attributes and globals in a function's code, and in the functions inside it."""
    inner = [_named_in(each) for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*inner)


def _refuse_no_function(where: str, function: Any) -> None:
    if not isinstance(function, FunctionType) or function.__code__.co_flags & NOT_PLAIN:
        raise InputError(f"{where}: must be given a plain function, not {function!r:.100}")


def find_scheduler(text: str, checked: bool = False, values: Mapping[str, float] | None = None) -> Scheduler:
    """Return the scheduler of a name such as ``first-fit+backfill`` or ``my_policy.py:last_fit+shortest-first``.

    A user's policy is compiled; *checked*: with bounds checks, slower, so that it says where it leaves an array;
    *values*: of the parameters of a policy from a file, those it declares.
    Raises InputError for an unknown name or option, PolicyError for a file that cannot be used.
    """
    scheduler = replace(named_scheduler(text, values), checked=checked)
    if not scheduler.built_in:
        try:
            compiled_hooks(scheduler) if scheduler.select_machine is None else compiled_select_machine(scheduler)
        except PolicyError as error:
            raise PolicyError(f"{policy_file(text) or 'scheduler ' + text}: {error}") from None
    return scheduler
