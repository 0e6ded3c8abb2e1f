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
# Two settings and the scheduler; one setting with one seed; runs that failed.
STUDIES = {"large": {}, "one seed": {"seeds": 1, "schedulers": ("megha",)},
           "failed": {"broken": ("00megha2", "31central4")}}


@pytest.fixture(scope="module", params=list(STUDIES))
def study(request, tmp_path_factory):
    plan, records = fake_study(**STUDIES[request.param])
    return request.param, write_study_page(tmp_path_factory.mktemp("study"), plan, records), results_of(plan, records)


def test_every_chart_is_drawn_without_a_word_or_a_request(study, tmp_path):
    name, page, results = study
    document, console = opened(page, tmp_path / "profile")
    assert_well(document, console)
    figures = figures_of(document)
    settings, measures = len(results.settings), len(results.shown)
    pairs = settings * (settings - 1) // 2
    assert len(figures) == len(chart_makers(results)) == 3 + (settings + pairs) * measures
    for attributes, body in figures.items():
        assert 'data-drawn="yes"' in attributes
        marks = len(re.findall(r'<path[^>]* d="M', body))
        assert marks >= 8, attributes
        assert "role-axis-title" in body
    assert ("What went wrong" in document) == (name == "failed")
    assert ("95 % interval" in document) == (name != "one seed")


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_its_box(study, width, tmp_path):
    name, page, _ = study
    if name != "large" and width != min(WIDTHS):
        pytest.skip("the same as the large one, with less on it")
    facts = asked(LAYOUT, page, tmp_path, *((DARK,) if width == 800 else ()), width=width)
    assert facts["width"] == width
    assert list(facts["groups"]) == ["overview", "settings", "pairs", "points"]
    for group, found in facts["groups"].items():
        assert (found["width"], found["wide"], found["right"], found["opened"]) == (width, [], [], []), group
        assert (found["legends"], found["touching"], found["cut"]) == ([], [], []), group
