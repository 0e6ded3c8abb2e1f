"""What a message, or the next end of an attempt, will change is fetched before, and nothing else comes of it.

A small federation runs as plain Python, where it is noted what would be fetched.
"""
import math
from collections import Counter

import numpy as np
import pytest

from small import fleet_of, plain
from subak.federation.messages import DONE, ENDED, EXITED, KINDS, LAUNCH, NOBODY, OVER, REPARTITION, START, WORKER
from subak.federation.settings import Federation
from subak.kernels.kernel import SETTINGS
from subak.simulator.engine import attempts
from subak.simulator.engine.heap import SIZE
from subak.simulator.engine.state import LOOP_DONE, LOOP_PAUSED
from subak.simulator.federated import ahead, loop, network
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.network import LOOKS_AHEAD
from subak.simulator.federated.simulate import Opened, open_federated

TASKS, RECENT = 60, 40  # steps


def opened(compiled: bool) -> Opened:
    tasks = [(0.37 * number, 20.0 + number % 7, 1 + number % 3) for number in range(TASKS)]
    settings = Federation(global_masters=2, local_masters=2, heartbeat=1e6)
    return open_federated(plain(*tasks), fleet_of(*[(12,)] * 8), MEGHA, settings, 1, 1e6, math.inf, compiled=compiled)


def changed_by(run: Opened, message: np.void, ended: int) -> list[tuple[np.ndarray, object]]:
    """Return the rows that handling a message changes, of those that were not looked at shortly before."""
    roles, sim, kind = run.roles, run.simulation, message["kind"]
    to, machine, row, task = int(message["to"]), int(message["machine"]), int(message["row"]), int(message["task"])
    workers, worker = roles.workers, int(run.network.first[WORKER]) + machine
    if kind == EXITED:
        return [(sim.claims.status, ended), (sim.tasks.shape, ended), (sim.fleet.free, (0, machine)),
                (run.network.handle, ended), (workers.rows.row, int(message["handle"])), (run.network.busy, worker)]
    if kind == START:
        return [(workers.machine, machine), (workers.free, (0, machine)), (sim.fleet.free, (0, machine)),
                (run.network.busy, worker)]
    if kind in (LAUNCH, REPARTITION):
        return [(roles.locals[to].machine, machine), (roles.locals[to].fleet.free, (0, machine))]
    if kind == OVER:
        return [(roles.locals[to].rows.row, int(message["handle"])), (roles.locals[to].rows.first, machine),
                (roles.locals[to].fleet.free, (0, machine))]
    if kind == ENDED:
        return [(roles.masters[to].task, row), (roles.submitters[to].tasks.number, row)]
    return [(roles.submitters[to].submission, row), (roles.jobs.state, task), (roles.jobs.row, task),
            (roles.jobs.number, task), (roles.jobs.ending, task)] if kind == DONE else []


def test_rows_are_fetched_before_they_are_changed(monkeypatch):
    """All of them, but of ends before which another attempt began that would end sooner, or that were the first."""
    fetched: dict[tuple[int, object], int] = {}  # in which step
    steps = 0

    def note(array: np.ndarray, place: object) -> None:
        fetched[id(array), tuple(map(int, place)) if isinstance(place, tuple) else int(place)] = steps

    for module in (attempts, ahead, loop, network):
        monkeypatch.setattr(module, "prefetch", note)
    run = opened(compiled=False)
    run.network.size[LOOKS_AHEAD] = 1
    events, handled, surprises = run.simulation.events, Counter(), 0
    while True:
        known = {place for place, step in fetched.items() if steps - step < RECENT}
        steps, ended = steps + 1, int(events.slot[0]["item"]) if events.size[SIZE] else NOBODY
        run.due["kind"] = NOBODY
        if run.step(1) != LOOP_PAUSED:
            break
        message = run.due[0]
        missing = [place for array, place in changed_by(run, message, ended) if (id(array), place) not in known]
        if message["kind"] == EXITED:
            surprises += bool(missing)
        else:
            assert not missing, (KINDS[message["kind"]], missing)
        handled[KINDS[message["kind"]] if message["kind"] >= 0 else ""] += 1
    assert run.step(1) == LOOP_DONE
    assert all(handled[kind] == TASKS for kind in ("EXITED", "OVER", "ENDED", "DONE", "START"))
    assert surprises < TASKS / 4


@pytest.mark.skipif(bool(SETTINGS.DISABLE_JIT), reason="nothing is compiled")
def test_it_changes_nothing():
    ran = []
    for looks in (0, 1):
        run = opened(compiled=True)
        assert run.network.size[LOOKS_AHEAD] == 1
        run.network.size[LOOKS_AHEAD] = looks
        assert run.step(10**9) == LOOP_DONE
        ran.append((run.simulation.progress.start.tolist(), run.simulation.progress.machine.tolist(),
                    run.network.handled.tolist(), run.network.busy.tolist(),
                    [master.task.tolist() for master in run.roles.masters]))
    assert ran[0] == ran[1]
