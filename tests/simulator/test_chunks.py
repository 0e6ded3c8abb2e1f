"""A run in chunks is the run in memory: task by task, interval by interval, attempt by attempt, however it is cut."""
import fcntl
import math
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from small import TWO, cases, fleet_of, some_workload, staged
from small import plain as plain_tasks
from subak.cli.app import app
from subak.errors import InputError
from subak.experiment import checkpoints, inputs, measuring
from subak.experiment.checkpoints import Chunks, refuse_checkpoint
from subak.experiment.inputs import load_inputs, open_inputs, refuse_unfit
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.measures.fairness import measure, spans
from subak.measures.fairness.measure import field_of
from subak.measures.fairness.tally import FairnessTally
from subak.measures.run_folders import load_runs
from subak.measures.runs import Speed, Spread, WindowFacts
from subak.measures.tasks import tally
from subak.measures.tasks.job_sums import JobSums
from subak.measures.tasks.sketch import ACCURACY, Sketches
from subak.measures.window import Window
from subak.measures.window import cut as cut_to
from subak.policy import find_scheduler
from subak.policy_files import named_scheduler
from subak.queues.tree import Queue, TreeFile
from subak.simulator.chunks import checkpoint
from subak.simulator.chunks.blocks import Blocks
from subak.simulator.chunks.checkpoint import Checkpoint
from subak.simulator.chunks.rows import EVENTS_A_TASK, EVENTS_MORE, _listed, with_arriving
from subak.simulator.chunks.run import Cut, run_in_chunks
from subak.simulator.engine import run_loop
from subak.simulator.engine.setup import Terms, prepare
from subak.simulator.outcome import HeldRun
from subak.simulator.results import attempt_table, task_table, timeline_table
from subak.simulator.simulate import simulate
from subak.workload import stored as workload_chunks
from subak.workload.stored import HeldWorkload, open_workload

SCHEDULERS = ["first-fit", "first-fit+backfill", "best-fit+shortest-first", "random-fit+backfill+priority", "worst-fit",
              "greedy", "tetris", "hdrf-fast", "best-fit+mch"]
quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


def stored(workload, folder):
    workload.write(folder)
    return open_workload(folder)


def told(scheduler, workload, seed=1, interval=1.0, until=math.inf, queues=None, estimates=None):
    known = "user" if "estimate" in workload.tasks.columns and workload.tasks["estimate"].count() else "exact"
    return Terms(ranking=scheduler.order, seed=seed, interval=interval, until=until, estimates=estimates or known,
                 queues=queues)


def chunked(case, name, folder, cut, on_progress=None, **more):
    """The run of a case whose workload is written into *folder*; *cut* says where its results grow."""
    workload, fleet = case
    folder.mkdir(exist_ok=True)
    scheduler = find_scheduler(name)
    terms = told(scheduler, workload, **more)
    return run_in_chunks(stored(workload, folder), fleet, scheduler, terms, cut, True, on_progress)


def plain(table):
    return table.with_columns(pl.col(name).cast(pl.String) for name, kind in table.schema.items()
                              if isinstance(kind, pl.Enum))


def tables(found, case):
    workload, fleet = case
    tasks = pl.concat(plain(task_table(outcome, part, fleet)) for part, outcome, _ in found.parts())
    return tasks, timeline_table(found.outcome, workload), plain(attempt_table(found.outcome, workload, fleet))


def in_memory(case, name, **more):
    workload, fleet = case
    outcome = simulate(workload, fleet, find_scheduler(name), **{"interval": 1.0, **more})
    return outcome, (plain(task_table(outcome, workload, fleet)), timeline_table(outcome, workload),
                     plain(attempt_table(outcome, workload, fleet)))


@contextmanager
def places():
    """A folder for the workload, and one for results."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "B"
        place.mkdir()
        yield Path(folder) / "W", place


def assert_same(found, case, outcome, whole, queues=None):
    for one, other in zip(tables(found, case), whole, strict=True):
        assert_frame_equal(one, other)
    assert found.outcome.loop_result.events == outcome.loop_result.events
    with pytest.MonkeyPatch.context() as patch:
        assert_same_fairness(found, case, outcome, queues, patch)


def assert_same_fairness(found, case, outcome, queues, patch):
    """Of all the time, or of a part of it, in a dozen spans or more, which are cut by a sample of their events."""
    patch.setattr(measure, "EVENTS_OF_CHUNK", max(12, found.work.tasks // 6))
    patch.setattr(spans, "SAMPLE_MIN", 20)
    (workload, fleet), timeline = case, timeline_table(outcome, case[0])
    window = Window(1.5, 4.0, "") if found.work.tasks % 2 else Window(0.0, math.inf, "")
    within = cut_to(timeline, window)
    fair = fairness_of_parts(found, within, queues, found.blocks.folder)
    same = fairness_of_parts(HeldRun(outcome, HeldWorkload(workload), fleet), within, queues)
    assert (fair is None) == (same is None)
    if fair is not None:
        assert_frame_equal(fair.queues, same.queues, check_exact=True)
        assert_frame_equal(fair.shares, same.shares, check_exact=True)
        assert fair.facts == same.facts


def fairness_of_parts(found, timeline, queues, folder=None):
    """What `measure` measures of fairness, over a timeline."""
    field = field_of(timeline, found.work.head, found.fleet, queues)
    if field is None:
        return None
    lost = sum(part.shape[1] for part in found.outcome.loop_result.losses)
    tally = FairnessTally(field, found.work.of_stage, lost, folder)
    for workload, outcome, places in found.parts():
        tally.add(task_table(outcome, workload, found.fleet), attempt_table(outcome, workload, found.fleet), places,
                  workload)
    return tally.fairness()


def in_queues(case, queues):
    """The case with its jobs in as many queues in turn, of which one is below another."""
    return named_queues(case, [("q0", "q1", "q2", "org/q3")[job % queues] for job in range(len(case[0].jobs))])


def named_queues(case, names):
    """The case with its jobs in these queues."""
    workload, fleet = case
    return replace(workload, jobs=workload.jobs.with_columns(queue=pl.Series(names))), fleet


def agree(case, name, chunk, block=3, **more):
    outcome, whole = in_memory(case, name, **more)
    with places() as (folder, place):
        found = chunked(case, name, folder, Cut(place, chunk, None, block), **more)
        assert_same(found, case, outcome, whole, more.get("queues"))


@settings(quick, max_examples=100)
@given(case=cases(), name=st.sampled_from(SCHEDULERS), chunk=st.integers(1, 12), block=st.integers(1, 9),
       until=st.sampled_from([math.inf, math.inf, 0.0, 1.0, 4.0, 5.25]), seed=st.integers(0, 2**40),
       queues=st.integers(1, 4))
def test_a_run_in_chunks_is_the_run_in_memory(case, name, chunk, block, until, seed, queues):
    agree(in_queues(case, queues), name, chunk, block, until=until, seed=seed)


def test_a_first_stage_may_wait_for_another():
    """Both tasks of stage 0 wait until stage 1 has ended; a chunk came meanwhile."""
    stages = [{"request": (1,), "depends_on": [1]}, {"request": (1,)}]
    workload = staged(stages, [(1, 0.0, 5.0), (0, 0.0, 1.0), (0, 1.0, 1.0), (0, 2.0, 1.0)])
    agree((workload, fleet_of((8,))), "first-fit", 2)


@pytest.mark.parametrize("name", ["hdrf-fast", "best-fit+mch", "drf"])
@pytest.mark.parametrize("chunk", [2, 25])
def test_fair_orders_know_the_queues_of_those_who_come(name, chunk):
    workload, fleet = some_workload(jobs=40, tasks=4)
    queues = [("a/x", "a/y", "b", "c/z")[job * job % 4] for job in range(40)]
    workload = replace(workload, jobs=workload.jobs.with_columns(queue=pl.Series(queues)))
    agree((workload, fleet), name, chunk, 16)
    weights = TreeFile(queue=[Queue(name="a", weight=3.0), Queue(name="a/y", weight=0.5)])
    agree((workload, fleet), name, chunk, 16, queues=weights)


def test_estimates_of_users_are_not_told_unless_they_are_asked_for():
    stages = [{"job": job, "request": (1,)} for job in range(12)]
    workload = staged(stages, [(job, 0.5 * job, 5.0 - job % 5, float(job % 5)) for job in range(12)])
    case = workload, fleet_of((1,))
    told_apart = [in_memory(case, "best-fit+shortest-first", estimates=each)[1][0]["start"].to_list()
                  for each in ("user", "exact")]
    assert told_apart[0] != told_apart[1]
    for each in ("user", "exact"):
        agree(case, "best-fit+shortest-first", 3, estimates=each)


def test_those_who_arrive_at_one_instant_wait_for_the_rest_of_them():
    """The machine is free again when three tasks arrive, of which the last, of another chunk, is the shortest.

    The first of them fits nowhere. Also where nothing happens at that instant but that they arrive: the last two.
    """
    case = plain_tasks((0, 1, 1), (1, 1, 2), (1, 3, 1), (1, 2, 1), (9, 3, 1), (9, 2, 1)), fleet_of((1,))
    for chunk, until in ((2, math.inf), (3, math.inf), (5, math.inf), (5, 9.0)):
        agree(case, "best-fit+shortest-first", chunk, until=until)


@pytest.mark.parametrize("name", ["first-fit", "megha"])
def test_progress_is_of_the_whole_run(name):
    seen = []
    with places() as (folder, place):
        found = chunked(busy(), name, folder, Cut(place, 7, None, 64), seen.append)
    arrived = [each.tasks_arrived for each in seen]
    assert arrived == sorted(arrived) and arrived[-1] == found.work.tasks == 244
    assert {each.last_arrival for each in seen} == {found.work.last}


def test_seconds_are_those_of_all_chunks(monkeypatch):
    """Every look at the clock is a second later; it is looked at around each of four chunks, and within them."""
    looks = count()
    monkeypatch.setattr(run_loop, "time", SimpleNamespace(perf_counter=looks.__next__))
    with places() as (folder, place):
        found = chunked(busy(), "first-fit", folder, Cut(place, 61, None, 64))
    assert found.outcome.loop_result.seconds == next(looks) - 4


def test_rows_of_tasks_that_fit_nowhere_go_with_the_others():
    workload = plain_tasks(*((arrival, 0.5, 2 if arrival % 5 else 1) for arrival in range(50)))
    with places() as (folder, place):
        found = chunked((workload, fleet_of((1,))), "first-fit", folder, Cut(place, 10, None, 64))
        assert found.run.number.size == 10
        assert tables(found, (workload, fleet_of((1,))))[0]["status"].value_counts().sort("count").rows() == [
            ("FINISHED", 10), ("UNPLACEABLE", 40)]


@pytest.mark.parametrize("place", [3, 7, 14])
def test_the_run_itself_sees_that_tasks_are_not_sorted(place):
    """Within a chunk of 7, and over its border, where each chunk is sorted."""
    with places() as (folder, results):
        folder.mkdir()
        busy()[0].write(folder)
        tasks = pl.read_parquet(folder / "tasks.parquet")
        pl.concat([tasks[100 : 100 + place], tasks[:100], tasks[100 + place :]]).write_parquet(folder / "tasks.parquet")
        scheduler = find_scheduler("first-fit")
        with pytest.raises(InputError, match=f"row {place} arrives"):
            run_in_chunks(open_workload(folder), busy()[1], scheduler, told(scheduler, busy()[0]), Cut(results, 7))


def test_each_file_that_was_written_since_is_brought_to_the_disk_once_and_closed(tmp_path, monkeypatch):
    """Blocks of two tasks: results of the first and the third are written, then of the second."""
    blocks, flushed, opened = Blocks(tmp_path, 6, block=2), [], []
    values, fsync = np.zeros(2, blocks.kind), os.fsync

    def noted(number):
        flushed.append(os.fstat(number).st_ino)
        opened.append(number)
        fsync(number)

    monkeypatch.setattr(os, "fsync", noted)
    for written in ([0, 5], [3]):
        blocks.write(np.array(written), values[: len(written)])
        blocks.flush()
    assert flushed == [(tmp_path / f"block-{block:06}.bin").stat().st_ino for block in (0, 2, 1)]
    blocks.flush()
    assert len(flushed) == 3
    for number in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)


def test_results_are_on_the_disk_before_the_checkpoint_that_goes_on_behind_them(monkeypatch):
    order = []
    flush, write = Blocks.flush, checkpoint.write_file
    monkeypatch.setattr(Blocks, "flush", lambda self: order.append("results") or flush(self))
    monkeypatch.setattr(checkpoint, "write_file", lambda *given: order.append("checkpoint") or write(*given))
    with places() as (folder, place):
        chunked(busy(), "first-fit", folder, Cut(place, 61, Checkpoint(place, {}, every=0.0), 64))
    assert order == ["results", "checkpoint"] * 3


def test_checkpoints_are_not_oftener_than_so(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    with places() as (folder, place):
        kept = Checkpoint(place, {}, 60.0, now[0])
        chunked(busy(), "first-fit", folder, Cut(place, 61, kept, 64))
        assert not (place / "checkpoint.npz").exists() and not kept.is_due()
        now[0] = 160.0
        assert kept.is_due()
        chunked(busy(), "first-fit", folder, Cut(place, 61, kept, 64))
        assert kept.written == 160.0 and not kept.is_due()


@pytest.mark.parametrize(("kept", "now"), [({"a": "1"}, {"a": "1", "b": "2"}), ({"a": "1", "b": "2"}, {"a": "1"})])
def test_a_setting_that_one_of_two_runs_does_not_know_makes_them_differ(kept, now):
    with pytest.raises(InputError, match="another run, whose b is"):
        Checkpoint(Path("C"), now)._refuse_other(kept)


class StoppedError(Exception):
    """What ends a run from outside."""


def stopping(times):
    """A progress callback that ends the run when it has been called so often."""
    left = iter(range(times))

    def on_progress(_):
        if next(left, None) is None:
            raise StoppedError
    return on_progress


class EverySecond(Checkpoint):
    """One that is due every second time: so rows are written that it knows nothing of, and again after a kill."""

    asked = 0

    def is_due(self):
        self.asked += 1
        return self.asked % 2 == 0


@settings(quick, max_examples=40)
@given(case=cases(), name=st.sampled_from(SCHEDULERS), chunk=st.integers(1, 8), block=st.integers(1, 9),
       stops=st.lists(st.integers(0, 6), min_size=1, max_size=3), until=st.sampled_from([math.inf, math.inf, 4.0]),
       kind=st.sampled_from([Checkpoint, EverySecond]))
def test_a_run_that_was_stopped_goes_on_to_the_same_end(case, name, chunk, block, stops, until, kind):
    _, whole = in_memory(case, name, until=until)
    with places() as (folder, place):
        for times in [*stops, None]:
            cut = Cut(place, chunk, kind(place, {"seed": "1"}, every=0.0), block)
            with suppress(StoppedError):
                found = chunked(case, name, folder, cut, times if times is None else stopping(times), until=until)
        for one, other in zip(tables(found, case), whole, strict=True):
            assert_frame_equal(one, other)


def test_a_change_of_the_fleet_is_noticed_by_those_who_are_unread():
    """All that were read have ended at 1 s, the machine shrinks at 3 s, and the next arrives when the run is over."""
    case = plain_tasks((0, 1, 1), (6, 1, 1)), fleet_of((2,), changes=[(3.0, 0, True, 1.0)])
    for until in (4.0, 5.0, math.inf):
        for name in ("first-fit", "megha"):
            agree(case, name, 1, until=until)


def test_a_checkpoint_keeps_lost_attempts_intervals_and_seconds():
    """A machine leaves at 50 s, and more intervals have passed by 70 s than are held in the state."""
    def until_it_is_late(progress):
        if progress.time > 70.0:
            raise StoppedError

    _, whole = in_memory(busy(), "first-fit", interval=0.01)
    with places() as (folder, place):
        cut = Cut(place, 7, Checkpoint(place, {}, every=0.0), 64)
        with suppress(StoppedError):
            chunked(busy(), "first-fit", folder, cut, until_it_is_late, interval=0.01)
        with np.load(place / "checkpoint.npz") as file:
            assert file["losses"].shape[1] > 0 and file["timeline"].shape[0] > 0
            before = float(file["seconds"])
        found = chunked(busy(), "first-fit", folder, cut, interval=0.01)
        for one, other in zip(tables(found, busy()), whole, strict=True):
            assert_frame_equal(one, other)
        assert found.outcome.loop_result.seconds > before > 0.0


def busy():
    """Tasks of one queue in jobs of two stages, a machine that leaves and one that is full; some are never placed."""
    random = np.random.default_rng(3)
    stages = [{"job": job, "request": (float(random.integers(1, 5)), 1.0), "priority": int(random.integers(0, 3)),
               "depends_on": [2 * job] if part else []} for job in range(30) for part in range(2)]
    stages.append({"job": 30, "request": (64.0, 1.0)})
    tasks = sorted((float(random.integers(0, 90)), row, float(random.exponential(20.0)))
                   for row in range(61) for _ in range(4))
    fleet = fleet_of((4, 8), (8, 8), (8, 8), resources=TWO,
                     changes=[(50.0, 1, False, 8.0, 8.0), (60.0, 1, True, 8.0, 8.0), (85.0, 1, False, 8.0, 8.0),
                              (90.0, 1, True, 8.0, 8.0)])
    return staged(stages, [(row, arrival, run_time) for arrival, row, run_time in tasks], TWO), fleet


def written(folder, case):
    """The workload and the fleet of a case, as folders."""
    workload, fleet = case
    (folder / "W" / "fleet").mkdir(parents=True)
    workload.write(folder / "W")
    fleet.write(folder / "W" / "fleet")
    return str(folder / "W")


def fit(scenario):
    """The inputs of a run in chunks, which can begin with them, and the sums of jobs that this needed."""
    found = open_inputs(scenario)
    schedulers = [named_scheduler(name, scenario.parameters) for name in scenario.schedulers]
    return found, refuse_unfit(scenario, schedulers, found)


def simulate_in_chunks(folder, scenario, chunks, on_progress=None):
    """Do the one run of a scenario in chunks, as `subak simulate` does."""
    found, sums = fit(scenario)
    return simulate_into(folder, scenario, scenario.schedulers[0], scenario.seeds[0], found, on_progress,
                         chunks=chunks._replace(sums=sums))


def both_runs(folder, scheduler="first-fit", case=None, **options):
    scenario = Scenario(workload=written(folder, case or busy()), schedulers=[scheduler], **options)
    simulate_into(folder / "memory", scenario, scheduler, 1, load_inputs(scenario))
    simulate_in_chunks(folder / "chunks", scenario, Chunks(7))
    return load_runs(folder / "memory")[0], load_runs(folder / "chunks")[0]


def unlike(run):
    """What a run says but for how fast it was."""
    return msgspec.to_builtins(msgspec.structs.replace(run.summary, speed=Speed(), label=""))


@pytest.mark.parametrize("block", [None, 50])
@pytest.mark.parametrize("options", [{}, {"until": 70.0, "measure_from": 20.0}, {"objectives": [
    "wait.p95 < 60s", "turnaround.mean < 3s", "turnaround.p90 < 3s", "job_slowdown.max < 4", "job_slowdown.p90 < 4"]}])
def test_its_folder_is_that_of_the_run_in_memory(tmp_path, options, block, monkeypatch):
    if block is not None:
        monkeypatch.setattr(checkpoints, "Cut", lambda *given: Cut(*given, block=block))
    memory, cut = both_runs(tmp_path, **options)
    assert memory.summary.attempts_lost > 0 and memory.summary.status["UNPLACEABLE"] > 0
    known = {each.text.split()[0] for each in memory.summary.objectives if each.value is not None}
    assert known == ({"wait.p95", "turnaround.p90", "job_slowdown.p90"} if "objectives" in options else set())
    folders_agree(memory, cut)


def test_objectives_of_some_tasks_and_energy_are_those_of_the_run_in_memory(tmp_path, monkeypatch):
    """With attempts that are lost, and prices that change; of the tasks of a queue, a priority, a user and a length."""
    monkeypatch.setattr(checkpoints, "Cut", lambda *given: Cut(*given, block=50))
    (tmp_path / "energy.toml").write_text('currency = "EUR"\nprice = [[0, 0.1], [30, 0.4]]\ncarbon = 0.5\n\n[[kind]]\n'
                                          'name = "any"\nwatts = [100, 200]\nper_hour = 1.5\n')
    asked = [f"{measure} for {key}" for measure in ("wait.p90 < 9s", "turnaround.median < 9s", "job_slowdown.p50 < 2")
             for key in ("queue=q1", "priority=2", "length=short", "queue=org,priority=1")]
    memory, cut = both_runs(tmp_path, "first-fit", in_queues(busy(), 4), energy=str(tmp_path / "energy.toml"),
                            objectives=[*asked, "energy.total < 1kWh", "cost.per_task < 1"])
    assert len({each.tasks for each in memory.summary.objectives}) > 4
    assert memory.summary.energy.total.kwh > 0.0 and memory.summary.attempts_lost > 0
    folders_agree(memory, cut)


@pytest.mark.parametrize("options", [
    {"load": 2.5}, {"only_queues": ["q2", "org"]},
    {"load": 0.4, "only_queues": ["q2"], "measure_from": 20.0, "objectives": ["job_wait.p90 < 9s for length=long"]}])
def test_load_and_queues_are_changed_as_in_memory(tmp_path, monkeypatch, options):
    """Of a table of which some rows are kept, blocks of five are read; in some of them none is."""
    monkeypatch.setattr(workload_chunks, "ROWS_READ", 5)
    memory, cut = both_runs(tmp_path, case=in_queues(busy(), 4), **options)
    assert 0 < sum(memory.summary.status.values()) < 244 or "load" in options
    folders_agree(memory, cut)


def test_a_run_in_chunks_says_that_no_bound_is_looked_for(tmp_path):
    """The jobs of a queue are MapReduce jobs, and all of their tasks end."""
    memory, cut = both_runs(tmp_path, case=in_queues(busy(), 4), only_queues=["q1"])
    assert cut.summary.status["FINISHED"] == cut.summary.workload.tasks > 0
    assert "is for machines that stay" in memory.summary.makespan_bound_note
    assert "a run in chunks has some" in cut.summary.makespan_bound_note
    assert unlike(cut) | {"makespan_bound_note": memory.summary.makespan_bound_note} == unlike(memory)


@pytest.mark.parametrize("objective", ["job_wait.p90 < 9s for length=long", "job_wait.p90 < 9s"])
def test_jobs_are_added_up_once_and_objectives_of_some_are_those_of_the_run_in_memory(tmp_path, monkeypatch, objective):
    added, add = [], JobSums.add
    memory, _ = both_runs(tmp_path, case=in_queues(busy(), 4), objectives=[objective])
    monkeypatch.setattr(JobSums, "add", lambda sums, tasks: (added.append(len(tasks)), add(sums, tasks))[1])
    scenario = Scenario(workload=str(tmp_path / "W"), objectives=[objective])
    simulate_in_chunks(tmp_path / "again", scenario, Chunks(7))
    assert sum(added) == 244
    folders_agree(memory, load_runs(tmp_path / "again")[0])


def folders_agree(memory, cut):
    assert unlike(cut) == unlike(memory)
    assert {path.name for path in cut.folder.iterdir()} == {path.name for path in memory.folder.iterdir()}
    for path in memory.folder.glob("*.parquet"):
        assert (cut.folder / path.name).read_bytes() == path.read_bytes(), path.name


def test_attempts_are_in_the_order_in_which_they_were_lost(tmp_path, monkeypatch):
    """The second task is lost before the first one, in the block before its own."""
    monkeypatch.setattr(checkpoints, "Cut", lambda *given: Cut(*given, block=1))
    fleet = fleet_of((4,), (4,), changes=[(10.0, 1, False, 4.0), (20.0, 0, False, 4.0), (30.0, 0, True, 4.0)])
    scenario = Scenario(workload=written(tmp_path, (plain_tasks((0, 9000, 4), (1, 9000, 4)), fleet)))
    simulate_in_chunks(tmp_path / "R", scenario, Chunks(1))
    assert pl.read_parquet(tmp_path / "R" / "attempts.parquet")["end"].to_list() == [10.0, 20.0]


def test_a_block_has_its_room_on_the_disk_before_it_is_written_to(tmp_path):
    blocks = Blocks(tmp_path, 100_000, block=70_000)
    mask = os.umask(0o022)
    os.umask(mask)
    for block, tasks in ((0, 70_000), (1, 30_000)):
        assert len(blocks._opened(block)) == tasks
        found = blocks._path(block).stat()
        assert found.st_size == tasks * blocks.kind.itemsize <= 512 * found.st_blocks
        assert found.st_mode & 0o777 == 0o666 & ~mask


def test_the_heap_has_room_for_the_events_of_all_rows():
    workload, terms = plain_tasks(*[(0, 1, 1)] * 9), Terms(interval=60.0)
    sim = prepare(workload, fleet_of((8,)), np.arange(1), terms).simulation
    grown, _ = with_arriving(sim, (), sim, np.zeros(0, np.int32))
    assert grown.tasks.arrival.size == 18 and grown.events.slot.size == EVENTS_A_TASK * 18 + EVENTS_MORE


def test_stages_list_their_tasks_as_those_of_a_run_in_memory_do():
    """Also the first stage, which waits for the second; and where there is one task."""
    for stages, tasks in (([{"depends_on": [1]}, {}], [(1, 0.0, 1.0), (0, 0.0, 1.0), (0, 0.0, 1.0)]),
                          ([{"depends_on": []}, {"depends_on": [0]}], [(0, 0.0, 1.0)])):
        workload = staged([{"job": 0, "request": (1.0, 1.0), **stage} for stage in stages], tasks, TWO)
        terms = Terms(interval=60.0)
        sim = prepare(workload, fleet_of((8, 8), resources=TWO), np.arange(1), terms).simulation
        assert sim.stages.of_task.size == len(tasks)
        none = sim.stages._replace(task_first=sim.stages.task_first[:0], task=sim.stages.task[:0])
        listed = _listed(none)
        assert listed.task_first.tolist() == sim.stages.task_first.tolist()
        assert listed.task.tolist() == sim.stages.task.tolist()


def test_beyond_what_is_kept_percentiles_are_near(tmp_path, monkeypatch):
    monkeypatch.setattr(tally, "EXACT_MAX", 0)
    memory, cut = (run.summary for run in both_runs(tmp_path))
    assert cut.percentiles_within == ACCURACY and memory.percentiles_within is None
    for name in ("wait_time", "slowdown"):
        exact, near = getattr(memory, name), getattr(cut, name)
        assert near.mean == pytest.approx(exact.mean, rel=1e-12) and near.max == exact.max
        for level in ("median", "p90", "p99", "p999"):
            assert getattr(near, level) == pytest.approx(getattr(exact, level), rel=ACCURACY + 1e-12, abs=1e-7)
    same = ("status", "reasons", "jobs", "makespan", "waiting", "window", "attempts_lost")
    assert [getattr(cut, name) for name in same] == [getattr(memory, name) for name in same]
    one, other = (pl.read_parquet(tmp_path / run / "groups.parquet") for run in ("chunks", "memory"))
    assert_frame_equal(one, other, rel_tol=1.01 * ACCURACY)
    counts = ["by", "name", "tasks", "started", "jobs"]
    assert_frame_equal(one[counts], other[counts])


def test_what_did_not_wait_did_not_wait_in_a_sketch_either():
    found = Sketches()
    found.add(np.zeros(5, np.int64), np.array([0.0, 0.0, 0.0, 2.0, np.nan]), 1)
    assert found.spread(0).median == 0.0 and found.spread(0).max == 2.0


def test_a_sketch_of_short_jobs_alone_knows_of_no_long_ones():
    found = tally.Sketched()
    length = pl.Series(["short"] * 3, dtype=pl.Enum(["short", "long"]))
    tasks = pl.DataFrame({"wait_time": [1.0, None, 3.0], "waited": [1.0, None, 3.0], "slowdown": [1.0, None, 1.0],
                          "length": length})
    found.add(tasks)
    waits = found.lengths()
    assert (waits["short"].mean, waits["short"].max, waits["long"]) == (2.0, 3.0, Spread())


def test_of_more_groups_than_are_kept_those_are_that_come_first_by_tasks_and_name(monkeypatch):
    monkeypatch.setattr(tally, "GROUPS_MAX", 2)
    found = tally.Sketched()
    queues = ["c", "b", "d", "a", "d"]
    tasks = pl.DataFrame({"wait_time": [0.0] * 5, "waited": [0.0] * 5, "slowdown": [1.0] * 5, "queue": queues})
    found.add(tasks)
    groups = found.groups(pl.DataFrame({"queue": queues, "completion": [1.0] * 5}))
    assert groups.select("name", "tasks").rows() == [("d", 2), ("a", 1)]


def test_a_tally_ranks_reasons_and_measures_the_makespan_from_the_first_arrival():
    """Of reasons that hold as often, the first by status and words."""
    found = tally.Tally(WindowFacts(), {}, 0, tally.Sketched())
    found.reasons = {("WAITING", "b"): 2, ("WAITING", "a"): 2, ("UNPLACEABLE", "c"): 2, ("WAITING", "d"): 5}
    assert [(each.status, each.reason, each.tasks) for each in found.ranked_reasons()] == [
        ("WAITING", "d", 5), ("UNPLACEABLE", "c", 2), ("WAITING", "a", 2), ("WAITING", "b", 2)]
    assert found.makespan() is None
    found.first, found.last_finish = 3.0, 10.0
    assert found.makespan() == 7.0


@pytest.mark.parametrize(("options", "rule"), [
    ({"schedulers": ["sparrow"]}, "sparrow is a federation whose schedulers hold batches"),
    ({"schedulers": ["lotes"]}, "lotes is a plan"),
    ({"schedulers": ["first-fit+easy"]}, "reservations"),
    ({"schedulers": ["tetris+normalised"]}, "means over all tasks"),
    ({"schedulers": ["first-fit+johnson"]}, "an order of all jobs"), ({"schedulers": ["delay-scheduling"]}, "delay"),
    ({"schedulers": ["recorded"]}, "what a log says"), ({"request_error": 0.1}, "request_error must be 0"),
    ({"usage_swing": 0.1}, "usage_swing must be 0"), ({"interference": 2.0}, "interference must be 0"),
    ({"slow_start": 0.5}, "slow_start must be 1"), ({"estimates": "class"}, "estimates must be exact or user"),
    ({"resample": "days"}, "resample must be none"), ({"energy": "google2011"}, "every machine must fit one"),
    ({"objectives": ["wait.mean < 1s for queue=nobody"]}, "no task that is measured is of these"),
    ({"measure_from": 5.2, "measure_until": 5.5}, "no task arrives from 5.2s to 5.5s"),
])
def test_what_needs_all_tasks_at_once_is_refused(tmp_path, options, rule):
    with pytest.raises(InputError, match=rule):
        fit(Scenario(workload=written(tmp_path, busy()), **options))


@pytest.mark.parametrize(("options", "rule"), [
    ({"energy": "google2011"}, "energy is counted of all attempts"),
    ({"objectives": ["wait.mean < 1s"]}, "cannot be judged of more than 10 tasks")])
def test_beyond_what_is_kept_of_each_task_what_needs_each_is_refused(tmp_path, monkeypatch, options, rule):
    monkeypatch.setattr(inputs, "EXACT_MAX", 10)
    with pytest.raises(InputError, match=rule):
        fit(Scenario(workload=written(tmp_path, busy()), **options))


@pytest.mark.parametrize("looked_at", [7, 1000])
def test_a_large_workload_that_is_not_sorted_is_read_at_once(tmp_path, monkeypatch, looked_at):
    path = written(tmp_path, busy())
    tasks = pl.read_parquet(tmp_path / "W" / "tasks.parquet")
    pl.concat([tasks[100:107], tasks[:100], tasks[107:]]).write_parquet(tmp_path / "W" / "tasks.parquet")
    monkeypatch.setattr(inputs, "IN_MEMORY_MAX", 10)
    monkeypatch.setattr(workload_chunks, "LOOKED_AT", looked_at)
    done = CliRunner().invoke(app, ["simulate", path, "--out", str(tmp_path / "R")])
    assert done.exit_code == 0 and "All tasks are read at once" in done.output and "row 7 arrives" in done.output
    assert load_runs(tmp_path / "R")[0].tasks().collect().height == 244


@pytest.mark.parametrize("place", [3, 7])
def test_tasks_must_be_sorted(tmp_path, place):
    """Within a chunk, and over its border: each chunk is sorted then."""
    scenario = Scenario(workload=written(tmp_path, busy()))
    tasks = pl.read_parquet(tmp_path / "W" / "tasks.parquet")
    turned = pl.concat([tasks[100 : 100 + place], tasks[:100], tasks[100 + place :]])
    turned.write_parquet(tmp_path / "W" / "tasks.parquet")
    with pytest.raises(InputError, match=f"sorted by arrival to be read in chunks, row {place} arrives"):
        simulate_in_chunks(tmp_path / "R", scenario, Chunks(7))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["W"]


def test_the_same_command_goes_on_from_a_checkpoint(tmp_path):
    """Also after a kill; one of another run is refused, and it goes when the run is whole."""
    scenario, kept = Scenario(workload=written(tmp_path, busy())), tmp_path / "C"
    with pytest.raises(StoppedError):
        simulate_in_chunks(tmp_path / "R", scenario, Chunks(7, kept, 0.0), stopping(12))
    assert (kept / "checkpoint.npz").exists() and not (tmp_path / "R").exists()
    refuse_checkpoint(kept, tmp_path / "R", [])
    other = Scenario(workload=scenario.workload, schedulers=["best-fit"])
    with pytest.raises(InputError, match=r'another run, whose schedulers is \["first-fit"\], not \["best-fit"\]'):
        simulate_in_chunks(tmp_path / "R", other, Chunks(7, kept))
    simulate_in_chunks(tmp_path / "R", scenario, Chunks(13, kept))
    simulate_into(tmp_path / "memory", scenario, "first-fit", 1, load_inputs(scenario))
    for name in ("tasks", "timeline", "attempts", "groups"):
        assert (tmp_path / "R" / f"{name}.parquet").read_bytes() == (
            tmp_path / "memory" / f"{name}.parquet").read_bytes()
    assert not kept.exists()


def test_a_run_that_was_stopped_while_it_was_measured_is_measured_anew(tmp_path, monkeypatch):
    scenario, kept = Scenario(workload=written(tmp_path, busy())), tmp_path / "C"
    simulate_in_chunks(tmp_path / "whole", scenario, Chunks(7))

    def stopped(*_):
        raise StoppedError

    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(measuring, "facts_of", stopped)
        simulate_in_chunks(tmp_path / "R", scenario, Chunks(7, kept, 0.0))
    assert (kept / "wait_time.bin").stat().st_size > 0
    simulate_in_chunks(tmp_path / "R", scenario, Chunks(7, kept, 0.0))
    one, other = (load_runs(tmp_path / name)[0] for name in ("R", "whole"))
    assert unlike(one) == unlike(other)
    assert (one.folder / "groups.parquet").read_bytes() == (other.folder / "groups.parquet").read_bytes()


@contextmanager
def disk_of(folder, kilobytes):
    """Let a folder be a file system of so many bytes."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "subak", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize(("kilobytes", "kept"), [(64, False), (64, True), (650, False)])
def test_a_full_disk_is_one_line_and_nothing_is_half_written(tmp_path, kilobytes, kept):
    """Where results of tasks go, 460 KB, is a map of a file: without room it would end the process at once."""
    tasks = plain_tasks(*((0.0, number, 1) for number in range(20_000)))
    folder, command = written(tmp_path, (tasks, fleet_of((9,)))), [sys.executable, "-m", "subak", "simulate"]
    with disk_of(tmp_path / "disk", kilobytes) as disk:
        options = ["--out", tmp_path / "R", "--checkpoint", disk / "C"] if kept else ["--out", disk / "R"]
        ended = subprocess.run([*command, folder, "--scheduler", "first-fit", "--chunk", "5000", *options],
                               capture_output=True, text=True, check=False)
        full = disk / ("C" if kept else "R")
        assert (ended.returncode, ended.stderr) == (
            2, f"subak: {full}: could not be written: No space left on device\n")
        assert not (tmp_path / "R").exists() and not (disk / "R").exists()


def test_two_runs_are_not_kept_in_one_folder(tmp_path):
    scenario = Scenario(workload=written(tmp_path, busy()))
    (tmp_path / "C").mkdir()
    number = os.open(tmp_path / "C", os.O_RDONLY)
    fcntl.flock(number, fcntl.LOCK_EX)
    try:
        with pytest.raises(InputError, match="another process is at it"):
            simulate_in_chunks(tmp_path / "R", scenario, Chunks(7, tmp_path / "C"))
    finally:
        os.close(number)


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04" + bytes(100)], ids=["empty", "cut", "no archive"])
def test_a_damaged_checkpoint_is_refused(tmp_path, content):
    scenario = Scenario(workload=written(tmp_path, busy()))
    (tmp_path / "C").mkdir()
    (tmp_path / "C" / "checkpoint.npz").write_bytes(content)
    with pytest.raises(InputError, match="no checkpoint that this version can read"):
        simulate_in_chunks(tmp_path / "R", scenario, Chunks(7, tmp_path / "C"))


def test_a_checkpoint_needs_a_folder_of_its_own(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").touch()
    for folder, rule in (("full", "hold a checkpoint alone, it has a.txt"), ("R", "in the folder of the results"),
                         ("R/C", "in the folder of the results")):
        with pytest.raises(InputError, match=rule):
            refuse_checkpoint(tmp_path / folder, tmp_path / "R", [])
    refuse_checkpoint(tmp_path / "new", tmp_path / "R", [])


def test_a_large_workload_is_read_in_chunks_by_itself(tmp_path, monkeypatch):
    path = written(tmp_path, busy())
    monkeypatch.setattr(inputs, "IN_MEMORY_MAX", 10)
    monkeypatch.setattr(tally, "EXACT_MAX", 10)
    done = CliRunner().invoke(app, ["simulate", path, "--out", str(tmp_path / "R")])
    assert done.exit_code == 0 and "DDSketch" in done.output
    assert load_runs(tmp_path / "R")[0].tasks().collect().height == 244
    shown = CliRunner().invoke(app, ["simulate", path])
    assert shown.exit_code == 0 and "Nothing was kept" in shown.output
    done = CliRunner().invoke(app, ["simulate", path, "--scheduler", "first-fit+easy"])
    assert done.exit_code == 0 and "All tasks are read at once" in done.output


LONG = """
import sys, time
from subak.cli.main import main
from subak.experiment import measuring, run
from subak.measures.tasks import job_sums
from subak.workload import stored
def last(seconds):
    print("begun", flush=True)
    time.sleep(seconds)
{lasts}
sys.exit(main())
"""
SUMS = "stored.TASKS_READ, job_sums.JobSums.add = 1, lambda *_: last(0.5)"  # a task after the other
LOOP = "run.run_in_chunks = lambda *_: time.sleep(60)"
FAIRNESS = "measuring.FairnessTally.fairness = lambda _: last(60)"
GROUPS = "measuring.facts_of, measuring.Tally.groups = lambda *_: time.sleep(3), lambda *_: time.sleep(60)"


@pytest.mark.parametrize("lasts", [(SUMS,), (SUMS, LOOP), (GROUPS, FAIRNESS)])
def test_who_interrupts_it_does_not_wait_for_what_goes_on_beside_it(tmp_path, lasts):
    workload, fleet = in_queues(some_workload(jobs=40, tasks=4), 2)
    for table, name in ((workload, "W"), (fleet, "F")):
        (tmp_path / name).mkdir()
        table.write(tmp_path / name)
    process = subprocess.Popen(
        [sys.executable, "-c", LONG.format(lasts="\n".join(lasts)), "simulate", tmp_path / "W", "--fleet",
         tmp_path / "F", "--chunk", "1000", "--out", tmp_path / "R"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, err) == (130, "subak: interrupted; nothing was written\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["F", "W"]
