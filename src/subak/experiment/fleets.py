"""Builds the fleet of a scenario: multiplied first, then cut, then extended."""
from collections.abc import Sequence

from subak.errors import InputError
from subak.experiment.fleet_words import MACHINES_MAX, read_added, read_removed, refuse_scale
from subak.fleet.edits import added, removed, scaled
from subak.fleet.table import Fleet


def edited(fleet: Fleet, scale: float, remove: Sequence[str], add_machines: Sequence[str]) -> Fleet:
    """Return the fleet with these edits; numbers of machines to remove and to add are thus those asked for.

    Raises InputError for words that are none, for edits that the fleet does not allow, and for too many machines.
    """
    refuse_scale(scale)
    more = [read_added(text) for text in add_machines]
    most = scale * len(fleet.machines) + sum(each.amount for each in more)
    if most > MACHINES_MAX:
        raise InputError(f"scale, add_machines: must make at most {MACHINES_MAX:,} machines, not {most:,.0f}")
    if scale != 1.0:
        fleet = scaled(fleet, scale)
    for each in map(read_removed, remove):
        fleet = removed(fleet, *each)
    for each in more:
        fleet = added(fleet, int(each.amount), each.capacity)
    return fleet
