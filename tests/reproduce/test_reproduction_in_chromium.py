"""The page of a reproduced paper as people see it, at a desk, on a tablet and on a phone."""
import polars as pl
import pytest

from page_probes import REPRODUCTION
from subak.cli.reproduce.board import TITLES
from subak.cli.reproduce.reproduction import Paper, Request, run_into
from subak.cli.reproduce.time_left import TimeLeft
from subak.reproduce.claims import Claim, Figure, Interval, Reproduction, Why, judge_all
from subak.reproduce.hmhs.figures import draw
from subak.reproduce.page import Section, page, table
from test_page_in_chromium import CHROMIUM, DARK, STILL, asked

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")

WIDTHS = (1400, 800, 400)
SAYS = "the preemptions of tasks that were already running grow with the number of workers that are left, " * 2
CLAIMS = tuple(
    Claim("1", "gain", f"{SAYS}{number}", least=0.77, unit="share",
          why=Why("no schedule of these jobs is as much shorter", "arithmetic: the-next-line_by_a_lower_bound_on_each"))
    for number in range(3))
TABLE = pl.DataFrame({
    "workload": ["single", "hybrid"], "jobs": [50, 50], "cluster": [1, 2],
    **{f"{name} (s)": [1234.5, 0.00051] for name in (
        "fifo", "fifo-pri", "r-hmhs", "hmhs", "bound", "min-min", "dynamic-min-min", "max-min", "sufferage", "heft")},
    "below fifo": ["72.8 % ± 1.2 %"] * 2, "above the bound": ["8.8 % ± 0.3 %"] * 2})
NOTES = ("means over 30 seeds, each with jobs, machines and speeds of its own: " + "a_word_that_is_very_long" * 8,)


def reproduced(keys, notify):
    figures = tuple(Figure(key, f"Makespan against the number of jobs, as number {key}", TABLE,
                           {"gain": Interval(0.728, 0.71, 0.74)}, (), TABLE) for key in keys)
    return Reproduction(figures, judge_all(CLAIMS, figures), NOTES)


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper") / "hmhs"
    folder.mkdir()
    board = run_into(Paper("HMHS, reproduced", lambda only, past: ["1", "2"], reproduced, draw),
                     Request(None, False, None, 1, False), folder, TimeLeft(["hmhs 1", "hmhs 2"]))
    cells = [[row[0], row[1], *row[2:]] for row in board.rows]
    boards = folder / "boards.html"
    boards.write_bytes(page("Six papers, reproduced", "0 of 3 claims hold.", NOTES, [
        Section(board.title, table(board.title, TITLES, cells))]))
    return {"paper": folder / "index.html", "boards": boards}


@pytest.fixture(scope="module", params=WIDTHS)
def seen(request, still, tmp_path_factory):
    scheme = (DARK,) if request.param == WIDTHS[1] else ()
    return request.param, {name: asked(REPRODUCTION, path, tmp_path_factory.mktemp(name), *scheme, width=request.param,
                                       ready=STILL) for name, path in still.items()}


def test_nothing_is_wider_than_its_box(seen):
    width, pages = seen
    for name, facts in pages.items():
        assert (facts["width"], facts["scroll"]) == (width, width), name
        assert (facts["outside"], facts["wide"], facts["cut"]) == ([], [], []), name
        assert [section["narrow"] for section in facts["sections"]] == [0] * len(facts["sections"]), name


def test_the_verdict_stands_first_and_titles_once(seen):
    _, pages = seen
    facts = pages["paper"]
    assert facts["header"] == ["H1", "P"]
    assert facts["verdict"].startswith("0 of 3 claims hold, 3 differ")
    first, second, notes = facts["sections"]
    assert (first["first"], first["heads"][0]) == ("Claims", "Verdict")
    assert [each["times"] for each in facts["sections"]] == [1, 1, 1]
    assert second["title"] == "Fig. 2: Makespan against the number of jobs, as number 2"
    assert notes["title"] == "Notes"


def test_a_chart_and_its_table_have_one_unit(seen):
    _, pages = seen
    section = pages["paper"]["sections"][0]
    assert "makespan (s)" in section["drawn"]
    assert "fifo (s)" in section["columns"]


@pytest.mark.parametrize(("spoil", "by", "kind"), [
    ("container-type: inline-size", "container-type: normal", "outside"),
    ("max-width: 100%; height: auto", "", "outside"), ("overflow-wrap: anywhere", "", "cut")])
def test_what_is_wider_would_be_noticed(still, tmp_path, spoil, by, kind):
    text = still["paper"].read_text(encoding="utf-8")
    assert spoil in text
    (tmp_path / "spoilt.html").write_text(text.replace(spoil, by), encoding="utf-8")
    facts = asked(REPRODUCTION, tmp_path / "spoilt.html", tmp_path, width=400, ready=STILL)
    assert facts["wide"] + facts["cut"] + facts["outside"], kind
