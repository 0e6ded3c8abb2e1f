"""Compiles a policy to one of its two signatures.

A policy enters the engine as the address of a compiled function with an explicit signature, so one cached engine serves
every policy. The built-in ones are cached on disk. A user's is compiled anew in every process, for read-only arrays,
and reached through a function that makes them of what the engine has (read_only.py). One that stays plain Python is
reached through a function that calls Python back (plain_python.py).
"""
import functools
import inspect
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import typeof, types
from numba.extending import overload

from subak.errors import PolicyError, first_line
from subak.fleet.state import FleetState, build_fleet_state
from subak.kernels.kernel import SETTINGS, kernel_of
from subak.nearest import did_you_mean
from subak.placement.claims import build_claims
from subak.placement.interface.hooks import build_memory
from subak.placement.interface.plain_python import ask_on_arrival, ask_on_departure, ask_select_machine
from subak.placement.interface.read_only import as_told, read_only, read_only_type
from subak.placement.schedulers import FIRST_FIT_AT, Scheduler, loaded
from subak.queues.lanes import build_lanes
from subak.workload.tasks import Tasks

AnyFunction = Callable[..., Any]

_ONE = np.ones((1, 1), np.int32)
FLEET = typeof(build_fleet_state(_ONE, np.ones(1, bool), np.ones((1, 1), bool), shapes=1, seed=0))
_NONE = np.zeros(1)
TASKS = typeof(Tasks(_NONE, _NONE, _NONE, _NONE, np.zeros(1, np.int32), _ONE, np.zeros(1, np.int32)))
LANES = typeof(build_lanes(1, 1))
MEMORY = typeof(build_memory((1, 1), (1, 1), [0.0]))
CLAIMS = typeof(build_claims(1))

SELECT_MACHINE = types.int64(FLEET, TASKS, types.int64)
HOOK = types.void(FLEET, TASKS, LANES, MEMORY, types.int32[::1], CLAIMS)
PLACEMENT_PARAMETERS = ("fleet", "tasks", "task")
HOOK_PARAMETERS = ("fleet", "tasks", "lanes", "memory", "items", "claims")
READS_ONLY = (FLEET, TASKS, CLAIMS, types.int32[::1])  # of what a policy is given; the rest is its own


def compiled_select_machine(scheduler: Scheduler) -> AnyFunction:
    """Compile a scheduler's ``(fleet, tasks, task) -> machine or -1``; raise PolicyError if it does not compile."""
    assert scheduler.select_machine is not None
    if scheduler.built_in:
        return _own(SELECT_MACHINE, scheduler.select_machine)
    if not scheduler.compiled:
        _refuse_parameters(SELECT_MACHINE, loaded(scheduler.select_machine))
        return _asking(SELECT_MACHINE, ask_select_machine)
    return _users_select_machine(loaded(scheduler.select_machine), scheduler.checked)


def compiled_gang_machine(scheduler: Scheduler) -> AnyFunction:
    """Compile what says where a task of a gang goes; of a scheduler that has no gangs any function will do."""
    return _own(SELECT_MACHINE, scheduler.gang_machine or FIRST_FIT_AT)


def compiled_hooks(scheduler: Scheduler) -> list[AnyFunction]:
    """Compile a scheduler's ``(fleet, tasks, lanes, memory, items, claims)``, on arrival and on departure.

    Raises PolicyError if one does not compile.
    """
    both = [hook for hook in (scheduler.on_arrival, scheduler.on_departure) if hook is not None]
    if not scheduler.compiled:
        for hook in both:
            _refuse_parameters(HOOK, loaded(hook))
        return [_asking(HOOK, ask_on_arrival), _asking(HOOK, ask_on_departure)]
    return [_own(HOOK, hook) if scheduler.built_in else _users_hook(loaded(hook), scheduler.checked) for hook in both]


@functools.cache
def _own(signature: Any, function: AnyFunction | str) -> AnyFunction:
    return kernel_of(signature, loaded(function))


@functools.cache
def _asking(signature: Any, function: AnyFunction) -> AnyFunction:
    """Compile one of the functions that call Python back, once: it holds an address of this process."""
    return kernel_of(signature, function, cache=False, by_python=False)


@functools.cache
def _users_select_machine(function: AnyFunction, checked: bool) -> AnyFunction:
    """Compile a user's function so that it can only read what it is given; *checked*: with bounds checks."""
    policy = _of_user(SELECT_MACHINE, function, checked)
    answers = SELECT_MACHINE.return_type if SETTINGS.DISABLE_JIT else policy.nopython_signatures[0].return_type
    if not isinstance(answers, types.Integer):
        raise PolicyError(f"policy {function.__name__} must return a whole number on every path, a machine's or -1 for "
                          f"none; it returns {types.unliteral(answers)}")

    def select_machine(fleet: FleetState, tasks: Tasks, task: int) -> int:
        return whole(policy(read_only(fleet), read_only(as_told(tasks)), task))

    return kernel_of(SELECT_MACHINE, select_machine, cache=False, by_python=False)


@functools.cache
def _users_hook(function: AnyFunction, checked: bool) -> AnyFunction:
    """Compile a user's function so that it can only read what is not its own; *checked*: with bounds checks."""
    policy = _of_user(HOOK, function, checked)

    def hook(fleet: Any, tasks: Any, lanes: Any, memory: Any, items: Any, claims: Any) -> None:
        policy(read_only(fleet), read_only(as_told(tasks)), lanes, memory, read_only(items), read_only(claims))

    return kernel_of(HOOK, hook, cache=False, by_python=False)


def _of_user(signature: Any, function: AnyFunction, checked: bool) -> Any:
    _refuse_parameters(signature, function, "does not compile")
    arguments = tuple(read_only_type(kind) if kind in READS_ONLY else kind for kind in signature.args)
    try:
        return kernel_of(arguments, function, cache=False, checked=checked, by_python=False)
    except Exception as error:  # Numba's own, and what else it may stumble over
        raise PolicyError(f"policy {function.__name__} {_reason(error, function)}") from None


def _no_attribute(name: str, kind: str) -> str:
    """Say which attributes there are, of what a policy is given."""
    parts = next((part.instance_class._fields for part in HOOK.args if getattr(part, "instance_class", None) is not None
                  and part.instance_class.__name__ == kind), ())
    there = f"; there are {', '.join(parts)}" if parts else ""
    return f"{kind} has no attribute {name!r}{there}{did_you_mean(name, parts)}"


def _refuse_parameters(signature: Any, function: AnyFunction, cannot: str = "cannot be called") -> None:
    """Raise PolicyError for a function that cannot be called with what a policy is given."""
    given = PLACEMENT_PARAMETERS if signature is SELECT_MACHINE else HOOK_PARAMETERS
    try:
        inspect.signature(function).bind(*given)
    except TypeError:
        has = ", ".join(inspect.signature(function).parameters) or "nothing"
        raise PolicyError(f"policy {function.__name__} {cannot}: it takes {has}, and must take "
                          f"{', '.join(given)}") from None


def whole(answer: int) -> int:
    """Return an answer that is a whole number; in plain Python it may be something else, which raises TypeError."""
    return operator.index(answer)


@overload(whole, strict=False)
def _whole(answer: Any) -> Any:
    return lambda answer: answer


def _reason(error: Exception, function: AnyFunction) -> str:
    """Say what the compiler says: its own first sentence and the function's line, without banner and long types."""
    text = re.sub(r"\b(FleetState|Tasks|Lanes|Memory|Claims)\(.*\)", r"\1", str(error))
    text = re.sub(r" for '\$[^']*', defined at [^(\n]*", " ", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    file = re.escape(Path(function.__code__.co_filename).name)
    place = re.search(rf'\b{file}(?:", line | \()(\d+)', text)
    where = f" (line {place[1]})" if place else ""
    if "Cannot modify readonly array" in text:
        return f"writes to what it may only read; only lanes and memory are its own, and claim() starts tasks{where}"
    if unknown := re.search(r"Unknown attribute '(\w+)' of type (\w+)", text):
        return f"does not compile: {_no_attribute(*unknown.groups())}{where}"
    if unnamed := re.search(r"name '(\w+)' is not defined", text):
        return f"does not compile: {unnamed[0]}{did_you_mean(unnamed[1], function.__globals__)}{where}"
    useful = [line for line in lines if not line.startswith(("Failed in", "During", "[", "- Resolution", "There are"))]
    return f"does not compile: {useful[0] if useful else first_line(error)}{where}"
