"""Lines on common places, and the window that charts over time show."""
import re
from itertools import pairwise

import altair as alt
import numpy as np
import polars as pl
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from fake_demo import write_demo
from fake_runs import write_run
from subak.measures import series
from subak.measures.run_folders import load_runs
from subak.report.charts.lines import GRID_MAX, Line, exceedances, over_time, rounded, stacked
from subak.report.charts.runs import queue_length, wait_distribution, wait_over_time
from subak.report.charts.some_queues import of_queues
from subak.report.charts.times import Times, seconds_ticks, tick_step
from subak.report.verdict.placed import placed

NUMBERS = st.floats(0, 100).map(lambda value: round(value, 2))
PLACES = st.lists(NUMBERS, min_size=2, max_size=12, unique=True).map(sorted)


def long_table(lines):
    """Rows of run, scheduler, time and value."""
    return pl.DataFrame([{"run": run, "scheduler": run, "time": float(time), "value": float(value)}
                         for run, points in lines.items() for time, value in points])


def test_lines_are_read_between_their_points():
    table = long_table({"a": [(0, 0), (1, 10), (2, 20), (3, 30)], "b": [(0.5, 1), (2.5, 3)]})
    drawn = over_time(table, "time", "value")
    assert drawn.lines == [Line("a", "a"), Line("b", "b")]
    assert drawn.table["x"].to_list() == [0, 1, 2, 3]
    assert drawn.table["l0"].to_list() == [0, 10, 20, 30]
    assert drawn.table["l1"].to_list() == [1, 1.5, 2.5, 3]  # b has a point within a step of both ends


def test_a_line_that_ended_has_no_values_and_one_that_goes_on_has_places_of_its_own():
    table = long_table({"a": [(0, 0), (1, 1), (2, 2), (3, 3)], "b": [(2, 5), (3, 5), (9, 7)]})
    drawn = over_time(table, "time", "value")
    assert drawn.table["x"].to_list() == [0, 1, 2, 3, 9]
    assert drawn.table["l0"].to_list() == [0, 1, 2, 3, None]
    assert drawn.table["l1"].to_list()[2:] == [5, 5, 7]


@given(PLACES, PLACES)
def test_a_line_at_its_own_points_is_itself(first, second):
    """The plain twin: between the neighbours of a place, in proportion."""
    lines = {"a": [(place, place**2) for place in first], "b": [(place, -place) for place in second]}
    drawn = over_time(long_table(lines), "time", "value")
    for column, points in zip(("l0", "l1"), lines.values(), strict=True):
        for place, value in drawn.table.select("x", column).drop_nulls().iter_rows():
            inside = min(max(place, points[0][0]), points[-1][0])
            (left, low), (right, high) = next(
                (one, other) for one, other in pairwise(points) if one[0] <= inside <= other[0])
            assert value == pytest.approx(low + (high - low) * (inside - left) / (right - left), rel=1e-6, abs=1e-6)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_exceedances_agree_with_counting(first, second):
    values = {"a": first, "b": second}
    table = pl.DataFrame([{"run": name, "scheduler": name, "value": float(value),
                           "share": sum(other > value for other in of_run) / len(of_run)}
                          for name, of_run in values.items() for value in sorted(set(of_run))])
    drawn = exceedances(table, 0.5)
    assert drawn.table["x"][0] == 0.5
    assert drawn.table["x"].to_list()[1:] == sorted({*first, *second})
    for column, of_run in zip(("l0", "l1"), values.values(), strict=True):
        counted = [sum(value > place for value in of_run) / len(of_run) for place in drawn.table["x"]]
        assert drawn.table[column].to_list() == pytest.approx(counted)


def test_a_long_distribution_is_thinned_and_keeps_its_ends():
    values = np.geomspace(1, 1e6, 5_000)
    table = pl.DataFrame({"run": "a", "scheduler": "a", "value": values, "share": np.linspace(1, 0, 5_000)})
    drawn = exceedances(table, 2.0)
    assert GRID_MAX / 2 < len(drawn.table) <= GRID_MAX + 1
    assert drawn.table["x"].to_list()[0] == 2.0
    assert drawn.table["x"].to_list()[-1] == pytest.approx(1e6)
    assert drawn.table["l0"].to_list()[-1] == 0


def test_rows_are_short():
    assert rounded(pl.DataFrame({"x": [1 / 3, 2.0], "l0": [1 / 3, None]})) == [{"x": 0.3333333, "l0": 0.3333}, {"x": 2}]


def test_panels_have_the_same_lines():
    one = over_time(long_table({"a": [(0, 1), (1, 2)]}), "time", "value")
    table, lines = stacked({"p": one, "q": one})
    assert (lines, table["facet"].to_list()) == ([Line("a", "a")], ["p", "p", "q", "q"])


def test_only_some_queues_are_seen(tmp_path):
    runs = load_runs(write_demo(tmp_path, ("first-fit", "tetris"), queues=3, tasks=500))
    name = runs[0].shares().select(pl.col("queue").first()).collect().item()
    assert {run.label for run in of_queues(runs, (name,))} == {"first-fit", "tetris"}
    assert set(of_queues(runs, (name,))[0].shares().collect()["queue"]) == {name}


def test_charts_over_time_show_the_window(tmp_path):
    folder = write_run(tmp_path / "run", tasks=500, window={"begin": 600.0, "end": 9000.0, "why": "", "tasks": 1})
    runs = load_runs(folder)
    assert series.clock(runs) == (600.0, 8400.0)
    drawn = queue_length(runs).to_dict()
    assert drawn["encoding"]["x"]["scale"]["domain"] == [0, 140.0]
    assert all(0 <= row["x"] <= 140.0 for row in drawn["datasets"][drawn["data"]["name"]])
    assert max(series.waiting_over_time(runs)["time"]) <= 8400.0
    tasks = pl.read_parquet(folder / "tasks.parquet")
    inside = tasks.filter(pl.col("arrival").is_between(600.0, 9000.0))
    assert series.measured_tasks(runs[0]).drop("waited").collect().equals(inside)
    assert placed(runs).started == inside.filter(pl.col("start") <= 9000.0).height


def test_what_a_chart_of_lines_says_of_itself(tmp_path):
    runs = load_runs(write_demo(tmp_path, ("first-fit", "tetris"), queues=3, tasks=500))
    for make in (queue_length, wait_over_time, wait_distribution):
        spec = make(runs).to_dict()
        rows = spec["datasets"][spec["data"]["name"]]
        assert [line["scheduler"] for line in spec["usermeta"]["lines"]] == ["first-fit", "tetris"]
        assert spec["usermeta"]["legend"] == ["first-fit", "tetris"]
        assert all({"x", "l0", "l1"} >= set(row) for row in rows)
        assert [row["x"] for row in rows] == sorted(row["x"] for row in rows)


@pytest.mark.parametrize(("length", "word", "step"), [
    (48.0, "hours", 6), (20.0, "hours", 2), (95.0, "hours", 12), (4.0, "hours", 1), (180.0, "minutes", 30),
    (100.0, "minutes", 10), (29.0, "days", 5), (70.0, "days", 7), (240.0, "seconds", 30), (0.4, "seconds", None),
    (5_000.0, "days", None),
])
def test_ticks_of_time_are_whole_hours_and_minutes(length, word, step):
    assert tick_step(length, word) == step


@pytest.mark.parametrize(("span", "labels"), [
    (48 * 3600.0, ["0", "6", "12", "18", "24", "30", "36", "42", "48"]),
    (100 * 60.0, ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100"]),
    (0.5, ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4", "0.45", "0.5"]),
])
def test_an_axis_of_time_as_it_is_drawn(span, labels):
    rows = [{"x": 0, "y": 0}]
    chart = alt.Chart(alt.InlineData(values=rows)).mark_point().encode(x=Times(span).x(), y=alt.Y("y:Q", axis=None))
    drawn = re.findall(r">([\d.]+)</text>", vl_convert.vegalite_to_svg(chart.properties(width=700).to_dict()))
    assert drawn == labels


@pytest.mark.parametrize(("top", "ticks"), [
    (4800.0, [0, 600, 1200, 1800, 2400, 3000, 3600, 4200, 4800]),
    (50_000.0, [0, 7200, 14400, 21600, 28800, 36000, 43200]),
    (9.0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])])
def test_seconds_are_shown_at_whole_minutes_and_hours(top, ticks):
    """Ticks at each 1,600 s were labelled 26.6667 min."""
    assert seconds_ticks(top).values == ticks


def test_of_less_than_a_second_any_tick_is_as_good():
    assert "values" not in seconds_ticks(0.5).to_dict()
