"""The engine of every federation: one loop over events, and the roles of the architecture, each compiled apart.

The loop knows roles by four functions that serve them and by the addresses of their tables, so it is compiled once for
all architectures, and an edit of a handler compiles that role alone.
"""
import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import NumbaExperimentalFeatureWarning

from subak.federation.messages import CHANGE, HANDLER, NOBODY, Outbox
from subak.federation.serving import SERVE, Service, signature_of, typed
from subak.kernels.kernel import SETTINGS, function_type
from subak.kernels.state import Addressed, addressed
from subak.kernels.together import Job, kernels_of
from subak.simulator.engine.state import LOOP_BROKEN, LOOP_PAUSED, NOW, Simulation
from subak.simulator.federated.loop import HANDLE, NOTHING, advance, carry_out
from subak.simulator.federated.network import BEGUN, DRIVEN, Network, note_batch, place_of
from subak.simulator.federated.operations import apply_faults, boot_all, catch_up, change_machine, serve


def run_federated(
    sim: Simulation, net: Network, services: Any, tables: np.ndarray, due: np.ndarray, out: Outbox, budget: int
) -> int:
    """Run *budget* events; return why it stopped. *services*: five functions; *tables*: int64[5], addresses."""
    if net.size[DRIVEN] and net.size[BEGUN] == 0:
        boot_all(sim, net, services, tables, due, out)
    net.size[BEGUN] = 1
    for _ in range(budget):
        if net.faults.on[0]:
            apply_faults(sim, net, services, tables, due, out)
        why = advance(sim, net, services, tables, due)
        if why == NOTHING:
            continue
        if why != HANDLE:
            catch_up(sim, net, services, tables)
            return why
        kind = due[0]["kind"]
        if kind == CHANGE and net.size[DRIVEN]:
            change_machine(sim, net, services, tables, due, out)
        else:
            note_batch(net, due[0])
            task = serve(services, tables, HANDLER[kind], sim.clock[NOW])
            if task != NOBODY:
                net.processing[place_of(task)] += net.service[kind]
        if carry_out(sim, net, HANDLER[kind], out):
            return LOOP_BROKEN
    catch_up(sim, net, services, tables)
    return LOOP_PAUSED


# -- compiled, or in plain Python --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Services:
    """The functions that serve each role, and the tables that they work on."""

    loop: Callable[..., int]
    serve: tuple[Any, ...]
    tables: tuple[Addressed, ...]

    def run(self, sim: Simulation, net: Network, due: np.ndarray, out: Outbox, budget: int) -> int:
        """Run *budget* events; return why the loop stopped."""
        addresses = np.array([each.address for each in self.tables], np.int64)
        with _without_warning():
            return self.loop(sim, net, self.serve, addresses, due, out, budget)

    def renewed(self) -> "Services":
        """Return these, where arrays of the tables were replaced by others."""
        compiled = any(each.words.size for each in self.tables)
        return replace(self, tables=_addressed(tuple(each.state for each in self.tables))) if compiled else self


def build_services(
    functions: tuple[Callable[..., int], ...], tables: tuple[Any, ...], state: tuple[Any, ...] | None
) -> Services:
    """Return what serves each role by its function and tables; as plain Python without a *state* to compile for.

    *state*: what the loop is called with: simulation, network, due, outbox.
    """
    if state is None or SETTINGS.DISABLE_JIT:
        plain = tuple(_plain(*each) for each in zip(functions, tables, strict=True))
        return Services(run_federated, plain, tuple(Addressed(held, np.zeros(0, np.int64), ()) for held in tables))
    sim, net, due, out = map(typed, state)
    services = types.UniTuple(function_type(SERVE), len(tables))
    jobs = {run_federated: types.int64(sim, net, services, types.int64[::1], due, out, types.int64)}
    for function, held in zip(functions, tables, strict=True):
        jobs[function] = signature_of(held)
    loop, *compiled = _kernels(tuple((signature, function) for function, signature in jobs.items()))
    service = dict(zip(list(jobs)[1:], (Service(kernel) for kernel in compiled), strict=True))
    return Services(loop, tuple(service[function] for function in functions), _addressed(tables))


def _addressed(tables: tuple[Any, ...]) -> tuple[Addressed, ...]:
    """Return the words of the tables of each role; roles may share theirs."""
    places = {id(held): addressed(held) for held in tables}
    return tuple(places[id(held)] for held in tables)


@functools.cache
def _kernels(jobs: tuple[Job, ...]) -> list[Any]:
    """Return the compiled function of each job: once a process, as it takes longer to read them than many a run."""
    with _without_warning():
        return kernels_of(list(jobs))


@contextlib.contextmanager
def _without_warning() -> Iterator[None]:
    """Let Numba not tell users that functions in a tuple are new to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        yield


def _plain(function: Callable[..., int], tables: Any) -> Callable[..., int]:
    return lambda _address, now, count: function(tables, now, count)
