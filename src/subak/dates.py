"""Turns dates such as 2024-03-01T12:00 into seconds since a trace's time 0, and back.

A trace with a calendar says which instant its time 0 is. Where it names a zone, dates are read in that zone; where it
names none, they are read as its own clocks showed them, which no change of clocks is known of.
"""
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from subak.errors import InputError
from subak.quantities import DURATION_WORDS, duration_text, read_seconds

DATE_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
                       r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?")
DATE_WORDS = "2024-03-01 or 2024-03-01T12:00"
WHEN_WORDS = f"{DURATION_WORDS}, or a date such as {DATE_WORDS}"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UTC_NAME = "UTC"
When = float | str  # seconds since time 0, or the text of a date


class Calendar(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which instant time 0 of a trace is."""

    epoch: float  # of time 0, seconds since 1970; without a zone, as if the trace's clocks showed UTC
    zone: str = ""  # such as Europe/Paris; empty: the trace's clocks are of a zone that it does not name

    def __post_init__(self) -> None:
        try:
            EPOCH + timedelta(seconds=self.epoch)
        except (OverflowError, ValueError):
            raise InputError(f"calendar: time 0 must be in the years 1 to 9999, not {self.epoch:g} s since 1970"
                             ) from None

    def seconds(self, text: str) -> float:
        """Return the seconds from time 0 to a date. Raises InputError for one that there is not, or another form."""
        shown, zone = _parsed(text), _zone(self.zone)
        if shown.tzinfo is not None:
            if not self.zone:
                raise InputError(f"{text} names a zone, but the clocks of this workload are of a zone not named: leave "
                                 "it out")
            return _since_1970(shown) - self.epoch
        instant = shown.replace(tzinfo=zone)
        try:
            is_there = instant.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == shown
        except OverflowError:  # on the first or the last day of all years
            raise InputError(f"{text} is in no year from 1 to 9999 of UTC") from None
        if not is_there:
            raise InputError(f"{text} does not exist in {self.zone}, whose clocks skip it")
        return _since_1970(instant) - self.epoch

    def text(self, seconds: float) -> str:
        """Return the date of so many seconds after time 0, as `seconds` reads it; empty for none that can be written.

        It is exact to a millionth of a second.
        """
        try:
            instant = (EPOCH + timedelta(seconds=self.epoch + seconds)).astimezone(_zone(self.zone))
        except (OverflowError, ValueError):
            return ""
        shown = instant.replace(tzinfo=None)
        first = shown.replace(tzinfo=instant.tzinfo, fold=0)
        comes_twice = _since_1970(first) != _since_1970(instant)
        return (instant if comes_twice else shown).isoformat()

    def day(self, seconds: float) -> str:
        """Return the day of an instant, as 2024-03-01."""
        return self.text(seconds)[:10]

    @property
    def of_zone(self) -> str:
        """The zone in words."""
        return self.zone or "by the trace's clocks"


class Days(NamedTuple):
    """Which instant time 0 of a workload is, if that is known, and its last arrival."""

    calendar: Calendar | None
    last: float  # seconds since time 0


def calendar_at(epoch: float, zone: str) -> Calendar | None:
    """Return the calendar whose time 0 is so many seconds after 1970; None for an instant that no date names."""
    try:
        return Calendar(epoch, zone)
    except InputError:
        return None


def is_date(text: str) -> bool:
    """Return whether a text has the form of a date."""
    return DATE_FORM.fullmatch(text) is not None


def read_when(text: str | float) -> When:
    """Return the seconds of a duration, or the text of a date, which only the workload can turn into seconds.

    Raises InputError for another form, and for a date that is in no calendar.
    """
    if isinstance(text, str) and is_date(text.strip()):
        _parsed(text.strip())
        return text.strip()
    try:
        return read_seconds(text)
    except InputError:
        raise InputError(f"a time must be a number of seconds since time 0, or like {WHEN_WORDS}, not {text!r}"
                         ) from None


def instant_words(seconds: float, calendar: Calendar | None) -> str:
    """Return an instant of a trace in words: the time since time 0, and its date where that is known."""
    said = "" if calendar is None else _to_the_second(calendar, seconds)
    return duration_text(seconds) + (f" ({said})" if said else "")


def span_words(begin: float, end: float, calendar: Calendar) -> str:
    """Return the dates from *begin* to *end*, seconds since time 0; an end that no date names is that of the run."""
    return f"{_to_the_second(calendar, begin)} to {_to_the_second(calendar, end) or 'the end'} ({calendar.of_zone})"


def _to_the_second(calendar: Calendar, seconds: float) -> str:
    return calendar.text(round(seconds) if math.isfinite(seconds) else seconds).replace("T", " ")


def when_reader(word: str) -> Callable[[str | float], When]:
    """Return `read_when` for an option or a setting, whose *word* begins its errors."""
    def read(text: str | float) -> When:
        try:
            return read_when(text)
        except InputError as error:
            raise InputError(f"{word}: {error}") from None
    return read


def date_text(value: object) -> object:
    """Return a date as TOML and Python have it as text; all else as it is."""
    return value.isoformat() if isinstance(value, date) else value  # a datetime is a date


def seconds_of(name: str, when: When, calendar: Calendar | None, last: float) -> float:
    """Return the seconds since time 0 of what `read_when` returned, for the option or setting *name*.

    *last* is the trace's last arrival, in seconds. The day of time 0 is time 0. Raises InputError where the trace has
    no calendar, and for a date outside of its days.
    """
    if not isinstance(when, str):
        return when
    if calendar is None:
        raise InputError(f"{name}: this workload does not know which day its time 0 is: give a time since its begin "
                         "such as 2d, or convert it again")
    try:
        seconds = calendar.seconds(when)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    first_day, last_day = calendar.day(0.0), calendar.day(last)
    if seconds < 0 and when == first_day:
        return 0.0
    if seconds < 0 or seconds > max(last, _day_end(calendar, last_day)):
        raise InputError(f"{name}: must be a date from {first_day} to {last_day} ({calendar.of_zone}), the days of "
                         f"this workload, not {when}")
    return seconds


def clipped_seconds(name: str, when: str, days: Days, *, begins: bool) -> tuple[float, str]:
    """Return the seconds of a date at which a window *begins* or ends, cut to the trace's days, and a note of the cut.

    Raises InputError as `seconds_of`, which refuses a begin behind the last day and an end before the first.
    """
    calendar, last = days
    if calendar is not None and not isinstance(read_when(when), float):
        try:
            seconds = calendar.seconds(when)
        except InputError:
            seconds = 0.0  # refused below
        first_day, last_day = calendar.day(0.0), calendar.day(last)
        until = max(last, _day_end(calendar, last_day))
        if begins and seconds < 0 and when != first_day:
            return 0.0, f"{name}: the trace begins later than {when}: cut to its first day, {first_day}"
        if not begins and seconds > until:
            return until, f"{name}: the trace ends before {when}: cut to its last day, {last_day}"
    return seconds_of(name, when, calendar, last), ""


def _day_end(calendar: Calendar, day: str) -> float:
    """Return the last instant of a day: a trace may be measured until its end."""
    try:
        return calendar.seconds((date.fromisoformat(day) + timedelta(days=1)).isoformat())
    except (InputError, OverflowError, ValueError):  # clocks skip that midnight, or the trace has no last day
        return 0.0


def _parsed(text: str) -> datetime:
    if not is_date(text):
        raise InputError(f"a date must be like {DATE_WORDS}, not {text!r}")
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"a date must be one that a calendar and a clock have, not {text!r}") from None


def _since_1970(instant: datetime) -> float:
    return (instant - EPOCH) / timedelta(seconds=1)


def _zone(name: str) -> tzinfo:
    if name in ("", UTC_NAME):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"calendar: no zone is called {name[:40]!r} here") from None
