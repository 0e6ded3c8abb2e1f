"""Differences over seeds: by hand, and how often a 95 % interval holds the truth; who is marked as best."""
from pathlib import Path

import numpy as np
import pytest

from fake_runs import write_run
from subak.measures.intervals import SEEDS_MIN, interval, mean_interval, paired, relative
from subak.measures.runs import Run, Spread, Summary, WindowFacts, load_runs
from subak.report.comparison import compare
from subak.report.notes import notes


def runs_of(**waits):
    """Runs with the mean wait of each seed from 1 on."""
    return [Run(Path(f"{name}-s{seed}"), Summary(
        scheduler=name, label=f"{name}-s{seed}", seed=seed, wait_time=Spread(wait, wait, wait, wait, wait, wait),
        status={"FINISHED": 1}, options={"resample": "sessions"}))
        for name, of in waits.items() for seed, wait in enumerate(of, start=1)]


def mean_wait(runs):
    return next(row for row in compare(runs) if (row.measure.family, row.measure.title) == ("Wait time", "mean"))


def test_values_are_paired_by_seed_and_compared_by_their_means():
    values, baseline = paired({3: 6.0, 1: 2.0, 9: 1.0}, {1: 4.0, 3: 4.0, 2: 100.0})
    assert (values.tolist(), baseline.tolist()) == ([2.0, 6.0], [4.0, 4.0])
    assert relative(values, baseline) == 0.0
    assert relative(np.array([3.0]), np.array([4.0])) == -0.25
    assert relative(np.array([3.0]), np.array([0.0])) is None
    assert relative(np.zeros(0), np.zeros(0)) is relative(np.zeros(1), np.zeros(0)) is None
    assert relative(np.array([-5.0]), np.array([-10.0])) is None  # it would say that half of a gain costs less


def test_an_interval_takes_seeds_and_a_baseline_that_is_something():
    ones = np.ones(SEEDS_MIN)
    assert interval(2 * ones, ones) == (1.0, 1.0)
    assert interval(ones, ones) == (0.0, 0.0)
    assert interval(2 * ones[1:], ones[1:]) is None
    assert interval(ones, 0 * ones) is None and interval(-ones, -2 * ones) is None and interval(-ones, -ones) is None
    nearly_nothing = np.array([-10.0, 11.0, -10.0, 11.0, -10.0, 11.0])  # of some samples it is below nothing
    assert interval(nearly_nothing + 1, nearly_nothing) is None
    assert interval(np.append(ones, np.inf), np.append(ones, 1.0)) is None


def test_an_interval_of_a_mean_by_the_table_of_student():
    """Of 8 to 13 the mean is 10.5, its standard error sqrt(3.5 / 6), and the 0.975 quantile of 5 degrees 2.570582."""
    values, half = np.arange(8.0, 14.0), 2.570582 * np.sqrt(3.5 / 6)
    assert values.size == SEEDS_MIN
    of_mean = half / 10.5
    assert mean_interval(values) == pytest.approx((10.5 * np.exp(-of_mean), 10.5 * np.exp(of_mean)), rel=1e-6)
    assert mean_interval(values - 20) == pytest.approx((-9.5 - half, -9.5 + half), rel=1e-6)  # a cost may be below 0
    assert mean_interval(values - 10.5) == pytest.approx((-half, half), rel=1e-6)
    of_least = half / 2.5
    assert mean_interval(values - 8) == pytest.approx((2.5 * np.exp(-of_least), 2.5 * np.exp(of_least)), rel=1e-6)
    assert mean_interval(0 * values) == (0.0, 0.0)
    assert mean_interval(values[1:]) is None and mean_interval(np.append(values, np.inf)) is None
    assert mean_interval((values - 8.5) / 2)[0] == pytest.approx(1 - half / 2, abs=1e-5)  # one value is below 0


def test_an_interval_is_paired_and_the_same_each_time():
    """What two schedulers have in common, a seed with much work, does not blur their difference."""
    load = np.array([1.0, 100.0, 5.0, 50.0, 2.0, 20.0, 70.0, 9.0])
    low, high = interval(0.9 * load, load)
    assert low == pytest.approx(-0.1) and high == pytest.approx(-0.1)
    assert interval(load[::-1], load)[0] < -0.3  # the same values, of other seeds
    assert interval(0.9 * load, load) == (low, high)


def test_most_intervals_hold_the_truth():
    random = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        baseline = random.lognormal(0.0, 0.5, 20)
        values = 1.2 * baseline * random.lognormal(0.0, 0.1, 20)
        low, high = interval(values, baseline)
        held += low <= 1.2 * np.exp(0.1**2 / 2) - 1 <= high
    assert 0.88 <= held / 300 <= 0.97


def test_one_is_marked_as_best_only_where_that_is_decided():
    clear = runs_of(slow=[10, 20, 30, 40, 50, 60], fast=[9, 17, 27, 35, 46, 55])
    assert mean_wait(clear).best == frozenset({1})
    assert mean_wait(clear).difference(1) == pytest.approx(189 / 210 - 1)
    low, high = mean_wait(clear).interval(1)
    assert low < 189 / 210 - 1 < high < 0
    assert mean_wait(clear).difference(0) is mean_wait(clear).interval(0) is None
    assert mean_wait(clear).difference(0, baseline=1) == pytest.approx(210 / 189 - 1)
    chance = runs_of(slow=[10, 20, 30, 40, 50, 60], fast=[5, 25, 29, 45, 45, 58])
    assert mean_wait(chance).best == frozenset()
    third = runs_of(slow=[10, 20, 30, 40, 50, 60], fast=[9, 17, 27, 35, 46, 55], alike=[9, 16, 28, 35, 47, 54.5])
    assert mean_wait(third).best == frozenset()  # better than one, not than both
    few = runs_of(slow=[10, 20, 30], fast=[1, 2, 3])
    assert mean_wait(few).best == frozenset() and mean_wait(few).interval(1) is None
    single = runs_of(slow=[10], fast=[1])
    assert mean_wait(single).best == frozenset({1})


def test_a_scheduler_that_was_run_once_is_compared_with_each_seed():
    runs = runs_of(drawn=[10, 20, 30, 40, 50, 60]) + runs_of(fixed=[5])
    fixed = mean_wait(runs)
    assert fixed.values == [35, 5]
    assert fixed.difference(1) == pytest.approx(5 / 35 - 1)
    assert fixed.best == frozenset({1})


def test_what_is_said_below_a_table():
    one, few, many = (" ".join(notes(runs_of(a=[1] * count, b=[2] * count))) for count in (1, 3, 6))
    assert "best of these single runs" in one
    assert "No value is marked as best: 95 % intervals take 6 seeds, there are 3" in few
    assert "Means over 3 seeds, sessions of users drawn anew for each." in few
    assert "better than each other by a 95 % interval" in many
    once = " ".join(notes(runs_of(a=[1, 2]) + runs_of(b=[2])))
    assert "A seed changes nothing for b: run once." in once
    run = runs_of(a=[1])[0]
    measured = Run(run.folder, Summary(scheduler="a", window=WindowFacts(60.0, 7200.0, "as asked for", 30, 12)))
    assert notes([measured]) == ["Measured from 60 s to 2 h (as asked for): 30 tasks that arrive then, 12 left out; "
                                 "means over time are of that time."]


def test_runs_are_in_the_order_that_was_asked_for(tmp_path):
    for label in ("b", "a", "c"):
        write_run(tmp_path / "runs" / label, label, tasks=50)
    assert [run.label for run in load_runs(tmp_path)] == ["a", "b", "c"]
    (tmp_path / "comparison.toml").write_text('runs = ["c", "a", "b"]\n')
    assert [run.label for run in load_runs(tmp_path)] == ["c", "a", "b"]
