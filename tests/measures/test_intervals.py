"""Differences over seeds: by hand, and how often a 95 % interval holds the truth; who is marked as best."""
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from scipy.stats import t as student

from fake_runs import write_run
from subak.measures.intervals import (
    BY_COUNT,
    BY_DIFFERENCE,
    BY_LOGARITHM,
    BY_OFFSET,
    NOT_COMPARED,
    PAIRS_MIN,
    SEEDS_MIN,
    Difference,
    Redrawn,
    TraceDays,
    difference,
    holm,
    mean_interval,
    paired,
    relative,
)
from subak.measures.run_folders import load_runs
from subak.measures.runs import RedrawnFacts, Run, Spread, Summary, WindowFacts
from subak.report.comparison import compare
from subak.report.notes import difference_notes, notes, stretch_of


def runs_of(**waits):
    """Runs with the mean wait of each seed from 1 on."""
    return [Run(Path(f"{name}-s{seed}"), Summary(
        scheduler=name, label=f"{name}-s{seed}", seed=seed, wait_time=Spread(wait, wait, wait, wait, wait, wait),
        status={"FINISHED": 1}, options={"resample": "model"}))
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


def test_a_difference_by_hand():
    """Ratios 1/2, 1, 2, 4: logarithms of mean ln(4) / 4, deviation ln(2) sqrt(5 / 3), t of 3 degrees 3.182446."""
    baseline, values = np.array([8.0, 3.0, 5.0, 2.0]), np.array([4.0, 3.0, 10.0, 8.0])
    found = difference(values, baseline)
    half = 3.182446 * np.log(2) * np.sqrt(5 / 3) / 2
    assert found.share == pytest.approx(4 ** (1 / 4) - 1) and found.way == BY_LOGARITHM
    assert found.ends == pytest.approx((np.exp(np.log(4) / 4 - half) - 1, np.exp(np.log(4) / 4 + half) - 1), rel=1e-6)
    assert found.of_means == pytest.approx(25 / 18 - 1)
    assert found.p == pytest.approx(0.4950, abs=1e-4) and not found.is_decided  # t = 0.7746


def test_a_difference_takes_three_seeds_and_numbers():
    ones = np.ones(PAIRS_MIN)
    assert difference(2 * ones, ones)[:4] == (pytest.approx(1.0), pytest.approx((1.0, 1.0)), 0.0, 1.0)
    assert difference(ones, ones)[:4] == (0.0, (0.0, 0.0), 1.0, 0.0)
    assert difference(2 * ones[1:], ones[1:])[1:3] == (None, None) and difference(2 * ones[1:], ones[1:]).share == 1.0
    assert difference(np.array([3.0]), np.array([4.0])) == Difference(-0.25, of_means=-0.25)
    assert difference(np.zeros(0), np.zeros(0)) == NOT_COMPARED
    endless = difference(np.append(ones, np.inf), np.append(ones, 1.0))
    assert (endless.share, endless.ends, endless.p) == (None, None, None)


def test_zeros_are_moved_by_a_share_of_the_mean_of_all():
    values, baseline = np.array([0.0, 3.0, 6.0, 1.0]), np.array([2.0, 4.0, 8.0, 8.0])
    moved = difference(values + 0.2, baseline + 0.2)  # the mean of all eight is 4
    found = difference(values, baseline)
    assert found.offset == pytest.approx(0.2) and found.way == BY_OFFSET
    assert found.share == pytest.approx(moved.share) and found.ends == pytest.approx(moved.ends)
    assert found.p == pytest.approx(moved.p) and found.of_means == pytest.approx(10 / 22 - 1)


def test_where_a_third_of_the_seeds_are_zero_for_both_it_counts_who_was_better():
    baseline = np.array([0.0, 0.0, 0.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    found = difference(baseline / 2, baseline)
    assert found.ends is None and found.way == BY_COUNT and found.share == found.of_means == -0.5
    assert found.p == pytest.approx(2 / 2**6)  # six of six
    nothing = difference(np.zeros(6), np.zeros(6))
    assert (nothing.share, nothing.ends, nothing.p) == (None, None, 1.0)
    assert difference(baseline[1:] / 2, baseline[1:]).way == BY_OFFSET  # two of eight are fewer than a third


def test_amounts_below_zero_are_subtracted():
    """Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), t of 2 degrees 4.302653."""
    baseline = np.array([-1.0, 10.0, 6.0])
    found = difference(baseline + np.array([1.0, 2.0, 3.0]), baseline)
    half = 4.302653 / np.sqrt(3)
    assert found.ends == pytest.approx(((2 - half) / 5, (2 + half) / 5), rel=1e-6) and found.way == BY_DIFFERENCE
    gain = difference(baseline - 10, baseline - 20)
    assert gain.share is None and gain.ends is None and gain.is_decided  # half of a gain is no share of a cost


def test_several_differences_are_judged_by_holms_rule():
    """The least of four by 4, the next by 3, and so on; none is less than one before it, none more than 1."""
    ps = [0.01, 0.04, 0.03, 0.005]
    judged = holm([Difference(p=p) for p in ps] + [NOT_COMPARED])
    assert [each.p for each in judged[:4]] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert judged[4] == NOT_COMPARED
    assert [each.p for each in holm([Difference(p=0.7), Difference(p=0.6)])] == [1.0, 1.0]


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


def test_a_difference_is_paired():
    """What two schedulers have in common, a seed with much work, does not blur their difference."""
    load = np.array([1.0, 100.0, 5.0, 50.0, 2.0, 20.0, 70.0, 9.0])
    low, high = difference(0.9 * load, load).ends
    assert low == pytest.approx(-0.1) and high == pytest.approx(-0.1)
    assert difference(load[::-1], load).ends[0] < -0.3  # the same values, of other seeds


@pytest.mark.parametrize("seeds", [3, 10])
def test_most_intervals_hold_the_typical_seed(seeds):
    """Mean waits of M/M/1 at load 0.9 of 200 jobs, served first in, first out, and 1.2 times as fast by luck."""
    random, held, groups = np.random.default_rng(5), 0, 1000
    slow, fast = waits_mm1(random, groups * seeds)
    truth = np.log(slow / fast).mean()
    for group in range(groups):
        rows = slice(group * seeds, (group + 1) * seeds)
        low, high = difference(slow[rows], fast[rows]).ends
        held += low <= np.expm1(truth) <= high
    assert 0.91 <= held / groups <= 0.98


def test_one_star_in_twenty_is_false_however_many_schedulers_there_are():
    random, false, groups = np.random.default_rng(7), 0, 500
    for _ in range(groups):
        load = random.lognormal(0.0, 1.0, 10)
        schedulers = load * random.lognormal(0.0, 0.2, (8, 10))
        false += any(each.is_decided for each in holm([difference(one, schedulers[0]) for one in schedulers[1:]]))
    assert false / groups <= 0.07


def waits_mm1(random, seeds):
    """Return the mean wait of 200 jobs at a server at load 0.9, float64[seed], and of a server that is 1.2 times as
    fast with the same jobs (Lindley's recursion)."""
    gaps, works = random.exponential(1.0, (seeds, 200)), random.exponential(0.9, (seeds, 200))
    found = []
    for speed in (1.0, 1.2):
        wait, total = np.zeros(seeds), np.zeros(seeds)
        for job in range(200):
            total += wait
            wait = np.maximum(wait + works[:, job] / speed - gaps[:, job], 0.0)
        found.append(total / 200)
    return found


def test_one_is_marked_as_best_only_where_that_is_decided():
    clear = runs_of(slow=[10, 20, 30, 40, 50, 60], fast=[9, 17, 27, 35, 46, 55])
    assert mean_wait(clear).best == frozenset({1})
    against = mean_wait(clear).differences()
    assert against[1].of_means == pytest.approx(189 / 210 - 1) and against[1].is_decided
    low, high = against[1].ends
    assert low < against[1].share < high < 0
    assert against[0] == NOT_COMPARED
    assert mean_wait(clear).differences(baseline=1)[0].of_means == pytest.approx(210 / 189 - 1)
    chance = runs_of(slow=[10, 20, 30, 40, 50, 60], fast=[5, 25, 29, 45, 45, 58])
    assert mean_wait(chance).best == frozenset()
    third = runs_of(slow=[10, 20, 30, 40, 50, 60], fast=[9, 17, 27, 35, 46, 55], alike=[9, 16, 28, 35, 47, 54.5])
    assert mean_wait(third).best == frozenset()  # better than one, not than both
    few = runs_of(slow=[10, 20], fast=[1, 2])
    assert mean_wait(few).best == frozenset() and mean_wait(few).differences()[1].ends is None
    single = runs_of(slow=[10], fast=[1])
    assert mean_wait(single).best == frozenset({1})


def test_none_is_best_whose_typical_seed_says_the_opposite():
    """One seed in which *a* waits for a thousand seconds outweighs five in which it waits half as long as *b*."""
    runs = runs_of(a=[5, 5, 5, 5, 5, 5, 1000], b=[10, 10.1, 9.9, 10, 10.2, 10, 900])
    row = mean_wait(runs)
    found = row.differences()[1]
    assert found.of_means < 0 < found.share and found.is_decided and row.best == frozenset()
    said = difference_notes([("Wait time, mean", row.differences())], ["a", "b"])
    assert "means say the opposite: Wait time, mean of b (+78.9 %, of means \u22126.8 %)" in said[-1]


def test_a_scheduler_that_was_run_once_is_compared_with_each_seed():
    runs = runs_of(drawn=[10, 20, 30, 40, 50, 60]) + runs_of(fixed=[5])
    fixed = mean_wait(runs)
    assert fixed.values == [35, 5]
    assert fixed.differences()[1].of_means == pytest.approx(5 / 35 - 1)
    assert fixed.best == frozenset({1})


def test_what_is_said_below_a_table():
    one, few, many = (" ".join(notes(runs_of(a=[1] * count, b=[2] * count))) for count in (1, 2, 6))
    assert "* best of these single runs, which may be chance: --seeds 1-10, or 1-41 of a trace, gives each " \
        "difference a 95 % interval." in one
    assert "No value is marked as best: 95 % intervals take 3 seeds, there are 2" in few
    assert "Means over 2 seeds, the workload drawn anew from its model for each." in few
    assert "p at most 0.05, over all schedulers of the row (Holm)" in many
    once = " ".join(notes(runs_of(a=[1, 2]) + runs_of(b=[2])))
    assert "A seed changes nothing for b: run once." in once
    run = runs_of(a=[1])[0]
    measured = Run(run.folder, Summary(scheduler="a", window=WindowFacts(60.0, 7200.0, "as asked for", 30, 12)))
    assert notes([measured]) == ["Measured from 60 s to 2 h (as asked for): 30 tasks that arrive then, 12 that do not; "
                                 "means over time are of that time."]


def test_runs_are_in_the_order_that_was_asked_for(tmp_path):
    for label in ("b", "a", "c"):
        write_run(tmp_path / "runs" / label, label, tasks=50)
    assert [run.label for run in load_runs(tmp_path)] == ["a", "b", "c"]
    (tmp_path / "comparison.toml").write_text('runs = ["c", "a", "b"]\n')
    assert [run.label for run in load_runs(tmp_path)] == ["c", "a", "b"]


# -- one trace ---------------------------------------------------------------------------------------------------------

SEVEN = TraceDays(days=7, freedom=5)


def test_a_trace_is_the_estimate_and_the_wider_draws_tell_the_spread():
    """ln ratios of whole days 1, 2, 3 (deviation 1), of users' days 2, 2, 2: sqrt(7 / 5) x t(3 - 1, .975) = 5.0909."""
    logs = np.array([0.5, 1.0, 2.0, 2.0, 2.0, 3.0, 2.0])
    found = difference(np.exp(logs), np.ones(7), Redrawn(tuple(range(1, 8)), SEVEN))
    assert found.share == pytest.approx(math.expm1(0.5)) and found.of_means is None
    assert np.log1p(found.ends) == pytest.approx((0.5 - 5.0909, 0.5 + 5.0909), abs=2e-4)
    assert found.p == pytest.approx(2 * student.sf(0.5 / math.sqrt(7 / 5), 2))
    without = difference(np.exp(logs[1:]), np.ones(6), Redrawn(tuple(range(2, 8)), SEVEN))
    assert without.share == pytest.approx(math.expm1(2.0))  # the mean of the draws
    few = difference(np.exp(logs[:6]), np.ones(6), Redrawn(tuple(range(1, 7)), SEVEN))
    assert (few.share, few.ends, few.p) == (found.share, None, None)


def test_more_draws_of_a_trace_narrow_nothing_beyond_its_days():
    """With 40 draws of each kind of two values, t has the days' 5 degrees of freedom and the deviation stays."""
    seeds = tuple(range(1, 82))
    logs = np.array([0.0, *(0.1 * (-1) ** (seed // 2) for seed in seeds[1:])])
    ends = difference(np.exp(logs), np.ones(81), Redrawn(seeds, SEVEN)).ends
    assert math.log1p(ends[1]) == pytest.approx(2.5706 * 0.1 * math.sqrt(40 / 39) * math.sqrt(7 / 5), rel=1e-4)


def test_draws_of_a_trace_with_zeros_and_with_values_below_zero():
    seeds = Redrawn(tuple(range(1, 8)), SEVEN)
    zero = np.array([1.0, 0.0, 1.0, 2.0, 1.0, 1.0, 2.0])
    assert difference(zero, zero + 1, seeds).way == BY_OFFSET
    none = difference(np.array([2.0, 0, 0, 0, 1, 1, 1]), np.array([1.0, 0, 0, 0, 1, 1, 1]), seeds)
    assert none == Difference(1.0, way=BY_COUNT)  # draws are no trials that may be counted
    below = difference(np.array([-1.0, 1, 2, 3, 1, 2, 3]), np.full(7, 2.0), seeds)
    assert (below.way, below.share) == (BY_DIFFERENCE, -1.5)


def test_an_interval_of_a_value_on_a_trace():
    seeds = Redrawn(tuple(range(1, 8)), SEVEN)
    values = np.exp([0.5, 1.0, 2.0, 2.0, 2.0, 3.0, 2.0])
    assert np.log(mean_interval(values, seeds)) == pytest.approx((0.5 - 5.0909, 0.5 + 5.0909), abs=2e-4)
    low, high = mean_interval(np.array([1.0, 0.0, 1.0, 2.0, 1.0, 1.0, 2.0]), seeds)
    assert low == 0.0 and high > 1.0
    assert mean_interval(np.zeros(7), seeds) == (0.0, 0.0)
    assert mean_interval(values[:6], Redrawn(tuple(range(1, 7)), SEVEN)) is None


@pytest.mark.parametrize("days", [5, 7, 28])
def test_most_intervals_of_one_trace_hold_the_typical_week(days):
    """A week's value is the mean over its days of what each brings by chance; draws take days anew, as in a trace."""
    random, held, seeds = np.random.default_rng(days), 0, tuple(range(1, 42))
    for _ in range(600):
        each = random.normal(0.0, 1.0, days)
        logs = np.array([each.mean(), *(each[random.integers(days, size=(40, days))].mean(axis=1))])
        low, high = mean_interval(np.exp(logs), Redrawn(seeds, TraceDays(days, days - 1)))
        held += low <= 1.0 <= high
    assert 0.93 < held / 600 < 0.99  # the wider one of two kinds of draws is taken


def test_values_of_a_comparison_are_those_on_the_trace_and_so_is_the_best():
    """The first seed is the trace: 1 against 2 there, whatever the draws are in the mean."""
    runs = [replace(run, summary=structs.replace(run.summary, redrawn=RedrawnFacts(7, 86_400.0, 5, 100.0)))
            for run in runs_of(a=[1.0, *[3.0, 3.1] * 10], b=[2.0, *[6.0, 6.2] * 10])]
    row = mean_wait(runs)
    assert row.values == [1.0, 2.0] and row.best == {0}
    assert row.differences()[1].share == pytest.approx(1.0)
    said = " ".join(notes(runs))
    assert "Values are of the trace itself. For the intervals its 7 days were drawn anew: 10 times for all" in said
    assert "Intervals narrow with more draws, up to --seeds 1-41." in said
    assert "Beware: the mean wait of the median draw is not the trace's: a (+205 %), b (+205 %)." in said
    assert "Differences are the trace's own" in " ".join(difference_notes([("wait", row.differences())], "ab", SEVEN))
    assert "Means over" not in said
    without = [run for run in runs if run.summary.seed > 1]
    assert mean_wait(without).values == pytest.approx([3.05, 6.1])
    assert "Values are means over draws of the trace's days; seed 1 is the trace itself." in " ".join(notes(without))
    few = " ".join(notes([run for run in runs if run.summary.seed < 7]))
    assert "No value is marked as best: 95 % intervals of a trace take seeds 1-7, not 6." in few
    uneven = [replace(run, summary=structs.replace(run.summary, redrawn=RedrawnFacts(8, 600.0, 7, 12.4)))
              for run in runs]
    said = " ".join(notes(uneven))
    assert "its 8 parts of 10 min were drawn anew" in said
    assert "as uneven as that of 12 alike sessions of users, so intervals may be too narrow" in said


def test_days_that_differ_for_everybody_are_said():
    whole, users = (10.0 * factor ** (-1.0) ** np.arange(10) for factor in (1.5, 1.1))
    waits = [10.0, *np.column_stack([whole, users]).ravel().tolist()]
    runs = [replace(run, summary=structs.replace(run.summary, redrawn=RedrawnFacts(7, 86_400.0, 5, 100.0)))
            for run in runs_of(a=waits)]
    assert "Days differ for all users alike, more than each user's days do apart: by the waits of a." in notes(runs)
    other = [replace(run, summary=structs.replace(run.summary, seed=run.summary.seed + 1)) for run in runs[1:]]
    assert not any("alike" in note for note in notes([runs[0], *other]))


@pytest.mark.parametrize(("days", "words"), [
    ([7], "week"), ([7, 7], "week"), ([10], "stretch as long as the trace"), ([7, 10], "stretch as long as the trace")])
def test_only_a_trace_of_seven_days_has_a_typical_week(days, words):
    assert stretch_of(days) == words
