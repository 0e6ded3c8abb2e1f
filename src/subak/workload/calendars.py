"""Reads which days a workload's folder spans, without its tables until a date is asked for."""
from pathlib import Path

import msgspec

from subak.dates import Calendar, Days
from subak.toml_files import read_toml


class _Origin(msgspec.Struct):
    calendar: Calendar | None = None


class _Header(msgspec.Struct):
    """What `workload.table` writes into workload.toml, as far as it is read here."""

    provenance: _Origin


def days_in(folder: Path) -> Days:
    """Return the days of a workload's folder. Raises InputError where it is none."""
    calendar = read_toml(folder / "workload.toml", _Header).provenance.calendar
    if calendar is None:
        return Days(None, 0.0)
    from subak.workload.stored import last_arrival  # noqa: PLC0415  (only who names a date waits for the tables)

    return Days(calendar, last_arrival(folder))
