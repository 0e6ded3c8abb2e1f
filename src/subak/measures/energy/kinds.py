"""Assigns each machine its kind, with the power and prices of that kind."""
import re
from fnmatch import translate
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet
from subak.measures.energy.settings import ANY, Energy, MachineKind
from subak.quantities import amount_in


class Curve(NamedTuple):
    """The power of a kind of machine by the used share of a resource, on straight lines between points."""

    resource: int  # row of the fleet's resources
    share: np.ndarray  # float64[point], rising from 0 to 1
    watts: np.ndarray  # float64[point]
    empty: float  # watts while no task runs


def curves_of(energy: Energy, fleet: Fleet) -> list[Curve]:
    """Return the curve of each kind. Raises InputError for a resource that the fleet has not."""
    main = main_resource(energy, fleet)
    return [_curve(kind, _resource(kind.resource, fleet, f"kind {kind.name!r}") if kind.resource else main)
            for kind in energy.kind]


def main_resource(energy: Energy, fleet: Fleet) -> int:
    """Return the row of the resource that power follows. Raises InputError where the fleet has none of that name."""
    return _resource(energy.resource, fleet, "energy") if energy.resource else 0


def kinds_of(energy: Energy, fleet: Fleet) -> np.ndarray:
    """Return int64[machine]: the row of each machine's kind. Raises InputError for one that fits none."""
    found = np.full(len(fleet.machines), -1)
    for number, kind in enumerate(energy.kind):
        found[_fits(kind, fleet)] = number
    lost = np.flatnonzero(found < 0)
    if lost.size:
        first = fleet.machines["machine"][int(lost[0])]
        raise InputError(f"kind: every machine must fit one, {lost.size:,} of {found.size:,} fit none, {first!r} is "
                         "the first; a kind that names nothing fits all")
    return found


def _curve(kind: MachineKind, resource: int) -> Curve:
    shares = np.array(kind.shares) if kind.shares else np.linspace(0.0, 1.0, len(kind.watts))
    return Curve(resource, shares, np.array(kind.watts, np.float64),
                 kind.watts[0] if kind.empty is None else kind.empty)


def _resource(name: str, fleet: Fleet, where: str) -> int:
    names = [resource.name for resource in fleet.resources]
    if name not in names:
        raise InputError(f"{where}: resource must be one of {', '.join(names)}, not {name!r}")
    return names.index(name)


def _fits(kind: MachineKind, fleet: Fleet) -> np.ndarray:
    """Return bool[machine]: whether each is all that a kind names."""
    fits = _like(fleet.machines["machine"], kind.machine) & _like(fleet.machines["cluster"], kind.cluster)
    known = set(fleet.attributes["attribute"].unique()) if kind.attributes else set()
    for name, pattern in kind.attributes.items():
        if name not in known:
            raise InputError(f"kind {kind.name!r}: no machine has an attribute {name!r}; there are "
                             f"{', '.join(sorted(known)) or 'none'}")
        fits &= _like(fleet.attribute(name), pattern, there=True)
    for name, amount in kind.capacity.items():
        resource = fleet.resources[_resource(name, fleet, where := f"kind {kind.name!r}, capacity")]
        units = np.rint(amount_in(amount, resource.of, f"{where}, {name}") / resource.unit)
        fits &= fleet.machines[name].to_numpy() == units
    return fits


def _like(words: pl.Series, pattern: str, there: bool = False) -> np.ndarray:
    """Return bool[row]: whether a word is of the pattern; null is of none, unless any will do."""
    if pattern == ANY and not there:
        return np.ones(len(words), bool)
    matches = re.compile(translate(pattern)).match
    return np.array([word is not None and matches(word) is not None for word in words.to_list()], bool)
