"""The two shapes of a policy, and how a function is compiled to one of them.

A policy enters the engine as the address of a compiled function with an explicit signature, so one cached engine
serves every policy; the built-in ones are cached on disk, a user's is compiled anew in every process.
"""
import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import typeof, types

from subak.errors import PolicyError
from subak.fleet.state import build_fleet_state
from subak.kernel import kernel_of
from subak.placement.hooks import build_memory
from subak.placement.starts import build_starts
from subak.queues.lanes import build_lanes
from subak.tables import first_line
from subak.workload.tasks import Tasks

AnyFunction = Callable[..., Any]

_ONE = np.ones((1, 1), np.int32)
FLEET = typeof(build_fleet_state(_ONE, np.ones(1, bool), np.ones((1, 1), bool), shapes=1, seed=0))
_NONE = np.zeros(1)
TASKS = typeof(Tasks(_NONE, _NONE, _NONE, _NONE, np.zeros(1, np.int32), _ONE, np.zeros(1, np.int32)))
LANES = typeof(build_lanes(1, 1))
MEMORY = typeof(build_memory((1, 1), (1, 1), [0.0]))
STARTS = typeof(build_starts(1))

SELECT_MACHINE = types.int64(FLEET, TASKS, types.int64)
HOOK = types.void(FLEET, TASKS, LANES, MEMORY, types.int32[::1], STARTS)


@functools.cache
def compiled_select_machine(function: AnyFunction, cache: bool) -> AnyFunction:
    """Compile ``function(fleet, tasks, task) -> machine or -1``; raise PolicyError if it does not compile."""
    return _compiled(SELECT_MACHINE, function, cache)


@functools.cache
def compiled_hook(function: AnyFunction, cache: bool) -> AnyFunction:
    """Compile ``function(fleet, tasks, lanes, memory, items, starts)``; raise PolicyError if it does not compile."""
    return _compiled(HOOK, function, cache)


def _compiled(signature: Any, function: AnyFunction, cache: bool) -> AnyFunction:
    try:
        return kernel_of(signature, function, cache)
    except Exception as error:  # Numba's own, and what else it may stumble over
        raise PolicyError(f"policy {function.__name__} does not compile: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Return the compiler's own first sentence and the line it points at, without its banner and long types."""
    text = re.sub(r"\b(FleetState|Tasks|Lanes|Memory|Starts)\(.*\)", r"\1", str(error))
    text = re.sub(r" for '\$[^']*', defined at [^(\n]*", " ", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith(("Failed in", "During", "[", "- Resolution", "There are"))]
    place = next((line for line in lines if line.startswith("File ")), "")
    return " ".join(filter(None, [useful[0] if useful else first_line(error), f"({place})" if place else ""]))
