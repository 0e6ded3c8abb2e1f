"""`subak reproduce lotes`: the month's workload, measures by hand, claims, and small runs of every figure."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from small import CPU, fleet_of, plain
from subak.placement.lotes.allocation import solve_allocation
from subak.placement.lotes.bins import all_bins, build_machine
from subak.policy import find_scheduler
from subak.reproduce.lotes.experiments import DEFAULT, FIGURES, _in_reverse, chosen_figures
from subak.reproduce.lotes.measured import TAILS, measured
from subak.reproduce.lotes.published import CLAIMS
from subak.reproduce.lotes.tables import (
    CLASSES,
    HOURS,
    MACHINES,
    SHARES,
    as_printed,
    bins_allowed,
    printed_problem,
    without_misfits,
)
from subak.reproduce.lotes.workload import DAY_S, Month, month_of
from subak.simulator.simulate import simulate
from subak.workload.google_like.google import google_machines
from subak.workload.google_like.parameters import TABLE_2

# The month


def test_the_month_has_the_shares_requests_and_load_it_is_told():
    fleet = google_machines()
    month = Month(200_000, 2.0, load=0.9)
    workload = month_of(month, fleet, seed=1)
    stage = workload.tasks["stage"].to_numpy()
    asked = workload.requests[:, stage] * np.array([[each.unit] for each in workload.resources])
    near = np.array([[each.amounts["cpu"], each.amounts["memory"]] for each in TABLE_2])
    mean = (np.array([each.share for each in TABLE_2]) @ near)
    assert asked.mean(axis=1) == pytest.approx(mean, rel=0.01)
    work = (asked * workload.tasks["run_time"].to_numpy()).sum(axis=1)
    there = fleet.capacity.sum(axis=1) * np.array([each.unit for each in fleet.resources])
    assert (work / (month.days * DAY_S * there)).max() == pytest.approx(0.9, rel=0.05)
    assert workload.tasks["arrival"].max() == pytest.approx(month.days * DAY_S, rel=0.02)


def test_a_burst_asks_for_its_share_of_the_machines_at_time_0():
    fleet = google_machines()
    workload = month_of(Month(300_000, 2.0, load=0.9, burst=1.16), fleet, seed=1)
    first = workload.tasks["arrival"].to_numpy() == 0
    stage = workload.tasks["stage"].to_numpy()[first]
    asked = workload.requests[:, stage].sum(axis=1) / fleet.capacity.sum(axis=1)
    assert asked.max() == pytest.approx(1.16, abs=0.001)
    assert not first.all()


def test_a_month_that_turns_exchanges_two_shares_at_the_same_load():
    fleet = google_machines()
    workload = month_of(Month(100_000, 2.0, load=0.9, mix_changes=True), fleet, seed=1)
    assert len(workload.tasks) == 100_000
    assert workload.tasks["arrival"].is_sorted()
    units = np.array([[each.unit] for each in workload.resources])
    for half, (first, second) in ((slice(0, 50_000), (1, 2)), (slice(50_000, 100_000), (2, 1))):
        tasks = workload.tasks[half]
        asked = workload.requests[:, tasks["stage"].to_numpy()] * units
        shares = np.array([each.share for each in TABLE_2])
        shares[[1, 2]] = shares[[first, second]]
        near = np.array([[each.amounts["cpu"], each.amounts["memory"]] for each in TABLE_2])
        assert asked.mean(axis=1) == pytest.approx(shares @ near, rel=0.02)
        span = tasks["arrival"].max() - tasks["arrival"].min()
        work = (asked * tasks["run_time"].to_numpy()).sum(axis=1) / span
        assert (work / (fleet.capacity.sum(axis=1) * units[:, 0])).max() == pytest.approx(0.9, rel=0.1)


def test_the_printed_tables_have_ten_configurations_and_four_classes():
    problem = printed_problem()
    assert (MACHINES.sum(), len(CLASSES)) == (12_583, 10)
    assert problem.rate.shape == (10, 4)
    assert problem.rate[0] == pytest.approx(1 / HOURS)
    assert SHARES.sum() == pytest.approx(1.0)


# Measures


def test_measures_by_hand():
    """One slot: starts at 0, 10 and 20 of tasks that came at 0, 0 and 5; the last comes when nobody is there."""
    case = plain((0, 10, 1), (0, 10, 1), (5, 10, 1), (DAY_S + 1, 10, 1)), fleet_of((1,), resources=CPU)
    run = measured(simulate(*case, find_scheduler("first-fit"), interval=10.0), case[0], DAY_S, 40.0)
    assert run.mean == (0 + 10 + 15 + 0) / 4
    assert run.weighted == run.mean
    assert run.later == 0.0
    assert run.begun.tolist() == [25 / 3, 0.0]
    assert run.longer_than(12.0) == pytest.approx(1 / 4)
    assert run.tail[0] == 1 / 2
    assert run.waiting[:3].tolist() == [1.5, 1.0, 0.0]
    assert (run.unstarted, run.unplaceable, run.lost) == (0, 0, 0)
    assert TAILS.size == run.tail.size


def test_a_weighted_mean_counts_large_tasks_more():
    case = plain((0, 10, 1), (0, 10, 3), (0, 10, 4)), fleet_of((4,), resources=CPU)
    run = measured(simulate(*case, find_scheduler("first-fit"), interval=10.0), case[0], DAY_S, 40.0)
    assert run.mean == 10 / 3
    assert run.weighted == (4 * 10) / 8


def test_queues_are_measured_up_to_the_last_arrival():
    """One task runs for 1,000 s while nobody waits: the 20 s in which others arrive are all queue."""
    case = plain((0, 1000, 1), (0, 10, 3), (0, 10, 3), (20, 10, 3)), fleet_of((4,), resources=CPU)
    run = measured(simulate(*case, find_scheduler("first-fit"), interval=10.0), case[0], DAY_S, 20.0)
    assert run.waiting.tolist() == [1.0, 0.0]
    longer = measured(simulate(*case, find_scheduler("first-fit"), interval=10.0), case[0], DAY_S, 1000.0)
    assert longer.waiting.mean() == 0.01


def test_table_1_allows_fewer_bins_than_thousands():
    """By hand: of two classes that ask for 2 and 1 of 4 cores; as printed every step back counts.

    These are, after the first bin 2+0: 1+0; 1+1, 1+0, 0+0; 0+3, 0+2, 0+1, 0+0.
    """
    machine = build_machine(np.array([4]), np.array([[2, 1]]), np.array([0, 1]))
    assert sorted(map(tuple, all_bins(machine, 10).tolist())) == [(0, 4), (1, 2), (2, 0)]
    assert as_printed(machine) == 9
    assert bins_allowed() == (238, 3407)


def test_the_program_has_other_optimal_vertices_than_the_one_that_is_found():
    """The same program listed backwards has the same rate, and other machines serve other classes."""
    problem = without_misfits(printed_problem())
    found, other = solve_allocation(problem), _in_reverse(problem)
    assert other.rate == pytest.approx(found.rate, rel=1e-9)
    assert other.jobs.sum(axis=0) == pytest.approx(found.jobs.sum(axis=0))  # of each class, in the printed order
    assert ((other.jobs > 0) != (found.jobs > 0)).any()
    used = other.jobs @ problem.request.T  # [configuration, resource]
    assert (used <= (problem.capacity * problem.machines).T * (1 + 1e-9)).all()


# Claims


def test_figures_are_chosen():
    assert chosen_figures(None, past_the_paper=False) == list(DEFAULT)
    assert chosen_figures(None, past_the_paper=True) == list(FIGURES)
    assert chosen_figures("8, tables", past_the_paper=False) == ["tables", "8"]
    assert {claim.figure for claim in CLAIMS} <= set(FIGURES)


def test_a_bound_in_words_is_named():
    for claim in CLAIMS:
        bounded = claim.least is not None or claim.most is not None
        if claim.figure in DEFAULT:
            assert bounded or claim.says.startswith("not in the paper"), claim.says


# Small runs of every figure; most of their kernels other tests compile, too


SMALL = """
import json
import sys
from subak.cli.main import main
from subak.reproduce.lotes import experiments as lotes
from subak.reproduce.lotes import study as lotes_study
from subak.reproduce.lotes.workload import Month
from small import TWO, fleet_of, plain

few = Month(600, 1.5, 0.95, 0.3, 1.1)
fewer = few._replace(tasks=400, days=0.2)
lotes_study.QUICK = lotes_study.Scale(few, 1000, fewer, fewer, (0.8, 0.95), (0.0, 0.25),
                                      Month(300, 0.02, 0.9, 0.0, 0.5), 2, (0.0, 0.5), (1.0, 2.0))
lotes_study.sample = lambda: (plain(*[(row * 0.3, 5, 1 + row % 2, 2 - row % 2) for row in range(300)], resources=TWO),
                              fleet_of(*[(4, 4)] * 4, resources=TWO))
kept, reproduce = [], lotes.reproduce
lotes.reproduce = lambda study, keys: kept.append(reproduce(study, keys)) or kept[0]
folder = sys.argv[1]
sys.argv = ["subak", "reproduce", "lotes", "--quick", "--only", ",".join(lotes.FIGURES), "--out", folder + "/page"]
try:
    main()
except SystemExit as ended:
    assert not ended.code
found = kept[0]
open(folder + "/found.json", "w").write(json.dumps({
    "keys": [figure.key for figure in found.figures],
    "rows": [[row.figure, row.claim, row.measured, row.verdict] for row in found.rows],
    "numbers": {figure.key: figure.numbers for figure in found.figures},
    "tables": {figure.key: figure.table.to_dicts() for figure in found.figures}}))
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    paths = os.pathsep.join([str(Path(__file__).parents[1] / "support"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-c", SMALL, str(folder)], capture_output=True, text=True, check=False,
                          env={**os.environ, "COLUMNS": "200", "PYTHONPATH": paths},
                          timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return {**json.loads((folder / "found.json").read_text()), "page": folder / "page", "out": done.stdout}


def test_every_figure_is_measured_and_judged(small):
    assert small["keys"] == list(FIGURES)
    assert len(small["rows"]) == len(CLAIMS)
    assert {claim.number for claim in CLAIMS} <= {name for numbers in small["numbers"].values() for name in numbers}


def test_the_tables_do_not_depend_on_the_size(small):
    numbers = small["numbers"]["tables"]
    assert numbers["lambda"] == pytest.approx(1.0, abs=1e-6)
    assert numbers["rounding"] < 0.001
    assert [row["classes of the paper"] for row in small["tables"]["tables"]] == CLASSES.tolist()


def test_every_task_is_accounted_for(small):
    for key in ("6", "why", "options", "loads", "errors", "mix", "usage", "locality", "fairness"):
        assert all(row.get("never started", 0) == 0 for row in small["tables"][key]), key
    assert {row["scheduler"] for row in small["tables"]["6"]} == {"greedy", "tetris", "lotes"}
    for row in small["tables"]["errors"]:
        assert (row["attempts lost"] > 0) == (row["error (share)"] > 0)


def test_the_page_has_a_chart_for_every_figure(small):
    page = (small["page"] / "index.html").read_text()
    for key in FIGURES:
        assert (small["page"] / f"figure-{key}.svg").stat().st_size > 1000
    assert page.count("<figure") == len(FIGURES)
