"""Reads the question of a tuning: parameters, ranges, objective and seeds.

Loads nothing heavy: the command line asks this before anything is loaded.
"""
import re
from typing import Any, NamedTuple

import msgspec

from subak.errors import InputError
from subak.experiment.scenario import Scenario, draws
from subak.federation.settings import Federation
from subak.federation.tunable import OF_FEDERATION, OF_LOTES, OF_POLICY, declared
from subak.measures.objective import OF_MACHINES, read_measure
from subak.nearest import did_you_mean
from subak.placement.lotes.settings import LotesSettings
from subak.placement.schedulers import SCHEDULERS
from subak.placement.tunable import Parameter, Value
from subak.policy_files import named_scheduler
from subak.quantities import read_seconds, times_of
from subak.workload.redraws import NONE

RANGE = re.compile(r"([^=:]+)(?:=([^:]+):([^:]+))?", re.ASCII)
Values = dict[str, Value]


class Question(msgspec.Struct, kw_only=True, frozen=True):
    """A tuning, apart from how long it goes on."""

    scenario: Scenario  # with one scheduler, as it is given
    minimise: str  # a measure, such as wait.mean
    tune: list[str] = []  # NAME or NAME=LEAST:MOST; empty: all that the scheduler declares
    held_out: list[int]  # seeds that what was found is judged on
    held_out_workload: str = ""  # instead of the scenario's
    sampler_seed: int = 1  # of what is tried

    def __post_init__(self) -> None:
        """Refuse what could not be answered."""
        scenario = self.scenario
        if read_measure(self.minimise).measure in OF_MACHINES and not scenario.energy:
            raise InputError(f"minimise {self.minimise!r}: needs an energy file, which says what machines draw and "
                             "cost (--energy)")
        if len(scenario.schedulers) != 1:
            raise InputError(f"scheduler: one is tuned at a time, not {', '.join(scenario.schedulers)}")
        try:
            self.judged_on()
        except InputError as error:
            raise InputError(f"held-out: {error}") from None
        both = sorted(set(scenario.seeds) & set(self.held_out))
        if both and not self.held_out_workload:
            raise InputError(f"held-out: must be other seeds than those tuned on, not {both[0]}")
        if scenario.resample == NONE and not self.held_out_workload and not draws(scenario, scenario.schedulers[0]):
            raise InputError("held-out: with --resample none, seeds change nothing under this scheduler; give "
                             "--held-out-workload, or let seeds redraw the workload")

    @property
    def scheduler(self) -> str:
        """The name of what is tuned."""
        return self.scenario.schedulers[0]

    def judged_on(self) -> Scenario:
        """Return the scenario of the held-out part."""
        changes: dict[str, Any] = {"seeds": self.held_out}
        if self.held_out_workload:
            changes |= {"workload": self.held_out_workload, "workload_digest": "", "fleet_digest": ""}
        return msgspec.structs.replace(self.scenario, **changes)


class Space(NamedTuple):
    """Parameters that are tuned, and the field of a scenario that holds them."""

    field: str
    parameters: tuple[Parameter, ...]

    def given(self, scenario: Scenario) -> Values:
        """Return the values that a scenario has."""
        if self.field == OF_POLICY:
            return {each.name: scenario.parameters.get(each.name, each.default)  # type: ignore[misc]
                    for each in self.parameters}
        return {each.name: getattr(getattr(scenario, self.field), each.name) for each in self.parameters}

    def applied(self, scenario: Scenario, values: Values) -> Scenario:
        """Return the scenario with other values. Raises InputError for what the settings refuse."""
        before = getattr(scenario, self.field)
        after = {**before, **values} if self.field == OF_POLICY else msgspec.structs.replace(before, **values)
        return msgspec.structs.replace(scenario, **{self.field: after})


def space_of(question: Question) -> Space:
    """Return what is tuned. Raises InputError for a scheduler that declares nothing, and for what it does not."""
    scheduler = named_scheduler(question.scheduler, question.scenario.parameters)
    known = declared(scheduler)
    if not known:
        names = ", ".join(name for name, each in SCHEDULERS.items() if declared(each))
        raise InputError(f"scheduler: {question.scheduler} declares no parameters to tune; {names} do, and policies "
                         "from files that call parameter()")
    field, parameters = next(iter(known.items()))
    by_name = {each.name: each for each in parameters}
    if not question.tune:
        return Space(field, parameters)
    chosen = [_narrowed(text, by_name, field) for text in question.tune]
    twice = next((each.name for each in chosen if [other.name for other in chosen].count(each.name) > 1), None)
    if twice is not None:
        raise InputError(f"--tune: each must be named once, {twice} comes again")
    space = Space(field, tuple(chosen))
    for each in chosen:
        for end in () if each.words else (each.least, each.most):
            space.applied(question.scenario, {each.name: end})
    return space


def _end(text: str, parameter: Parameter, field: str) -> float:
    """Return an end of a range; of a time it may be a duration such as 500ms. Raises ValueError for another form."""
    if parameter.is_whole:
        return int(text)
    kind = {OF_FEDERATION: Federation, OF_LOTES: LotesSettings}.get(field)
    if kind is None or parameter.name not in times_of(kind):
        return float(text)
    try:
        return read_seconds(text)
    except InputError as error:
        raise ValueError from error


def _narrowed(text: str, by_name: dict[str, Parameter], field: str) -> Parameter:
    """Return a parameter in the range that is asked for."""
    found = RANGE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"--tune: must be NAME or NAME=LEAST:MOST, such as heartbeat=1:60, not {text!r}")
    name, least, most = found.groups()
    if name not in by_name:
        raise InputError(f"--tune: must be one of {', '.join(by_name)}, not {name!r}" + did_you_mean(name, by_name))
    parameter = by_name[name]
    if least is None:
        return parameter
    if parameter.words:
        raise InputError(f"--tune: {name} is one of {parameter.text}, and has no range")
    try:
        ends = [_end(end, parameter, field) for end in (least, most)]
    except ValueError:
        raise InputError(f"--tune: the range of {name} must be {'whole ' * parameter.is_whole}numbers, "
                         f"not {text!r}") from None
    narrowed = parameter._replace(least=ends[0], most=ends[1])
    if not float("-inf") < ends[0] < ends[1] < float("inf") or (parameter.log and ends[0] <= 0):
        raise InputError(f"--tune: the range of {name} must be from one number to a larger one"
                         f"{', both above 0' if parameter.log else ''}, not {text!r}")
    if field == OF_POLICY and not (parameter.holds(ends[0]) and parameter.holds(ends[1])):
        raise InputError(f"--tune: {name} is declared from {parameter.text}, not {text!r}")
    return narrowed
