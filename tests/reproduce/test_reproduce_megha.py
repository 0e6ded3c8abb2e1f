"""`subak reproduce megha`: the workloads' frequencies, fairness by hand, the claims, and small runs."""
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from published import trace
from subak.errors import InputError
from subak.federation.settings import Federation
from subak.reproduce import workloads as made
from subak.reproduce.megha.experiments import DEFAULT, FIGURES, WHEN_ASKED, chosen_figures
from subak.reproduce.megha.published import CLAIMS
from subak.reproduce.missed_shares import wasted_share, water_fill

COLUMNS = 200  # of the terminal

TABLES = ("tables", "placement_constraints_megha.json")  # the authors'


# Workloads


def test_constraints_are_as_frequent_as_the_authors():
    """85.69 % of the tasks are constrained, and each constraint as often as their tables say (standard error 0.1 %)."""
    drawn = made.draw_constraints(200_000, seed=1)
    assert drawn.any(axis=1).mean() == pytest.approx(0.8569, abs=0.003)
    marginal = np.array(json.loads(trace(*TABLES).read_text())["derived"]["marginal_task_frequency_percent"]) / 100
    assert drawn.mean(axis=0) == pytest.approx(marginal, abs=0.004)


def test_tables_are_the_authors():
    theirs = json.loads(trace(*TABLES).read_text())
    percent = theirs["task_constraint_frequency_vectors_percent"]
    ours = np.round(np.outer(made.CLUSTER_FACTOR, made.TASK_PERCENT), 1)
    assert np.abs(ours - np.array([percent[str(row + 1)] for row in range(10)])).max() < 0.1001  # their own rounding
    weights = theirs["task_cluster_occurrence_by_task_type"]
    assert np.array(made.CLUSTER_WEIGHT) == pytest.approx(
        np.array([[weights[str(row + 1)][str(kind + 1)] for kind in range(4)] for row in range(10)]), abs=1e-6)
    assert list(made.MACHINE_PERCENT) == theirs["machine_constraint_frequency_percent_realised_10000_machines"]


def test_the_rate_of_constrained_tasks_is_a_parameter():
    assert not made.draw_constraints(1_000, 1, rate=0.0).any()
    assert made.draw_constraints(100_000, 1, rate=0.5).any(axis=1).mean() == pytest.approx(0.43, abs=0.01)


def test_clusters_differ_in_what_their_machines_meet():
    frequency = made.machine_frequencies(1)
    assert frequency[0] == pytest.approx(np.array(made.MACHINE_PERCENT) / 100)
    fleet = made.machines(20_000, 2, seed=1)
    met = fleet.attributes.group_by("attribute", pl.col("machine") % 2).len().sort("attribute", "machine")
    share = met["len"].to_numpy().reshape(-1, 2)[:-1] / 10_000  # the last constraint is met by every machine
    nearest = [np.abs(share[:, [cluster]] - frequency[:, :-1].T).max(axis=0).min() for cluster in range(2)]
    assert max(nearest) < 0.03


def test_samples_ask_what_they_say():
    cloudera = made.cloudera_like(1, 1_018, 1_000)
    assert made.peak_demand(cloudera) == pytest.approx(950, abs=1)
    assert len(cloudera.arrival) == 1_018
    google = made.google_sample(1, 400, peak=100.0)
    assert made.peak_demand(google) == pytest.approx(100.0, rel=1e-3)
    assert google.run_time.max() <= made.RUN_TIME_MAX_S
    steady = made.steady(100_000, 100, 0.8, 1)
    span = steady.arrival[-1]
    for amount, capacity in ((steady.cpu, made.CORES), (steady.memory, made.MEMORY_GB)):
        load = (amount * steady.run_time).sum() / (span * 100 * capacity)
        assert load <= 0.82
    assert (steady.memory * steady.run_time).sum() / (span * 100 * made.MEMORY_GB) == pytest.approx(0.8, abs=0.02)


def test_a_workload_keeps_tasks_queues_and_constraints():
    sample = made.google_sample(2, 300, peak=50.0)
    constraints, queue = made.draw_constraints(300, 2), made.deal_queues(sample, 2)
    workload = made.workload_of(sample, constraints, queue)
    stages = workload.stages[workload.tasks["stage"]]
    assert [len(row) for row in stages["constraints"]] == constraints.sum(axis=1).tolist()
    assert workload.jobs["queue"].gather(stages["job"]).to_list() == [made.QUEUES[number] for number in queue]
    assert workload.tasks["arrival"].to_list() == sample.arrival.tolist()
    assert len(workload.jobs) == len(np.unique(sample.job))


def test_alibaba():
    sample = made.alibaba_sample(trace("alibaba2018"), 500)
    assert len(sample.arrival) == 500
    assert sample.cpu.max() <= made.CORES
    assert (np.diff(sample.arrival) >= 0).all()


# Fairness


@pytest.mark.parametrize(("wanted", "total", "given"), [
    ([1.0, 1.0, 1.0, 1.0], 1.0, [0.1, 0.25, 0.15, 0.5]),  # all contend: the shares
    ([0.05, 1.0, 1.0, 1.0], 1.0, [0.05, 0.95 * 0.25 / 0.9, 0.95 * 0.15 / 0.9, 0.95 * 0.5 / 0.9]),
    ([0.3, 0.0, 0.0, 0.1], 1.0, [0.3, 0.0, 0.0, 0.1]),  # nobody is given more than is wanted
    ([1.0, 0.0, 0.0, 0.2], 0.8, [0.6, 0.0, 0.0, 0.2]),
])
def test_water_fills_by_weight(wanted, total, given):
    found = water_fill(np.array(wanted), np.array([0.1, 0.25, 0.15, 0.5]), total)
    assert found == pytest.approx(given)


def test_wasted_share():
    assert wasted_share(np.array([3.0, 5.0]), np.array([2.0])) == 0.2
    assert wasted_share(np.array([np.inf]), np.array([])) == 0.0


# Claims


def test_figures_are_chosen():
    assert chosen_figures(None, past_the_paper=False) == list(DEFAULT)
    assert chosen_figures(None, past_the_paper=True) == [key for key in FIGURES if key not in WHEN_ASKED]
    assert chosen_figures("10, 3", past_the_paper=True) == ["3", "10"]
    for wrong in ("2", "", "3,x"):
        with pytest.raises(InputError, match="--only: must name figures among 3, 4"):
            chosen_figures(wrong, past_the_paper=False)
    assert {claim.figure for claim in CLAIMS} == set(DEFAULT)


# Small runs; most of their kernels other tests compile, too


SMALL = """
import json
import msgspec
from subak.reproduce.megha import experiments as megha
from subak.reproduce.megha.figures import draw
from subak.reproduce.megha.study import Scale
scale = Scale(60, (30, 60), (30, 60), 60, ((2, 2), (2, 4), (4, 2)), (30, 60), (8.0, 12.0), 40, 40, 61,
              20, 100, 60, 60, seeds=2)
megha.HEARTBEATS_S, megha.LOADS = (1.0, 10.0), (0.5, 0.9)
megha.PAPER, megha.CHANGES = (  # most messages of small runs are heartbeats
    msgspec.structs.replace(each, heartbeat=1e4) for each in (megha.PAPER, megha.CHANGES))
study = megha.Study(scale, 1, lambda label, part: None)
found = megha.reproduce(study, megha.chosen_figures(None, past_the_paper=True))
drawn = [type(draw(figure)).__name__ for figure in found.figures]
runs = [run for name in ("compared", "fair") for run in study.kept[name].values()]
print(json.dumps({
    "keys": [figure.key for figure in found.figures], "drawn": len(drawn), "claims": len(found.rows),
    "numbers": {figure.key: figure.numbers for figure in found.figures},
    "unstarted": [run.unstarted for run in runs], "unplaceable": [run.unplaceable for run in runs],
    "started": [len(run.allocation) for run in runs], "tasks": [run.tasks for run in runs],
    "least": [float(run.allocation.min()) for run in runs],
    "adds_up": max(float(abs(sum(run.parts.values()) - run.allocation).max())
                   for run in study.kept["compared"].values()),
}))
"""


@pytest.fixture(scope="module")
def small():
    done = subprocess.run([sys.executable, "-c", SMALL], capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_every_figure_is_measured_and_drawn(small):
    assert small["keys"] == chosen_figures(None, past_the_paper=True)
    assert small["drawn"] == len(FIGURES) - len(WHEN_ASKED)
    assert small["claims"] == len(CLAIMS)
    assert {claim.number for claim in CLAIMS} <= {name for numbers in small["numbers"].values() for name in numbers}


def test_every_task_is_accounted_for(small):
    for started, unplaceable, unstarted, tasks in zip(
            small["started"], small["unplaceable"], small["unstarted"], small["tasks"], strict=True):
        assert started + unplaceable + unstarted == tasks
    assert small["unstarted"][:2] == [0, 0]  # the cloudera-like workload fits


def test_parts_of_the_allocation_time_add_up(small):
    """Sparrow and Megha need at least two and three messages of 0.5 ms; the parts add up to the whole."""
    assert small["adds_up"] < 1e-6
    assert min(small["least"]) >= 2 * Federation().delay - 1e-9


# The command line


def test_the_paper_is_listed(run):
    code, out, _ = run("reproduce")
    assert code == 0
    assert "megha  Thiyyakat" in out


def test_a_figure_without_a_simulation_is_printed_and_written(run, tmp_path):
    """Fig. 5 is the workload's own demand."""
    code, out, error = run("reproduce", "megha", "--quick", "--only", "5", "--out", tmp_path / "page")
    assert code == 0
    assert "0 of 0 claims hold" in out
    assert "950 slots" in out
    assert error.startswith("Wrote ")
    assert sorted(path.name for path in (tmp_path / "page").iterdir()) == [
        "figure-5.csv", "figure-5.png", "figure-5.svg", "index.html"]
    page = (tmp_path / "page" / "index.html").read_text()
    assert page.count("<svg") == 1
    for forbidden in ("<script", 'src="http', "url(http", 'href="http'):
        assert forbidden not in page
    code, _, error = run("reproduce", "megha", "--quick", "--only", "5", "--out", tmp_path / "page")
    assert code == 2
    assert "exists already" in error


def test_mistakes_are_one_line(run, tmp_path):
    for arguments, words in ((("--only", "12"), "must name figures"), (("--trace", tmp_path / "no"), "no such folder"),
                             (("--alibaba", tmp_path / "no"), "no such file or folder")):
        code, out, error = run("reproduce", "megha", "--quick", *arguments)
        assert (code, out) == (2, "")
        assert words in error
        assert error.count("\n") == 1
