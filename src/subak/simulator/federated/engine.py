"""The engine of every federation: one loop, and the roles of the architecture, compiled apart.

The loop knows roles by four functions that serve them and by the addresses of their tables, so it is compiled once for
all architectures, and an edit of a handler compiles that role alone. It is such a function itself, and works on tables
by address: handed on as they are, the some hundred arrays of a simulation and a network took half of the time to
compile (docs/decisions/0022).
"""
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from subak.federation.messages import CHANGE, HANDLER, NOBODY, Outbox
from subak.federation.serving import Service, entered, signature_of
from subak.kernels.kernel import by_address
from subak.kernels.state import Addressed, addressed
from subak.kernels.together import Job, kernels_of
from subak.simulator.engine.state import LOOP_BROKEN, LOOP_PAUSED, Simulation
from subak.simulator.federated.loop import HANDLE, NOTHING, advance, carry_out
from subak.simulator.federated.network import Network, note_batch, place_of
from subak.simulator.federated.operations import apply_faults, boot_all, catch_up, change_machine, serve


class LoopTables(NamedTuple):
    """What `run_federated` works on."""

    sim: Simulation
    net: Network
    services: Any  # int64[5], addresses of what serves each role, and passes over heartbeats; in plain Python functions
    tables: np.ndarray  # int64[5], addresses of what these work on; not used in plain Python
    due: np.ndarray  # MESSAGE[1], what was handled last
    out: Outbox  # what its handler posted


def run_federated(loop: LoopTables, _now: float, budget: int) -> int:
    """Run *budget* events; return why it stopped."""
    sim, net, services, tables, due, out = loop.sim, loop.net, loop.services, loop.tables, loop.due, loop.out
    if net.counts.driven and net.counts.begun == 0:
        boot_all(sim, net, services, tables, due, out)
    net.counts.begun = 1
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
        if kind == CHANGE and net.counts.driven:
            change_machine(sim, net, services, tables, due, out)
        else:
            note_batch(net, due[0])
            task = serve(services, tables, HANDLER[kind], sim.clock.now)
            if task != NOBODY:
                net.processing[place_of(task)] += net.service[kind]
        if carry_out(sim, net, HANDLER[kind], out):
            return LOOP_BROKEN
    catch_up(sim, net, services, tables)
    return LOOP_PAUSED


# -- compiled, or in plain Python --------------------------------------------------------------------------------------


class Services:
    """The functions that serve each role, the tables that they work on, and the loop that calls them."""

    def __init__(self, loop: Callable[..., int] | None, serve: Any, tables: tuple[Addressed, ...]) -> None:
        """*loop*: compiled; None in plain Python. *serve*: int64[5], or functions."""
        self.loop, self.serve, self.tables = loop, serve, tables
        self._nowhere = np.zeros(len(tables), np.int64)
        self._last: tuple[tuple[Any, ...], Addressed] | None = None

    def run(self, sim: Simulation, net: Network, due: np.ndarray, out: Outbox, budget: int) -> int:
        """Run *budget* events; return why the loop stopped."""
        if self.loop is None:
            return run_federated(LoopTables(sim, net, self.serve, self._nowhere, due, out), 0.0, budget)
        addresses = np.array([each.address for each in self.tables], np.int64)
        state = sim, net, due, out
        if self._last is None or any(one is not other for one, other in zip(self._last[0], state, strict=True)):
            self._last = state, addressed(LoopTables(sim, net, self.serve, addresses, due, out))
        return self.loop(self._last[1].address, 0.0, budget)

    def renewed(self) -> "Services":
        """Return these, where arrays of the tables were replaced by others."""
        if self.loop is None:
            return self
        return Services(self.loop, self.serve, _addressed(tuple(each.state for each in self.tables)))


def build_services(
    functions: tuple[Callable[..., int], ...], tables: tuple[object, ...], state: tuple[Any, ...] | None
) -> Services:
    """Return what serves each role by its function and tables; as plain Python without a *state* to compile for.

    *state*: what the loop is run with: simulation, network, due, outbox.
    """
    if state is None or not by_address():
        plain = tuple(_plain(*each) for each in zip(functions, tables, strict=True))
        return Services(None, plain, tuple(Addressed(held, np.zeros(0, np.int64), ()) for held in tables))
    sim, net, due, out = state
    addresses = np.zeros(len(tables), np.int64)
    jobs = {run_federated: signature_of(LoopTables(sim, net, addresses, addresses, due, out))}
    for function, held in zip(functions, tables, strict=True):
        jobs[function] = signature_of(held)
    services = dict(zip(jobs, _services(tuple((signature, each) for each, signature in jobs.items())), strict=True))
    serve = np.array([services[function].address for function in functions], np.int64)
    return Services(entered(services[run_federated]), serve, _addressed(tables))


def _addressed(tables: tuple[Any, ...]) -> tuple[Addressed, ...]:
    """Return the words of the tables of each role; roles may share theirs."""
    places = {id(held): addressed(held) for held in tables}
    return tuple(places[id(held)] for held in tables)


@functools.cache
def _services(jobs: tuple[Job, ...]) -> list[Service]:
    """Return the compiled function of each job: once a process, as it takes longer to read them than many a run."""
    return [Service(kernel) for kernel in kernels_of(list(jobs))]


def _plain(function: Callable[..., int], tables: Any) -> Callable[..., int]:
    return lambda _address, now, count: function(tables, now, count)
