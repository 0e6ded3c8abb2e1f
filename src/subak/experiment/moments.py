"""Turns dates among a scenario's settings into seconds since time 0 of its workload."""
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from subak.dates import Calendar, Days, clipped_seconds, date_text, instant_words, seconds_of, when_reader
from subak.errors import InputError
from subak.json_type import Json
from subak.workload.calendars import days_in
from subak.workload.piped import PIPE, piped_folder
from subak.workload.samples import DEFAULT_SAMPLE, sample_names, workload_folder

ON_THE_RUN = "until"  # counted on the run's clock; the window is of the trace's
BEGIN, WINDOW_END = "measure_from", "measure_until"
ENDS = (WINDOW_END, ON_THE_RUN)


def dated(document: Json, names: Mapping[str, str], here: Path | None = None) -> Json:
    """Return a scenario's settings with seconds in the place of dates.

    The folder of the workload is relative to *here*; *names* holds the settings that are times, with their words in
    errors. Raises InputError for a date that the workload cannot place.
    """
    if not isinstance(document, dict):
        return document
    workload = document.get("workload", DEFAULT_SAMPLE)
    if not isinstance(workload, str):  # who checks the types refuses it
        return document
    located = workload if here is None or workload in {*sample_names(), PIPE} else str(here / workload)
    return in_seconds(document, names, lambda: _days(located))


def _days(workload: str) -> Days:
    if workload == PIPE and piped_folder() is None and not Path(PIPE).is_dir():
        raise InputError(f"workload {PIPE}: the days of a workload that comes through a pipe are not known beforehand: "
                         "give times since its begin such as 2d, not dates")
    return days_in(workload_folder(workload))


def in_seconds(settings: dict[str, Json], names: Mapping[str, str], days: Callable[[], Days]) -> dict[str, Json]:
    """Return settings with seconds in the place of dates; *days* looks at the workload, where there is a date."""
    found, calendar = dict(settings), None
    for name in filter(names.__contains__, settings):
        value = date_text(settings[name])
        when = when_reader(names[name])(value) if isinstance(value, str) else 0.0
        if isinstance(when, str):
            _refuse_load(name, names[name], when, settings)
            known = days()
            found[name], calendar = _seconds(name, names[name], when, known), known.calendar
        elif isinstance(value, str):
            found[name] = when
    if calendar is not None:
        _refuse_order(found, names, calendar)
    return found


def _seconds(name: str, word: str, when: str, days: Days) -> float:
    """Return the seconds of a date; an end of the window beyond the trace is cut to it, with a warning."""
    if name not in (BEGIN, WINDOW_END):
        return seconds_of(word, when, *days)
    seconds, note = clipped_seconds(word, when, days, begins=name == BEGIN)
    if note:
        logging.getLogger("subak").warning(note)
    return seconds


def _refuse_order(found: Mapping[str, Json], names: Mapping[str, str], calendar: Calendar) -> None:
    """Raise InputError, with dates, for a window or a run that ends before the window begins."""
    begin = found.get(BEGIN)
    for name in ENDS:
        end = found.get(name)
        if isinstance(begin, float) and isinstance(end, float) and begin >= end:
            raise InputError(f"{names[name]}: must be later than {names[BEGIN]}, {instant_words(begin, calendar)}, "
                             f"not {instant_words(end, calendar)}")


def _refuse_load(name: str, word: str, when: str, settings: Mapping[str, Json]) -> None:
    load = settings.get("load", 1.0)
    if name == ON_THE_RUN and load != 1.0:
        raise InputError(f"{word}: must be a time since the run's begin such as 2d, not {when}: at "
                         f"load {load} jobs come on other dates than in the trace")
