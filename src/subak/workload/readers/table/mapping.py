"""Parses `--map`: which column means what."""
import re
from typing import NamedTuple

from subak.errors import InputError
from subak.nearest import did_you_mean
from subak.resources import RESERVED_NAMES
from subak.workload.readers.files.times import DURATION_UNITS, is_zone
from subak.workload.readers.table.units import AMOUNT_UNITS

INSTANTS = ("arrival", "start", "end")
DURATIONS = ("run_time", "estimate")
NUMBERS = ("priority", "tasks")
WORDS = ("job", "queue", "user", "outcome")
TARGETS = (*INSTANTS, *DURATIONS, *NUMBERS, *WORDS)
EPOCHS = {"epoch": 1.0, "epoch-ms": 1e-3, "epoch-us": 1e-6, "epoch-ns": 1e-9}
INSTANT_UNITS = (*DURATION_UNITS, *EPOCHS, "iso")
CLOCK = "hms"
PER_TASK = "/tasks"
AT = "@"  # between the form of an instant and its zone
EXAMPLE = "such as arrival=Submit,run_time=Elapsed[ms]"
PART = re.compile(r"""\s*([^=,\[\]"\s]*)\s*(==?)\s*("[^"]*"|[^,\[\]"]*?)\s*(?:\[([^\]]*)\])?\s*(?:,|$)""")


class Column(NamedTuple):
    """Where something is read from."""

    target: str  # one of TARGETS, or a resource
    source: str  # the column, or the value that all rows have
    constant: bool = False
    unit: str = ""  # empty: to be told from the first fields
    divided: bool = False  # an amount of all tasks of the row together

    @property
    def said(self) -> str:
        """The unit as it was written."""
        return self.unit + (PER_TASK if self.divided else "")


def parsed(texts: tuple[str, ...]) -> dict[str, Column]:
    """Return the columns by what they are. Raises InputError for what is no mapping, or none of jobs that ran."""
    found: dict[str, Column] = {}
    for text in texts:
        place = 0
        while place < len(text):
            match = PART.match(text, place)
            if match is None or not match[1] or not match[3].strip('"'):
                raise InputError(f"--map: must be names with = and a column, {EXAMPLE}, not {text[place:][:60]!r}")
            column = _column(match[1], match[2] == "==", match[3].strip('"'), (match[4] or "").strip())
            if column.target in found:
                raise InputError(f"--map: {column.target} is given twice")
            found[column.target] = column
            place = match.end()
    _refuse_incomplete(found)
    return found


def _column(target: str, constant: bool, source: str, unit: str) -> Column:
    divided = unit.endswith(PER_TASK)
    column = Column(target, source, constant, unit.removesuffix(PER_TASK).strip(), divided)
    known = _units(target)
    if not known and unit:
        raise InputError(f"--map: {target} has no unit, it was given [{unit[:40]}]")
    if target in INSTANTS and ("%" in unit or AT in unit):
        _refuse_form(target, *zoned(unit))
        return column
    if column.unit and column.unit not in known:
        raise InputError(f"--map: the unit of {target} must be one of {', '.join(known)}, not {column.unit[:40]!r}"
                         + did_you_mean(column.unit, known))
    if divided and target in TARGETS:
        raise InputError(f"--map: {PER_TASK} is for the amounts of resources, not for {target}")
    return column


def zoned(unit: str) -> tuple[str, str]:
    """Return the form of an instant and its zone, empty for none: iso@Europe/Paris, %d/%m/%Y %H:%M."""
    form, _, zone = unit.partition(AT)
    return form.strip(), zone.strip()


def _refuse_form(target: str, form: str, zone: str) -> None:
    if form != "iso" and "%" not in form:
        raise InputError(f"--map: the form of {target} must be iso or such as %d/%m/%Y %H:%M:%S, not {form[:40]!r}")
    if "%Z" in form:
        raise InputError(f"--map: the form of {target} must not have %Z, which says of no zone how far from UTC it is; "
                         "%z reads +0200")
    if zone and ("%z" in form or not is_zone(zone)):
        raise InputError(f"--map: the zone of {target} must be one such as Europe/Paris, for a form without %z, not "
                         f"{zone[:40]!r}")


def _units(target: str) -> tuple[str, ...]:
    """Return the units that a target may have; a target that is not known is a resource."""
    if target in INSTANTS:
        return INSTANT_UNITS
    if target in DURATIONS:
        return (*DURATION_UNITS, CLOCK)
    if target in TARGETS:
        return ()
    if not target.isidentifier() or target in RESERVED_NAMES:
        raise InputError(f"--map: {target[:60]!r} is neither one of {', '.join(TARGETS)} nor the name of a resource"
                         + did_you_mean(target, TARGETS))
    return tuple(AMOUNT_UNITS)


def _refuse_incomplete(found: dict[str, Column]) -> None:
    if "arrival" not in found:
        raise InputError(f"--map: must say which column is the arrival, {EXAMPLE}")
    if "run_time" not in found and not {"start", "end"} <= found.keys():
        raise InputError(f"--map: must say which column is the run_time, or which are start and end, {EXAMPLE}")
    if "run_time" in found and "end" in found:
        raise InputError("--map: run_time and end say the same; name one of them")
    if any(column.divided for column in found.values()) and "tasks" not in found:
        raise InputError(f"--map: {PER_TASK} divides an amount among the tasks of a row; name the column of tasks")
