"""Parses times in text: ISO 8601, 1-02:30:00, numbers with units; all become seconds.

Each function takes and returns a column; what it cannot read becomes null.
"""
from datetime import UTC, datetime, timedelta
from typing import Literal

import polars as pl

from subak.dates import UTC_NAME, Calendar, calendar_at
from subak.errors import InputError
from subak.quantities import SECOND_UNITS
from subak.workload.table import TIME_0

DURATION_UNITS = {"ns": 1e-9, **SECOND_UNITS}
DAY_S, HOUR_S, MINUTE_S = SECOND_UNITS["d"], SECOND_UNITS["h"], SECOND_UNITS["min"]
CHANGE_MAX_S = 2 * HOUR_S  # no clocks change by more
LINES_SAID = 5
# What stands in a field of which nothing is known, in small letters: of Slurm, pandas, SQL, Python, spreadsheets
NOTHING = ("", "unknown", "none", "null", "nan", "nat", "na", "n/a", "#n/a", "-", "\\n", "undefined", "<null>")
# Limits that are none, in small letters: of Slurm
NO_LIMIT = ("unlimited", "infinite", "partition_limit", "invalid")
STAMP = (r"^(?<date>\d{4}-\d{2}-\d{2})(?:[T ](?<hour>\d{2}):(?<minute>\d{2})(?::(?<second>\d{2}(?:\.\d+)?))?"
         r"\s*(?:[zZ]|UTC|(?<sign>[+-])(?<zone_hour>\d{2})(?::?(?<zone_minute>\d{2}))?)?)?$")
CLOCK = r"^(?:(?<days>\d+)-)?(?:(?<hours>\d+):)?(?<minutes>\d+):(?<seconds>\d{2}(?:\.\d+)?)$"


def known(text: pl.Expr) -> pl.Expr:
    """Return the text, null where it is a word for nothing."""
    return pl.when(~text.str.to_lowercase().is_in(NOTHING)).then(text)


def limited(text: pl.Expr) -> pl.Expr:
    """Return the text of a limit, null where it says that there is none."""
    return pl.when(~text.str.to_lowercase().is_in(NO_LIMIT)).then(text)


def number(text: pl.Expr) -> pl.Expr:
    """Return the finite numbers."""
    value = text.cast(pl.Float64, strict=False)
    return pl.when(value.is_finite()).then(value)


def stamp_seconds(text: pl.Expr) -> pl.Expr:
    """Return seconds since 1970 of an instant such as 2020-06-09T18:41:01.5+02:00; without a zone, of UTC."""
    parts = text.str.extract_groups(STAMP)
    day = parts.struct["date"].str.to_date("%Y-%m-%d", strict=False).cast(pl.Int32).cast(pl.Float64)
    hour, minute, second, zone_hour, zone_minute = (
        parts.struct[name].cast(pl.Float64).fill_null(0.0)
        for name in ("hour", "minute", "second", "zone_hour", "zone_minute"))
    ahead = pl.when(parts.struct["sign"] == "-").then(-1.0).otherwise(1.0)
    seconds = (day * DAY_S + hour * HOUR_S + minute * MINUTE_S + second
               - ahead * (zone_hour * HOUR_S + zone_minute * MINUTE_S))
    return pl.when((hour < 24) & (minute < 60) & (second < 61) & (zone_hour < 24) & (zone_minute < 60)).then(seconds)


def format_seconds(text: pl.Expr, form: str) -> pl.Expr:
    """Return seconds since 1970 of an instant as *form* (of strftime, %d/%m/%Y) writes it; without a zone, of UTC."""
    return text.str.to_datetime(form, strict=False, time_unit="us").dt.epoch("us") / 1e6


def of_zone(seconds: pl.Expr, zone: str, which: Literal["earliest", "latest"] = "earliest") -> pl.Expr:
    """Return seconds since 1970 of what clocks in a zone showed; of two instants *which*, null of what they skipped."""
    shown = pl.from_epoch((seconds * 1e6).round().cast(pl.Int64), "us")
    return shown.dt.replace_time_zone(zone, ambiguous=which, non_existent="null").dt.epoch("us") / 1e6


def names_zone(text: pl.Expr) -> pl.Expr:
    """Return whether an instant of ISO 8601 says its own zone."""
    return text.str.contains(r":\d{2}(?:\.\d+)?\s*(?:[zZ]|UTC|[+-]\d{2}(?::?\d{2})?)$")


def is_zone(name: str) -> bool:
    """Return whether there is a zone of that name."""
    try:
        pl.select(of_zone(pl.lit(0.0), name))
    except pl.exceptions.PolarsError:
        return False
    return True


def refuse_zone(name: str) -> None:
    """Raise InputError for the name of a zone that there is not; empty is none."""
    if name and not is_zone(name):
        raise InputError(f"--zone: must be one such as Europe/Paris, not {name[:40]!r}")


def clock_seconds(text: pl.Expr) -> pl.Expr:
    """Return the seconds of a duration: MM:SS, HH:MM:SS or D-HH:MM:SS, with fractions of a second if there are any."""
    parts = text.str.extract_groups(CLOCK)
    days, hours, minutes, seconds = (parts.struct[name].cast(pl.Float64)
                                     for name in ("days", "hours", "minutes", "seconds"))
    total = (days.fill_null(0.0) * DAY_S + hours.fill_null(0.0) * HOUR_S + minutes * MINUTE_S + seconds)
    whole = (hours.is_not_null() | days.is_null()) & ((minutes < 60) | hours.is_null()) & (seconds < 60)
    return pl.when(whole).then(total)


def instant_text(seconds: float) -> str:
    """Return an instant of seconds since 1970 as people write it."""
    try:
        return str(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds))
    except OverflowError:  # beyond the year 9999
        return f"{seconds:.0f} s since 1970"


class Clocks:
    """The clocks that showed a row's instants, which are read in the order in which they come.

    Where clocks are put back, an hour comes twice: an instant in it is the first, unless that is before the one that
    came before. Where they are put forward, an hour is skipped: an instant in it is told by clocks that had not been.
    Without a zone, what clocks showed is taken as it stands.
    """

    def __init__(self) -> None:
        self._last = pl.lit(None, pl.Float64)
        self.columns: dict[str, pl.Expr] = {"skipped": pl.lit(False), "twice": pl.lit(False), "zoneless": pl.lit(False)}

    def add(self, name: str, shown: pl.Expr, is_shown: pl.Expr, zone: str) -> None:
        """Add a column of instants, in seconds since 1970: where *is_shown*, what the clocks of a zone showed."""
        found = shown
        if zone:
            first, second = of_zone(shown, zone), of_zone(shown, zone, "latest")
            before = of_zone(shown - CHANGE_MAX_S, zone) + CHANGE_MAX_S
            of_two = pl.when((first < self._last) & (second >= self._last)).then(second).otherwise(first)
            found = pl.when(is_shown).then(pl.coalesce(of_two, before)).otherwise(shown)
            self._mark("skipped", is_shown & shown.is_not_null() & first.is_null())
            self._mark("twice", is_shown & (first != second))
        else:
            self._mark("zoneless", is_shown & shown.is_not_null())
        self.columns[name] = found
        self._last = pl.max_horizontal(self._last, found)

    def _mark(self, name: str, where: pl.Expr) -> None:
        self.columns[name] = self.columns[name] | where.fill_null(False)


def clock_remarks(kept: pl.DataFrame, origin: float) -> dict[str, str]:
    """Return what is remarkable of instants that `Clocks` read, and what time 0 is."""
    said = {TIME_0: instant_text(origin)}
    if kept["zoneless"].any():
        said = {TIME_0: instant_text(origin).removesuffix("+00:00") + " by the file's clocks, of a zone not named",
                "zone": "times without one are taken as they stand, also where clocks change; --zone names it"}
    for name, words in (("skipped", "an hour that clocks skip (as if they had not changed)"),
                        ("twice", "an hour that comes twice (the first, unless that is before what came before)")):
        rows = kept.filter(name)
        if len(rows):
            said[f"instants in {words}"] = rows_said(rows)
    return said


def calendar_of(rows: pl.DataFrame, origin: float, zone: str) -> Calendar | None:
    """Return the calendar of instants that `Clocks` read, whose time 0 is *origin*; *zone* was named, or is empty."""
    return calendar_at(origin, "" if rows["zoneless"].any() else zone or UTC_NAME)


def rows_said(rows: pl.DataFrame) -> str:
    """Return how many rows there are, and the first lines."""
    lines = ", ".join(f"{line:,}" for line in rows["line"].head(LINES_SAID))
    return f"{len(rows):,} (line{'s' * (len(rows) > 1)} {lines}{' ...' * (len(rows) > LINES_SAID)})"
