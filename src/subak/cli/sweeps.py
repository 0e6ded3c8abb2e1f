"""Reads options that hold a list: `subak experiment W --heartbeat 1,5,10` is a study without a file."""
import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from subak.cli.options import DURATION, READ_AS, ScenarioOptions, changed_options, takes_options
from subak.errors import InputError
from subak.experiment.scenario import changed_settings
from subak.experiment.study.document import Study, read_study, study_of
from subak.federation.settings import Federation
from subak.placement.lotes.settings import LotesSettings
from subak.quantities import read_seconds
from subak.toml_files import read_toml

STUDY = ".toml"  # how the name of a study file ends
ABSENT = ("scenario",)  # a study file says all that such a file says


def _swept() -> dict[str, type]:
    """Return the options of one number or one word, and its type."""
    found = {}
    for row in fields(ScenarioOptions):
        kind = get_args(row.type)[0]
        first = next(each for each in (get_args(kind) or (kind,)) if each is not type(None))
        if first in (int, float, str) and row.name != "workload":
            found[row.name] = first
    return found


def _times() -> frozenset[str]:
    """Return those of them that are durations."""
    return frozenset(row.name for row in fields(ScenarioOptions) if get_args(row.type)[1].metavar == DURATION)


SWEPT = _swept()  # options that take a list, and what it is of


TIMES = _times()


def takes_lists(argument: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the options of a scenario into a command, as `takes_scenario` does; numbers and words are lists of them.

    *argument* is the command's first, which names a study file or a workload.
    """
    rows = []
    for row in fields(ScenarioOptions):
        if row.name in ABSENT:
            continue
        annotation, default = row.type, row.default
        if row.name == "workload":
            annotation = Annotated[str, argument]
        elif row.name in SWEPT:
            annotation, default = Annotated[str | None, _of_list(get_args(row.type)[1])], None
        rows.append(inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return lambda command: takes_options(command, rows)


def study_from(given: ScenarioOptions, schedulers: list[str] | None, seeds: list[int] | None,
               measures: list[str] | None) -> Study:
    """Return the study of a file, or of the options; of the others, None means not given.

    Raises InputError for a mistake in either, or for both at once.
    """
    values = {name: value for name, value in changed_options(given).items() if value is not None}
    workload = values.pop("workload", given.workload)
    own = {"schedulers": schedulers, "seeds": seeds, "measures": measures}
    there = {name: value for name, value in own.items() if value is not None}
    if workload.endswith(STUDY):
        if values or there:
            raise InputError(f"{workload}: a study file holds everything, so the other options must be left out")
        return read_study(Path(workload))
    document: dict[str, Any] = {"workload": workload, **there, "federation": {}, "lotes": {}}
    if given.federation is not None:
        document["federation"] = changed_settings(read_toml(values.pop("federation"), Federation))
    if given.lotes is not None:
        document["lotes"] = changed_settings(read_toml(values.pop("lotes"), LotesSettings))
    for name, value in values.items():
        table = document["federation"] if name in Federation.__struct_fields__ else document
        table[name] = _value(name, value)
    return study_of(document, f"A study of {Path(workload).name}"[:60])


def _of_list(info: Any) -> Any:
    """Return an option that takes what *info* takes, or several of it separated by commas."""
    declared = [*info.param_decls] if info.param_decls else []
    return typer.Option(*declared, metavar=f"{info.metavar},...", help=info.help, show_default=False,
                        rich_help_panel=info.rich_help_panel, autocompletion=info.autocompletion)


def _value(name: str, value: Any) -> Any:
    if name in SWEPT and isinstance(value, str):
        found = [_number(name, SWEPT[name], part.strip()) for part in value.split(",")]
        return found if len(found) > 1 else found[0]
    if name in READ_AS:
        return READ_AS[name](value)
    return str(value) if isinstance(value, Path) else value


def _number(name: str, kind: type, part: str) -> Any:
    if name in TIMES:
        try:
            return read_seconds(part)
        except InputError as error:
            raise InputError(f"--{name.replace('_', '-')}: {error}") from None
    try:
        return kind(part)
    except ValueError:
        raise InputError(f"--{name.replace('_', '-')}: must be {'whole ' if kind is int else ''}numbers separated by "
                         f"commas, not {part!r}") from None
