"""Simulates one number of machines with one seed and measures each objective.

A seed gives every size the same workload, which a process keeps while there is room for it.
"""
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import NamedTuple

import msgspec
import polars as pl

from subak.errors import InputError, RunError
from subak.experiment.inputs import of_seed
from subak.experiment.run import simulated
from subak.experiment.sizing.candidates import Candidate, Question, load_question
from subak.experiment.spawn import end_with, new_pool, starting
from subak.fleet.table import Fleet
from subak.measures.machine_use import Use, use_of
from subak.measures.measured import values_of
from subak.measures.objective import read_objective
from subak.measures.window import Window
from subak.simulator.results import task_table, timeline_table
from subak.workload.days import ITSELF, drawn_by
from subak.workload.redraws import DAYS
from subak.workload.table import Workload

TASKS_KEPT = 20_000_000  # of workloads that a process keeps: about 1 GB


class Tried(NamedTuple):
    """What came of one run: the value of each objective, or why all of them are missed; and how much was used."""

    values: tuple[float, ...]
    missed: str = ""
    use: Use | None = None  # of the machines; None of a draw, which only the answer on it is asked of


Submit = Callable[[int, int, int, str], "Future[Tried]"]  # candidate, machines, seed, estimates


class Trials:
    """Runs of a question's scenario in this process."""

    def __init__(self, question: Question, loaded: tuple[Workload, list[Candidate]] | None = None) -> None:
        self.scenario = question.scenario
        self.workload, self.candidates = loaded or load_question(question)
        self.objectives = [read_objective(text) for text in self.scenario.objectives]
        self.drawn: dict[int, tuple[Workload, Window]] = {}  # by seed

    def run(self, candidate: int, machines: int, seed: int, estimates: str) -> Tried:
        """Run so many of a candidate's machines with a seed and *estimates*. Raises SubakError where the run fails.

        Fewer machines than a scheduler can begin with miss every objective.
        """
        scenario = msgspec.structs.replace(self.scenario, estimates=estimates)
        fleet = self.candidates[candidate].machines(machines)
        workload, window = self._of_seed(seed, fleet)
        try:
            outcome = simulated(scenario, scenario.schedulers[0], seed, (workload, fleet))
        except InputError as error:
            return Tried((), str(error))
        tasks = task_table(outcome, workload, fleet)
        timeline = timeline_table(outcome, workload)
        values = values_of(tasks, timeline, workload, window, self.objectives)
        shown = self.scenario.resample != DAYS or drawn_by(seed) == ITSELF
        use = use_of(outcome, (tasks, timeline), workload, fleet, window) if shown else None
        never = tasks.filter(pl.col("status") == "UNPLACEABLE")
        why = f"{len(never):,} tasks can never run: {_reason(never)}" if len(never) else ""
        return Tried(tuple(values), why, use)

    def _of_seed(self, seed: int, fleet: Fleet) -> tuple[Workload, Window]:
        if seed not in self.drawn:
            _, (workload, _), window = of_seed(self.scenario, seed, (self.workload, fleet))
            if (len(self.drawn) + 1) * len(self.workload.tasks) > TASKS_KEPT:
                self.drawn.clear()
            self.drawn[seed] = workload, window
        return self.drawn[seed]


def _reason(never: pl.DataFrame) -> str:
    """Return the reason that most have."""
    return str(never["reason"].value_counts(sort=True)["reason"][0])


class _Here(Executor):
    """An executor that does what it is asked at once."""

    def submit(self, fn: Callable[..., Tried], /, *args: int | str, **kwargs: int) -> "Future[Tried]":  # type: ignore[override]
        """Return what has been done."""
        done: Future[Tried] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@contextmanager
def trying(
    question: Question, loaded: tuple[Workload, list[Candidate]], processes: int, alone: bool
) -> Iterator[Submit]:
    """Give what begins a run: *alone*, in this process, else in others, each with a share of the seeds.

    No process outlives this, however it is left; what a run loads has been checked in this one. Raises RunError when a
    process ends before its run does.
    """
    seeds = question.scenario.seeds
    if alone:
        trials, here = Trials(question, loaded), _Here()
        yield lambda *run: here.submit(trials.run, *run)
        return
    told = msgspec.msgpack.encode(question)
    lanes = [new_pool(1, _begin, told) for _ in range(min(processes, len(seeds)))]
    others = set(multiprocessing.active_children())

    def _submit(candidate: int, machines: int, seed: int, estimates: str) -> "Future[Tried]":
        with starting():  # the first of a lane starts its process
            return lanes[seeds.index(seed) % len(lanes)].submit(
                _run, candidate, machines, seed, estimates)

    try:
        yield _submit
    except BrokenProcessPool:
        raise RunError("size: the process of a run died (out of memory?)") from None
    finally:
        for child in set(multiprocessing.active_children()) - others:
            child.kill()
        for lane in lanes:
            lane.shutdown(cancel_futures=True)


_trials: list[Trials] = []  # of this process, where it is one of several


def _begin(lifeline: "Connection[object, object]", packed: bytes) -> None:
    """Load what is run in this process."""
    end_with(lifeline)
    _trials.append(Trials(msgspec.msgpack.decode(packed, type=Question)))


def _run(candidate: int, machines: int, seed: int, estimates: str) -> Tried:
    return _trials[0].run(candidate, machines, seed, estimates)
