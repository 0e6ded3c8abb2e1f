"""Declares the settings of a scenario as keyword arguments."""
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from types import FunctionType
from typing import Any, get_type_hints

import msgspec

from subak.api.inputs import Inputs
from subak.api.keywords import Settings
from subak.errors import InputError, first_line
from subak.experiment.moments import in_seconds
from subak.experiment.scenario import WHENS, Scenario
from subak.federation.settings import Federation
from subak.nearest import did_you_mean
from subak.placement.schedulers import Scheduler
from subak.policy import policy
from subak.policy_files import Given, named_scheduler
from subak.workload.table import days_of

AnyScheduler = str | Scheduler | Callable[..., int]
"""A scheduler by its name (`"first-fit+backfill"`, `"mine.py:reserved"`), made in `subak.policy`, or a placement."""


def scenario_of(
    inputs: Inputs, schedulers: Sequence[AnyScheduler], seeds: Iterable[int], settings: Mapping[str, object]
) -> Scenario:
    """Return the scenario of these runs, checked. Raises InputError for what no run could mean."""
    hints = get_type_hints(Scenario)
    settings = in_seconds(dict(settings), WHENS, lambda: days_of(inputs.workload))
    values = {name: _converted(name, value, hints) for name, value in settings.items()}
    return msgspec.structs.replace(inputs.scenario, schedulers=[_named(each) for each in schedulers],
                                   seeds=[_seed(seed) for seed in seeds], **values)


def _converted(name: str, value: Any, hints: dict[str, Any]) -> Any:
    if name in Federation.__struct_fields__ and name not in Settings.__annotations__:
        raise InputError(f"{name}: is a setting of a federation; give federation={{{name!r}: {value!r}}}")
    if name not in Settings.__annotations__:
        raise InputError(f"{name}: no such setting{did_you_mean(name, Settings.__annotations__)}")
    try:
        return msgspec.convert(os.fspath(value) if isinstance(value, Path) else value, hints[name])
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except msgspec.ValidationError as error:
        raise InputError(f"{name}: {first_line(error)}") from None


def _named(scheduler: AnyScheduler) -> str:
    """Return the name of a scheduler; one of the user's own goes with it."""
    if isinstance(scheduler, str):
        named_scheduler(scheduler)
        return scheduler
    if isinstance(scheduler, FunctionType):
        scheduler = policy(scheduler)
    if not isinstance(scheduler, Scheduler):
        raise InputError("scheduler: must be a name, a function (fleet, tasks, task) -> machine, or what subak.policy "
                         f"makes, not {scheduler!r:.100}")
    return scheduler.name if scheduler.built_in else Given(scheduler)


def _seed(seed: Any) -> int:
    try:
        return index(seed)
    except TypeError:
        raise InputError(f"seeds: must be whole numbers, not {seed!r:.100}") from None
