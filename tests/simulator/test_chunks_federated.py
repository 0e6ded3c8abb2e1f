"""A federation in chunks is the federation in memory: places are used again, and nobody who is named has lost his."""
import math
from contextlib import nullcontext, suppress
from dataclasses import replace

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from small import TWO, cases, fleet_of, staged
from small import plain as plain_tasks
from subak.errors import InputError
from subak.experiment import checkpoints
from subak.experiment.measuring import waiting_of
from subak.experiment.scenario import Scenario
from subak.federation.megha.attempts import add_attempt
from subak.federation.megha.jobs import SUBMISSION_ENDED
from subak.federation.megha.tables import build_jobs
from subak.federation.messages import NOBODY, RELEASE
from subak.federation.settings import Federation
from subak.measures import federation
from subak.measures.federation import FederationTally
from subak.measures.runs import WindowFacts
from subak.measures.tasks import tally
from subak.measures.tasks.sketch import ACCURACY
from subak.policy import find_scheduler
from subak.queues.tree import Queue, TreeChange, TreeFile
from subak.simulator.chunks import arrays
from subak.simulator.chunks.arrays import own_arrays, packed, take_on, unpacked
from subak.simulator.chunks.checkpoint import Checkpoint
from subak.simulator.chunks.federated import FederatedRun, Inputs, list_stages
from subak.simulator.chunks.run import Cut, run_in_chunks
from subak.simulator.engine.state import LOOP_UNREAD
from subak.simulator.federated.fault_plan import Crash, FaultPlan
from subak.simulator.federated.fault_plan import Cut as NetworkCut
from subak.simulator.federated.network import PLACE_BITS, build_network, release_slot, with_more_room
from subak.simulator.federated_results import waiting_tables
from test_chunks import (
    StoppedError,
    assert_same,
    both_runs,
    busy,
    fit,
    folders_agree,
    in_memory,
    in_queues,
    named_queues,
    places,
    quick,
    stopping,
    stored,
    tables,
    told,
    written,
)

NONE = np.zeros(0)


def chunked(case, name, folder, cut, on_progress=None, federation=None, faults=None, **more):
    workload, fleet = case
    folder.mkdir(exist_ok=True)
    scheduler = find_scheduler(name)
    terms = told(scheduler, workload, **more)
    return run_in_chunks(stored(workload, folder), fleet, scheduler, terms, cut, True, on_progress, federation, faults)


def agree(case, name, chunk, block=3, **more):
    outcome, whole = in_memory(case, name, **more)
    with places() as (folder, place):
        found = chunked(case, name, folder, Cut(place, chunk, None, block), **more)
        assert_same(found, case, outcome, whole, more.get("queues"))
        known, same = waiting_of(found), waiting_tables(outcome, *case)
        for table in ("waiting", "views"):
            assert_frame_equal(known[table], same[table])
    assert found.outcome.loop_result.end == outcome.loop_result.end
    one, other = (each.federated.network for each in (found.outcome, outcome))
    assert one.handled.tolist() == other.handled.tolist()
    assert one.worked.tolist() == other.worked.tolist() and one.queued.tolist() == other.queued.tolist()


@st.composite
def federations(draw):
    """Settings of small federations, of every kind that a task's course may depend on."""
    return Federation(
        global_masters=draw(st.integers(1, 3)), local_masters=1,
        heartbeat=draw(st.sampled_from([0.75, 4.0])), delay=draw(st.sampled_from([0.0, 0.0005, 0.125])),
        delay_law=draw(st.sampled_from(["constant", "exponential"])),
        service_scale=draw(st.sampled_from([0.0, 1.0, 1e4])),
        preemption=draw(st.sampled_from(["off", "off", "strict", "paper"])),
        order=draw(st.sampled_from(["fifo", "priority", "fewest-tasks"])),
        queue_order=draw(st.sampled_from(["round-robin", "round-robin", "hdrf"])),
        retry=draw(st.sampled_from([math.inf, math.inf, 0.5])), standby=draw(st.booleans()),
        updates=draw(st.sampled_from(["changes", "full"])))


@st.composite
def fault_plans(draw):
    """What goes wrong: with messages, and with masters."""
    crashes = draw(st.lists(st.tuples(st.sampled_from(["global master 0", "local master 0", "worker 0"]),
                                      st.floats(0.1, 6.0), st.sampled_from([0.5, 3.0, math.inf])), max_size=2))
    cuts = draw(st.lists(st.tuples(st.floats(0.0, 4.0), st.floats(0.1, 3.0)), max_size=1))
    return FaultPlan(
        seed=draw(st.integers(0, 2**20)), loss=draw(st.sampled_from([0.0, 0.1])),
        duplication=draw(st.sampled_from([0.0, 0.2])), reordering=draw(st.sampled_from([0.0, 0.2])), late_max=1.0,
        spike=draw(st.sampled_from([0.0, 0.05])), spike_max=5.0, timer_late=0.05, faults_until=12.0,
        crash=[Crash(role=role, at=at, restart_after=after) for role, at, after in crashes],
        cut=[NetworkCut(between=["global masters", "local masters"], begin=begin, until=begin + long)
             for begin, long in cuts])


@settings(quick, max_examples=50)
@given(case=cases(), queues=st.integers(1, 4), federation=federations(), chunk=st.integers(1, 12),
       block=st.integers(1, 9), until=st.sampled_from([math.inf, math.inf, 0.0, 1.0, 4.0, 5.25]),
       seed=st.integers(0, 2**40))
def test_a_federation_in_chunks_is_the_federation_in_memory(case, queues, federation, chunk, block, until, seed):
    agree(in_queues(case, queues), "megha", chunk, block, federation=federation, until=until, seed=seed)


@settings(quick, max_examples=20)
@given(case=cases(), queues=st.integers(1, 3), federation=federations(), faults=fault_plans(), chunk=st.integers(1, 12))
def test_faults_befall_both_alike(case, queues, federation, faults, chunk):
    agree(in_queues(case, queues), "megha", chunk, federation=federation, faults=faults, until=60.0)


def test_what_is_said_late_is_of_the_task_that_it_names():
    """Messages are on their way for so long that others would have the places of their tasks."""
    faults = FaultPlan(seed=14, loss=0.05, duplication=0.5, reordering=0.5, late_max=20.0, spike=0.05, spike_max=20.0,
                       faults_until=800.0)
    federation = Federation(global_masters=2, local_masters=1, delay=0.125)
    agree(many(jobs=30, seed=0), "megha", 8, 64, federation=federation, faults=faults, until=900.0, seed=14)


def many(jobs=60, seed=3, apart=4):
    """Tasks of four queues in jobs of two stages, over some minutes: most places are used again and again."""
    random, (_, fleet) = np.random.default_rng(seed), busy()
    stages = [{"job": job, "request": (float(random.integers(1, 5)), 1.0), "priority": int(random.integers(0, 3)),
               "depends_on": [2 * job] if part else []} for job in range(jobs) for part in range(2)]
    tasks = [(row, float(row // 2 * apart + random.integers(0, 9)), float(random.exponential(9.0)))
             for row in range(2 * jobs) for _ in range(4)]
    return in_queues((staged(stages, sorted(tasks, key=lambda task: task[1]), TWO), fleet), 4)


@settings(quick, max_examples=10)
@given(federation=federations(), faults=st.none() | fault_plans(), chunk=st.integers(1, 60), seed=st.integers(0, 2**20))
def test_places_are_used_again(federation, faults, chunk, seed):
    federation = msgspec.structs.replace(federation, local_masters=1 + seed % 2)
    agree(many(seed=seed % 7), "megha", chunk, 64, federation=federation, faults=faults, until=900.0, seed=seed)


@settings(quick, max_examples=10)
@given(federation=federations(), faults=st.none() | fault_plans(), chunk=st.integers(5, 60),
       stops=st.lists(st.integers(0, 9), min_size=1, max_size=3), until=st.sampled_from([900.0, 120.0]))
def test_a_federation_that_was_stopped_goes_on_to_the_same_end(federation, faults, chunk, stops, until):
    case, more = many(jobs=20), {"federation": federation, "faults": faults, "until": until}
    outcome, whole = in_memory(case, "megha", **more)
    with places() as (folder, place):
        for times in [*stops, None]:
            cut = Cut(place, chunk, Checkpoint(place, {"seed": "1"}, every=0.0), 64)
            with suppress(StoppedError):
                found = chunked(case, "megha", folder, cut, times if times is None else stopping(times), **more)
        assert_same(found, case, outcome, whole)


def weights(time, **queues):
    return TreeChange(time=time, queue=[Queue(name=name, weight=weight) for name, weight in queues.items()])


@pytest.mark.parametrize("chunk", [5, 40])
def test_queues_that_change_stay_changed(chunk):
    """Also where the federation is opened anew, for more places or from a checkpoint."""
    file = TreeFile(queue=[Queue(name="q0", weight=3.0)], change=[weights(60.0, q1=9.0), weights(130.0, q2=5.0)])
    more = {"federation": Federation(global_masters=2, local_masters=1, queue_order="hdrf"), "queues": file}
    agree(many(), "megha", chunk, **more)
    _, whole = in_memory(many(), "megha", **more)
    with places() as (folder, place):
        for times, more_read in [(9, chunk), (14, chunk), (None, 300)]:  # the last chunk is larger than all before
            cut = Cut(place, more_read, Checkpoint(place, {}, every=0.0), 64)
            with suppress(StoppedError):
                found = chunked(many(), "megha", folder, cut, times if times is None else stopping(times), **more)
        for one, other in zip(tables(found, many()), whole, strict=True):
            assert_frame_equal(one, other)


def test_as_many_places_are_used_as_tasks_are_open(tmp_path):
    case = many(jobs=300, apart=20)
    (tmp_path / "B").mkdir()
    found = chunked(case, "megha", tmp_path / "W", Cut(tmp_path / "B", 20, None, 64))
    assert found.work.tasks == 2400 and found.run.number.size < 240


def test_tasks_that_fit_nowhere_keep_no_places(tmp_path):
    stages = [{"job": job, "request": (64.0 if job % 5 else 1.0, 1.0)} for job in range(100)]
    case = staged(stages, [(job, float(job), 0.5) for job in range(100)], TWO), busy()[1]
    (tmp_path / "B").mkdir()
    found = chunked(case, "megha", tmp_path / "W", Cut(tmp_path / "B", 10, None, 64))
    assert found.run.number.size == 20
    assert tables(found, case)[0]["status"].value_counts().sort("count")["count"].to_list() == [20, 80]


@pytest.mark.parametrize("until", [math.inf, 9.0, 8.0])
def test_time_passes_before_those_who_are_unread_as_before_others(until):
    """Nothing waits or runs from 1 s to 9 s, when the next task arrives, of another chunk: heartbeats are counted."""
    case = plain_tasks((0, 0.5, 1), (9, 0.5, 1)), fleet_of((1,))
    agree(case, "megha", 1, federation=Federation(local_masters=1, heartbeat=0.75), until=until)


def test_allocation_times_are_exact_up_to_as_many_tasks_as_waits_are(tmp_path):
    assert FederationTally(WindowFacts(), tally.EXACT_MAX, tmp_path).columns is not None
    assert FederationTally(WindowFacts(), tally.EXACT_MAX + 1, tmp_path).columns is None


@pytest.mark.parametrize("scheduler", ["megha", "first-fit"])
def test_gangs_of_several_tasks_are_refused(tmp_path, scheduler):
    for name, stages, is_refused in (("one", [0, 1], False), ("two", [0, 1, 1], True)):
        workload = staged([{"request": (1,)}] * 2, [(stage, 0, 1) for stage in stages])
        gangs = replace(workload, stages=workload.stages.with_columns(gang=pl.Series([None, True])))
        scenario = Scenario(workload=written(tmp_path / name, (gangs, fleet_of((4,)))), schedulers=[scheduler])
        with pytest.raises(InputError, match="must start by themselves") if is_refused else nullcontext():
            fit(scenario)


def test_a_gang_of_one_task_is_a_task():
    workload = plain_tasks((0, 3, 2), (0, 1, 1), (0, 2, 2), (2, 1, 1), (5, 1, 2))
    gangs = replace(workload, stages=workload.stages.with_columns(gang=pl.Series([True, False, True, True, False])))
    agree((gangs, fleet_of((2,), (1,))), "megha", 2)


@pytest.mark.parametrize("block", [None, 50])
@pytest.mark.parametrize(("scheduler", "options"), [
    ("megha", {}), ("central", {"until": 70.0, "measure_from": 20.0}),
    ("megha", {"federation": Federation(preemption="strict", global_masters=3), "until": 80.0}),
])
def test_its_folder_is_that_of_the_federation_in_memory(tmp_path, scheduler, options, block, monkeypatch):
    if block is not None:
        monkeypatch.setattr(checkpoints, "Cut", lambda *given: Cut(*given, block=block))
    case = named_queues(busy(), ["q0", "q1"] * 14 + ["q2", "q0", "q1"])  # of q2 there is nothing in some blocks
    memory, cut = both_runs(tmp_path, scheduler, case, **options)
    assert memory.summary.federation.allocation.mean > 0 and len(memory.summary.federation.queues) == 3
    folders_agree(memory, cut)


def test_beyond_what_is_kept_allocation_times_are_near(tmp_path, monkeypatch):
    monkeypatch.setattr(tally, "EXACT_MAX", 0)
    monkeypatch.setattr(federation, "EXACT_MAX", 0)
    memory, cut = (run.summary.federation for run in both_runs(tmp_path, "megha", measure_from=20.0))
    for exact, near in [(memory.allocation, cut.allocation), *zip(
            memory.parts.values(), cut.parts.values(), strict=True)]:
        assert near.mean == pytest.approx(exact.mean, rel=1e-12) and near.max == exact.max
        for level in ("median", "p90", "p99", "p999"):
            assert getattr(near, level) == pytest.approx(getattr(exact, level), rel=ACCURACY + 1e-12, abs=1e-7)
    same = ("messages", "counts", "roles", "queues", "queues_left_out")
    assert [getattr(cut, name) for name in same] == [getattr(memory, name) for name in same]


@pytest.mark.parametrize(("options", "file", "rule"), [
    ({"federation": Federation(placement="bins")}, "", "placement must not be bins"),
    ({"faults": "faults.toml"}, "replay = 0.1", "replay must be 0, not 0.1"),
    ({"failures": "failures.toml"}, "[[task]]\nfail = 0.1", "must not have a plan of failures"),
])
def test_what_names_tasks_that_have_gone_is_refused(tmp_path, options, file, rule):
    options = {name: str(tmp_path / value) if isinstance(value, str) else value for name, value in options.items()}
    for name in ("faults", "failures"):
        (tmp_path / f"{name}.toml").write_text(file)
    with pytest.raises(InputError, match=rule):
        fit(Scenario(workload=written(tmp_path, busy()), schedulers=["megha"], **options))


# -- by hand -----------------------------------------------------------------------------------------------------------


def numbered(places):
    """Numbers of tasks by their places: {place: number in the workload}."""
    number = np.full(8, NOBODY, np.int64)
    for place, task in places.items():
        number[place] = (task << PLACE_BITS) + place
    return number


def test_walks_over_stages_go_on_where_they_were():
    """Stage 0 has tasks 0, 2 and 4, of which 2 comes next in a walk, stage 1 tasks 1 and 3, of which 3 does."""
    jobs, network = build_jobs(8, 2, 0, 0), build_network((1, 1, 1, 1, 1), 8, 16, 1)
    jobs.number[:] = numbered({3: 0, 0: 1, 1: 2, 2: 3, 5: 4})
    jobs.stages.of_task[:] = [1, 0, 1, 0, 0, 0, 0, 0]
    list_stages(jobs, network, np.array([0, 1, 2, 3, 5]))
    assert jobs.stages.task_first.tolist() == [0, 3, 5] and jobs.stages.task[:5].tolist() == [3, 1, 5, 0, 2]
    for slot, stage, row in ((1, 0, 1), (2, 1, 4)):
        network.flight["kind"][slot], network.flight["count"][slot], network.flight["row"][slot] = RELEASE, stage, row
    network.counts.free -= 3
    release_slot(network, 0)  # that of a message which came first
    list_stages(jobs, network, np.array([0, 1, 2, 5]))
    assert jobs.stages.task_first.tolist() == [0, 2, 4] and jobs.stages.task[:4].tolist() == [1, 5, 0, 2]
    assert network.flight["row"][1:3].tolist() == [0, 3]
    jobs.number[:] = numbered({0: 1, 1: 2, 2: 3, 5: 4, 3: 6})
    list_stages(jobs, network, np.array([0, 1, 2, 3, 5]))
    assert jobs.stages.task[:5].tolist() == [1, 5, 3, 0, 2] and network.flight["row"][1:3].tolist() == [0, 4]


def a_run(tmp_path, chunk=40, **federation):
    workload, fleet = many(jobs=20)
    (tmp_path / "W").mkdir(exist_ok=True)
    scheduler = find_scheduler("megha")
    inputs = Inputs(stored(workload, tmp_path / "W"), fleet, scheduler, told(scheduler, workload),
                    Federation(global_masters=2, local_masters=1, **federation), None)
    return FederatedRun(inputs, chunk), inputs.stored


@pytest.mark.parametrize("who", ["message", "local master", "worker", "view", "submitter"])
def test_a_place_is_kept_while_anybody_names_its_task(tmp_path, who):
    run, whole = a_run(tmp_path, preemption="strict")
    run.read(0, whole.part(0, 40))
    run.simulation.clock.unread_from = whole.arrival(40)
    while run.step(1000) != LOOP_UNREAD:
        pass
    ended, network, roles = run.ended(), run.opened.network, run.roles
    assert ended.size > 1 and (np.diff(run.number[ended]) > 0).all()
    number = roles.jobs.number[ended[1]]
    if who == "message":
        former, slot = network.slot[network.counts.free - np.array([1, 2])]
        network.counts.free -= 2
        network.flight["task"][slot] = number
        release_slot(network, former)  # a message that was taken earlier and is handled earlier
    elif who == "submitter":
        roles.jobs.row[ended[1]] = 0
    else:
        pool = {"local master": roles.locals[0].rows, "worker": roles.workers.rows, "view": roles.masters[1].held}[who]
        add_attempt(pool, 0, number, 1, 0)
    assert run.ended().tolist() == np.delete(ended, 1).tolist()
    run.drop(run.ended())
    assert run.ended().size == 0


def test_who_goes_on_is_where_the_other_was(tmp_path):
    """With as many places, and as many messages on their way as there was made room for."""
    run, whole = a_run(tmp_path)
    run.read(0, whole.part(0, 40))
    run.simulation.clock.unread_from = whole.arrival(40)
    run.step(300)
    run.opened.network = with_more_room(run.opened.network)
    other, _ = a_run(tmp_path, chunk=7)
    other.go_on_from(run.kept())
    assert other.opened.network.slot.size == run.opened.network.slot.size
    first, second = (own_arrays((each.simulation, each.opened.network._replace(arrival=NONE, arriving=NONE),
                                 each.roles)) for each in (run, other))
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.tobytes() == second[name].tobytes(), name
    other.read(40, whole.part(40, 160))
    assert other.number.size > 160 and other.opened.network.slot.size == run.opened.network.slot.size


def test_tasks_of_a_stage_that_was_given_up_are_never_submitted(tmp_path):
    run, whole = a_run(tmp_path)
    run.roles.jobs.given_up[3] = True
    run.read(0, whole.part(0, 40))
    stage = whole.part(0, 40).tasks["stage"].to_numpy()
    assert (stage == 3).any()
    assert ((run.roles.jobs.state[:40] == SUBMISSION_ENDED) == (stage == 3)).all()


def test_bounds_are_those_of_the_whole_workload(tmp_path):
    """There are as many rows and entries, and as much room for messages, however few places there are for tasks."""
    few, _ = a_run(tmp_path, chunk=1, preemption="strict")
    all_, whole = a_run(tmp_path, chunk=1000, preemption="strict")
    assert few.number.size == 2 and all_.number.size == whole.tasks == 160

    def bounds(run):
        roles = run.roles
        pools = [roles.workers.rows, *(local.rows for local in roles.locals), *(each.held for each in roles.masters)]
        return [pool.row.size for pool in pools], run.opened.out.row.size
    assert bounds(few) == bounds(all_)
    few.read(0, whole.part(0, 2))
    assert few.number.tolist() == [0, 1]  # as many places as tasks are enough


def test_what_is_shared_is_kept_once_and_what_is_behind_is_as_it_was_built():
    def built(size):
        shared = np.full(size, 7)
        return shared, [shared, np.full((size, 2), 9)]

    former, grown = built(2), built(4)
    former[0][:], former[1][1][:] = [1, 2], [[3, 4], [5, 6]]
    kept = own_arrays(former)
    assert list(kept) == ["/0", "/1/1"]
    take_on(grown, kept)
    assert grown[1][0] is grown[0] and grown[0].tolist() == [1, 2, 7, 7]
    assert grown[1][1].tolist() == [[3, 4], [5, 6], [9, 9], [9, 9]]


def test_an_item_of_which_only_the_front_is_there_is_kept_whole(monkeypatch):
    """And what is behind is zero, though the memory was another's before."""
    monkeypatch.setattr(arrays, "BYTES_AT_ONCE", 16)
    items = np.zeros(5, [("a", np.int64), ("b", np.int64), ("c", np.int64)])
    items["a"][2] = 7
    kept = packed({"items": items})
    assert kept["items:values"].size == 3
    former = np.full(15, 1)
    del former
    assert unpacked(kept)["items"].tolist() == items.tolist()


def test_arrays_are_kept_without_the_zeros_behind():
    long = np.zeros(3 << 20)
    long[5] = 1.0
    column = np.zeros(4, [("a", np.int8), ("b", np.int64)])["b"]
    column[1] = 7
    state = (long, [column, np.arange(6).reshape(2, 3)], "no array")
    kept = packed(own_arrays(state))
    assert sum(array.nbytes for array in kept.values()) < 2 << 20
    assert {name: array.tolist() for name, array in unpacked(kept).items()} == {
        name: array.tolist() for name, array in own_arrays(state).items()}
