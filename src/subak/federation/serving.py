"""Serves a role by one function for all of its kind.

`serve(tables, now, count)` takes the first *count* messages of an inbox and posts the answers.

Compiled, it is called with the address of its tables (kernels/state.py), so that neither the simulator's loop nor a
process of its own pays for the types of a hundred arrays at every call. In plain Python it is called with the tables.
"""
import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from subak.federation.messages import Outbox
from subak.kernels.state import StateAt, addressed, type_of, typed
from subak.kernels.together import kernels_of
from subak.marks import Signature
from subak.workload.tasks import Tasks

ENTRY_POINT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_int64)


class SharedTables(NamedTuple):
    """What one function works on that serves all roles of a federation whose roles share their tables."""

    roles: Any  # a NamedTuple of the federation's
    tasks: Tasks
    inbox: np.ndarray  # MESSAGE[place]
    out: Outbox


class Service:
    """A compiled function that serves a role, as its callers know it: by an address, whatever its tables are."""

    def __init__(self, kernel: Any) -> None:
        compiled = next(iter(kernel.overloads.values()))
        self.address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)
        self.kernel = kernel  # whose code must stay


def signature_of(tables: object) -> Signature:
    """Return what a function is compiled for that serves a role with *tables*."""
    return types.int64(StateAt(typed(tables, type_of)), types.float64, types.int64)


def compiled_service(function: Callable[..., int], tables: object) -> Callable[[float, int], int]:
    """Return `serve(now, count)` for a process that holds *tables* and calls nothing else: 0.5 us a call.

    What was compiled for the simulator serves here too: their types are the same.
    """
    (kernel,) = kernels_of([(signature_of(tables), function)])
    held, enter = addressed(tables), entered(Service(kernel))
    address = held.address

    def serve(now: float, count: int, _alive: object = held) -> int:
        return enter(address, now, count)

    return serve


def entered(service: Service) -> Callable[[int, float, int], int]:
    """Return a compiled function as Python calls it, with the address of its tables: 0.5 us a call."""
    entry_point = ENTRY_POINT(service.address)

    def enter(address: int, now: float, count: int, _alive: Service = service) -> int:
        return int(entry_point(address, now, count))

    return enter
