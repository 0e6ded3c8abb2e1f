"""Fairness of a run: hand-worked cases, a plain twin, and what reaches the folder, the page and the terminal."""
import io
import json
import math
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from naive_fairness import plain_fairness, plain_rows
from small import CPU, TWO, fleet_of, staged
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.federation.settings import Federation
from subak.fleet.capacity import Capacity, capacity_steps
from subak.measures.fairness.integrals import Measured
from subak.measures.fairness.measure import field_of
from subak.measures.fairness.rows import NO_NODE
from subak.measures.fairness.rows import rows_of as rows_of_events
from subak.measures.fairness.spans import Part, Trail, between, cuts_of, sample_step, sampled, spans
from subak.measures.fairness.sweep import Bins, Demand, Events, _in_time, _order, sweep
from subak.measures.fairness.tally import FairnessTally
from subak.measures.run_folders import load_runs
from subak.placement.claims import STATUSES
from subak.queues.tree import Queue, TreeFile, queue_leaves, tree_of_paths
from subak.report.charts.fairness import fairness_chart_makers
from subak.report.charts.runs import chart_makers
from subak.report.comparison import compare
from subak.report.page import write_report
from subak.report.terminal import comparison_table, run_panel
from subak.workload.stored import HeldWorkload
from subak.workload.table import make_workload

INF = math.inf


def fairness(tasks, attempts, timeline, workload, fleet, file=None):
    """The measures of a run by its tables, with all tasks and lost attempts."""
    field = field_of(timeline, workload, fleet, file)
    if field is None:
        return None
    tally = FairnessTally(field, HeldWorkload(workload).of_stage, len(attempts), None)
    tally.add(tasks, attempts, np.arange(len(attempts)), workload)
    return tally.fairness()



def queued(*jobs, resources=CPU):
    """A workload of jobs (queue, request, tasks), a task being (arrival, run time)."""
    stages = [{"job": number, "request": request} for number, (_, request, _) in enumerate(jobs)]
    rows = [(number, *task) for number, (_, _, tasks) in enumerate(jobs) for task in tasks]
    workload = staged(stages, rows, resources)
    table = workload.jobs.with_columns(pl.Series("queue", [queue for queue, _, _ in jobs]))
    natural = workload.stages.with_columns(pl.col(each.name) * each.unit for each in resources)
    return make_workload(table, natural, workload.tasks, resources)


def ran(workload, times, end, lost=(), interval=None, status=None):
    """The tables of a run: *times* are (ready, start, finish) of each task, *lost* (task, start, end)."""
    names = workload.jobs["queue"].unique(maintain_order=True)
    job = workload.stages["job"].gather(workload.tasks["stage"])
    columns = dict(zip(("ready", "start", "finish"), zip(*times, strict=True), strict=True))
    known = ["FINISHED" if each[2] is not None else "RUNNING" if each[1] is not None else "WAITING" for each in times]
    tasks = pl.DataFrame([
        job.alias("job"), workload.tasks["index"],
        workload.jobs["queue"].gather(job).cast(pl.Enum(names)).alias("queue"),
        *(pl.Series(name, values, pl.Float64) for name, values in columns.items()),
        pl.Series("status", status or known, dtype=pl.Enum(STATUSES)),
    ])
    rows = [task for task, _, _ in lost]
    attempts = pl.DataFrame([
        job.gather(rows).alias("job"), workload.tasks["index"].gather(rows),
        pl.Series("start", [start for _, start, _ in lost], pl.Float64),
        pl.Series("end", [until for _, _, until in lost], pl.Float64),
    ])
    width = interval or end
    begin = np.arange(0.0, end, width)
    return tasks, attempts, pl.DataFrame({"time": begin, "span": np.minimum(width, end - begin)})


def rows_of(found):
    return {row["queue"]: row for row in found.queues.iter_rows(named=True)}


# -- by hand -----------------------------------------------------------------------------------------------------------


def test_two_queues_by_hand():
    """Four cores. From 0 to 10 `a` holds 3, `b` waits until 4 and holds 1 then; `a` has a task that waits from 2 to 10.

    b: guaranteed 1/2 from 0 to 10, waits and holds nothing from 0 to 4: 4 s of 1/2. From 4 on nothing of it waits.
    a: holds 3/4, which is above 1/2 while its task waits. From 10 to 20 it is alone, and guaranteed all: its fourth
    task runs, nothing waits.
    """
    workload = queued(("a", (1,), [(0, 10), (0, 10), (0, 10), (2, 10)]), ("b", (1,), [(0, 6)]))
    by_arrival = workload.tasks["arrival"].to_list()
    assert by_arrival == [0, 0, 0, 0, 2]  # the task of b is the fourth
    times = [(0, 0, 10), (0, 0, 10), (0, 0, 10), (0, 4, 10), (2, 10, 20)]
    found = fairness(*ran(workload, times, 20.0), workload, fleet_of((4,)))
    a, b = rows_of(found)["a"], rows_of(found)["b"]
    assert (a["share_mean"], b["share_mean"]) == pytest.approx(((30 + 10) / 80, 6 / 80))
    assert (a["guarantee_mean"], b["guarantee_mean"]) == pytest.approx(((5 + 10) / 20, 5 / 20))
    assert (a["demanding"], b["demanding"]) == (8, 4)
    assert (a["shortfall"], b["shortfall"]) == pytest.approx((0, 2))
    assert (a["shortfall_mean"], b["shortfall_mean"]) == pytest.approx((0, 0.5))
    assert (a["starved_longest"], b["starved_longest"]) == (0, 4)
    assert (a["guarantee"], a["jobs"], a["tasks"], b["tasks"]) == (0.5, 1, 4, 1)
    level, = found.facts.levels
    assert level.jain == pytest.approx(0.5)  # from 2 to 4 both demand: a has all, b nothing
    assert (found.facts.queues, found.facts.short, found.facts.starved_longest) == (2, 1, 4)
    assert found.facts.shortfall_mean == pytest.approx(2 / 12)


def test_weights_and_levels_by_hand():
    """Ten cores. org has three times the weight of lab; within org, x and y are alike. All wait from 0 to 10."""
    workload = queued(("org/x", (1,), [(0, 10)] * 2), ("org/y", (1,), [(0, 10)] * 2), ("lab", (2,), [(0, 10)] * 2))
    file = TreeFile(queue=[Queue(name="org", weight=3.0)])
    times = [(0, 0, 10), (0, 10, 20), (0, 10, 20), (0, 10, 20), (0, 0, 10), (0, 10, 20)]
    found = fairness(*ran(workload, times, 20.0), workload, fleet_of((10,)), file)
    rows = rows_of(found)
    assert {name: row["guarantee"] for name, row in rows.items()} == pytest.approx(
        {"org": 0.75, "org/x": 0.375, "org/y": 0.375, "lab": 0.25})
    # from 0 to 10: org holds 1 of 10 and is guaranteed 7.5, x 1 of 3.75, y 0 of 3.75, lab 2 of 2.5
    assert {name: row["shortfall"] for name, row in rows.items()} == pytest.approx(
        {"org": 6.5, "org/x": 2.75, "org/y": 3.75, "lab": 0.5})
    ratio = (0.1 / 0.75, 0.2 / 0.25)
    first, second = found.facts.levels
    assert first.jain == pytest.approx(sum(ratio) ** 2 / (2 * sum(value**2 for value in ratio)))
    assert second.jain == pytest.approx(0.5)
    assert found.facts.shortfall == pytest.approx(2.75 + 3.75 + 0.5)  # leaves only


def test_a_lost_attempt_holds_until_it_is_lost_and_waits_again():
    workload = queued(("a", (1,), [(0, 4)]), ("b", (1,), [(0, 8)]))
    lost = [(0, 0.0, 3.0)]
    found = fairness(*ran(workload, [(0, 5, 9), (0, 0, 8)], 10.0, lost), workload, fleet_of((2,)))
    a = rows_of(found)["a"]
    assert a["share_mean"] == pytest.approx((3 + 4) / 2 / 10)
    assert (a["demanding"], a["starved_longest"]) == (2, 2)
    assert a["shortfall"] == pytest.approx(2 * 0.5)


def test_capacity_changes_change_shares():
    """A second machine of 2 comes at 4 and the first leaves at 8: of 2, 4 and 2 cores."""
    workload = queued(("a", (1,), [(0, 20)]), ("b", (1,), [(0, 20)]))
    fleet = fleet_of((2,), (2,), present=[True, False], changes=[(4, 1, True, 2), (8, 0, False, 2)])
    steps = capacity_steps(fleet)
    assert (steps.time.tolist(), steps.amount.tolist()) == ([0, 4, 8], [[2, 4, 2]])
    tables = ran(workload, [(0, 0, 10), (0, None, None)], 10.0, interval=5.0)
    found = fairness(*tables, workload, fleet)
    rows = rows_of(found)
    assert rows["a"]["share_mean"] == pytest.approx((4 / 2 + 4 / 4 + 2 / 2) / 10)
    assert rows["b"]["shortfall"] == pytest.approx(5.0)
    shares = found.shares.filter(pl.col("queue").cast(pl.String) == "a")
    assert shares["share"].to_list() == pytest.approx([(4 / 2 + 1 / 4) / 5, (3 / 4 + 2 / 2) / 5])


def test_a_machine_that_shrinks_and_comes_back_counts_as_it_is():
    fleet = fleet_of((8,), changes=[(1, 0, True, 4), (2, 0, False, 4), (2, 0, True, 6), (3, 0, False, 6)])
    steps = capacity_steps(fleet)
    assert (steps.time.tolist(), steps.amount.tolist()) == ([0, 1, 2, 3], [[8, 4, 6, 0]])


def test_what_no_machine_could_hold_is_no_demand():
    workload = queued(("a", (9,), [(0, 4)]), ("b", (1,), [(0, 8)]))
    found = fairness(*ran(workload, [(0, None, None), (0, 0, 8)], 8.0, status=["UNPLACEABLE", "FINISHED"]),
                     workload, fleet_of((2,)))
    assert (rows_of(found)["a"]["demanding"], rows_of(found)["b"]["guarantee_mean"]) == (0, 1)


def test_jobs_of_a_queue_above_others_are_a_leaf_of_their_own():
    workload = queued(("a", (1,), [(0, 4)]), ("a/b", (1,), [(0, 4)]))
    found = fairness(*ran(workload, [(0, 0, 4), (0, 2, 4)], 4.0), workload, fleet_of((2,)))
    assert found.queues["queue"].to_list() == ["a", "a/b", "a/"]
    assert rows_of(found)["a"]["share_mean"] == pytest.approx(rows_of(found)["a/"]["share_mean"] + 0.25)


def test_one_queue_has_no_fairness():
    workload = queued(("a", (1,), [(0, 4)]), ("a", (1,), [(0, 4)]))
    assert fairness(*ran(workload, [(0, 0, 4), (0, 2, 4)], 4.0), workload, fleet_of((2,))) is None


def test_a_run_without_a_moment_has_none_to_measure():
    workload = queued(("a", (1,), [(0, 0)]), ("b", (1,), [(0, 0)]))
    tasks, attempts, timeline = ran(workload, [(0, 0, 0), (0, 0, 0)], 1.0)
    found = fairness(tasks, attempts, timeline.with_columns(span=pl.lit(0.0)), workload, fleet_of((2,)))
    assert (found.facts.shortfall, found.facts.shortfall_mean, len(found.shares)) == (0, None, 0)


@pytest.mark.parametrize(("at", "there"), [(0.0, 4), (3.0, 4), (5.0, 6), (7.0, 6)])
def test_what_there_is_is_known_at_a_moment_too(at, there):
    """A span without length has the capacity of its moment, as one with length has that of its first."""
    tree = tree_of_paths(["a", "b"])
    capacity = Capacity(np.array([0.0, 5.0]), np.array([[4, 6]]))
    for end in (at, at + 1.0):
        events = Events(at, end, tree.leaves, np.full(2, at), np.zeros((2, 2), np.int64))
        chunk, _, instant = _in_time(events, tree, capacity)
        assert chunk.capacity.tolist() == [[there]] and chunk.since.size == 1
        assert (instant.tolist(), chunk.time.tolist()) == ([0, 0], [at, end])


def test_the_smaller_queues_are_put_together():
    jobs = [(f"q{number:02}", (1 + (number < 30),), [(0, 10)]) for number in range(40)]
    workload = queued(*jobs)
    found = fairness(*ran(workload, [(0, 0, 10)] * 40, 10.0, interval=5.0), workload, fleet_of((100,)))
    assert found.shares["queue"].null_count() == 2  # one an interval
    others = found.shares.filter(pl.col("queue").is_null())
    assert others["share"].to_list() == pytest.approx([0.1, 0.1])
    assert others["guarantee"].null_count() == 2
    assert found.shares["queue"].n_unique() == 31


# -- against the plain twin --------------------------------------------------------------------------------------------

PATHS = ["a", "a/x", "a/y", "a/y/deep", "b/x", "b/y", "c"]
TIMES = st.sampled_from([0.0, 0.0, 1.0, 1.5, 2.0, 3.0, 4.25, 6.0, 9.0])


@st.composite
def trails(draw):
    """A tree with weights, requests, attempts with ties and without ends, and a capacity that changes, even to none."""
    paths = draw(st.lists(st.sampled_from(PATHS), min_size=1, max_size=7, unique=True))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=7, max_size=7))
    names = dict.fromkeys("/".join(path.split("/")[:depth]) for path in paths for depth in range(1, 4))
    tree = tree_of_paths(paths, TreeFile(queue=[
        Queue(name=name, weight=weight) for name, weight in zip(names, weights, strict=False)]))
    leaves = queue_leaves(tree, paths).tolist()
    resources = draw(st.integers(1, 3))
    request = np.array(draw(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3),
                                     min_size=resources, max_size=resources)), np.int64)
    request[0, request.sum(axis=0) == 0] = 1
    rows = []
    for _ in range(draw(st.integers(1, 14))):
        waits, starts, ends = sorted(draw(st.tuples(TIMES, TIMES, TIMES)))
        known = draw(st.integers(0, 2))
        rows.append((draw(st.sampled_from(leaves)), draw(st.integers(0, 2)), waits,
                     starts if known else INF, ends if known > 1 else INF))
    for row in draw(st.lists(st.sampled_from(rows), max_size=2)):
        if row[4] < INF:  # lost, and it waits for ever
            rows.append((row[0], row[1], row[4], row[3], row[4]))
    # nobody holds more than there is, unless there is nothing
    times = [0.0, *sorted(set(draw(st.lists(TIMES, max_size=3))) - {0.0})]
    capacity = [(time, tuple(draw(st.sampled_from([50, 64, 100, 0])) for _ in range(resources))) for time in times]
    end = draw(st.sampled_from([5.0, 8.0, 10.0]))
    return tree, request, rows, capacity, draw(st.sampled_from([[0.0, end], [0.0, 1.0, 2.5, end]])), end


def trail_of(case):
    """The trail of a case; each queue has a stage of its own of each kind."""
    tree, request, rows, *_ = case
    leaf, stage, *times = (np.array(column) for column in zip(*rows, strict=True))
    own = np.searchsorted(tree.leaves, leaf) * request.shape[1] + stage
    return Trail(own.astype(np.uint32), *(each.astype(float) for each in times))


def swept(case, events=1_000, parts=None, alone=None):
    """What is measured of a case in spans of so many events; of its *parts*, else of all.

    Every queue is followed by itself, or those of *alone* (bool[node]), and the others of their level together.
    """
    tree, request, rows, capacity, edges, end = case
    trail = trail_of(case)
    demand = Demand(np.repeat(tree.leaves, request.shape[1]), np.tile(request, tree.leaves.size))
    steps = Capacity(np.array([time for time, _ in capacity]), np.array([each for _, each in capacity], np.int64).T)
    place = np.arange(len(tree)) - 1
    bins = Bins(np.array(edges), place if alone is None else np.where(alone, place, -1),
                len(tree) - 1 + np.arange(int(tree.depth.max())))
    cuts = cuts_of(sampled(trail, slice(None)), len(rows), end, events)
    return sweep(parts or [Part(trail, INF)], cuts, demand, tree, steps, bins)


@st.composite
def parted(draw):
    """A case, and its attempts in parts: who comes in a later one changes nothing before it begins."""
    case = draw(trails())
    trail, untils = trail_of(case), sorted(draw(st.lists(TIMES, max_size=4)))
    first = np.minimum(np.minimum(trail.waits, trail.starts), trail.ends)
    latest = np.searchsorted(untils, first, side="right").tolist()
    part = np.array([draw(st.integers(0, each)) for each in latest])
    return case, [Part(Trail(*(column[part == number] for column in trail)), until)
                  for number, until in enumerate([*untils, INF])]


@settings(max_examples=150, deadline=None)
@given(case=trails(), events=st.sampled_from([1_000, 12, 5]))
def test_the_sweep_agrees_with_the_plain_twin(case, events):
    """Also in chunks of a few events, which is where a queue's state is carried on."""
    tree, request, rows, capacity, edges, end = case
    measured = swept(case, events)
    plain = plain_fairness(rows, request, tree, capacity, edges, end)
    for name in ("share", "guarantee", "shortfall", "demanding", "starved"):
        assert getattr(measured, name)[1:] == pytest.approx(list(plain[name].values()), abs=1e-7), name
    assert measured.jain == pytest.approx(list(plain["jain"].values()), abs=1e-6)
    assert measured.jain_time == pytest.approx(list(plain["jain_time"].values()))
    for node in range(1, len(tree)):
        np.testing.assert_allclose(measured.binned[node - 1].T, plain["binned"][node], atol=1e-7)


@settings(max_examples=100, deadline=None)
@given(case=trails(), data=st.data(), events=st.sampled_from([1_000, 5]))
def test_queues_that_are_not_followed_one_by_one_are_followed_together(case, data, events):
    tree, request, rows, capacity, edges, end = case
    alone = np.array([False, *data.draw(st.lists(st.booleans(), min_size=len(tree) - 1, max_size=len(tree) - 1))])
    measured = swept(case, events, alone=alone)
    binned = plain_fairness(rows, request, tree, capacity, edges, end)["binned"]
    for node in np.flatnonzero(alone).tolist():
        np.testing.assert_allclose(measured.binned[node - 1].T, binned[node], atol=1e-7)
    for level in range(1, int(tree.depth.max()) + 1):
        others = np.flatnonzero(~alone & (tree.depth == level)).tolist()
        together = measured.binned[len(tree) - 2 + level].T
        sums = sum((np.array(binned[node]) for node in others), np.zeros(together.shape))
        held = [*range(len(request)), len(request) + 2]  # and what waits; together they have no guarantee
        np.testing.assert_allclose(together[:, held], sums[:, held], atol=1e-7)
        assert not together[:, len(request) + 1].any()


@settings(max_examples=150, deadline=None)
@given(count=st.integers(1, 4), data=st.data())
def test_rows_are_those_of_the_plain_twin(count, data):
    change = st.tuples(st.integers(NO_NODE, 3), st.integers(0, 5), *[st.integers(-2, 2)] * count)
    events = sorted(data.draw(st.lists(change, min_size=1, max_size=20)), key=lambda event: event[1])
    if all(node == NO_NODE for node, *_ in events):
        events = [(0, *rest) for _, *rest in events]
    table = np.array(events, np.int64)
    found = rows_of_events(table[:, 0].copy(), table[:, 1].copy(), table[:, 2:].copy(), 7)
    assert list(zip(found.node, found.begin, found.end, *found.amount, strict=True)) == plain_rows(events, 6)


@settings(max_examples=100, deadline=None)
@given(times=st.lists(st.floats(0, 1e9), min_size=1, max_size=40), share=st.sampled_from([0.0, 1e-9, 1.0]))
def test_events_are_put_in_the_order_of_time(times, share):
    """Where they differ in all of their bits, and in a few."""
    times = 1e6 + np.array(times) * share
    for begin in (0.0, times.min()):
        assert times[_order(times, begin)].tolist() == sorted(times)
        assert sorted(_order(times, begin)) == list(range(times.size))


@settings(max_examples=150, deadline=None)
@given(case=parted(), events=st.sampled_from([1_000, 12, 5, 2]))
def test_attempts_that_come_in_parts_are_measured_to_the_same_bit(case, events):
    case, parts = case
    for name, one, other in zip(Measured._fields, swept(case, events), swept(case, events, parts), strict=True):
        assert one.tobytes() == other.tobytes(), name


def test_no_span_waits_for_more_than_is_known():
    """Nor is anything held of which all that is measured has been."""
    rows = [(0, 0, 0.0, 0.0, 2.0), (0, 0, 1.0, 1.0, 9.0), (0, 0, 1.0, INF, INF), (0, 0, 4.0, 6.0, 20.0)]
    trail = Trail(np.zeros(4, np.uint32), *(np.array(times) for times in list(zip(*rows, strict=True))[2:]))
    given_out = []

    def parts():
        for row, until in enumerate([1.0, 1.0, 4.0, INF]):
            given_out.append(row)
            yield Part(Trail(*(column[row : row + 1] for column in trail)), until)
        raise AssertionError("all was known")

    seen = [(span.begin, span.end, len(given_out), span.trail.stage.size) for span in
            spans(parts(), np.array([0.0, 1.0, 3.0, 5.0, 10.0]))]
    assert seen == [(0, 1, 1, 1), (1, 3, 3, 3), (3, 5, 4, 2), (5, 10, 4, 2)]
    left = between(trail, 3.0, 10.0)
    assert [times.tolist() for times in left[1:]] == [[INF, 4.0], [INF, 6.0], [9.0, INF]]


def test_cuts_are_of_a_sample_of_all_attempts():
    """Of some 40,000 changes between two cuts, and of 300 in a sample for each."""
    random = np.random.default_rng(1)
    waits = np.sort(random.uniform(0, 1000, 400_000))
    trail = Trail(np.zeros(waits.size, np.uint32), waits, waits + 1.0, waits + 50.0)
    step = sample_step(waits.size)
    assert step == 12
    cuts = cuts_of(sampled(trail, slice(None, None, step)), waits.size, 900.0, 40_000)
    counts = np.histogram(np.concatenate(trail[1:]), cuts)[0]
    assert cuts[0] == 0.0 and cuts[-1] == 900.0
    assert counts.size == 30 and abs(counts - 1_200_000 * 0.88 / 30).max() < 2_000


@settings(max_examples=60, deadline=None)
@given(case=trails())
def test_what_children_hold_and_wait_for_is_their_parents(case):
    tree, request, *_, end = case
    measured = swept(case)
    for node, children in enumerate(tree.children):
        if node and children:
            below = measured.binned[[child - 1 for child in children]].sum(axis=0)
            own = measured.binned[node - 1]
            assert below[: len(request)] == pytest.approx(own[: len(request)])
            assert below[-1] == pytest.approx(own[-1])
            assert below[-2] == pytest.approx(own[-2])  # what a queue is guaranteed, its active children are
    assert measured.guarantee[tree.depth == 1].sum() <= end + 1e-9


# -- through a run, to the page and the terminal -----------------------------------------------------------------------


def busy():
    """Two departments of an organisation on two machines: one sends much early, the other a little later."""
    return (queued(("org/one", (1, 2), [(0, 5)] * 6), ("org/two", (1, 1), [(1, 3)] * 3), ("solo", (2, 1), [(2, 4)]),
                   resources=TWO),
            fleet_of((2, 4), (2, 4), resources=TWO, changes=[(3, 0, False, 2, 4), (6, 0, True, 2, 4)]))


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fair") / "R"
    for name in ("first-fit", "best-fit+backfill"):
        scenario = Scenario(schedulers=[name], interval=2.0, measure_until=math.inf)
        simulate_into(folder / "runs" / name, scenario, name, 1, busy())
    return folder


def shown(renderable):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_a_run_writes_its_queues_and_their_shares(comparison):
    for run in load_runs(comparison):
        queues, shares, timeline = run.queues().collect(), run.shares().collect(), run.timeline().collect()
        assert queues["queue"].to_list() == ["org", "org/one", "org/two", "solo"]
        assert queues["tasks"].to_list() == [9, 6, 3, 1]
        assert shares["time"].unique(maintain_order=True).to_list() == timeline["time"].to_list()
        assert run.tasks().select(pl.col("attempts").max()).collect().item() > 1  # something was lost with the machine
        summary = json.loads((run.folder / "summary.json").read_text())["fairness"]
        assert [level["level"] for level in summary["levels"]] == [1, 2]
        assert summary["shortfall"] == pytest.approx(queues.filter("leaf")["shortfall"].sum())


@pytest.mark.parametrize("begin", [0.0, 2.0])
@pytest.mark.parametrize("scheduler", ["first-fit", "best-fit+backfill", "megha", "sparrow"])
def test_the_shares_of_a_level_add_up_to_the_timeline(tmp_path, scheduler, begin):
    """What the engine integrates event by event, of all tasks, is the sum over queues, swept after the run.

    The capacity changes where an interval begins, so a mean of shares is a share of means.
    """
    settings = Federation(global_masters=2) if scheduler in {"megha", "sparrow"} else Federation()
    scenario = Scenario(schedulers=[scheduler], federation=settings, interval=1.0, measure_from=begin,
                        measure_until=math.inf)
    simulate_into(tmp_path / "run", scenario, scheduler, 1, busy())
    run, = load_runs(tmp_path / "run")
    timeline, shares = run.timeline().filter(pl.col("time") >= begin).collect(), run.shares().collect()
    sums = shares.filter(pl.col("level") == 1).group_by("time", maintain_order=True).sum()
    assert sums["time"].to_list() == timeline["time"].to_list()
    assert sums["waiting"].to_list() == pytest.approx(timeline["waiting"].to_list(), abs=1e-9)
    for name in ("cpu", "memory"):
        used = timeline[f"used_{name}"] / timeline[f"capacity_{name}"]
        assert sums[f"share_{name}"].to_list() == pytest.approx(used.to_list(), abs=1e-9)
    attempts = pl.read_parquet(tmp_path / "run" / "attempts.parquet")
    assert run.summary.attempts_lost == len(attempts) > 0
    assert run.summary.run_time_lost == pytest.approx((attempts["end"] - attempts["start"]).sum())


def test_the_page_shows_fairness(comparison, tmp_path):
    text = write_report(comparison, tmp_path / "page.html", tmp_path / "pictures", ["svg"]).read_text()
    for section in ("wait-against-shortfall", "wait-against-jain", "shortfall", "queue-shares", "fairness"):
        assert f'id="{section}"' in text
    assert "org/two" in text
    assert (tmp_path / "pictures" / "wait-against-shortfall.svg").is_file()


def test_the_charts_hold_a_mark_a_run_and_few_points(comparison):
    makers = fairness_chart_makers(load_runs(comparison))
    drawn = {name: make().to_dict() for name, make in makers.items()}
    against = [row for rows in drawn["wait-against-shortfall"]["datasets"].values() for row in rows] \
        if "datasets" in drawn["wait-against-shortfall"] else drawn["wait-against-shortfall"]["data"]["values"]
    assert [row["scheduler"] for row in against] == ["best-fit+backfill", "first-fit"]
    assert all(len(chart["data"]["values"]) <= 5_000 for chart in drawn.values() if "values" in chart.get("data", {}))


def test_the_terminal_shows_fairness_at_80_columns(comparison):
    runs = load_runs(comparison)
    text, panel = shown(comparison_table(runs)), shown(run_panel(runs[0]))
    for words in ("Fairness", "Jain, level 1", "Jain, level 2", "mean shortfall", "longest starved"):
        assert words in text
    assert "Guaranteed" in panel and "org/two" in panel
    assert max(map(len, (text + panel).splitlines())) <= 80
    rows = {(row.measure.family, row.measure.title): row for row in compare(runs)}
    assert all(0 < value <= 1 for value in rows["Fairness", "Jain, level 1"].values)


def test_a_run_with_one_queue_shows_none_of_it(tmp_path):
    workload = queued(("all", (1,), [(0, 5)] * 3), ("all", (1,), [(0, 5)]))
    simulate_into(tmp_path / "run", Scenario(), "first-fit", 1, (workload, fleet_of((2,))))
    run, = load_runs(tmp_path / "run")
    assert not (run.folder / "queues.parquet").exists() and not (run.folder / "shares.parquet").exists()
    assert run.summary.fairness is None
    assert fairness_chart_makers([run]) == {}
    assert chart_makers([run])
    assert "airness" not in write_report(run.folder).read_text().split("<script", maxsplit=1)[0]
    assert "Guaranteed" not in shown(run_panel(run)) and "Jain" not in shown(comparison_table([run]))


def test_weights_of_a_file_reach_the_measures(tmp_path):
    (tmp_path / "tree.toml").write_text('[[queue]]\nname = "solo"\nweight = 3.0\n')
    scenario = Scenario(schedulers=["first-fit+drf"], queues=str(tmp_path / "tree.toml"))
    simulate_into(tmp_path / "run", scenario, "first-fit+drf", 1, busy())
    queues = load_runs(tmp_path / "run")[0].queues().collect()
    assert queues.filter(pl.col("queue") == "solo")["guarantee"].item() == 0.75


def test_the_reference_has_the_columns_of_both_tables(comparison):
    sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
    rows = pytest.importorskip("reference_pages.rows")
    run = load_runs(comparison)[0]
    for name, words in (("queues", rows.QUEUE_ROWS), ("shares", rows.SHARE_ROWS)):
        found = pl.read_parquet_schema(run.folder / f"{name}.parquet")
        columns = [column.replace("_cpu", "_*resource*") for column in found if not column.endswith("_memory")]
        assert columns == list(words)
