"""The compiled engine and the plain twin agree task by task, on small cases full of ties."""
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invariants import Watch, check, head_is_stuck, work_conserving
from naive import twin_run
from small import TWO, cases, fleet_of, staged
from subak.fleet import shortlists
from subak.fleet.index import MOST
from subak.placement.claims import STATUSES, TASK_FINISHED
from subak.placement.schedulers import PLACEMENT_OPTIONS, SCHEDULERS
from subak.policy import find_scheduler
from subak.queues.lanes import ACTIVE_LANES
from subak.simulator.central.engines import central_loop
from subak.simulator.engine.setup import Terms
from subak.simulator.engine.state import LOOP_PAUSED
from subak.simulator.results import machine_rows, timeline_table
from subak.simulator.simulate import simulate

ORDERS = ["", "+shortest-first", "+priority"]
# All that look for a machine for one task, each with a twin in naive.py; but random-fit, which draws, and fifo,
# which is first-fit by another name.
PLACEMENTS = [name for name, each in SCHEDULERS.items()
              if each.accepts == PLACEMENT_OPTIONS and name not in ("random-fit", "fifo")]
ORDERED = [name + backfill + order for name in PLACEMENTS for backfill in ("", "+backfill") for order in ORDERS]
ALL = [*ORDERED, "greedy", "tetris", "tetris+normalised"]
UNTIL = [math.inf, math.inf, 0.0, 1.0, 4.0, 5.25]

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


def engine_rows(outcome):
    """Per task: status, attempts, and of the last attempt start, expected finish and machine."""
    progress, status = outcome.simulation.progress, outcome.simulation.claims.status
    machines = machine_rows(outcome)
    finish = progress.start + outcome.simulation.tasks.run_time
    return [
        (STATUSES[status[task]], int(progress.attempts[task]),
         *((float(progress.start[task]), float(finish[task]), int(machines[task]))
           if progress.attempts[task] else (None, None, None)))
        for task in range(status.size)
    ]


def twin_rows(twin):
    return list(zip(twin.status, twin.attempts, twin.start, twin.finish, twin.machine, strict=True))


def lost_attempts(outcome):
    task, machine, start, end = np.hstack(outcome.loop_result.losses)
    rows = outcome.prepared.machine_order[machine.astype(int)]
    return sorted(zip(task.tolist(), rows.tolist(), start.tolist(), end.tolist(), strict=True))


def agree(case, scheduler, seed=1, until=math.inf):
    workload, fleet = case
    outcome = simulate(workload, fleet, find_scheduler(scheduler), seed=seed, until=until, interval=1.0)
    twin = twin_run(workload, fleet, scheduler, seed, until)
    assert engine_rows(outcome) == twin_rows(twin)
    assert lost_attempts(outcome) == sorted(twin.losses)
    known = [task for task, status in enumerate(twin.status) if status not in ("NOT_ARRIVED", "BLOCKED")]
    assert [float(outcome.simulation.progress.ready[task]) for task in known] == [twin.ready[task] for task in known]
    return outcome, twin


@pytest.mark.parametrize("scheduler", ["first-fit", "first-fit+backfill"])
@settings(quick, max_examples=60)
@given(case=cases(), until=st.sampled_from(UNTIL))
def test_first_fit_in_order_of_arrival(scheduler, case, until):
    agree(case, scheduler, until=until)


@settings(quick, max_examples=250)
@given(case=cases(), scheduler=st.sampled_from(ORDERED), until=st.sampled_from(UNTIL))
def test_every_order_with_every_placement(case, scheduler, until):
    agree(case, scheduler, until=until)


@settings(quick, max_examples=150)
@given(case=cases(), seed=st.integers(0, 2**63), until=st.sampled_from(UNTIL))
def test_greedy_draws_the_same_ties(case, seed, until):
    agree(case, "greedy", seed=seed, until=until)


@settings(quick, max_examples=150)
@given(case=cases(endless=False), scheduler=st.sampled_from(["tetris", "tetris+normalised"]),
       until=st.sampled_from(UNTIL))
def test_tetris_is_the_maximum_over_all_tasks_and_machines(case, scheduler, until):
    agree(case, scheduler, until=until)


@settings(quick, max_examples=150)
@given(case=cases(endless=False), scheduler=st.sampled_from([name for name in ALL if "first-fit" not in name]),
       listed=st.integers(1, 2))
def test_how_long_short_lists_are_changes_nothing(monkeypatch, case, scheduler, listed):
    for name, room in (("LISTS_MAX", 2), ("MACHINES_LISTED_MAX", listed), ("NOTED_MIN", 1)):
        monkeypatch.setattr(shortlists, name, room)
    agree(case, scheduler)


def crowd(seed, shapes=150):
    """More shapes than a block of places holds wait for a few machines, which free several of them at one instant."""
    random = np.random.default_rng(seed)
    wishes = ([("rack", "=", "a")], [("color", "!=", "red")], [], [], [], [], [])
    stages = [{"job": row, "request": (1 + row // 12, 1 + row % 12), "constraints": wishes[row % 7]}
              for row in range(shapes)]
    tasks = [(row, float(random.integers(0, 4)), float(random.integers(1, 4)))
             for row in [*range(shapes), *random.integers(0, shapes, shapes)]]
    attributes = [(0, "rack", "a"), (1, "color", "red"), (2, "rack", "a"), (2, "color", "red")]
    return staged(stages, tasks, TWO), fleet_of((16, 16), (13, 20), (20, 13), (16, 14), resources=TWO,
                                                attributes=attributes, changes=[(5.0, 3, False, 16, 14)])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_more_shapes_wait_than_a_block_holds(seed, order):
    outcome, _ = agree(crowd(seed), "first-fit+backfill" + order)
    assert (outcome.simulation.claims.status == TASK_FINISHED).sum() > 250


def test_as_many_shapes_wait_as_a_block_holds():
    """64 of 64 wait when the machine is left, so that no place is left over in the table of what they ask for."""
    stages = [{"job": row, "request": (1 + row, 1)} for row in range(64)]
    tasks = [(63, 0.0, 10.0), *((row, 1.0, 2.0) for row in range(64))]
    outcome, _ = agree((staged(stages, tasks, TWO), fleet_of((64, 40), resources=TWO)), "first-fit+backfill")
    assert (outcome.simulation.claims.status == TASK_FINISHED).all()


@pytest.mark.parametrize("scheduler", ["first-fit+backfill", "best-fit+backfill+priority", "first-fit"])
def test_what_lanes_ask_for_lies_at_their_places(scheduler):
    """After each step; in a strict order there is one lane of all shapes, and nothing lies there."""
    workload, fleet = crowd(4)
    instance = find_scheduler(scheduler)
    loop = central_loop(workload, fleet, instance, Terms(ranking=instance.order, interval=1000.0))
    sim, (ordered, *_) = loop.prepared.simulation, loop.states
    lanes, most = ordered.lanes, 0
    while loop.step(1) == LOOP_PAUSED:
        active = lanes.size[ACTIVE_LANES]
        if lanes.by_shape:
            assert (ordered.wanted[:, :active] == sim.tasks.request[:, lanes.active[:active]]).all()
            most = max(most, active)
        assert (ordered.wanted[:, active:] == MOST).all()
    assert len(ordered.wanted) == (2 if lanes.by_shape else 0)
    assert most > 64 or not lanes.by_shape


# -- after every step --------------------------------------------------------------------------------------------------

RULES = {
    "first-fit": head_is_stuck, "best-fit+priority": head_is_stuck, "random-fit+shortest-first": head_is_stuck,
    "first-fit+backfill": work_conserving, "worst-fit+backfill+shortest-first": work_conserving,
    "random-fit+backfill+priority": work_conserving, "tetris": work_conserving, "greedy": check,
}


@settings(quick, max_examples=80)
@given(case=cases(), scheduler=st.sampled_from(sorted(RULES)), until=st.sampled_from(UNTIL))
def test_invariants_hold_after_every_step(case, scheduler, until):
    workload, fleet = case
    watch = Watch(RULES[scheduler])
    simulate(workload, fleet, find_scheduler(scheduler), until=until, interval=1.0, check=watch)
    assert watch.steps > 0


@settings(quick, max_examples=30)
@given(case=cases(endless=False), scheduler=st.sampled_from(ALL))
def test_one_step_at_a_time_is_the_same_run(case, scheduler):
    workload, fleet = case
    once = simulate(workload, fleet, find_scheduler(scheduler), interval=1.0)
    stepped = simulate(workload, fleet, find_scheduler(scheduler), interval=1.0, check=lambda *_: None)
    assert engine_rows(once) == engine_rows(stepped)
    assert once.loop_result.timeline.tobytes() == stepped.loop_result.timeline.tobytes()


@settings(quick, max_examples=100)
@given(case=cases(), scheduler=st.sampled_from(ALL), seed=st.integers(0, 2**63))
def test_the_same_seed_gives_the_same_bytes(case, scheduler, seed):
    workload, fleet = case
    runs = [simulate(workload, fleet, find_scheduler(scheduler), seed=seed) for _ in range(2)]
    first, second = ([*run.simulation.progress, run.loop_result.timeline, *run.loop_result.losses] for run in runs)
    assert [array.tobytes() for array in first] == [array.tobytes() for array in second]


# -- the timeline ------------------------------------------------------------------------------------------------------


def overlap(span, begin, end):
    return max(0.0, min(span.end, end) - max(span.begin, begin))


@settings(quick, max_examples=80)
@given(case=cases(endless=False), scheduler=st.sampled_from(["first-fit", "greedy", "tetris"]),
       interval=st.sampled_from([0.5, 1.0, 2.5, 100.0]))
def test_the_timeline_integrates_what_held_between_events(case, scheduler, interval):
    workload, fleet = case
    outcome = simulate(workload, fleet, find_scheduler(scheduler), interval=interval)
    twin = twin_run(workload, fleet, scheduler)
    table = timeline_table(outcome, workload)
    assert table["span"].sum() == twin.now
    for row in table.iter_rows(named=True):
        held = [(span, overlap(span, row["time"], row["time"] + interval)) for span in twin.spans]
        held = [(span, seconds) for span, seconds in held if seconds > 0]
        if not held or (row["time"] + interval > twin.now and twin.losses):
            continue
        length = sum(seconds for _, seconds in held)
        assert row["span"] == pytest.approx(length, abs=1e-12)
        assert row["waiting"] * length == pytest.approx(sum(span.waiting * seconds for span, seconds in held))
        assert row["running"] * length == pytest.approx(sum(span.running * seconds for span, seconds in held))
        assert row["waiting_max"] == max(span.waiting for span, _ in held)
        for number, resource in enumerate(workload.resources):
            used = sum(span.used[number] * seconds for span, seconds in held) * resource.unit
            capacity = sum(span.capacity[number] * seconds for span, seconds in held) * resource.unit
            assert row[f"used_{resource.name}"] * length == pytest.approx(used)
            assert row[f"capacity_{resource.name}"] * length == pytest.approx(capacity)
    assert table["arrivals"].sum() == sum(time <= twin.now for time in twin.arrival)
    assert table["starts"].sum() == sum(twin.attempts)
    assert table["ends"].sum() == twin.status.count("FINISHED")
    assert table["lost"].sum() == len(twin.losses)
