"""README's stories: figures in their prose are those that their commands print, and their pictures can be drawn."""
import re
import sys
from pathlib import Path

import msgspec
import polars as pl
import pytest

from subak.report.document import picture
from subak.report.pictures import spec_of, still

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "docs" / "stories"
FIGURE = re.compile(r"\d[\d,]*\.\d+(?: (?:ms|s|min|h))?|\d[\d,]*\d")  # with a point and a unit, or of two digits

sys.path.insert(0, str(STORIES))
make_dump = pytest.importorskip("make_dump")
make_images = pytest.importorskip("make_images")


def stories():
    """Each story's title and text."""
    text = (ROOT / "README.md").read_text().split("## Five stories\n")[1].split("\n## ")[0]
    return [tuple(each.split("\n", 1)) for each in text.split("\n### ")[1:]]


def not_shown(story, facts):
    """Figures of a story's prose that neither its console nor *facts* have."""
    shown = " ".join([*re.findall(r"```console\n(.*?)```", story, re.DOTALL), *facts])
    prose = re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", story, flags=re.DOTALL)
    return [each for each in FIGURE.findall(prose) if not re.search(rf"(?<![\d.]){re.escape(each)}(?![\d.])", shown)]


def facts():
    """What figures may be of beside what is printed: the inputs."""
    sample = (ROOT / "src/subak/data/google2011/README.md").read_text()
    return [sample, (STORIES / "tree.toml").read_text(), f"{len(list(make_dump.jobs())):,} jobs", "2011, 95 % of"]


@pytest.mark.parametrize(("title", "story"), stories(), ids=[title for title, _ in stories()])
def test_figures_of_the_prose_are_those_shown(title, story):
    assert FIGURE.search(story) and "```console" in story and "](docs/images/story-" in story
    assert not_shown(story, facts()) == []


def test_there_are_five_stories_and_a_picture_for_each():
    named = re.findall(r"docs/images/(story-[a-z]+\.svg)", (ROOT / "README.md").read_text())
    assert len(stories()) == 5
    assert sorted(named) == sorted(path.name for path in (ROOT / "docs/images").glob("story-*.svg"))


def test_a_figure_that_is_not_shown_is_noticed():
    story = "It took 8.19 s, not 13 of 43.5 min.\n```console\n$ x\nmean 8.19 s 43.5 h 113\n```\n"
    assert not_shown(story, []) == ["13", "43.5 min"]


def test_the_accounting_is_the_same_each_time():
    first, again = list(make_dump.jobs()), list(make_dump.jobs())
    assert first == again
    assert len({line.split("|")[0] for line in first}) == len(first) > 2_000


def event(task, what, at, machine):
    return {"id": task, "what": what, "at": at, "machine": machine}


def test_attempts_are_read_from_histories(tmp_path):
    """Of research a task is preempted and begins again elsewhere; one that still runs has no bar."""
    histories = {
        "research": [event("g0-1.0", "began", 10.0, "a1"), event("g0-1.0", "attempt lost", 11.0, "a1"),
                     event("g0-1.0", "began", 11.5, "b1"), event("g0-1.0", "finished", 13.0, "b1"),
                     event("g0-1.1", "began", 13.0, "b1")],
        "web": [event("g1-1.0", "began", 11.25, "a1"), event("g1-1.0", "finished", 12.0, "a1")]}
    for queue, events in histories.items():
        (tmp_path / f"{queue}.json").write_bytes(msgspec.json.encode(events))
    table = make_images.attempts(tmp_path)
    assert table.select("queue", "worker", "begin", "end").rows() == [
        ("research", "a1", 0.0, 1.0), ("web", "a1", 1.25, 2.0), ("research", "b1", 1.5, 3.0)]
    assert b"Which worker ran" in picture(still(spec_of(make_images.stint_chart(table))), "svg")


def test_only_queues_without_others_below_them_are_drawn():
    shares = pl.DataFrame({"queue": ["", "a", "a/b", "c"], "guarantee": [1.0, 0.5, 0.5, 0.5],
                           "H-DRF": [1.0, 0.6, 0.6, 0.4], "M-CH": [1.0, 0.5, 0.5, 0.5]})
    spec = make_images.share_chart(shares).to_dict()
    (drawn,) = spec["datasets"].values()
    assert [row["queue"] for row in drawn] == ["a/b", "a/b", "c", "c"]
