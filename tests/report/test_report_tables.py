"""Tables of a report: one unit a row, differences from a baseline, definitions, files for programs and for papers."""
import csv
import json
import math
import operator
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_demo import write_demo
from fake_runs import write_comparison, write_run
from in_process import subak
from subak.errors import InputError
from subak.measures.run_folders import load_runs
from subak.measures.runs import groups
from subak.report.comparison import Measure, Row, measures
from subak.report.fairness_tables import queue_table, worst_table
from subak.report.number_text import (
    NOTHING,
    bytes_text,
    count_text,
    difference_text,
    in_one_unit,
    ratio_text,
    seconds_text,
    share_text,
)
from subak.report.page import write_report
from subak.report.short_names import shortened
from subak.report.tables.definitions import DEFINITIONS, definition
from subak.report.tables.differences import _compared, compared
from subak.report.tables.export import as_csv, as_json, as_latex, latex_text
from subak.report.tables.measures import key_measures, measures_of
from subak.report.tables.table import Amount, Table


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return write_comparison(tmp_path_factory.mktemp("tables") / "R", tasks=1_000)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return write_demo(tmp_path_factory.mktemp("demo"), federated=True, tasks=500)


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "values", "unit", "texts"), [
    (seconds_text, [19_692, 9_360, 1_008, None], "h", ["5.47", "2.60", "0.28", NOTHING]),
    (seconds_text, [50_711.9, 0], "h", ["14.1", "0"]),
    (seconds_text, [19_692, 5], "s", ["19,692", "5"]),
    (seconds_text, [0, 0], "s", ["0", "0"]),
    (seconds_text, [300_000, 200_000], "d", ["3.47", "2.31"]),
    (seconds_text, [1e7, 1e-3], "min", ["166,667", "0.0000167"]),
    (bytes_text, [4.9e8, 5.4e9], "GB", ["0.49", "5.40"]),
    (share_text, [0.493, 0.99999], "%", ["49.3", "> 99.9"]),
    (count_text, [1234, None], "", ["1,234", NOTHING]),
    (ratio_text, [1, 2.5], "", ["1.00", "2.50"]),
])
def test_a_row_has_one_unit(text, values, unit, texts):
    assert in_one_unit(text, values) == (unit, texts)


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=6))
def test_the_unit_of_a_row_leaves_at_most_six_digits(values):
    _, texts = in_one_unit(seconds_text, values)
    largest = max(float(text.replace(",", "")) for text in texts)
    assert largest < 1e6


@pytest.mark.parametrize(("share", "text"), [
    (None, NOTHING), (0, "0 %"), (-2e-16, "0 %"), (0.0004, "0 %"), (0.0006, "+0.1 %"), (-0.893, "\u221289.3 %"),
    (1.1, "+110 %"), (163.85, "+16,385 %")])
def test_differences_are_in_per_cent(share, text):
    assert difference_text(share) == text


def test_long_names_are_cut_where_they_still_differ():
    same = "A" * 30
    assert shortened(["org/two", "9KFZ0cMaZ0yG+5S3NmHZVGvKJEdZKUlRBDJ6UlWGwe0="]) == {
        "org/two": "org/two", "9KFZ0cMaZ0yG+5S3NmHZVGvKJEdZKUlRBDJ6UlWGwe0=": "9KFZ0cMa\u2026"}
    assert list(shortened([f"{same}1", f"{same}2"]).values()) == [f"{same}1", f"{same}2"]
    assert list(shortened([f"ABCDEFGHIJ{'x' * 30}", f"ABCDEFGHIK{'x' * 30}"]).values()) == [
        "ABCDEFGHIJxxxxxx\u2026", "ABCDEFGHIKxxxxxx\u2026"]


# -- the comparison --------------------------------------------------------------------------------------------------


def row(values, text=seconds_text, seeds=1):
    """A measure whose value is the same with every seed."""
    by_seed = [{} if value is None else dict.fromkeys(range(seeds), value) for value in values]
    return Row(Measure("Wait time", "mean", lambda _: None, text, operator.lt), values, frozenset({1}), by_seed)


def test_differences_are_from_the_baseline():
    found = _compared(row([100.0, 25.0, None, 0.0]), 0)
    assert [each.share for each in found.differences] == [None, -0.75, None, -1.0]
    assert (found.difference(0), found.difference(1), found.interval(1)) == ("", "\u221275.0 %", "")
    assert [each.share for each in _compared(row([100.0, 25.0]), 1).differences] == [3.0, None]
    assert [each.share for each in _compared(row([0.0, 25.0]), 0).differences] == [None, None]


def test_differences_have_intervals_and_stars_from_three_seeds_on():
    assert [each.ends for each in _compared(row([100.0, 25.0], seeds=2), 0).differences] == [None, None]
    found = _compared(row([100.0, 25.0], seeds=3), 0)
    assert (found.interval(0), found.interval(1)) == ("", "\u221275.0 % to \u221275.0 %")
    assert (found.difference(1), found.of_means(1)) == ("\u221275.0 % *", "of means \u221275.0 %")
    assert _compared(row([100.0, 25.0], seeds=3), 1).interval(0) == "+300 % to +300 %"


def test_every_measure_has_a_definition_and_every_definition_a_measure():
    every = [*measures(["cpu"], 2), Measure("Makespan", "below fifo", lambda _: None, share_text),
             Measure("Objectives", "wait.p95 < 60s", lambda _: None, seconds_text)]
    assert [(each.family, each.title) for each in every if not definition(each)] == []
    said = {definition(each) for each in every}
    assert set(DEFINITIONS.values()) == said


def test_the_page_says_what_its_measures_mean_beside_them(demo):
    text = write_report(demo).read_text(encoding="utf-8")
    groups_of = re.split(r'<div id="(\w+)" class="group"', text)
    by_name = dict(zip(groups_of[1::2], groups_of[2::2], strict=True))
    assert list(by_name) == ["overview", "waiting", "machines", "fairness", "federation", "details"]
    for name, words in (("waiting", "run times under 10 s count"), ("machines", "From the first arrival"),
                        ("fairness", "guaranteed"), ("federation", "crossed the network"),
                        ("details", "that no machine could ever hold")):
        assert words in re.sub(r"<script.*?</script>", "", by_name[name], flags=re.S), name
    assert 'class="definitions"' in by_name["overview"]


def test_every_measure_is_in_one_group(demo):
    rows = compared(load_runs(demo))
    placed = [row.title for group in ("waiting", "machines", "fairness", "federation", "details")
              for row in measures_of(rows, group)]
    assert sorted(placed) == sorted(row.title for row in rows)
    assert 5 <= len(key_measures(rows)) <= 10


def test_schedulers_are_columns_and_a_baseline_can_be_chosen(comparison, tmp_path):
    first = write_report(comparison, tmp_path / "first.html").read_text(encoding="utf-8")
    names = list(groups(load_runs(comparison)))
    heads = re.findall(r'<th scope="col"><span class="swatch"[^>]*></span>([^<]*)', first)
    assert heads[:len(names)] == names
    assert f"difference from {names[0]}" in first
    other = write_report(comparison, tmp_path / "other.html", baseline="tetris").read_text(encoding="utf-8")
    assert "difference from tetris" in other
    with pytest.raises(InputError, match="--baseline: must be one of best-fit, first-fit, lotes, tetris, not nobody"):
        write_report(comparison, tmp_path / "none.html", baseline="nobody")
    assert not (tmp_path / "none.html").exists()


def test_five_queues_are_shown_and_all_are_written(demo):
    runs = load_runs(demo)
    assert [len(each) for each in (worst_table(runs).rows, queue_table(runs, 12).rows, queue_table(runs).rows)] == [
        5, 12 * len(runs), 518 * len(runs)]
    assert max(len(cells[0]) for cells in worst_table(runs).rows) <= 17
    assert {len(cells[1]) for cells in queue_table(runs).rows} == {44}


# -- files -----------------------------------------------------------------------------------------------------------


TABLE = Table("t", "A_B", ["Run", "Wait, mean", "Note"], [
    ["a,b", Amount(1.5, "1.50 s"), 'say "so"\nand so'], ["c", Amount(None, NOTHING), ""]])


def test_csv_holds_numbers_and_quotes_what_needs_it():
    assert list(csv.reader(as_csv(TABLE).splitlines())) == [
        ["Run", "Wait, mean", "Note"], ["a,b", "1.5", 'say "so"\\nand so'], ["c", "", ""]]


def test_json_holds_numbers_and_text_as_it_is():
    assert json.loads(as_json(TABLE)) == [
        {"Run": "a,b", "Wait, mean": 1.5, "Note": 'say "so"\nand so'}, {"Run": "c", "Wait, mean": None, "Note": ""}]


def test_latex_holds_words():
    written = as_latex(TABLE)
    assert r"\caption{A\_B}" in written
    assert r"\begin{tabular}{lrl}" in written
    assert "a,b & 1.50 s & say " in written
    assert written.count(r"\\") == 3


@given(st.text(max_size=30))
def test_no_text_is_a_command_of_latex(text):
    """The plain twin: without the commands that stand for characters, no special character is left."""
    written = latex_text(text)
    bare = re.sub(r"\\[a-zA-Z]+\{\}|\\[{}$&#%_]|\$-\$|\$\\(leq|times)\$|\{[][]\}|-\{\}", "", written)
    assert not re.search(r"[\\{}$&#%_^~<>|\"'`\n\r]", bare), written


def test_latex_of_hostile_names():
    assert latex_text(r"\input{/etc/passwd}%$x_1^2~#&") == (
        r"\textbackslash{}input\{/etc/passwd\}\%\$x\_1\textasciicircum{}2\textasciitilde{}\#\&")
    assert latex_text("50 \u2013 --all") == r"50 \textendash{} -{}-all"


def test_tables_are_written_in_the_formats_asked_for(demo, tmp_path):
    write_report(demo, tmp_path / "page.html", formats=["csv", "json", "latex"], tables=tmp_path / "t")
    names = {"comparison", "outcomes", "reasons", "queues", "roles", "queues-of-federations", "messages", "requests",
             "settings", "runs"}
    assert {path.name for path in (tmp_path / "t").iterdir()} == {
        f"{name}{suffix}" for name in names for suffix in (".csv", ".json", ".tex")}
    rows = {(each["measure"], each["title"], each["scheduler"]): each
            for each in json.loads((tmp_path / "t" / "comparison.json").read_text())}
    runs = load_runs(demo)
    tetris, first = (next(run.summary.wait_time.mean for run in runs if run.group == name)
                     for name in ("tetris", next(iter(groups(runs)))))
    found = rows["Wait time", "mean", "tetris"]
    assert (found["value"], found["unit"]) == (tetris, "s")
    assert found["difference"] == pytest.approx(tetris / first - 1)
    assert math.isclose(found["baseline"], first)


def test_pictures_are_also_pdf(comparison, tmp_path):
    write_report(comparison, tmp_path / "page.html", tmp_path / "pictures", ["pdf"])
    for path in (tmp_path / "pictures").iterdir():
        assert path.suffix == ".pdf"
        assert path.read_bytes().startswith(b"%PDF-")


@pytest.mark.parametrize(("options", "said"), [
    (("--format", "csv"), "format csv: needs a folder, --tables FOLDER"),
    (("--format", "svg,pdf"), "format svg, pdf: needs a folder, --images FOLDER"),
    (("--images", "I", "--tables", "T", "--format", "svg"), "--tables: needs a format, csv, json or latex, besides"),
    (("--tables", "r.html"), "r.html: is to be the page and r.html, a folder of tables; choose another name"),
    (("--baseline", "x"), "--baseline: must be one of first-fit, not x")])
def test_what_cannot_be_written_is_refused_in_one_line(tmp_path, options, said):
    write_run(tmp_path / "run", tasks=500)
    done = subak("report", "run", "--out", "r.html", *options, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
