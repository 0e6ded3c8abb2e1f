"""The time axis of charts: dates if the trace has a calendar, else time since the start.

x is a number in the unit that suits the span; ticks are at whole minutes, hours or days, of the calendar where there is
one. The first tick, and the first of each day, carries the date. The calendar is the trace's: UTC where it says so,
else what its clocks showed, and then no zone is named.
"""
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import altair as alt
import polars as pl

from subak.json_type import Json
from subak.measures import series
from subak.measures.runs import Run
from subak.report.charts.lines import Reading
from subak.report.charts.parts import SECOND_LABEL

TIME_STEPS = {  # between ticks, in the unit of the axis
    "days": (1.0, 2.0, 5.0, 7.0, 14.0, 28.0, 56.0, 100.0), "hours": (1.0, 2.0, 3.0, 6.0, 12.0, 24.0),
    "minutes": (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0), "seconds": (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0),
}
# of a calendar that somebody zooms into, in seconds
STEPS_S = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0,
           21_600.0, 43_200.0, 86_400.0, 172_800.0, 432_000.0, 604_800.0, 1_209_600.0)
TICKS_MAX = 10
TICKS_ANY = 8  # where any number is as good
STAMP = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) ?(.*)")
ZONES = {"+00:00": "UTC", "Pacific time": "Pacific time"}  # that a trace claims, by what stands behind its time 0


class Times(NamedTuple):
    """How instants are drawn, as seconds from the left end of the axis on."""

    span: float  # seconds
    begins: datetime | None = None  # what the calendar says there, as if it were UTC; None where there is none
    zone: str = ""  # whose calendar it is, empty where the trace claims none

    @property
    def size(self) -> float:
        """Return the seconds of the unit."""
        return series.time_unit(self.span)[0]

    @property
    def word(self) -> str:
        """Return the unit: days, hours, minutes or seconds."""
        return series.time_unit(self.span)[1]

    @property
    def title(self) -> str:
        """Return the title of the axis."""
        if self.begins is None:
            return f"time since the start ({self.word})"
        return f"time ({self.zone})" if self.zone else "time"

    def in_unit(self, table: pl.DataFrame, *names: str) -> pl.DataFrame:
        """Put columns of seconds, or ``time``, in the axis's unit."""
        return table.with_columns(pl.col(*(names or ["time"])) / self.size)

    def reading(self, y: str, y_text: str) -> Reading:
        """Return how values are read off a chart over time."""
        if self.begins is None:
            return Reading(f"{self.word} since the start", "number", y, y_text)
        return Reading(self.zone, "instant", y, y_text, 1000 * self.begins.timestamp(), 1000 * self.size)

    def x(self, field: str = "x", title: str | None = None, zooms: bool = True, **options: Json) -> alt.X:
        """Return the axis, of a column in its unit; *zooms*: whether its chart is by itself, and may be zoomed into."""
        length = self.span / self.size
        return alt.X(f"{field}:Q", title=title or self.title, axis=self.ticks(zooms),
                     scale=alt.Scale(domain=[0, length], nice=False), **options)

    def ticks(self, zooms: bool = True) -> alt.Axis:
        """Return the ticks: at 6, 12, 18, not at 5, 10, 15; where somebody zooms in, steps become shorter."""
        length = self.span / self.size
        step = tick_step(length, self.word)
        if step is None and self.begins is None:
            return alt.Axis(tickCount=TICKS_ANY, grid=False, labelExpr="format(datum.value, ',~f')")
        low, high = ("domain('x')[0]", "domain('x')[1]") if zooms else ("0", f"{length:.12g}")
        step = step or math.ceil(length / TICKS_ANY)
        seen = f"({high} - {low})"
        halved = f"({step:.12g} / pow(2, max(0, floor(log({length:.12g} / {seen}) / LN2 + 1e-6))))"
        now = halved if self.begins is None else self._step(step, seen)
        before = 0.0 if self.begins is None else _since_midnight(self.begins) / self.size
        first = f"ceil(({low} + {before!r}) / {now} - 1e-9) * {now} - {before!r}"
        label = "format(datum.value, ',~f')" if self.begins is None else self._label(now)
        return alt.Axis(values=alt.ExprRef(f"sequence({first}, {high} + {now} / 1000, {now})"), grid=False,
                        labelExpr=label)

    def _step(self, whole: float, seen: str) -> str:
        """Return an expression of Vega for the step between ticks: *whole* where all is *seen*, else a shorter one."""
        length = self.span / self.size
        steps = [each / self.size for each in STEPS_S if each / self.size < whole]
        chosen = " : ".join(f"{seen} <= {TICKS_MAX * each:.12g} ? {each:.17g}" for each in steps)
        return f"({seen} >= {0.999 * length:.12g} ? {whole:.17g} : {f'{chosen} : ' if steps else ''}{whole:.17g})"

    def _label(self, step: str) -> str:
        """Return an expression of Vega for a tick's label: a date or an hour, and below it what has changed since."""
        assert self.begins is not None
        size, begins = 1000 * self.size, 1000 * self.begins.timestamp()
        at = f"round({begins:.17g} + datum.value * {size:.17g})"
        before = f"round({begins:.17g} + (datum.value - {step}) * {size:.17g})"
        is_first = "datum.index == 0"
        is_new_year = f"({is_first} || utcyear({at}) != utcyear({before}))"
        if self.word == "days":
            day = f"utcFormat({at}, utchours({at}) == 0 ? '%-d %b' : '%-d %b %H:%M')"
            return f"{is_new_year} ? [{day}, utcFormat({at}, '%Y')] : [{day}]"
        whole = f"{'false' if self.word == 'seconds' else 'true'} && utcseconds({at}) == 0"
        hour = f"utcFormat({at}, {whole} ? '%H:%M' : '%H:%M:%S')"
        is_new_day = f"utcFormat({at}, '%j') != utcFormat({before}, '%j')"
        return (f"{is_new_year} ? [{hour}, utcFormat({at}, '%-d %b %Y')] : "
                f"{is_new_day} ? [{hour}, utcFormat({at}, '%-d %b')] : [{hour}]")


def times_of(runs: Sequence[Run]) -> Times:
    """Return the axis of runs: of the calendar of their trace, where all have the same."""
    origin, span = series.clock(list(runs))
    said = {run.summary.workload.time_0 for run in runs}
    return times(origin, span, said.pop() if len(said) == 1 else "")


def times(origin: float, span: float, said: str) -> Times:
    """Return the axis from *origin* on, *span* seconds long, of a trace of which *said* says what its time 0 is."""
    found = STAMP.fullmatch(said)
    try:
        zero = datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp() if found else None
        if found is None or zero is None or span < 1:
            return Times(span)
        datetime.fromtimestamp(zero + origin + span, UTC)  # beyond the year 9999 there is no calendar
        return Times(span, datetime.fromtimestamp(zero + origin, UTC), ZONES.get(found[2], ""))
    except (ValueError, OverflowError):
        return Times(span)


def tick_step(length: float, word: str) -> float | None:
    """Return how far apart ticks are on *length* hours (*word*) or the like; None where any number is as good."""
    step = next((step for step in TIME_STEPS[word] if step >= length / TICKS_MAX), None)
    return None if step is None or step > length else step


def seconds_ticks(top: float) -> alt.Axis:
    """Return the axis of seconds from 0 to *top*: ticks at whole minutes, hours or days, each with its unit."""
    size, word = series.time_unit(top)
    step = tick_step(top / size, word)
    if step is None:
        return alt.Axis(labelExpr=SECOND_LABEL)
    count = int(top / size / step) + 1
    return alt.Axis(labelExpr=SECOND_LABEL, values=[number * step * size for number in range(count)])


def _since_midnight(at: datetime) -> float:
    return (at - at.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
