"""The plan of LoTES: the results of the offline stages, for the dispatcher."""
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from subak.errors import InputError
from subak.fleet.shapes import Shapes, find_shapes
from subak.fleet.table import Fleet
from subak.placement.lotes.allocation import Allocation, Problem, solve_allocation
from subak.placement.lotes.assignment import Assignment, solve_assignment
from subak.placement.lotes.bins import FINE_UNITS
from subak.placement.lotes.classes import Arrivals, Classes, Window, find_arrivals, find_classes, find_window
from subak.placement.lotes.configurations import Configurations, find_configurations, with_machines
from subak.placement.lotes.settings import LotesSettings
from subak.resources import Resource, same_resources
from subak.workload.table import Workload

NO_BIN = -1


@dataclass(frozen=True)
class Plan:
    """Classes, configurations, the optima of both linear programs, and the bin of each machine."""

    resources: tuple[Resource, ...]
    configurations: Configurations
    classes: Classes
    rate: np.ndarray  # float64[configuration, class], 1 / seconds, 0 where a class may not run: mu_jk
    allocation: Allocation
    assignment: Assignment
    bin_of_machine: np.ndarray  # int32[machine], row of ``assignment.bins``, or NO_BIN
    seconds: dict[str, float]  # spent on each stage
    notes: tuple[str, ...]  # what was assumed or left out

    @property
    def devoted(self) -> np.ndarray:
        """float64[configuration, class, resource], units: Delta_jkl."""
        return self._jobs[:, :, None] * self.classes.request.T[None]

    @property
    def routes(self) -> np.ndarray:
        """float64[configuration, class]: rho_jk, the part of a class's tasks that a configuration is to serve.

        A class that the plan serves nowhere has 0 everywhere.
        """
        total = self._jobs.sum(axis=0)
        return np.divide(self._jobs, total, out=np.zeros(self._jobs.shape), where=total > 0)

    @property
    def _jobs(self) -> np.ndarray:
        """float64[configuration, class], that run at once when every machine emulates its bin, by the LP."""
        jobs = np.zeros(self.rate.shape)
        np.add.at(jobs, self.assignment.configuration, self.assignment.bins * self.assignment.part[:, None])
        return jobs

    @property
    def packing_gap(self) -> float:
        """How much of lambda* is lost because jobs are whole: 1 - lambda of (6) / lambda of (1)."""
        return _gap(self.assignment.rate, self.allocation.rate)

    @property
    def rounding_gap(self) -> float:
        """How much of the assignment's lambda is lost because machines are whole."""
        return _gap(self.assignment.rate_rounded, self.assignment.rate)

    def class_of(self, shapes: Shapes) -> np.ndarray:
        """Return int32[shape], the nearest class of each of the workload's shapes; there must be one."""
        return self.classes.nearest(shapes.request, self.configurations.groups(shapes))


def _gap(less: float, more: float) -> float:
    return max(0.0, 1.0 - less / more)


def make_plan(workload: Workload, fleet: Fleet, settings: LotesSettings | None = None,
              clock: Callable[[], float] = time.perf_counter) -> Plan:
    """Return the plan for *fleet*, from what of *workload* arrives in the window of *settings*.

    *clock* tells the seconds spent. Raises InputError when there is nothing to plan.
    """
    return Planner(workload, fleet, settings or LotesSettings(), clock).first()


class Planner:
    """Makes the plans of a run: what arrives, and which machines are alike, is looked at once."""

    def __init__(self, workload: Workload, fleet: Fleet, settings: LotesSettings,
                 clock: Callable[[], float] = time.perf_counter) -> None:
        """Look at what there is. Raises InputError when no task, or no machine, is there."""
        same_resources(workload.resources, fleet.resources, "workload and fleet")
        self.resources, self.fleet, self.settings, self.clock = workload.resources, fleet, settings, clock
        self.shapes = find_shapes(workload, settings.local)
        self.arrivals: Arrivals = find_arrivals(workload, self.shapes, settings.standing)
        self.configurations: Configurations | None = None

    def known_configurations(self, tasks: np.ndarray | None = None) -> Configurations:
        """Return the configurations, found once: which constraints are told apart, the *tasks* (by shape) decide."""
        if self.configurations is None:
            if tasks is None:
                tasks = np.bincount(self.arrivals.shape, minlength=self.shapes.constraint_set.size)
            self.configurations = find_configurations(
                self.fleet, self.shapes, tasks, self.settings.constraint_sets_max, self.settings.local)
        return self.configurations

    def first(self) -> Plan:
        """Return the plan for the window of the settings. Raises InputError when there is nothing to plan."""
        begin = self.settings.window_start
        return self._plan(begin, begin + self.settings.window_seconds, np.inf, None)

    def again(self, now: float, present: np.ndarray) -> Plan:
        """Return a plan for what arrived before *now* (seconds after the first arrival), for the machines *present*.

        *present* is bool[machine]. Raises InputError when there is nothing to plan, or nothing that is new.
        """
        length = self.settings.replan_window
        begin = max(0.0, now - length)
        if self.settings.mix == "average":
            find_window(self.arrivals, self.shapes.constraint_set.size, begin, now)  # else the plan would be the same
            return self._plan(0.0, now, length, present)
        return self._plan(begin, now, np.inf, present)

    def _plan(self, begin: float, end: float, halving: float, present: np.ndarray | None) -> Plan:
        settings, shapes, notes, times = self.settings, self.shapes, self._notes(), [self.clock()]
        window = find_window(self.arrivals, shapes.constraint_set.size, begin, end, halving)
        configurations = self.known_configurations(window.tasks)
        if present is None:
            present = self.fleet.machines["present"].to_numpy()
        else:
            configurations = with_machines(configurations, present)
        group = configurations.groups(shapes)
        window = _placeable(window, shapes, group, configurations, notes)
        classes = find_classes(window, shapes.request, group, configurations.capacity.max(axis=1), settings)
        if not classes.settled:
            notes.append("k-means was cut short, for requests are many and differ: it might have ended with other "
                         "classes")
        times.append(self.clock())
        rate = _rates(classes, configurations)
        served = _served(rate, classes, notes)
        problem = Problem(classes.request[:, served], classes.share[served] / classes.share[served].sum(),
                          rate[:, served], configurations.capacity, configurations.machines)
        allocation = solve_allocation(problem)
        times.append(self.clock())
        assignment = solve_assignment(problem, allocation, classes.fine[:, served],
                                      configurations.capacity * FINE_UNITS, settings)
        times.append(self.clock())
        _note_assignment(assignment, served, configurations, settings, notes)
        allocation, assignment = _over_all_classes(allocation, assignment, served, classes.share.size)
        stages = ("classes", "allocation", "bins and assignment")
        spent = {stage: times[row + 1] - times[row] for row, stage in enumerate(stages)}
        return Plan(self.resources, configurations, classes, rate, allocation, assignment,
                    _bin_of_machine(assignment, configurations, present), spent, tuple(notes))

    def _notes(self) -> list[str]:
        if self.settings.local:
            return [] if len(self.fleet.speeds) else ["local: the fleet has no speeds, so that no machine is nearer"]
        return ["machines differ in speed: the plan counts run times as if they did not"] * bool(len(self.fleet.speeds))


def _placeable(window: Window, shapes: Shapes, group: np.ndarray, configurations: Configurations,
               notes: list[str]) -> Window:
    """Leave out what no machine could hold, and say so."""
    if window.left_out:
        notes.append(f"{window.left_out:,} tasks were there when the trace began: left out of the classes")
    endless = int((window.tasks - window.ended).sum())
    if endless:
        notes.append(f"{endless:,} tasks run for ever: left out of the mean run times")
    fits = np.zeros(shapes.request.shape[1], bool)
    for capacity, meets in zip(configurations.capacity.T, configurations.meets, strict=True):
        fits |= (shapes.request <= capacity[:, None]).all(axis=0) & meets[group]
    hopeless = int(window.tasks[~fits].sum())
    if not window.tasks[fits].any():
        raise InputError(f"workload and fleet: no machine can hold any of the window's {hopeless:,} tasks")
    if hopeless:
        notes.append(f"{hopeless:,} tasks fit no machine: left out of the classes")
    return Window(np.where(fits, window.tasks, 0), np.where(fits, window.ended, 0),
                  np.where(fits, window.run_time, 0.0), window.left_out)


def _rates(classes: Classes, configurations: Configurations) -> np.ndarray:
    """Return mu_jk: by the speeds, 0 where constraints forbid it or the mean request does not fit.

    Without speeds a class is as fast everywhere, as in section 5.
    """
    fits = (classes.fine[:, None, :] <= configurations.capacity[:, :, None] * FINE_UNITS).all(axis=0)
    allowed = configurations.meets[:, classes.group]
    there = configurations.machines[:, None] > 0
    return np.where(fits & allowed & there, 1.0 / (classes.run_time * configurations.factor[:, classes.group]), 0.0)


def _served(rate: np.ndarray, classes: Classes, notes: list[str]) -> np.ndarray:
    """Return the classes that some configuration may serve. Raises InputError when there is none."""
    anywhere = rate.any(axis=0)
    if not anywhere.any():
        raise InputError("classes: the mean request of every class fits no machine, though its tasks do; "
                         "more classes may help")
    for each in np.flatnonzero(~anywhere):
        notes.append(f"class {each + 1} ({classes.share[each]:.2%} of the tasks): its mean request fits no machine "
                     "though its tasks do, so nothing is planned for it")
    return np.flatnonzero(anywhere)


def _note_assignment(assignment: Assignment, served: np.ndarray, configurations: Configurations,
                     settings: LotesSettings, notes: list[str]) -> None:
    if settings.bins == "auto" and assignment.generated:
        notes.append(f"there are more than {settings.bins_max:,} non-dominated bins: generated as they pay, with the "
                     "same lambda")
    if assignment.rate_bound > assignment.rate * (1 + 1e-6):
        missed = _gap(assignment.rate, assignment.rate_bound)
        notes.append(f"the search for bins was cut short: lambda is at most {missed:.3%} below the best")
    lost = served[(assignment.bins * assignment.machines[:, None]).sum(axis=0) == 0]
    if lost.size:
        notes.append(f"rounding to whole machines leaves no bin to class {', '.join(str(each + 1) for each in lost)}: "
                     "the plan as rounded serves it nowhere")
    idle = assignment.considered == 0
    if idle.any():
        notes.append(f"{int(idle.sum())} configurations ({configurations.machines[idle].sum():,} machines) serve no "
                     "class in the plan: classes that may not run there hold lambda down")


def _over_all_classes(allocation: Allocation, assignment: Assignment, served: np.ndarray,
                      count: int) -> tuple[Allocation, Assignment]:
    """Return both for all *count* classes, with zeros for those that nothing is planned for."""
    delta = np.zeros((len(allocation.jobs), count, allocation.delta.shape[2]))
    jobs, bins = np.zeros((len(allocation.jobs), count)), np.zeros((len(assignment.bins), count), np.int64)
    delta[:, served], jobs[:, served], bins[:, served] = allocation.delta, allocation.jobs, assignment.bins
    return allocation._replace(delta=delta, jobs=jobs), assignment._replace(bins=bins)


def _bin_of_machine(assignment: Assignment, configurations: Configurations, present: np.ndarray) -> np.ndarray:
    """Deal the bins out: in each configuration, machines in the fleet's order to its bins in theirs."""
    of_machine = np.full(present.size, NO_BIN, np.int32)
    for each in np.unique(assignment.configuration):
        rows = np.flatnonzero(assignment.configuration == each)
        machines = np.flatnonzero((configurations.of_machine == each) & present)
        of_machine[machines] = np.repeat(rows, assignment.machines[rows])
    return of_machine
