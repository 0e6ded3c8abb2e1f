"""`subak reproduce hmhs`: what is drawn, what is compared, how claims are judged, and small runs of each figure."""
import json
import sys

import numpy as np
import pytest

from batches import batch, machines
from small_inputs import placed, racked
from subak.cli.main import main
from subak.errors import InputError
from subak.reproduce.hmhs import figures, study
from subak.reproduce.hmhs.experiments import DEFAULT, FIGURES, chosen_figures, reproduce
from subak.reproduce.hmhs.published import CLAIMS
from subak.reproduce.hmhs.study import (
    ALL_SCHEDULERS,
    BOUND,
    DRAWN_SPEEDS,
    LOCAL_SCHEDULERS,
    SCHEDULERS,
    SLOW_READS,
    TRACE,
    Bench,
    Case,
    Job,
    Scale,
    Trace,
    below,
    draw,
    interval,
    makespans,
    run_job,
    summary,
)

SMALL = Scale(seeds=2, jobs=(1, 2), machines=3, cluster_jobs=1, baseline_jobs=(2,), baseline_seeds=2, search_moves=3)
YAHOO = Trace(placed(batch((4, 3, 2, 5), (2, 7, 1, 2), (1, 1, 0, 0, 9), grouped=False),
                     [["m0"], ["m1"], ["m0", "m2"], ["m2"], [], [], ["m1"], ["m1"], None, ["m2"]]),
              racked(machines((1, 1), (1, 0), (1, 1)), ["a", "a", "b"]))


def bench(trace=None, processes=1, said=None):
    return Bench(SMALL, 1, lambda label, part: None if said is None else said.append((label, part)), trace, processes)


@pytest.fixture(scope="module")
def found():
    return reproduce(bench(YAHOO), list(FIGURES))


def drawn(case, seed=1, trace=None):
    return draw(Job(SMALL, case, seed, {}, trace))


def test_a_case_is_drawn_as_the_paper_says():
    workload, fleet = drawn(Case("hybrid", 5, cluster=6))
    assert len(workload.jobs) == 5
    assert len(fleet.machines) == 6
    assert fleet.speeds.shape == (5, 6)
    assert fleet.speeds.min() >= 0.9
    again, _ = drawn(Case("hybrid", 5, cluster=6))
    assert workload.tasks.equals(again.tasks)
    assert not workload.tasks.equals(drawn(Case("hybrid", 5, cluster=6), 2)[0].tasks)


def test_jobs_of_a_trace_arrive_together_on_drawn_machines():
    workload, fleet = drawn(Case(TRACE), trace=YAHOO)
    assert workload.tasks["arrival"].max() == 0
    assert workload.stages["speed_group"].to_list() == YAHOO.workload.stages["job"].to_list()
    assert len(np.unique(fleet.speeds)) == fleet.speeds.size


def test_jobs_of_a_trace_run_where_their_inputs_are():
    workload, fleet = drawn(Case(DRAWN_SPEEDS), trace=YAHOO)
    assert fleet.machines.equals(YAHOO.fleet.machines)
    assert fleet.attribute("rack").to_list() == ["a", "a", "b"]
    assert fleet.speeds.shape == (3, 3)
    assert 0.1 <= fleet.speeds.min() < fleet.speeds.max() <= 1.0
    slow, alike = drawn(Case(SLOW_READS), trace=YAHOO)
    assert (alike.speeds == 1.0).all()
    assert slow.stages.select("rack_local", "off_rack").row(0) == (1.5, 2.0)
    assert workload.stages.select("rack_local", "off_rack").row(0) == (1.0, 1.0)


def test_several_processes_find_what_one_finds():
    """As on all cores: the same numbers, and what runs is said when it begins."""
    said = []
    cases = [Case(jobs=2), Case("hybrid", 2)]
    one, two = (bench(processes=processes, said=said).measure("Fig. 1", cases, SCHEDULERS, 2) for processes in (1, 2))
    assert one == two
    assert [len(runs) for runs in one] == [2, 2]
    labels = [f"Fig. 1: 2 {kind} jobs, cluster 1, seed {seed}" for kind in ("single", "hybrid") for seed in (1, 2)]
    assert [label for label, _ in said[:4]] == labels
    assert [part for _, part in said[:4]] == [0.0, 0.25, 0.5, 0.75]
    assert {label for label, _ in said[4:]} == set(labels)


def test_what_one_figure_has_measured_no_other_measures_again(monkeypatch):
    """Fig. 2 has a point of Fig. 1; the baselines have its schedulers, and its bound."""
    asked = []
    monkeypatch.setattr(study, "run_job", lambda label, job, say: asked.append(job) or run_job(label, job, say))
    mine, points = bench(), [Case(jobs=2), Case("hybrid", 2)]
    first = mine.measure("Fig. 1", points[:1], SCHEDULERS, 2)
    assert mine.measure("Fig. 2", points, SCHEDULERS, 2)[0] == first[0]
    assert [(job.case, job.seed) for job in asked] == [(case, seed) for case in points for seed in (1, 2)]
    every = mine.measure("Baselines", points[:1], ALL_SCHEDULERS, 1)
    assert set(asked[-1].ways) == set(ALL_SCHEDULERS) - set(SCHEDULERS)
    assert not asked[-1].bounded
    assert every == bench().measure("Baselines", points[:1], ALL_SCHEDULERS, 1)
    assert list(every[0][0]) == [*ALL_SCHEDULERS, BOUND]


def test_shares_of_levels_add_up(found):
    figure = next(each for each in found.figures if each.key == "locality")
    shares = figure.points.select("node-local (share)", "rack-local (share)", "off-rack (share)").sum_horizontal()
    assert shares.to_list() == pytest.approx([1.0] * len(figure.points))
    assert len(figure.points) == 3 * len(LOCAL_SCHEDULERS)
    assert figure.numbers["alike, delay, node-local"] >= figure.numbers["alike, hmhs, node-local"]


def test_gains_and_intervals_by_hand():
    measured = [{"hmhs": {"makespan (s)": value}, "fifo": {"makespan (s)": 4.0}} for value in (2.0, 3.0)]
    assert {name: values.tolist() for name, values in makespans(measured).items()} == {
        "hmhs": [2.0, 3.0], "fifo": [4.0, 4.0]}
    times = {"hmhs": np.array([2.0, 3.0]), "fifo": np.array([4.0, 4.0]), "fifo-pri": np.array([4.0, 12.0]),
             "r-hmhs": np.array([2.0, 3.0]), BOUND: np.array([1.0, 3.0])}
    assert below(times, "fifo").tolist() == [0.5, 0.25]
    row = summary(times)
    assert row["below fifo (share)"] == 0.375
    assert row["below fifo ± (share)"] == pytest.approx(12.706 * 0.125, rel=1e-4)  # Student's t, 1 degree of freedom
    assert row["above the bound (share)"] == 0.5
    assert np.isnan(interval(np.array([1.0]))[1])


def test_every_claim_has_its_number(found):
    by_key = {figure.key: figure for figure in found.figures}
    assert set(by_key) == set(FIGURES)
    for claim in CLAIMS:
        assert claim.number in by_key[claim.figure].numbers, claim
    assert len(found.rows) == len(CLAIMS)


def test_no_makespan_is_below_the_bound(found):
    for figure in (each for each in found.figures if each.key != "locality"):
        above = [name for name in figure.points.columns if name == "above the bound (share)"]
        assert (figure.points[above[0]] >= -1e-9).all()


def test_the_extremes_are_of_the_points(found):
    figure = found.figures[0]
    gains = figure.points["below fifo (share)"].to_numpy()
    half = figure.points["below fifo ± (share)"].to_numpy()
    for name, place in (("most below fifo", gains.argmax()), ("least below fifo", gains.argmin())):
        ends = (gains[place], gains[place] - half[place], gains[place] + half[place])
        assert tuple(figure.numbers[name]) == ends
    assert figure.numbers["most possible below fifo"] >= gains.max()
    assert len(figure.points) == 4


@pytest.mark.parametrize("key", FIGURES)
def test_every_figure_is_drawn(found, key):
    figure = next(each for each in found.figures if each.key == key)
    drawn = json.loads(figures.draw(figure).to_json())
    assert drawn["title"]


def test_figures_are_chosen():
    assert chosen_figures(None, past_the_paper=False, with_jobs=False) == list(DEFAULT)
    assert chosen_figures(None, past_the_paper=False, with_jobs=True) == [*DEFAULT, "yahoo", "locality"]
    assert chosen_figures(None, past_the_paper=True, with_jobs=False) == ["1", "2", "baselines"]
    assert chosen_figures("2,1", past_the_paper=False, with_jobs=False) == ["1", "2"]
    with pytest.raises(InputError, match="must name figures among 1, 2, baselines, yahoo, locality, not '3'"):
        chosen_figures("3", past_the_paper=False, with_jobs=False)
    for key, trace in (("yahoo", None), ("locality", None), ("locality", YAHOO._replace(fleet=None))):
        with pytest.raises(InputError, match="needs --jobs FOLDER"):
            reproduce(bench(trace), [key])


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process: its exit code and what it printed."""

    def _run(*arguments):
        monkeypatch.setattr(sys, "argv", ["subak", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, capsys.readouterr()

    return _run


def test_the_command_line_refuses_a_folder_that_is_not_there(run, tmp_path):
    code, printed = run("reproduce", "hmhs", "--jobs", tmp_path / "none")
    assert (code, printed.out) == (2, "")
    assert "no such folder" in printed.err


def test_the_paper_is_listed(run):
    code, printed = run("reproduce")
    assert code == 0
    assert "hmhs  Chen, Shen, Chen, Guo" in printed.out


def test_schedulers_of_the_paper():
    assert set(SCHEDULERS) == {"fifo", "fifo-pri", "r-hmhs", "hmhs"}
