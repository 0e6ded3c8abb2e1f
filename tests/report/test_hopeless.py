"""What can never run is said before all results: how many tasks, what they ask for, what the largest machine has."""
import pytest

from fake_runs import write_comparison
from in_process import subak
from subak.measures.run_folders import load_runs
from subak.measures.runs import Reason, Summary
from subak.report.notes import hopeless_notes
from subak.report.page import write_report


class Of:
    """A run of which only the summary counts."""

    def __init__(self, group, *reasons, finished=10):
        tasks = sum(count for _, count in reasons)
        status = {"FINISHED": finished, **({"UNPLACEABLE": tasks} if tasks else {})}
        self.group, self.summary = group, Summary(
            group, status=status, reasons=tuple(Reason("UNPLACEABLE", why, count) for why, count in reasons))


@pytest.mark.parametrize(("runs", "said"), [
    ([Of("a")], []),
    ([Of("a", ("asks 9", 30))], ["30 of 40 tasks can never run: asks 9."]),
    ([Of("a", ("asks 9", 30)), Of("b", ("asks 9", 30))], ["30 of 40 tasks can never run: asks 9."]),
    ([Of("a", ("asks 9", 30)), Of("b")], ["a: 30 of 40 tasks can never run: asks 9."]),
    ([Of("a"), Of("a", ("asks 9", 1))], ["1 of 11 tasks can never run: asks 9."]),
    ([Of("a", ("w", 1), ("x", 2), ("y", 3), ("z", 4), ("v", 5))],
     ["15 of 25 tasks can never run: v (5 tasks); z (4 tasks); y (3 tasks); 3 more for 2 other reasons."]),
])
def test_the_words(runs, said):
    assert hopeless_notes(runs) == said


@pytest.fixture
def trace(tmp_path):
    """4 tasks, of which 2 ask for 64 cores."""
    table = tmp_path / "jobs.csv"
    table.write_text("submit,seconds,cores\n0,100,2\n10,40,64\n20,40,1\n30,40,64\n")
    done = subak("convert", "table", table, "--map", "arrival=submit,run_time=seconds,cpu=cores[cores]",
                 "--out", tmp_path / "W")
    assert done.returncode == 0, done.stderr
    return tmp_path / "W"


def test_a_simulation_says_it_first(trace):
    done = subak("simulate", trace, "--machines", "2", "--capacity", "cpu=32")
    words = " ".join(done.stdout.replace("│", " ").split())
    said = "2 of 4 tasks can never run: asks cpu 64 cores, the largest machine has 32."
    assert said in words
    assert words.index(said) < words.index("Wait time")


def test_a_comparison_says_it_first(trace, tmp_path):
    done = subak("compare", trace, "--schedulers", "first-fit,best-fit", "--machines", "2", "--capacity", "cpu=32",
                 "--out", tmp_path / "C")
    words = " ".join(done.stdout.split())
    assert words.count("2 of 4 tasks can never run") == 1
    assert words.index("can never run") < words.index("Wait time")


def test_a_page_says_it_above_its_verdict(tmp_path):
    folder = write_comparison(tmp_path / "C", labels=("first-fit", "best-fit"), tasks=2_000)
    text = write_report(folder).read_text()
    said = "2 of 2,000 tasks can never run"
    assert said in text
    assert text.index(said) < text.index('id="verdict"')
    assert load_runs(folder)[0].summary.status["UNPLACEABLE"] == 2
