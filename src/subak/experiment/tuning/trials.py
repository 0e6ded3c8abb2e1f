"""Runs the trials of a tuning, one process per seed, so that a crashing policy is noticed."""
import functools
import multiprocessing
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from types import TracebackType

import msgspec
import numpy as np

from subak.errors import RunError
from subak.experiment.inputs import energy_of, load_inputs, of_seed
from subak.experiment.run import simulated
from subak.experiment.scenario import Scenario
from subak.experiment.spawn import end_with, new_pool, starting
from subak.experiment.tuning.question import Space, Values
from subak.fleet.table import Fleet
from subak.measures.energy.measure import EnergyTally
from subak.measures.measured import values_of
from subak.measures.objective import Objective, read_measure, read_objective
from subak.measures.window import Window, cut, window_facts
from subak.simulator.results import attempt_table, task_table, timeline_table
from subak.workload.table import Workload

DRAWN_KEPT = 16  # workloads of seeds that a process keeps

_told: list[tuple[bytes, str]] = []  # of this process: the scenario of each part, and what is minimised


class Runs:
    """Processes that do runs; leaving ends them."""

    def __init__(self, parts: list[Scenario], minimise: str, space: Space, processes: int) -> None:
        self.space = space
        self.parts = parts
        told = [(msgspec.msgpack.encode(part), minimise) for part in parts]
        self.pool = new_pool(processes, _begin, told)

    def __enter__(self) -> "Runs":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in multiprocessing.active_children() if kind is not None else ():
            process.kill()
        self.pool.shutdown(wait=True, cancel_futures=True)

    def values(self, part: int, values: Values) -> list[list[float]]:
        """Return, for each seed of a part, the measure and the values of the objectives, with *values* set.

        Raises RunError where a process died, and what a run raises.
        """
        seeds = self.parts[part].seeds
        try:
            with starting():
                found = self.pool.map(_run, *zip(*((part, seed, self.space, values) for seed in seeds), strict=True))
            return list(found)
        except BrokenProcessPool:
            raise RunError(f"tune: a process died with {values} (out of memory, or a policy that leaves its arrays; "
                           "--check-policy says where)") from None


def _begin(lifeline: "Connection[object, object]", told: list[tuple[bytes, str]]) -> None:
    """Note what there is to do; nothing goes on without the process that asked."""
    end_with(lifeline)
    _told[:] = told


def _run(part: int, seed: int, space: Space, values: Values) -> list[float]:
    drawn, inputs, window, asked = _drawn(part, seed)
    scenario = space.applied(drawn, values)
    outcome = simulated(scenario, scenario.schedulers[0], seed, inputs)
    tasks, timeline = task_table(outcome, *inputs), timeline_table(outcome, inputs[0])
    energy, used = energy_of(scenario), None
    if energy is not None:
        facts = window_facts(tasks, timeline, window)
        tally, attempts = EnergyTally(energy, inputs[1], facts), attempt_table(outcome, *inputs)
        tally.add(tasks, attempts, np.arange(len(attempts)), inputs[0])
        used, _ = tally.use(cut(timeline, facts), inputs[0])
    return values_of(tasks, timeline, inputs[0], window, asked, used)


@functools.lru_cache(DRAWN_KEPT)
def _drawn(part: int, seed: int) -> tuple[Scenario, tuple[Workload, Fleet], Window, list[Objective]]:
    """Return what a seed of a part runs on, and what is measured of it."""
    scenario, inputs, minimise = _loaded(part)
    drawn, inputs, window = of_seed(scenario, seed, inputs)
    return drawn, inputs, window, [read_measure(minimise), *map(read_objective, scenario.objectives)]


@functools.lru_cache
def _loaded(part: int) -> tuple[Scenario, tuple[Workload, Fleet], str]:
    packed, minimise = _told[part]
    scenario = msgspec.msgpack.decode(packed, type=Scenario)
    return scenario, load_inputs(scenario), minimise
