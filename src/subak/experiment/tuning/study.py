"""Searches with Optuna's tree-structured Parzen estimator (Bergstra and others, NIPS 2011).

What is tried next depends on the finished trials, the seed and their number alone. So a tuning that was killed and goes
on does what it would have done, and the journal holds nothing but finished trials. Trial 0 is the settings as given.
"""
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.samplers import TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, create_trial

from subak.errors import PolicyError, RunError
from subak.experiment.tuning.question import Values
from subak.measures.objective import Objective
from subak.placement.tunable import Parameter

NAME, TRIAL_STREAM = "subak", 2**20
ENDLESS_EXCESS = 1e9  # of an objective whose value is endless
TRIALS_FOR_IMPORTANCE = 10


def open_study(journal: Path | None) -> optuna.Study:
    """Return the study of a journal, in memory without one."""
    with quiet():
        storage = None if journal is None else JournalStorage(JournalFileBackend(str(journal)))
        return optuna.create_study(storage=storage, study_name=NAME, load_if_exists=True)


class Search(NamedTuple):
    """What is looked for."""

    parameters: tuple[Parameter, ...]
    given: Values  # the settings as given
    objectives: list[Objective]
    seed: int
    run: Callable[[Values], list[list[float]]]  # the measure, and the objectives' values, for each seed


def search(wanted: Search, study: optuna.Study, trials: int, on_trial: Callable[[optuna.Study], None]) -> None:
    """Go on until *trials* are finished, the settings as given among them."""
    on_trial(study)
    while len(study.trials) < trials:
        number = len(study.trials)
        values = wanted.given if number == 0 else suggested(
            study.trials, wanted.parameters, wanted.seed * TRIAL_STREAM + number)
        record(wanted, study, values)
        on_trial(study)


def suggested(finished: list[FrozenTrial], parameters: tuple[Parameter, ...], seed: int) -> Values:
    """Return what to try next."""
    with quiet():
        memory = optuna.create_study(sampler=TPESampler(seed=seed % 2**32))
        memory.add_trials(finished)
        return memory.ask(distributions(parameters)).params


def record(wanted: Search, study: optuna.Study, values: Values) -> None:
    """Do one trial, and note it; one that fails is as bad as can be, unless it is of the settings as given."""
    try:
        found, error = np.array(wanted.run(values), np.float64), ""
    except (PolicyError, RunError) as failed:
        if not study.trials:
            raise
        found, error = np.full((1, 1 + len(wanted.objectives)), math.inf), str(failed)
    within = {each.name: each for each in wanted.parameters}
    fits = all(within[name].holds(value) for name, value in values.items())
    excess = {each.text: max(_excess(each, value) for value in found[:, 1 + place])
              for place, each in enumerate(wanted.objectives)}
    with quiet():
        study.add_trial(create_trial(
            value=float(found[:, 0].mean()), params=dict(values) if fits else {},
            distributions=distributions(wanted.parameters) if fits else {}, constraints=excess or None,
            user_attrs={"values": dict(values), "by_seed": found[:, 0].tolist(), "error": error}))


def distributions(parameters: tuple[Parameter, ...]) -> dict[str, BaseDistribution]:
    """Return Optuna's words for the ranges."""
    return {each.name: _distribution(each) for each in parameters}


def _distribution(parameter: Parameter) -> BaseDistribution:
    if parameter.words:
        return CategoricalDistribution(parameter.words)
    if parameter.is_whole:
        return IntDistribution(int(parameter.least), int(parameter.most), log=parameter.log)
    return FloatDistribution(parameter.least, parameter.most, log=parameter.log)


def _excess(objective: Objective, value: float) -> float:
    """Return by what share of its bound a value misses an objective; 0 and less where it holds."""
    if math.isinf(value):
        return 0.0 if objective.holds(value) else ENDLESS_EXCESS
    share = (value - objective.bound) / max(abs(objective.bound), 1e-9)
    share = share if objective.sign.startswith("<") else -share
    return min(share, 0.0) if objective.holds(value) else max(share, 1e-9)


def is_feasible(trial: FrozenTrial) -> bool:
    """Whether a trial keeps all objectives, on every seed."""
    return all(value <= 0 for value in (trial.constraints or {}).values())


def excess_of(trial: FrozenTrial) -> float:
    """Return by how much a trial misses its objectives, all together."""
    return sum(max(value, 0.0) for value in (trial.constraints or {}).values())


def best_of(study: optuna.Study) -> FrozenTrial:
    """Return the trial that misses the objectives least, of those the one with the least value, and the first."""
    return min(study.trials, key=lambda trial: (excess_of(trial), trial.value, trial.number))


def values_tried(trial: FrozenTrial) -> Values:
    """Return the values of a trial, also of one outside of the ranges."""
    found: dict[str, Any] = trial.user_attrs["values"]
    return found


def importance(study: optuna.Study) -> dict[str, float]:
    """Return what share of being among the best tenth each parameter decides (PED-ANOVA: Watanabe and others, 2023).

    Empty with too few trials to tell.
    """
    told = [trial for trial in study.trials if trial.params and math.isfinite(trial.value or 0.0)]
    if len(told) < TRIALS_FOR_IMPORTANCE or len({trial.value for trial in told}) < 2:
        return {}
    with quiet():
        memory = optuna.create_study()
        memory.add_trials(told)
        return dict(get_param_importances(memory, evaluator=PedAnovaImportanceEvaluator()))


@contextmanager
def quiet() -> Iterator[None]:
    """Let Optuna not say what it does, nor that some of it may still change."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
