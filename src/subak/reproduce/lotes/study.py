"""The runs behind the LoTES figures: on Google's trace, and on a month of the same classes.

A figure names its runs before any is done. So each is done once however many figures show it, those on one workload
follow each other, two go on at a time, and what is left can be told.
"""
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from subak.federation.settings import Federation
from subak.fleet.table import Fleet, make_fleet, read_fleet
from subak.placement.lotes.settings import LotesSettings
from subak.policy import find_scheduler
from subak.reproduce.claims import Figure, Notify
from subak.reproduce.federated_runs import Run as FederatedRun
from subak.reproduce.federated_runs import measure
from subak.reproduce.lotes.course import Course, Part, at_once
from subak.reproduce.lotes.measured import Run, measured
from subak.reproduce.lotes.workload import DAY_S, HOUR_S, Month, month_of, with_zones
from subak.simulator.engine.run_loop import Progress
from subak.simulator.simulate import simulate
from subak.workload.google_like.google import google_machines
from subak.workload.samples import sample_folder
from subak.workload.table import Workload, read_workload

Outcome = Run | FederatedRun

PAPER = ("greedy", "tetris", "lotes")
FEDERATION = "megha"
TASKS_HELD_MAX = 5_000_000  # of a workload that is kept when its simulations are done
COST = {"tetris": 3.0, "greedy": 2.0, FEDERATION: 6.0}  # of a task, by that under others: to tell what is left


class Scale(NamedTuple):
    """How large the experiments are."""

    month: Month = Month(load=0.9, amplitude=0.3, burst=1.16)  # the trace asks for 1.16 of its cpu at time 0
    part: int = 1  # one of so many of Google's machines
    short: Month = Month(1_000_000, 29 / 25.4, 0.95, 0.3, 1.16)  # as dense, for the figures past the paper
    week: Month = Month(6_350_000, 29 / 4, 0.9, 0.3, 1.16)  # long enough that its waves count, not its beginning alone
    loads: tuple[float, ...] = (0.8, 0.85, 0.9, 0.92)  # of the week
    errors: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5)
    federated: Month = Month(1_000_000, 29 / 25.4, 0.95, 0.0, 0.95)
    masters: int = 10  # global, and local
    swings: tuple[float, ...] = (0.0, 0.25, 0.5)
    remote: tuple[float, ...] = (1.0, 1.5, 2.0)  # run times far from the data, by those near it


QUICK = Scale(Month(60_000, 3.0, 0.95, 0.3, 1.16), 50, Month(30_000, 1.5, 0.95, 0.3, 1.16),
              Month(30_000, 1.5, 0.95, 0.3, 1.16), (0.8, 0.95), (0.0, 0.25),
              Month(20_000, 1.0, 0.95, 0.0, 0.95), 2, (0.0, 0.5), (1.0, 2.0))


class Job(NamedTuple):
    """A simulation that a figure shows."""

    place: str | Month  # "trace", "month", or a month of its own
    scheduler: str
    more: tuple[tuple[str, float], ...] = ()  # fields of `Terms`
    settings: tuple[tuple[str, Any], ...] = ()  # LoTES's, or a federation's

    @property
    def words(self) -> str:
        """What is shown while it goes on."""
        return f"{self.place if isinstance(self.place, str) else f'load {self.place.load:g}'}: {self.scheduler}"


def job(place: str | Month, scheduler: str, settings: Mapping[str, object] | None = None, **more: float) -> Job:
    """Return a simulation; what *scheduler* has behind a comma only tells rows apart. Fields that are 0 say nothing."""
    told = tuple(sorted((name, value) for name, value in more.items() if value))
    return Job(place, scheduler.partition(",")[0], told, tuple(sorted((settings or {}).items())))


def sample() -> tuple[Workload, Fleet]:
    """Return the shipped sample of Google's trace and its machines."""
    return read_workload(sample_folder()), read_fleet(sample_folder() / "fleet")


class Study:
    """The inputs of all experiments, and what their simulations came to."""

    def __init__(self, scale: Scale, seed: int, notify: Notify, trace: Workload | None = None,
                 fleet: Fleet | None = None) -> None:
        """Take a trace and its machines, or the shipped sample."""
        self.scale, self.seed, self.notify = scale, seed, notify
        self.trace, self.fleet = (trace, fleet) if trace is not None and fleet is not None else sample()
        self.done: dict[Job, Run | FederatedRun] = {}
        self.machines: Fleet | None = None
        self.kept: dict[Month, tuple[Workload, Fleet]] = {}

    def run(self, wanted: Job) -> Run:
        """Return what a simulation came to, which is done now if it is not yet."""
        if wanted not in self.done:
            self.run_all([wanted])
        found = self.done[wanted]
        assert isinstance(found, Run)
        return found

    def federated(self, wanted: Job) -> FederatedRun:
        """Return what a simulation of a federation came to."""
        self.run_all([wanted])
        found = self.done[wanted]
        assert isinstance(found, FederatedRun)
        return found

    def run_all(self, wanted: Iterable[Job]) -> None:
        """Do the simulations that are not done, those on one workload together, the longest of them first."""
        left = [each for each in dict.fromkeys(wanted) if each not in self.done]
        if not left:
            return
        places = list(dict.fromkeys(each.place for each in left))
        left.sort(key=lambda each: (places.index(each.place), -self._weight(each)))
        course = Course(self.notify, [(each.words, self._weight(each)) for each in left])
        numbers = {each: number for number, each in enumerate(left)}
        for place, group in groupby(left, key=lambda each: each.place):
            here = list(group)
            course.say(f"{here[0].words}, its workload", numbers[here[0]])
            inputs = self.place(place)
            tasks = [self._task(each, inputs, course.part(numbers[each])) for each in here]
            self.done.update(at_once(tasks, course.stop))

    def place(self, name: str | Month) -> tuple[Workload, Fleet]:
        """Return the workload and the machines of a place."""
        if name == "trace":
            return self.trace, self.fleet
        month = self.scale.month if isinstance(name, str) else name
        if month in self.kept:
            return self.kept[month]
        fleet = self._machines()
        inputs = with_zones(month, month_of(month, fleet, self.seed), fleet)
        if month.tasks <= TASKS_HELD_MAX:
            self.kept[month] = inputs
        return inputs

    def _machines(self) -> Fleet:
        """Return Google's machines, or one of so many of each kind in turn."""
        if self.machines is None:
            whole = google_machines()
            amounts = [pl.col(each.name) * each.unit for each in whole.resources]
            table = whole.machines.with_columns(amounts).sort("cpu", "memory", "machine")
            self.machines = whole if self.scale.part == 1 else make_fleet(
                table.gather_every(self.scale.part), whole.resources, provenance=whole.provenance)
        return self.machines

    def _weight(self, of: Job) -> float:
        month = self.scale.month if of.place == "month" else of.place
        tasks = month.tasks if isinstance(month, Month) else len(self.trace.tasks)
        return tasks * COST.get(of.scheduler.partition("+")[0], 1.0)

    def _task(self, of: Job, inputs: tuple[Workload, Fleet], part: Part) -> Callable[[], tuple[Job, Any]]:
        """Return what does a simulation."""
        def simulated() -> tuple[Job, Outcome]:
            return of, (self._federated if of.scheduler == FEDERATION else self._central)(of, inputs, part)
        return simulated

    def _central(self, of: Job, inputs: tuple[Workload, Fleet], part: Part) -> Run:
        more: dict[str, Any] = dict(of.more)
        outcome = simulate(*inputs, find_scheduler(of.scheduler), self.seed, lotes=LotesSettings(**dict(of.settings)),
                           on_progress=_told(part, inputs[0]), **more)
        return measured(outcome, inputs[0], DAY_S if of.place != "trace" else HOUR_S)

    def _federated(self, of: Job, inputs: tuple[Workload, Fleet], part: Part) -> FederatedRun:
        """Simulate a federation up to the last arrival."""
        masters = self.scale.masters
        settings = Federation(global_masters=masters, local_masters=masters, **dict(of.settings))
        outcome = simulate(*inputs, find_scheduler(of.scheduler), self.seed, federation=settings,
                           until=float(inputs[0].tasks["arrival"][-1]), on_progress=_told(part, inputs[0]))
        return measure(outcome, inputs[0], settings)


def _told(part: Part, workload: Workload) -> Callable[[Progress], None]:
    return lambda progress: part(progress.tasks_arrived / len(workload.tasks))


Pair = tuple[Callable[[Scale], list[Job]], Callable[[Study], Figure]]  # the simulations a figure needs, and the figure
