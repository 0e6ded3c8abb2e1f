"""The page of a study in a real browser: everything is drawn, and nothing is wider than its box."""
import re

import pytest

from fake_study import fake_study
from page_probes import LAYOUT
from subak.report.study.charts import chart_makers
from subak.report.study.page import write_study_page
from subak.report.study.results import results_of
from test_page_in_chromium import CHROMIUM, DARK, asked, assert_well, figures_of, opened

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")

WIDTHS = (1400, 800, 400)
SHOWN = ("wait_time_mean", "federation_messages_a_task")


def page_of(folder, **options):
    plan, records = fake_study(measures=SHOWN, **options)
    return write_study_page(folder, plan, records), results_of(plan, records)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return page_of(tmp_path_factory.mktemp("study"), broken=("31central4",))


def test_every_chart_is_drawn_without_a_word_or_a_request(study, tmp_path):
    page, results = study
    document, console = opened(page, tmp_path / "profile")
    assert_well(document, console)
    figures = figures_of(document)
    assert len(figures) == len(chart_makers(results)) == 1 + 3 * 2 + 3 * 2  # front; three settings; three pairs of them
    for attributes, body in figures.items():
        assert 'data-drawn="yes"' in attributes
        groups = re.findall(r'<g class="mark-(?:symbol|rect) role-mark[^>]*>(.*?)</g>', body, re.S)
        assert sum(group.count("<path") for group in groups) >= 4, attributes
        assert "role-axis-title" in body
    assert all(text in document for text in ("What went wrong", "the disk is full", "95 % interval", "1 to 6"))


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_its_box(study, width, tmp_path):
    assert_fits(asked(LAYOUT, study[0], tmp_path, *((DARK,) if width == 800 else ()), width=width), width)


def test_a_study_of_one_seed_says_that_it_has_no_intervals(tmp_path):
    page, _ = page_of(tmp_path, seeds=1, schedulers=("megha",))
    assert "One seed: nothing says how much of a difference is chance." in page.read_text(encoding="utf-8")
    assert_fits(asked(LAYOUT, page, tmp_path, width=min(WIDTHS)), min(WIDTHS))


def assert_fits(facts, width):
    assert facts["width"] == width
    assert list(facts["groups"]) == ["overview", "settings", "pairs", "points"]
    for group, found in facts["groups"].items():
        assert (found["width"], found["wide"], found["right"], found["opened"]) == (width, [], [], []), group
        assert (found["legends"], found["touching"], found["cut"]) == ([], [], []), group
