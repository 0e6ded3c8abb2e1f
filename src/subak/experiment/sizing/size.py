"""Sizing: for each kind or mix of machines the fewest that keep all objectives, and of them the cheapest."""
import math
from collections.abc import Callable

import msgspec
import numpy as np

from subak.experiment.fleet_words import MACHINES_MAX
from subak.experiment.run import refuse_unfit, scenario_window, settle_resample
from subak.experiment.scenario import seeds_of
from subak.experiment.sizing.answer import Size, Sized, Sizing, best_of, value_of
from subak.experiment.sizing.candidates import Candidate, Question, hopeless
from subak.experiment.sizing.search import search
from subak.experiment.sizing.trials import Submit
from subak.measures.objective import Objective, read_objective
from subak.policy import find_scheduler
from subak.workload.demand import demand, most_at_once
from subak.workload.redraws import SESSIONS
from subak.workload.resample import session_count
from subak.workload.table import Workload

NONE_WAITS = 2  # times the tasks that would run at once if none waited, for seeds that draw more: the default limit

Notify = Callable[[str, int, int], None]  # whose machines are tried, how many, and how many seeds are done


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
    return msgspec.structs.replace(question, scenario=msgspec.structs.replace(scenario, seeds=seeds))


def size(
    question: Question, loaded: tuple[Workload, list[Candidate]], limit: int | None, submit: Submit, notify: Notify
) -> Sizing:
    """Answer a settled question with runs that *submit* begins, of at most *limit* machines."""
    workload, candidates = loaded
    scenario = question.scenario
    objectives = [read_objective(text) for text in scenario.objectives]
    answers = [_answer(place, candidate, objectives, (workload, limit), _Sizes(question, submit, notify))
               for place, candidate in enumerate(candidates)]
    window = scenario_window(scenario, workload)
    sessions = session_count(workload, window.begin, window.end) if scenario.resample == SESSIONS else None
    return Sizing(workload.provenance.name, scenario.schedulers[0], tuple(each.text for each in objectives),
                  tuple(scenario.seeds), scenario.resample, sessions, tuple(answers), best_of(answers))


class _Sizes:
    """Sizes of a candidate as they are tried."""

    def __init__(self, question: Question, submit: Submit, notify: Notify) -> None:
        self.seeds, self.submit, self.notify = question.scenario.seeds, submit, notify

    def trial(self, place: int, candidate: Candidate, machines: int) -> Size:
        """Run so many machines with every seed, as many runs at once as there are processes."""
        self.notify(candidate.name, machines, 0)
        begun = [self.submit(place, machines, seed) for seed in self.seeds]
        done = []
        for number, future in enumerate(begun, start=1):
            done.append(future.result())
            self.notify(candidate.name, machines, number)
        missed = next((each.missed for each in done if each.missed), "")
        ran = all(each.values for each in done)
        values = tuple(map(value_of, zip(*(each.values for each in done), strict=True))) if ran else ()
        return Size(machines, candidate.price(machines), values, missed)


def _answer(place: int, candidate: Candidate, objectives: list[Objective], of: tuple[Workload, int | None],
            sizes: _Sizes) -> Sized:
    workload, asked = of
    most = asked or limit_of(workload, candidate)
    why = hopeless(workload, candidate)
    if why:
        return Sized(candidate.name, most, (), None, hopeless=why)
    start = min(start_of(workload, candidate), most)
    return search(candidate.name, lambda machines: sizes.trial(place, candidate, machines), objectives, start, most)


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
