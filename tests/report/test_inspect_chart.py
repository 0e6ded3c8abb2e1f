"""The chart of `subak inspect`: a calendar where the trace has one, else whole hours or minutes."""
import re

import pytest

from in_process import subak

MAP = "start=Start,end=End,cpu=cores[cores]"


def drawn(folder, rows, arrival):
    """The texts of the chart of a table of jobs."""
    table = folder / "jobs.csv"
    table.write_text("Submit,Start,End,cores\n" + "\n".join(rows) + "\n")
    done = subak("convert", "table", table, "--map", f"arrival={arrival},{MAP}", "--out", folder / "W")
    assert done.returncode == 0, done.stderr
    done = subak("inspect", folder / "W", "--chart", folder / "c.svg")
    assert done.returncode == 0, done.stderr
    return re.findall(r">([^<>]+)</t(?:ext|span)>", (folder / "c.svg").read_text())


def test_a_trace_with_instants_has_a_calendar(tmp_path):
    texts = drawn(tmp_path, ["2024-03-01T08:00:00,2024-03-01T08:10:00,2024-03-01T10:00:00,4",
                             "2024-03-02T09:00:00,2024-03-02T09:10:00,2024-03-02T12:00:00,4"], "Submit")
    assert {"09:00", "12:00", "1 Mar 2024", "2 Mar"} <= set(texts)
    assert any(re.fullmatch(r"time \(.*from 2024-03-01 to 2024-03-02\)", text) for text in texts)


@pytest.mark.parametrize(("last", "title", "labels"), [
    (36_000, "time (hours)", ["0", "2", "4", "6", "8", "10"]), (6000, "time (minutes)", ["0", "15", "30", "90"]),
])
def test_numbers_are_in_whole_hours_or_minutes(tmp_path, last, title, labels):
    texts = drawn(tmp_path, ["0,0,60,1", f"{last},{last},{last + 60},1"], "Submit[s]")
    assert title in texts
    assert set(labels) <= set(texts[:texts.index(title)])
