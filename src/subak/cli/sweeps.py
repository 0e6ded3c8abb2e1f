"""Reads options that hold a list: `subak experiment W --heartbeat 1,5,10` is a study without a file."""
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from typer.models import ArgumentInfo

from subak.cli.options import OPTIONS, Given, Option, takes_options
from subak.errors import InputError
from subak.experiment.study.document import Study, read_study, study_of
from subak.federation.settings import Federation
from subak.settings import changed_settings

STUDY = ".toml"  # how the name of a study file ends


# options that take a list, and what it is of
SWEPT = {name: option.kind for name, option in OPTIONS.items()
         if option.kind in (int, float, str) and name != "workload"}


def takes_lists(argument: ArgumentInfo) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the options of a scenario into a command, as `takes_scenario` does; numbers and words are lists of them.

    *argument* is the command's first, which names a study file or a workload.
    """
    rows = []
    for name, option in OPTIONS.items():
        if name == "workload":
            rows.append(option.parameter(argument, str))
        elif name in SWEPT:
            rows.append(option.parameter(option.info(as_list=True), str | None))
        else:
            rows.append(option.parameter())
    return lambda command: takes_options(command, rows)


def study_from(given: Given, schedulers: list[str] | None, seeds: list[int] | None,
               measures: list[str] | None) -> Study:
    """Return the study of a file, or of the options; of the others, None means not given.

    Raises InputError for a mistake in either, or for both at once.
    """
    values, workload = {name: value for name, value in given.items() if name != "workload"}, given.workload
    own = {"schedulers": schedulers, "seeds": seeds, "measures": measures}
    there = {name: value for name, value in own.items() if value is not None}
    if workload.endswith(STUDY):
        if values or there:
            raise InputError(f"{workload}: a study file holds everything, so the other options must be left out")
        return read_study(Path(workload))
    document: dict[str, Any] = {"workload": workload, **there, "federation": {}, "lotes": {}}
    for name in ("federation", "lotes"):
        read = OPTIONS[name].read(values.pop(name)) if name in values else None
        if isinstance(read, msgspec.Struct):
            document[name] = changed_settings(read)
    for name, value in values.items():
        table = document["federation"] if OPTIONS[name].of is Federation else document
        table[name] = _value(OPTIONS[name], value)
    return study_of(document, f"A study of {Path(workload).name}"[:60])


def _value(option: Option, value: object) -> object:
    if option.name in SWEPT and isinstance(value, str):
        found = [_number(option, part.strip()) for part in value.split(",")]
        return found if len(found) > 1 else found[0]
    return option.read(value)


def _number(option: Option, part: str) -> object:
    word = f"--{option.name.replace('_', '-')}"
    parser = option.parser(word)
    if parser is not None:
        try:
            return parser(part)
        except InputError as error:
            raise InputError(f"{word}: {str(error).removeprefix(f'{word}: ')}") from None
    if option.kind is str:
        return part
    try:
        return int(part) if option.kind is int else float(part)
    except ValueError:
        raise InputError(f"{word}: must be {'whole ' if option.kind is int else ''}numbers separated by commas, not "
                         f"{part!r}") from None
