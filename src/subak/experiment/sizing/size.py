"""Finds, for each kind or mix, the fewest machines that meet all objectives, and the cheapest of these."""
import math
import shlex
from collections.abc import Callable

import msgspec
import numpy as np

from subak.experiment.fleet_words import MACHINES_MAX
from subak.experiment.inputs import refuse_unfit, scenario_window, settle_resample
from subak.experiment.knowledge import knowledge
from subak.experiment.scenario import Scenario, seeds_of
from subak.experiment.sizing.answer import (
    Recorded,
    Size,
    Sized,
    Sizing,
    Supposed,
    Weeks,
    best_of,
    mean_shares,
    value_of,
)
from subak.experiment.sizing.candidates import Candidate, Question, hopeless
from subak.experiment.sizing.counts import arrivals, may_share
from subak.experiment.sizing.recorded import recorded
from subak.experiment.sizing.search import search, with_sizes
from subak.experiment.sizing.trials import Submit, Tried
from subak.experiment.sizing.weeks import Draw, answers_on, weeks_of
from subak.measures.intervals import TraceDays
from subak.measures.objective import Objective, read_objective
from subak.placement.schedulers import RUN_TIMES
from subak.policy import find_scheduler
from subak.quantities import duration_text
from subak.simulator.engine.estimates import used_estimates
from subak.simulator.estimate_words import USER
from subak.workload.demand import demand, most_at_once
from subak.workload.extent import at_load
from subak.workload.redraws import DAYS
from subak.workload.resample import Drawable, drawable
from subak.workload.table import DUMP_BEGINS, OWN_NODES, QUEUES_ARE, Workload

NONE_WAITS = 2  # times the tasks that would run at once if none waited, for seeds that draw more: the default limit

DRAWS = range(1, 42)  # seeds where none are asked for and days are drawn: the trace, and 20 draws of each kind

REPLAYED = ("easy", "first-fit+backfill", "first-fit")  # what batch systems do, to find what is nearest to a log

LONGER = "factor=3"  # users' time limits where the workload has none: 1 to 3 times the run time, drawn evenly

Notify = Callable[[str, int, int], None]  # what is tried, how many runs or draws of it are done, and of how many


def settled(question: Question, workload: Workload, candidates: list[Candidate]) -> Question:
    """Return the question with what its seeds change, and only seeds that change something.

    Raises InputError where no run could begin.
    """
    scenario = question.scenario
    scheduler = find_scheduler(scenario.schedulers[0], scenario.check_policy)
    for candidate in candidates:
        many = max(len(candidate.fleet.machines), start_of(workload, candidate))
        refuse_unfit(scenario, [scheduler], (workload, candidate.machines(many)))
    scenario = settle_resample(scenario, workload)
    seeds = seeds_of(scenario, scenario.schedulers[0])
    if scenario.resample == DAYS:  # the trace itself, and draws
        seeds = list(DRAWS if question.usual_seeds else dict.fromkeys([1, *seeds]))
    return msgspec.structs.replace(question, scenario=msgspec.structs.replace(scenario, seeds=seeds))


def size(
    question: Question, loaded: tuple[Workload, list[Candidate]], limit: int | None, submit: Submit, notify: Notify
) -> Sizing:
    """Answer a settled question with runs that *submit* begins, of at most *limit* machines."""
    workload, candidates = loaded
    scenario = question.scenario
    objectives = [read_objective(text) for text in scenario.objectives]
    window = scenario_window(scenario, workload)
    days, grown = _redrawn(scenario, workload), at_load(workload, scenario.load)
    knows = _knows(scenario, workload)
    supposes = bool(knows) and used_estimates("", workload) != USER and not scenario.estimates
    log = recorded(scenario, (workload, candidates[0].machines(1)), objectives)
    answers = list[Sized]()
    for place, candidate in enumerate(candidates):
        sizes = _Sizes(question, place, candidate, submit, notify)
        found = _answer(sizes, objectives, (grown, limit), days, supposes)
        answers.append(_with_log(found, sizes, objectives, _machines_for(log, candidate, workload)))
    return Sizing(workload.provenance.name, scenario.schedulers[0], tuple(each.text for each in objectives),
                  tuple(scenario.seeds), scenario.resample, days, tuple(answers),
                  best_of(answers), *arrivals(workload, window),
                  tuple(each.name for each in workload.resources), scenario.load, partitions_of(workload),
                  "" if scenario.measure_from is not None else _remark(workload, DUMP_BEGINS),
                  knows,
                  log, tuple(_replay(scenario, each) for each in answers),
                  any(may_share(workload, window, each.fleet.capacity) for each in candidates),
                  window.why if scenario.measure_from is not None or scenario.measure_until is not None else "",
                  "recorded_start" in workload.tasks.columns)


def _with_log(found: Sized, sizes: "_Sizes", objectives: list[Objective], machines: int | None) -> Sized:
    """Return an answer with the *machines* that have what the log's tasks held, among the sizes that were tried."""
    if not machines or found.fewest is None:
        return found
    known = any(size.machines == machines for size in found.sizes)
    every = found if known else with_sizes(found, [*found.sizes, sizes.trial(machines)], objectives)
    return msgspec.structs.replace(every, as_in_log=machines)


def _replay(scenario: Scenario, answer: Sized) -> str:
    """Return the command that sets the waits of the log beside those of the scheduler; empty for a mix of machines."""
    if answer.as_in_log is None or answer.parts:
        return ""
    machines = f"--scale {answer.as_in_log / answer.has:.6g}" if answer.has else (
        f"--machines {answer.as_in_log} --capacity {answer.name}")
    only = "".join(f" --only-queue {shlex.quote(each)}" for each in scenario.only_queues)
    ends = (("from", scenario.measure_from), ("until", scenario.measure_until))
    window = "".join(f" --measure-{name} {duration_text(value)}" for name, value in ends if value is not None)
    objectives = "".join(f" --objective {shlex.quote(each)}" for each in scenario.objectives)
    schedulers = ",".join(dict.fromkeys(("recorded", scenario.schedulers[0], *REPLAYED)))
    return (f"subak compare {shlex.quote(scenario.workload)}{only} {machines}{window}{objectives} --schedulers "
            f"{shlex.quote(schedulers)}")


def _machines_for(log: Recorded | None, candidate: Candidate, workload: Workload) -> int | None:
    """Return how many machines have what the log's tasks held at once; None where it knows no starts."""
    if log is None:
        return None
    has = candidate.fleet.capacity.mean(axis=1)
    shares = [most / (mean * each.unit) for each, most, mean in zip(workload.resources, log.most, has, strict=True)
              if mean > 0]
    return math.ceil(max(shares, default=0.0) - 1e-9)


def partitions_of(workload: Workload) -> tuple[str, ...]:
    """Return the queues that have nodes of their own, by what the trace says of its queues; none where it says none."""
    levels = _remark(workload, QUEUES_ARE).split("/")
    own = next((place for place, level in enumerate(levels) if level in OWN_NODES), None)
    if own is None:
        return ()
    return tuple(workload.jobs["queue"].str.split("/").list.head(own + 1).list.join("/").unique().sort())


def _remark(workload: Workload, name: str) -> str:
    return str(workload.provenance.notes.get("remarks", {}).get(name, ""))


def _knows(scenario: Scenario, workload: Workload) -> str:
    """Return what a central scheduler knows of each task's run time; empty where it goes by none."""
    scheduler = find_scheduler(scenario.schedulers[0], scenario.check_policy)
    if scheduler.architecture or scheduler.knows != RUN_TIMES:
        return ""
    return knowledge(scheduler, None, scenario.estimates, workload)


def _redrawn(scenario: Scenario, workload: Workload) -> Drawable | None:
    if scenario.resample != DAYS:
        return None
    window = scenario_window(scenario, workload)
    return drawable(workload, window.begin, window.end)


class _Sizes:
    """Sizes of a candidate as they are tried."""

    def __init__(self, question: Question, place: int, candidate: Candidate, submit: Submit, notify: Notify) -> None:
        self.place, self.candidate, self.submit, self.notify = place, candidate, submit, notify
        self.estimates = question.scenario.estimates
        self.seeds = question.scenario.seeds
        self.draws = self.seeds[1:] if question.scenario.resample == DAYS else []

    def trial(self, machines: int) -> Size:
        """Run so many machines with every seed, or on the trace itself, as many runs at once as there are processes."""
        seeds = self.seeds[:1] if self.draws else self.seeds
        said = f"{machines:,} machines of {self.candidate.name}"
        self.notify(said, 0, len(seeds))
        begun = [self.submit(self.place, machines, seed, self.estimates) for seed in seeds]
        done = []
        for number, future in enumerate(begun, start=1):
            done.append(future.result())
            self.notify(said, number, len(seeds))
        return self.size(machines, *done)

    def size(self, machines: int, *done: Tried) -> Size:
        """Return what came of so many machines."""
        missed = next((each.missed for each in done if each.missed), "")
        ran = all(each.values for each in done)
        values = tuple(map(value_of, zip(*(each.values for each in done), strict=True))) if ran else ()
        uses = [each.use for each in done if each.use is not None]
        shares = (mean_shares(each) for each in zip(*uses, strict=True)) if uses and len(uses) == len(done) else ()
        return Size(machines, self.candidate.price(machines), values, missed, *shares)

    def weeks(self, own: int, limit: int, objectives: list[Objective], of: Drawable) -> Weeks:
        """Return what draws of the trace's days take; each is searched from the trace's *own* answer on."""
        said = f"draws of the trace on {self.candidate.name}"
        self.notify(said, 0, len(self.draws))
        found = answers_on(self.draws, Draw(own, limit, lambda size: size.keeps(objectives), self.size),
                           lambda machines, seed: self.submit(self.place, machines, seed, self.estimates),
                           lambda done: self.notify(said, done, len(self.draws)))
        return weeks_of(own, found, TraceDays(of.days, of.freedom))


def _answer(
    sizes: _Sizes, objectives: list[Objective], of: tuple[Workload, int | None], days: Drawable | None, supposes: bool,
) -> Sized:
    (workload, asked), candidate = of, sizes.candidate
    most = asked or limit_of(workload, candidate)
    why = hopeless(workload, candidate)
    if why:
        return Sized(candidate.name, most, (), None, hopeless=why, of_fleet=candidate.of_fleet)
    found = _searched(sizes, objectives, (min(start_of(workload, candidate), most), most), days)
    if supposes and found.fewest is not None:
        sizes.estimates = LONGER
        other = _searched(sizes, objectives, (found.fewest, most), days)
        sizes.estimates = ""
        found = msgspec.structs.replace(found, supposed=Supposed(LONGER, other.fewest, other.by_scenario))
    found = _with_bought(found, sizes, objectives)
    if found.buy is None:
        return msgspec.structs.replace(found, of_fleet=candidate.of_fleet)
    has = len(candidate.fleet.machines) if candidate.of_fleet else None
    return msgspec.structs.replace(found, of_fleet=candidate.of_fleet, has=has, buy_price=candidate.price(found.buy),
                                   parts=candidate.parts(found.buy))


def _searched(sizes: _Sizes, objectives: list[Objective], ends: tuple[int, int], days: Drawable | None) -> Sized:
    """Return the answer that a search between the *ends*, start and limit, finds, and that on draws of *days*."""
    found = search(sizes.candidate.name, sizes.trial, objectives, *ends)
    if days is None or found.fewest is None or not sizes.draws:
        return found
    return msgspec.structs.replace(found, weeks=sizes.weeks(found.fewest, ends[1], objectives, days))


def _with_bought(found: Sized, sizes: _Sizes, objectives: list[Objective]) -> Sized:
    """Return an answer with the number needed among the sizes that were tried."""
    if found.buy is None or any(size.machines == found.buy for size in found.sizes):
        return found
    return with_sizes(found, [*found.sizes, sizes.trial(found.buy)], objectives)


def start_of(workload: Workload, candidate: Candidate) -> int:
    """Return how many machines have what the tasks ask for in the mean over time: about the fewest that can keep up."""
    asked = demand(workload, point_count=2).requested_mean
    mean = candidate.fleet.capacity.mean(axis=1)
    shares = [asked[resource.name] / (mean[row] * resource.unit) if mean[row] else 0.0
              for row, resource in enumerate(workload.resources)]
    return int(np.clip(math.ceil(max(shares)), 1, MACHINES_MAX))


def limit_of(workload: Workload, candidate: Candidate) -> int:
    """Return how many machines are tried at most: on so many nearly nothing waits, and the whole mix is there."""
    return min(max(NONE_WAITS * max(most_at_once(workload), start_of(workload, candidate)),
                   len(candidate.fleet.machines)), MACHINES_MAX)
