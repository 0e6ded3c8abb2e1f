"""The page as people see it, at a desk, on a tablet and on a phone: what fits, what touches, what answers a pointer."""
import json
import re
from importlib.resources import files

import pytest

from fake_demo import DEMO, write_demo
from page_probes import LAYOUT, TOOLTIPS, WORDS
from subak.report import number_text
from subak.report.page import write_report
from test_page_in_chromium import CHROMIUM, DARK, asked

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")

WIDTHS = (1400, 800, 400)
SCREEN = 900  # pixels, of which the page that is opened may be four tall
SCREENS = {400: 5}  # screens that a group may take on a phone, where a table has a line a cell
PAGES = {"five": (DEMO, False), "federated": (("central", "megha", "sparrow"), True),
         "seeds": (("first-fit-s1", "first-fit-s2", "tetris-s1", "tetris-s2"), False)}


@pytest.fixture(scope="module", params=list(PAGES))
def page(request, tmp_path_factory):
    labels, federated = PAGES[request.param]
    folder = write_demo(tmp_path_factory.mktemp(request.param), labels, federated=federated)
    return write_report(folder)


@pytest.fixture(scope="module", params=WIDTHS)
def layout(request, page, tmp_path_factory):
    scheme = (DARK,) if request.param == WIDTHS[1] else ()
    return request.param, asked(LAYOUT, page, tmp_path_factory.mktemp("layout"), *scheme, width=request.param)


def test_nothing_is_wider_than_its_box(layout):
    width, facts = layout
    assert facts["width"] == width
    for name, group in facts["groups"].items():
        assert (group["width"], group["wide"], group["right"], group["opened"]) == (width, [], [], []), name
    assert all(facts["groups"][name]["taller"] > 100 for name in ("overview", "waiting", "fairness", "details"))


def test_the_page_is_four_screens_tall_before_details_open(layout):
    width, facts = layout
    heights = {name: group["height"] for name, group in facts["groups"].items()}
    assert heights["overview"] <= 4 * SCREEN
    assert max(heights.values()) <= SCREENS.get(width, 4) * SCREEN, heights


def test_legends_and_labels_are_inside_and_do_not_touch(layout):
    _, facts = layout
    for name, group in facts["groups"].items():
        assert (group["legends"], group["touching"], group["cut"]) == ([], [], []), name
    assert sum(group["entries"] for group in facts["groups"].values()) > 50
    assert sum(group["labels"] for group in facts["groups"].values()) > 150


@pytest.mark.parametrize("page", ["five"], indirect=True)
def test_labels_that_touch_or_are_cut_would_be_noticed(page, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    text = page.read_text(encoding="utf-8").replace('"labelOverlap":"greedy"', '"labelOverlap":false')
    spoilt.write_text(text.replace('"labelFontSize":12', '"labelFontSize":40'), encoding="utf-8")
    groups = asked(LAYOUT, spoilt, tmp_path, width=400)["groups"]
    assert groups["waiting"]["touching"] and groups["overview"]["cut"]


def test_a_pointer_anywhere_in_a_chart_of_lines_reads_all_schedulers(page, tmp_path):
    found = asked(TOOLTIPS, page, tmp_path, width=800)["probes"]
    assert len(found) >= 7
    hits, probes = (sum(each) for each in zip(*found.values(), strict=True))
    assert probes >= 600
    assert hits >= 0.95 * probes, found


@pytest.mark.parametrize("page", ["five"], indirect=True)
def test_a_reader_that_nobody_sees_answers_no_probe(page, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    text = page.read_text(encoding="utf-8")
    spoilt.write_text(text.replace("</style>", "#reader { display: none; }</style>"), encoding="utf-8")
    found = asked(TOOLTIPS, spoilt, tmp_path, width=800)["probes"]
    assert {hits for hits, _ in found.values()} == {0}


@pytest.mark.parametrize("page", ["five"], indirect=True)
def test_numbers_read_off_a_chart_are_those_of_the_tables(page, tmp_path):
    values = [0, 1, 0.5, 3e-7, 0.00051, 0.0999, 0.2, 0.99949, 0.9996, 1.5, 9.994, 9.996, 12, 12.34, 99.94, 99.96, 119.9,
              121, 1234.5, 7199, 7201, 86_400, 172_799, 172_801, 12_583, 2.6e6]
    texts = {"number": number_text.number_text, "ratio": number_text.ratio_text, "share": number_text.share_text,
             "seconds": number_text.seconds_text}
    script = (files("subak.report") / "templates" / "page.js").read_text(encoding="utf-8")
    source = script.partition("// -- numbers as text")[2].partition("\n")[2].partition("// -- reading values")[0]
    said = asked(WORDS.replace("SOURCE", source).replace("VALUES", json.dumps(values)), page, tmp_path)["said"]
    assert said == {kind: [text(value) for value in values] for kind, text in texts.items()}


def test_charts_over_time_end_at_the_last_arrival(page):
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r'"domain":\[0,90(?:\.0)?\]', text)) >= 4
    assert "time since the start (minutes)" in text
    assert "time since the start (hours)" not in text


def test_the_page_is_small(page):
    """The library that draws is 0.9 MB of it."""
    text = page.read_text(encoding="utf-8")
    library = max(text.split("<script"), key=len)
    assert len(library.encode()) > 800_000
    assert len(text.encode()) - len(library.encode()) < 450_000
