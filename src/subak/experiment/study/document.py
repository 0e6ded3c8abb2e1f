"""A study file: a scenario file in which any key may hold a list, with one value for each point.

    title = "Heartbeats of Megha"
    workload = "google2011-sampled"           # one value: that of all runs
    machines = [2000, 4000]                   # a list: crossed with every other list
    capacity = { cpu = 1, memory = 1 }
    schedulers = ["megha", "central"]         # each point runs every one of these ...
    seeds = "1-6"                             # ... with every one of these
    measures = ["wait_time_mean", "federation_messages_a_task"]

    [federation]
    heartbeat = [1, 5, 10, 30]

    [[zip]]                                   # lists of one length, which change together
    title = "masters"
    name = ["few", "many"]                    # what the points are called
    federation.global_masters = [2, 10]
    federation.local_masters = [2, 10]

A key that is a list in a scenario too, such as `objectives`, changes from point to point where it is a list of lists.
`measures` are columns of the table of runs: the page draws them, and says which points are best by them. Paths are
relative to the file's folder.
"""
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_origin, get_type_hints

import msgspec

from subak.errors import InputError
from subak.experiment.scenario import Scenario
from subak.experiment.seeds import parse_seeds
from subak.federation.settings import Federation
from subak.json_type import Json
from subak.nearest import did_you_mean
from subak.output.plain import is_text
from subak.placement.lotes.settings import LotesSettings
from subak.toml_files import read_toml

TABLES = {"federation": Federation, "lotes": LotesSettings}  # keys of a scenario that hold settings of their own
EVERY = ("schedulers", "seeds")  # each point has all of them
OWN = ("title", "measures", "zip")  # keys of a study that are none of a scenario
ZIP_OWN = ("title", "name")
TOLD_APART_BY = ("run", "scheduler", "seed", "error")  # columns of the table that no setting may be called
STUDY_POINTS_MAX = 100_000
NAME_LETTERS = 60


class Axis(msgspec.Struct, frozen=True):
    """What changes from point to point: settings, with a value of each for each place, and what places are called."""

    title: str
    keys: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]  # a row a place, in the order of the keys
    names: tuple[str, ...]
    named: bool = False  # whether the file names them


class Study(NamedTuple):
    """A study as it was asked for, before anything is looked at that it names."""

    title: str
    fixed: dict[str, Any]  # settings that all points have, by key, such as federation.heartbeat
    axes: tuple[Axis, ...]
    measures: tuple[str, ...] = ()  # columns of the table of runs
    here: Path | None = None  # the folder that paths are relative to; None: the working directory


def read_study(path: Path) -> Study:
    """Read a study file. Raises InputError, naming the file and the key, for what is none."""
    document = read_toml(path, dict[str, Any])
    try:
        return study_of(document, path.stem)._replace(here=path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def study_of(document: Mapping[str, Json], title: str) -> Study:
    """Return the study of a document with the keys above. Raises InputError for keys and lists that are none."""
    fixed: dict[str, Any] = {}
    axes = []
    for key, value in _settings({key: value for key, value in document.items() if key not in OWN}):
        if key == "seeds" and isinstance(value, str):
            fixed[key] = parse_seeds(value, "seeds")
        elif _is_swept(key, value):
            axes.append(_axis(_title(key), {key: value}))
        else:
            fixed[key] = value
    together = document.get("zip", [])
    if not isinstance(together, list) or not all(isinstance(each, dict) for each in together):
        raise InputError("zip: must be tables, each [[zip]] with lists of one length")
    axes += [_zipped(dict(each)) for each in together]
    _refuse_twice([*fixed, *(key for axis in axes for key in axis.keys)], "key")
    _refuse_twice([*TOLD_APART_BY, *(axis.title for axis in axes)], "title")
    points = math.prod(len(axis.names) for axis in axes)
    if points > STUDY_POINTS_MAX:
        raise InputError(f"study: must have at most {STUDY_POINTS_MAX:,} points, not {points:,}")
    return Study(_text("title", document.get("title", title)), fixed, tuple(axes), _measures(document))


def known_keys() -> dict[str, object]:
    """Return the type of each key that a study may set, such as federation.heartbeat."""
    hints = get_type_hints(Scenario)
    plain = {name: hints[name] for name in Scenario.__struct_fields__ if name not in TABLES}
    return plain | {f"{table}.{name}": kind for table, of in TABLES.items() for name, kind in get_type_hints(of).items()
                    if name in of.__struct_fields__}


def value_name(value: object) -> str:
    """Return what a place is called that nobody named: its value in words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return " ".join(f"{key}={value_name(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(value_name, value)) or "none"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value) or "none"


def _settings(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give the keys of a document, those of tables as TABLE.KEY. Raises InputError for one that no scenario has."""
    known = known_keys()
    for key, value in document.items():
        if key in TABLES:
            if not isinstance(value, dict):
                raise InputError(f"{key}: must be a table of settings, not {value_name(value)}")
            inner = {f"{key}.{name}": each for name, each in value.items()}
        else:
            inner = {key: value}
        for name, each in inner.items():
            if name not in known:
                below = next((f"; it is a key of [{table}]" for table in TABLES if f"{table}.{name}" in known), "")
                raise InputError(f"{name}: is no key of a study" + (below or did_you_mean(name, known)))
            yield name, each


def _is_swept(key: str, value: Any) -> bool:
    """Whether a key holds a value for each point: a list, or of what is a list by itself a list of lists."""
    if not isinstance(value, list) or key in EVERY:
        return False
    return get_origin(known_keys()[key]) is not list or (bool(value) and all(isinstance(each, list) for each in value))


def _title(key: str) -> str:
    """Return what a setting is called in tables and on the page."""
    return key.removeprefix("federation.")


def _axis(title: str, lists: Mapping[str, list[Any]], names: list[str] | None = None) -> Axis:
    """Return what changes together. Raises InputError for lists that are empty, unlike in length, or repeat a point."""
    keys, places = tuple(lists), len(next(iter(lists.values())))
    wrong = next((key for key, values in lists.items() if len(values) != places), None)
    if wrong is not None:
        raise InputError(f"zip: lists must have one length; {keys[0]} has {places} values, {wrong} {len(lists[wrong])}")
    if not places:
        raise InputError(f"{title}: must list at least one value")
    values = tuple(zip(*lists.values(), strict=True))
    called = names or [", ".join(map(value_name, row)) for row in values]
    if len(called) != places:
        raise InputError(f"zip: {title} has {places} points, and {len(called)} names")
    _refuse_twice(called, title)
    return Axis(title, keys, values, tuple(called), names is not None)


def _zipped(table: dict[str, Any]) -> Axis:
    """Return the axis of a [[zip]]."""
    own = {key: table.pop(key) for key in ZIP_OWN if key in table}
    lists = dict(_settings(table))
    if not lists:
        raise InputError("zip: must have a key with a list of values")
    for key, values in lists.items():
        if key == "seeds":
            raise InputError("zip: seeds cannot change from point to point, as points are compared seed by seed")
        if not isinstance(values, list):
            raise InputError(f"zip: {key} must be a list of values, not {value_name(values)}")
    if "schedulers" in lists:  # one a place
        lists["schedulers"] = [each if isinstance(each, list) else [each] for each in lists["schedulers"]]
    names = own.get("name")
    if names is not None and not isinstance(names, list):
        raise InputError(f"zip: name must be a list, a name for each point, not {value_name(names)}")
    return _axis(_text("title", own.get("title", " and ".join(map(_title, lists)))), lists,
                 None if names is None else [_text("name", each) for each in names])


def _measures(document: Mapping[str, Any]) -> tuple[str, ...]:
    measures = document.get("measures", [])
    if not isinstance(measures, list) or not all(isinstance(each, str) for each in measures):
        raise InputError("measures: must be a list of columns of the table of runs, such as wait_time_mean")
    _refuse_twice(measures, "measures")
    return tuple(measures)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > NAME_LETTERS or not is_text(value):
        raise InputError(f"{key}: must be a text of at most {NAME_LETTERS} letters, not {value_name(value)[:80]!r}")
    return value


def _refuse_twice(names: list[str], what: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{what}: each must be there once, {twice!r} occurs {names.count(twice)} times")
