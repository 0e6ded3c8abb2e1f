"""Expands a study into its points: one scenario for each combination of values."""
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from subak.errors import InputError, first_line
from subak.experiment.moments import dated
from subak.experiment.scenario import WHENS, Scenario, located_in
from subak.experiment.study.document import TABLES, Axis, Study
from subak.toml_files import convert


class Point(NamedTuple):
    """A place on each axis, and what is simulated there: every scheduler of the scenario, with every seed of it."""

    places: tuple[int, ...]
    scenario: Scenario


def points_of(study: Study) -> list[Point]:
    """Return every point, the last axis changing fastest. Raises InputError, naming the point, for what cannot be."""
    return [Point(places, _scenario(study, places))
            for places in itertools.product(*(range(len(axis.names)) for axis in study.axes))]


def point_name(axes: tuple[Axis, ...], places: tuple[int, ...]) -> str:
    """Return where a point is, such as "heartbeat 5, masters few"."""
    return ", ".join(f"{axis.title} {axis.names[place]}" for axis, place in zip(axes, places, strict=True))


@contextmanager
def named(axes: tuple[Axis, ...], places: tuple[int, ...]) -> Iterator[None]:
    """Name the point in what is wrong with it. Raises the InputError that came from within, behind the point."""
    try:
        yield
    except InputError as error:
        where = point_name(axes, places)
        raise InputError(f"at {where}: {error}" if where else str(error)) from None


def _scenario(study: Study, places: tuple[int, ...]) -> Scenario:
    settings = dict(study.fixed)
    for axis, place in zip(study.axes, places, strict=True):
        settings.update(zip(axis.keys, axis.values[place], strict=True))
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        table, dot, name = key.partition(".")
        if dot and table in TABLES:
            nested.setdefault(table, {})[name] = value
        else:
            nested[key] = value
    with named(study.axes, places):
        try:
            scenario = convert(dated(nested, WHENS, study.here), Scenario)
        except msgspec.ValidationError as error:
            raise InputError(first_line(error)) from None
    return scenario if study.here is None else located_in(study.here, scenario)
