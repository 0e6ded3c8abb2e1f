"""Axes of time: ticks by hand, as Vega draws them, of spans from a minute to years."""
import re
from dataclasses import replace

import altair as alt
import pytest
import vl_convert
from msgspec import structs

from fake_runs import write_comparison
from subak.measures.run_folders import load_runs
from subak.report.charts.runs import queue_length
from subak.report.charts.times import Times, times, times_of

HOUR, DAY = 3600, 86_400
EVE = "2011-12-31 18:00:00+00:00"


def labels(axis, domain=None, zooms=True):
    """Return the title and the labels that are drawn, the lines of one joined by a stroke."""
    x = axis.x(zooms=zooms)
    x = x if domain is None else x.scale(domain=domain, nice=False)
    chart = alt.Chart(alt.InlineData(values=[{"x": 0, "y": 0}])).mark_point(clip=True).encode(
        x=x, y=alt.Y("y:Q", axis=None))
    texts = re.findall(r"<text[^>]*>(.*?)</text>", vl_convert.vegalite_to_svg(chart.properties(width=700).to_dict()))
    *ticks, title = ["/".join(re.findall(r"<tspan[^>]*>(.*?)</tspan>", text)) or text for text in texts]
    return title, ticks


@pytest.mark.parametrize(("said", "span", "title", "wanted"), [
    ("2011-05-01 17:22:31+00:00", 90, "time (UTC)",  # a minute and a half
     "17:22:40/1 May 2011 17:22:50 17:23:00 17:23:10 17:23:20 17:23:30 17:23:40 17:23:50 17:24:00"),
    ("2011-05-01 17:22:31+00:00", HOUR, "time (UTC)", "17:30/1 May 2011 17:40 17:50 18:00 18:10 18:20"),
    ("2011-05-01 17:22:31+00:00", DAY, "time (UTC)",
     "18:00/1 May 2011 21:00 00:00/2 May 03:00 06:00 09:00 12:00 15:00"),
    ("2011-05-01 17:22:31+00:00", 10 * DAY, "time (UTC)",
     "2 May/2011 3 May 4 May 5 May 6 May 7 May 8 May 9 May 10 May 11 May"),
    ("2017-05-01 17:22:31 Pacific time", 30 * DAY, "time (Pacific time)",
     "6 May/2017 11 May 16 May 21 May 26 May 31 May"),
    # clocks of Paris skip an hour then; nothing says that these are of Paris, so they show a day of 24 hours
    ("2024-03-30 20:00:00 by the file's clocks, of a zone not named", DAY, "time",
     "21:00/30 Mar 2024 00:00/31 Mar 03:00 06:00 09:00 12:00 15:00 18:00"),
    (EVE, DAY / 2, "time (UTC)", "18:00/31 Dec 2011 20:00 22:00 00:00/1 Jan 2012 02:00 04:00 06:00"),
    ("2011-12-20 18:00:00+00:00", 20 * DAY, "time (UTC)",
     "22 Dec/2011 24 Dec 26 Dec 28 Dec 30 Dec 1 Jan/2012 3 Jan 5 Jan 7 Jan 9 Jan"),
    ("2012-02-27 00:00:00+00:00", 4 * DAY, "time (UTC)", "27 Feb/2012 28 Feb 29 Feb 1 Mar 2 Mar"),
    (EVE, 6000 * DAY, "time (UTC)",
     "19 Jan/2014 8 Feb/2016 27 Feb/2018 18 Mar/2020 7 Apr/2022 26 Apr/2024 16 May/2026 4 Jun/2028"),  # each 750 days
])
def test_ticks_are_at_whole_hours_and_days_of_the_calendar(said, span, title, wanted):
    for zooms in (True, False):
        found = labels(times(0.0, span, said), zooms=zooms)
        assert found[0] == title
        assert " ".join(found[1]) == wanted


def test_the_axis_begins_where_what_is_measured_does():
    assert labels(times(6.5 * HOUR, 6 * HOUR, EVE))[1][0] == "01:00/1 Jan 2012"


def test_who_zooms_in_sees_whole_minutes_with_the_date_on_the_first():
    """Of a day, each three hours: of an hour of it, each 10 minutes; of half a minute, each 5 seconds."""
    axis = times(0.0, DAY, EVE)
    assert labels(axis, [5, 6])[1] == ["23:00/31 Dec 2011", "23:10", "23:20", "23:30", "23:40", "23:50",
                                       "00:00/1 Jan 2012"]
    assert labels(axis, [6, 6 + 1 / 120])[1] == ["00:00/1 Jan 2012", "00:00:05", "00:00:10", "00:00:15", "00:00:20",
                                                 "00:00:25", "00:00:30"]
    of_days = times(0.0, 10 * DAY, EVE)
    assert labels(of_days, [0, 1])[1] == ["31 Dec 18:00/2011", "31 Dec 21:00", "1 Jan/2012", "1 Jan 03:00",
                                          "1 Jan 06:00", "1 Jan 09:00", "1 Jan 12:00", "1 Jan 15:00", "1 Jan 18:00"]


@pytest.mark.parametrize("said", ["", "yesterday", "2011-13-01 00:00:00", "9999-12-31 00:00:00+00:00",
                                  "100000000000 s since 1970"])
def test_without_a_calendar_time_counts_from_the_start(said):
    axis = times(0.0, 5 * DAY, said)
    assert axis == Times(5 * DAY)
    assert labels(axis) == ("time since the start (days)", ["0", "1", "2", "3", "4", "5"])
    assert axis.reading("wait", "seconds")[:2] == ("days since the start", "number")


def test_less_than_a_second_has_no_calendar():
    assert times(0.0, 0.5, EVE).begins is None


def test_charts_of_runs_have_the_calendar_that_all_of_them_share(tmp_path):
    write_comparison(tmp_path / "C", ("first-fit", "tetris"))
    runs = load_runs(tmp_path / "C")
    assert times_of(runs).begins is None
    dated = [_dated(run, EVE) for run in runs]
    spec = queue_length(dated).to_dict()
    assert spec["encoding"]["x"]["title"] == "time (UTC)"
    assert spec["usermeta"]["reading"] | {"unit": None} == {
        "x": "UTC", "x_text": "instant", "y": "tasks waiting", "y_text": "ratio", "unit": None,
        "begins": 1000.0 * times_of(dated).begins.timestamp()}
    assert times_of([dated[0], *runs[1:]]).begins is None


def _dated(run, said):
    workload = structs.replace(run.summary.workload, time_0=said)
    return replace(run, summary=structs.replace(run.summary, workload=workload))
