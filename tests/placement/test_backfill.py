"""Backfilling with reservations, of gangs: published answers, hand-worked cases, the textbook's algorithms."""
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from invariants import check_amounts, check_attempts, check_counts, check_frontiers, check_summaries
from naive import twin_of
from naive_backfill import Rigid
from one_pool import Job, OnePool
from published import answers
from small import CPU, TWO, amounts, cases, fleet_of, fleets, staged, workloads
from subak.errors import InputError
from subak.fleet.state import LOG
from subak.placement.claims import TASK_RUNNING, TASK_WAITING
from subak.placement.rigid.gangs import NOT_RUNNING, expected_end
from subak.placement.rigid.profile import IS_OPEN, RESERVATIONS
from subak.placement.rigid.reservations import close_if_unused, open_profile
from subak.placement.rigid.start import holds
from subak.policy import find_scheduler
from subak.simulator.central.engines import central_loop
from subak.simulator.central.gangs import gangs_of_tasks
from subak.simulator.engine.setup import Terms
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate
from subak.workload.table import make_workload
from test_engine_against_twin import engine_rows, twin_rows

CASES = answers("backfill")["cases"]
NAMES = {"fcfs": ["first-fit"], "easy": ["easy", "first-fit+easy", "best-fit+easy"],
         "conservative": ["conservative", "first-fit+conservative", "best-fit+conservative"]}


def rigid(*jobs):
    """A workload of rigid jobs (arrival, nodes, run time[, estimate]): gangs of tasks of a core each."""
    stages = [{"job": row, "request": (1,)} for row in range(len(jobs))]
    tasks = [(row, job[0], job[2], *job[3:]) for row, job in enumerate(jobs) for _ in range(job[1])]
    workload = staged(stages, tasks)
    stages = workload.stages.with_columns(pl.lit(True).alias("gang"), pl.col("cpu").cast(pl.Float64))
    return make_workload(workload.jobs, stages, workload.tasks, CPU)


def starts(workload, fleet, scheduler, **more):
    """The start of each job, of which all tasks start together."""
    outcome = simulate(workload, fleet, find_scheduler(scheduler), **more)
    table = workload.tasks.with_columns(start=outcome.simulation.progress.start)
    spans = table.group_by("stage").agg(low=pl.col("start").min(), high=pl.col("start").max()).sort("stage")
    assert spans["low"].equals(spans["high"], null_equal=True), spans
    assert not spans["low"].is_nan().any(), "a job that fits the machines waits for ever"
    return spans["low"].to_list()


@pytest.mark.parametrize("machine_size", [1, 5, 10])
@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("rule", NAMES)
def test_known_answers(rule, case, machine_size):
    known = CASES[case]
    if rule not in known["start"]:
        pytest.skip(f"the case has no answer for {rule}")
    names = list(known["jobs"])
    workload = rigid(*known["jobs"].values())
    fleet = fleet_of(*[(machine_size,)] * (known["nodes"] // machine_size))
    for scheduler in NAMES[rule]:
        found = dict(zip(names, starts(workload, fleet, scheduler), strict=True))
        assert found == known["start"][rule], scheduler


@pytest.mark.parametrize("rule", ["easy", "conservative"])
def test_a_reservation_without_length_is_kept(rule):
    """Z wants all three units for no time, and is due when A ends; L would hold one of them for long."""
    a, z, long = (0, 2, 10), (1, 3, 0), (2, 1, 20)
    assert starts(rigid(a, z, long), fleet_of((1,), (1,), (1,)), rule) == [0.0, 10.0, 10.0]


# -- the plain twin ----------------------------------------------------------------------------------------------------

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))
RULES = {"strict": "", "backfill": "+backfill", "easy": "+easy", "conservative": "+conservative"}
ORDERINGS = {"fifo": "", "shortest-first": "+shortest-first", "priority": "+priority"}


def with_gangs(workload, flags):
    names = [resource.name for resource in workload.resources]
    units = [pl.col(resource.name) * resource.unit for resource in workload.resources]
    stages = workload.stages.with_columns(pl.Series("gang", flags), *units)
    assert names
    return make_workload(workload.jobs, stages, workload.tasks, workload.resources)


def agree(workload, fleet, rule, order, placement, until=math.inf):
    scheduler = find_scheduler(placement + RULES[rule] + ORDERINGS[order])
    outcome = simulate(workload, fleet, scheduler, until=until, interval=1.0, check=check_amounts_alone)
    world = twin_of(workload, fleet)
    policy = Rigid(world, gangs_of_tasks(workload).tolist(), rule, order, placement)
    world.run(policy, until)
    assert engine_rows(outcome) == twin_rows(world)
    return outcome


def check_amounts_alone(simulation, _):
    check_amounts(simulation)
    check_summaries(simulation.fleet)
    check_counts(simulation)
    check_attempts(simulation)
    check_frontiers(simulation)


@st.composite
def crowds(draw, resources, gangs=True):
    """Many small jobs, one after the other, on a few machines that are full most of the time."""
    amount = st.tuples(*[st.sampled_from([resource.unit * units for units in (1, 1, 2, 3)]) for resource in resources])
    jobs = draw(st.lists(st.tuples(amount, st.sampled_from([1, 1, 2, 3] if gangs else [1]), st.sampled_from(range(13)),
                                   st.sampled_from([0, 1, 2, 3, 5.5]), st.sampled_from([None, 0, 1, 2, 4, 9])),
                         min_size=5, max_size=18))
    stages = [{"job": row, "request": job[0], "priority": row % 3} for row, job in enumerate(jobs)]
    tasks = [(row, *job[2:]) for row, job in enumerate(jobs) for _ in range(job[1])]
    return with_gangs(staged(stages, tasks, resources), [job[1] > 1 for job in jobs])


@settings(quick, max_examples=120)
@given(data=st.data(), rule=st.sampled_from(["backfill", "easy", "easy", "conservative"]),
       order=st.sampled_from(sorted(ORDERINGS)), placement=st.sampled_from(["first-fit", "best-fit"]),
       changes=st.booleans())
def test_crowds_go_as_in_the_plain_twin(data, rule, order, placement, changes):
    resources = data.draw(st.sampled_from([CPU, TWO]))
    capacities = data.draw(st.lists(amounts(resources, [2, 3, 4]), min_size=1, max_size=4))
    there = [(time, len(capacities) - 1, is_there, *capacities[-1]) for time, is_there in ((3, False), (7, True))]
    fleet = fleet_of(*capacities, resources=resources, changes=there if changes else ())
    agree(data.draw(crowds(resources, gangs=not changes)), fleet, rule, order, placement)


@settings(quick, max_examples=100)
@given(data=st.data(), rule=st.sampled_from(sorted(RULES)), order=st.sampled_from(sorted(ORDERINGS)),
       placement=st.sampled_from(["first-fit", "best-fit"]), until=st.sampled_from([math.inf, math.inf, 1.0, 4.0]))
def test_gangs_go_as_in_the_plain_twin(data, rule, order, placement, until):
    resources = data.draw(st.sampled_from([CPU, TWO]))
    workload = data.draw(workloads(resources, task_most=24))
    fleet = data.draw(fleets(resources, changes_most=0))
    flags = data.draw(st.lists(st.booleans(), min_size=len(workload.stages), max_size=len(workload.stages)))
    agree(with_gangs(workload, flags), fleet, rule, order, placement, until)


@settings(quick, max_examples=100)
@given(case=cases(task_most=24), rule=st.sampled_from(["easy", "conservative"]),
       order=st.sampled_from(sorted(ORDERINGS)))
def test_reservations_are_made_anew_when_the_fleet_changes(case, rule, order):
    agree(*case, rule, order, "first-fit")


# -- the textbook's, of nodes that are alike ---------------------------------------------------------------------------


def textbook(jobs, nodes, rule):
    """Starts of (arrival, nodes, run time, estimate), estimates long enough, by counts of nodes alone.

    Who runs for no time has its nodes until all have been asked: nobody knows that it will end at once. At an instant
    those who come are asked when nothing ends any more (decision 7).
    """
    start, ended, here, now = {}, set(), set(), 0.0
    while len(start) < len(jobs):
        waiting = [job for job in sorted(here) if job not in start]
        busy = [(start[job] + jobs[job][3], jobs[job][1]) for job in start if job not in ended]
        if rule == "easy":
            ready = easy_round(jobs, nodes, now, waiting, busy)
        else:
            ready = [job for job in waiting if not any(earlier not in start for earlier in waiting[:waiting.index(job)])
                     ][:1]
            ready = [job for job in ready if nodes - sum(held for _, held in busy) >= jobs[job][1]]
        if ready:
            start[ready[0]] = now
            continue
        ends = {job: start[job] + jobs[job][2] for job in start if job not in ended}
        comes = min((jobs[job][0] for job in range(len(jobs)) if job not in here), default=math.inf)
        now = min(comes, *ends.values(), math.inf)
        if now in ends.values():
            ended |= {job for job, end in ends.items() if end == now}
        else:
            here |= {job for job in range(len(jobs)) if jobs[job][0] == now}
    return [start[job] for job in range(len(jobs))]


def easy_round(jobs, nodes, now, waiting, busy):
    """Mu'alem and Feitelson's figure: shadow time and extra nodes of the first; the first other that may go."""
    if not waiting:
        return []
    free = nodes - sum(held for _, held in busy)
    head, others = waiting[0], waiting[1:]
    if jobs[head][1] <= free:
        return [head]
    available, shadow = free, now
    for end, held in sorted(busy):
        available += held
        shadow = end
        if available >= jobs[head][1]:
            break
    available = free + sum(held for end, held in busy if end <= shadow)
    extra = available - jobs[head][1]
    return [job for job in others
            if jobs[job][1] <= free and (now + jobs[job][3] <= shadow or jobs[job][1] <= extra)]


JOBS = st.lists(st.tuples(st.sampled_from([0, 0, 1, 2, 3, 5, 8, 8.5]), st.integers(1, 8),
                          st.sampled_from([0, 1, 2, 3, 5, 7.5]), st.sampled_from([0, 0, 1, 4])), min_size=1,
                max_size=25)


@settings(quick, max_examples=120)
@given(drawn=JOBS, rule=st.sampled_from(["easy", "fcfs"]), node=st.sampled_from([1, 2, 8]))
def test_nodes_that_are_alike_go_by_the_textbook(drawn, rule, node):
    jobs = sorted((arrival, count, run, run + more) for arrival, count, run, more in drawn)
    fleet = fleet_of(*[(node,)] * (8 // node))
    assert starts(rigid(*jobs), fleet, "easy" if rule == "easy" else "first-fit") == textbook(jobs, 8, rule)


@settings(quick, max_examples=150)
@given(drawn=JOBS, scheduler=st.sampled_from(["fifo", "first-fit+backfill", "easy", "conservative",
                                              "easy+shortest-first", "conservative+shortest-first"]))
def test_a_gang_on_nodes_starts_as_a_task_on_one_machine(drawn, scheduler):
    """Nodes that are alike are one pool, where a count decides: as if they were one machine."""
    jobs = sorted((arrival, count, run, run + more) for arrival, count, run, more in drawn)
    stages = [{"job": row, "request": (job[1],)} for row, job in enumerate(jobs)]
    whole = staged(stages, [(row, job[0], job[2], job[3]) for row, job in enumerate(jobs)])
    assert starts(rigid(*jobs), fleet_of(*[(1,)] * 8), scheduler) == starts(whole, fleet_of((8,)), scheduler)


ESTIMATED = st.lists(st.tuples(st.sampled_from([0, 0, 1, 2, 3, 5, 8, 8.5]), st.integers(1, 9),
                               st.sampled_from([0, 0.25, 1, 2, 3, 5, 7.5]), st.sampled_from([0, 0, 1, 2, 4, 10])),
                     min_size=1, max_size=25)


@settings(quick, max_examples=400)
@given(drawn=ESTIMATED, rule=st.sampled_from(["easy", "conservative"]))
def test_the_twin_for_logs_is_the_plain_twin(drawn, rule):
    """With estimates of 0, too short, exact and too long; one job in nine is too wide."""
    jobs = [Job(*each) for each in sorted(drawn)]
    made = rigid(*jobs)
    world = twin_of(made, fleet_of(*[(1,)] * 8))
    gangs = gangs_of_tasks(made).tolist()
    world.run(Rigid(world, gangs, rule))
    start = dict(zip(gangs, world.start, strict=True))
    found = [None if math.isnan(at) else at for at in OnePool(jobs, 8, rule).run()]
    assert found == [start[job] for job in range(len(jobs))]


# -- promises ----------------------------------------------------------------------------------------------------------


class Promises:
    """No reservation is put off, and each is kept.

    EASY's is of the first in order, before which one may stand that comes to wait later, when its last task arrives.
    """

    def __init__(self, rule):
        self.rule, self.promised, self.made = rule, {}, 0
        self.ready = set()  # gangs that had come to wait, or begun, when this was last called

    def __call__(self, simulation, state):
        check_amounts_alone(simulation, state)
        check_profile(simulation, state)
        now, gangs = simulation.clock.now, state.gangs
        ready = set(np.flatnonzero((gangs.missing == 0) | (gangs.until != NOT_RUNNING)).tolist()) | self.ready
        before = min((state.all.place[gang] for gang in ready - self.ready), default=math.inf)
        self.ready = ready
        for gang in range(gangs.rank.size):
            if self.rule == "easy" and before < state.all.place[gang]:
                self.promised.pop(gang, None)
            first = gangs.task[gangs.first[gang]]
            if simulation.claims.status[first] == TASK_WAITING and gangs.missing[gang] == 0:
                reserved = float(gangs.reserved[gang])
                assert reserved > now, f"gang {gang} has a reservation for {reserved}, and waits at {now}"
                assert reserved <= self.promised.get(gang, math.inf), f"gang {gang} is put off at {now}"
                assert self.rule == "easy" or reserved < math.inf, f"gang {gang} has no reservation at {now}"
                if reserved < math.inf:
                    self.promised[gang] = reserved
                    self.made += 1
            elif gang in self.promised:
                start = simulation.progress.start[first]
                assert start <= self.promised[gang], f"gang {gang} was to start at {self.promised[gang]}, not {start}"


def check_profile(simulation, state):
    """What the profile says of each time is what runs and what is reserved leave of the machines."""
    profile, gangs, now = state.profile, state.gangs, simulation.clock.now
    if not profile.size[IS_OPEN]:
        assert profile.size[RESERVATIONS] == 0
        return
    assert profile.size[RESERVATIONS] == np.isfinite(gangs.reserved).sum()
    held = []
    for task, status in enumerate(simulation.claims.status.tolist()):
        gang, shape = gangs.of_task[task], simulation.tasks.shape[task]
        if status == TASK_RUNNING:
            held.append((int(gangs.pool[task]), -math.inf, float(gangs.until[gang]), profile.demand[:, shape]))
        elif status == TASK_WAITING and gangs.reserved[gang] < math.inf:
            begin = float(gangs.reserved[gang])
            held.append((int(gangs.pool[task]), begin, expected_end(begin, gangs.seconds[gang]),
                         profile.demand[:, shape]))
    times = {now} | {time for _, *span, _ in held for time in span if now <= time < math.inf}
    capacity = capacity_of_pools(simulation, profile)
    for pool, first in enumerate(profile.first.tolist()):
        segment = first
        for time in sorted(times):
            while profile.next[segment] >= 0 and profile.time[profile.next[segment]] <= time:
                segment = int(profile.next[segment])
            taken = [each for where, begin, end, each in held if where == pool and begin <= time < end]
            free = capacity[:, pool] - sum(taken, start=np.zeros(len(capacity), np.int64))
            assert profile.free[:, segment].tolist() == free.tolist(), f"pool {pool} at {time}, seen from {now}"
            assert (free >= 0).all(), f"pool {pool} is promised twice at {time}"


def capacity_of_pools(simulation, profile):
    fleet, pools = simulation.fleet, profile.pool[: simulation.fleet.machines]
    capacity = fleet.capacity[:, : fleet.machines].astype(np.int64)
    if profile.by_slots:
        asked = simulation.tasks.request[:, 0]
        capacity = (capacity[asked > 0] // asked[asked > 0, None]).min(axis=0)[None]
    found = np.zeros((len(capacity), profile.first.size), np.int64)
    for pool, each in zip(pools, capacity.T, strict=True):
        found[:, pool] += each
    return found


@settings(quick, max_examples=150)
@given(data=st.data(), rule=st.sampled_from(["easy", "conservative"]),
       placement=st.sampled_from(["first-fit", "best-fit"]))
def test_no_reservation_is_put_off_when_estimates_are_long_enough(data, rule, placement):
    resources = data.draw(st.sampled_from([CPU, TWO]))
    workload = data.draw(workloads(resources, task_most=24, endless=False))
    fleet = data.draw(fleets(resources, changes_most=0))
    flags = data.draw(st.lists(st.booleans(), min_size=len(workload.stages), max_size=len(workload.stages)))
    longer = data.draw(st.lists(st.sampled_from([0.0, 0.5, 3.0]), min_size=len(workload.tasks),
                                max_size=len(workload.tasks)))
    times = np.maximum(workload.tasks["run_time"].to_numpy(), 0.5)  # what takes no time is expected to hold nothing
    tasks = workload.tasks.with_columns(run_time=pl.Series(times), estimate=pl.Series(times + np.array(longer)))
    workload = with_gangs(replace(workload, tasks=tasks), flags)
    watch = Promises(rule)
    simulate(workload, fleet, find_scheduler(f"{placement}+{rule}"), interval=1.0, check=watch)
    event("made" if watch.made else "none")


# -- by hand -----------------------------------------------------------------------------------------------------------


def nodes(count, **more):
    return fleet_of(*[(1,)] * count, **more)


def test_whom_the_first_held_up_may_go_when_it_starts_on_what_was_freed():
    """E is expected until 100 and ends at 3; H then takes its nodes, and nobody needs the two others any more."""
    jobs = [(0, 2, 10), (0, 4, 3, 100), (1, 4, 5), (2, 2, 50)]
    assert starts(rigid(*jobs), nodes(8), "easy") == [0, 0, 3, 3]


def test_what_is_to_follow_a_task_that_is_late_does_not_wait_for_ever():
    """Both have missed the times of their reservations when the node is free at last, and nothing else will happen."""
    assert starts(rigid((0, 1, 3, 1), (0, 1, 1), (0, 1, 4)), nodes(1), "conservative") == [0, 3, 4]


def test_a_task_that_has_outlived_its_estimate_is_expected_to_run_twice_as_long():
    """At 3 the first is expected until 4, so the third would end too late; at 5 until 8, so the fourth may go."""
    jobs = [(0, 1, 9, 2), (1, 2, 1), (3, 1, 2), (5, 1, 3)]
    assert starts(rigid(*jobs), nodes(2), "easy") == [0, 9, 5, 10]
    jobs[2] = (3, 1, 1)
    assert starts(rigid(*jobs), nodes(2), "easy") == [0, 9, 3, 5]


def test_reservations_are_made_earlier_when_something_ends_early():
    """The first ends at 2, not 10: all three that have reservations are moved up, in order."""
    jobs = [(0, 2, 2, 10), (1, 2, 3, 5), (1, 1, 4, 4), (1, 1, 6, 8)]
    assert starts(rigid(*jobs), nodes(2), "conservative") == [0, 2, 5, 5]


def a_late_gang(priorities):
    """Gangs on three nodes: A has two from 0 to 10, H waits for two from 1 on, G for all three from 2 on.

    That is when the last task of G arrives. At 3 come F and S, which ask for one node for 10 and for 7 seconds.
    """
    stages = [{"job": job, "request": (1,), "priority": priority} for job, priority in enumerate(priorities)]
    tasks = [(0, 0, 10), (0, 0, 10), (1, 0, 4), (1, 0, 4), (2, 1, 5), (2, 1, 5), (1, 2, 4), (3, 3, 10), (4, 3, 7)]
    return with_gangs(staged(stages, tasks), [True] * 3 + [False] * 2)


_, G, H, _, S = range(5)


@pytest.mark.parametrize(("priorities", "reserved", "expected"), [
    # G stands before H and takes the reservation over: all nodes at 10, so F would end too late, and S may go. When G
    # has begun H has one again, for 14; F starts beside it.
    ((0, 1, 0, 0, 0), [(1, H, 10), (2, G, 10), (10, H, 14)], [0, 10, 14, 14, 3]),
    # G stands behind H, which keeps its two nodes at 10: F may have the third until 13. When H has begun G has one, for
    # 15; at 13 S would end too late, and has one for 19 when G has begun.
    ((0, 0, 1, 0, 0), [(1, H, 10), (10, G, 15), (15, S, 19)], [0, 15, 10, 3, 19]),
])
def test_a_gang_whose_last_task_comes_later_takes_over_the_reservation_of_one_behind_it(
        priorities, reserved, expected):
    workload, watch, seen = a_late_gang(priorities), Promises("easy"), []

    def look(simulation, state):
        watch(simulation, state)
        now, gangs = simulation.clock.now, state.gangs
        for gang in np.flatnonzero(np.isfinite(gangs.reserved)).tolist():
            if (gang, gangs.reserved[gang]) != (seen[-1][1:] if seen else None):
                seen.append((now, gang, gangs.reserved[gang]))

    assert starts(workload, nodes(3), "easy+priority", check=look) == expected
    assert seen == reserved


def test_one_that_comes_to_stand_behind_ends_no_promise():
    """Of what tests look with: H is believed to have been promised 9, and still waits for 10 when G comes."""
    watch = Promises("easy")

    def look(simulation, state):
        watch(simulation, state)
        if simulation.clock.now == 1:
            watch.promised[H] = 9.0

    with pytest.raises(AssertionError, match="gang 2 is put off at 2"):
        simulate(a_late_gang((0, 0, 1, 0, 0)), nodes(3), find_scheduler("easy+priority"), check=look)


def test_who_moves_up_leaves_room_for_those_before_it():
    """At 10.5 the last moves up behind the fourth; only then may the fifth, of all nodes, move up to 13.5."""
    jobs = [(0, 8, 7.5), (2, 5, 2), (3, 8, 1, 5), (8, 1, 3), (8, 8, 1, 5), (8, 8, 7.5), (8.5, 3, 5, 9), (8.5, 4, 3)]
    assert starts(rigid(*jobs), nodes(8), "conservative") == [0, 7.5, 9.5, 10.5, 13.5, 14.5, 22, 10.5]


def sizes(*first):
    """Three tasks of a core on machines of two cores, then one of two, then two of one that run for long."""
    return staged([{"request": (1,)}, {"request": (2,), "job": 1}, {"request": (1,), "job": 2}],
                  [*[(0, 0, seconds) for seconds in first], (1, 2, 1), (2, 3, 9), (2, 3, 9)])


@pytest.mark.parametrize(("scheduler", "expected"), [
    ("first-fit", [4, 4, 5]), ("first-fit+backfill", [12, 3, 3]), ("easy", [4, 3, 5]), ("conservative", [4, 3, 5]),
])
def test_tasks_of_several_sizes_are_reserved_for_machine_by_machine(scheduler, expected):
    """From 1 on a core is free on each machine: a count would say that two cores fit; the second is free from 4 on."""
    progress = simulate(sizes(8, 1, 4), fleet_of((2,), (2,)), find_scheduler(scheduler)).simulation.progress
    assert progress.start.tolist() == [0, 0, 0, *expected]


@pytest.mark.parametrize("useless", [0, 64])
def test_a_gang_takes_of_a_machine_only_what_nobody_needs_later(useless):
    """The first machine has two cores free, of which the task of three needs one at 5: the gang takes one of each.

    Before it stand machines that have none.
    """
    stages = [{"job": row, "request": (size,)} for row, size in enumerate((4, 1, 2, 3, 1))]
    tasks = [(0, 0, 1), (1, 0, 99), (2, 1, 4), (3, 2, 1), (4, 3, 50), (4, 3, 50)]
    workload = with_gangs(staged(stages, tasks), [False] * 4 + [True])
    fleet = fleet_of(*[(0,)] * useless, (4,), (2,))
    for scheduler in ("easy", "conservative"):
        progress = simulate(workload, fleet, find_scheduler(scheduler)).simulation.progress
        assert progress.start.tolist() == [0, 0, 1, 5, 3, 3], scheduler
        assert progress.machine[4:].tolist() == [useless, useless + 1], scheduler


@pytest.mark.parametrize("freed", [0, LOG + 1])
def test_a_machine_that_one_may_not_use_is_there_for_the_next(freed):
    """From 200 on the first machine has a core free until 999, when a task of two is to start: for 5 s, not for 999.

    The first goes to the other machine, which is in another block, and was freed that often before.
    """
    stages = [{"job": row, "request": (size,)} for row, size in enumerate((1, 2, 1, 1, 1))]
    stages[4]["constraints"] = [("rack", "=", "b")]
    tasks = [(0, 0, 999), (1, 1, 1), *[(4, 2 + turn, 0.5) for turn in range(freed)], (2, 200, 999), (3, 201, 5)]
    fleet = fleet_of((2,), *[(0,)] * 63, (1,), attributes=[(64, "rack", "b")])
    progress = simulate(staged(stages, tasks), fleet, find_scheduler("easy")).simulation.progress
    assert progress.start.tolist() == [0, 999, *range(2, 2 + freed), 200, 201]
    assert progress.machine.tolist() == [0, 0, *[64] * freed, 64, 0]


def test_a_resource_that_nobody_asks_for_is_no_matter():
    """Two gangs of two on two machines of a core each."""
    stages = [{"job": row, "request": (1, 0)} for row in range(2)]
    workload = with_gangs(staged(stages, [(0, 0, 3), (0, 0, 3), (1, 1, 3), (1, 1, 3)], TWO), [True, True])
    for scheduler in ("first-fit", "first-fit+backfill", "easy", "conservative"):
        assert starts(workload, fleet_of((1, 4), (1, 0), resources=TWO), scheduler) == [0, 3], scheduler


@pytest.mark.parametrize(("scheduler", "expected"), [("first-fit", [0, 4, 4]), ("first-fit+backfill", [0, 4, 0])])
def test_a_gang_without_reservations_takes_machines_of_several_sizes(scheduler, expected):
    """Machines of three and two cores: two tasks of two hold both until 4, beside which one of a core may start."""
    stages = [{"job": 0, "request": (2,)}, {"job": 1, "request": (2,)}, {"job": 2, "request": (1,)}]
    tasks = [(0, 0, 4), (0, 0, 4), (1, 0, 1), (1, 0, 1), (2, 0, 2)]
    workload = with_gangs(staged(stages, tasks), [True, True, False])
    assert starts(workload, fleet_of((3,), (2,)), scheduler) == expected


def test_how_many_fit_all_machines_at_once():
    """Tasks of two cores on machines of five, one, and three: two, none and one of them."""
    workload = staged([{"request": (2,)}], [(0, 0, 1)])
    fleet = fleet_of((5,), (1,), (3,))
    sim = central_loop(workload, fleet, find_scheduler("easy"), Terms(interval=1.0)).prepared.simulation
    assert [holds(sim.fleet, sim.tasks, 0, count) for count in (1, 2, 3, 4)] == [True, True, True, False]


def test_a_profile_is_closed_when_nobody_has_had_a_reservation_for_sixteen_decisions():
    loop = central_loop(rigid((0, 1, 9)), nodes(2), find_scheduler("easy"), Terms(interval=1.0))
    simulation, state = loop.prepared.simulation, loop.waiting

    def decisions(reserved):
        """How many decisions it is open for, of which the first have somebody's reservation."""
        open_profile(state, simulation.fleet, simulation.tasks, simulation.claims)
        count = 0
        while state.profile.size[IS_OPEN]:
            state.profile.size[RESERVATIONS] = count < reserved
            close_if_unused(state)
            count += 1
        return count

    assert [decisions(reserved) for reserved in (0, 1, 9, 0)] == [17, 18, 26, 17]


@pytest.mark.parametrize("before", [0, 1])
def test_a_gang_that_loses_a_machine_begins_again_as_a_whole(before):
    """Before it another task, or none, has begun, which runs on; who waited goes before it."""
    changes = [(2, before + 1, False, 0), (5, before + 1, True, 1)]
    workload, fleet = rigid(*[(0, 1, 20)] * before, (0, 2, 4), (1, 1, 6)), nodes(before + 2, changes=changes)
    for scheduler in ("first-fit", "first-fit+backfill", "easy", "conservative"):
        check = check_profile_too if "first-fit" not in scheduler else check_amounts_alone
        outcome = simulate(workload, fleet, find_scheduler(scheduler), check=check)
        assert outcome.simulation.progress.start.tolist() == [0] * before + [8, 8, 2], scheduler
        assert sorted(np.hstack(outcome.loop_result.losses)[0].tolist()) == [before, before + 1], scheduler


def check_profile_too(simulation, state):
    check_amounts_alone(simulation, state)
    check_profile(simulation, state)


@pytest.mark.parametrize(("scheduler", "jobs", "expected"), [
    ("easy", [(0, 1, 10)], [0]), ("conservative", [(0, 1, 10)], [0]),
    ("easy", [(0, 1, 10), (1, 1, 3), (1, 1, 3)], [0, 10, 13]),
    ("conservative", [(0, 1, 10), (1, 1, 3), (1, 1, 3)], [0, 10, 13]),
])
def test_reservations_are_the_same_when_a_change_of_the_fleet_is_no_matter(scheduler, jobs, expected):
    """The second node is away, and at 2 still is."""
    fleet = fleet_of((1,), (1,), present=[True, False], changes=[(2, 1, False, 0)])
    assert starts(rigid(*jobs), fleet, scheduler, check=check_profile_too) == expected


def reasons(workload, fleet, scheduler, until):
    outcome = simulate(workload, fleet, find_scheduler(scheduler), until=until)
    return task_table(outcome, workload, fleet)["reason"].to_list()


def test_what_is_said_of_gangs_that_wait_or_never_can_start():
    late = staged([{"request": (1,)}], [(0, 0, 1), (0, 9, 1)])
    late = with_gangs(late, [True])
    assert reasons(late, nodes(2), "first-fit", 5.0)[0].startswith("its gang is incomplete")
    large = rigid((0, 1, 9), (0, 2, 1), (0, 3, 1))
    assert reasons(large, nodes(2), "first-fit+backfill", 1.0) == [
        None, *["there is no room for all of its gang at once"] * 2,
        *["its gang of 3 is larger than all machines together ever hold"] * 3]


# -- what may be asked for ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "message"), [
    ("first-fit+easy+backfill", "at most one way to backfill may be given, not easy and backfill"),
    ("first-fit+conservative+hdrf", "conservative says nothing with a fair order"),
    ("easy+backfill", "option must be one of"), ("greedy+easy", "takes no options, not 'easy'"),
])
def test_options_that_do_not_go_together(name, message):
    with pytest.raises(InputError, match=message):
        find_scheduler(name)


def test_requests_may_not_be_wrong_for_what_is_reserved():
    with pytest.raises(InputError, match="easy makes reservations, for which a task asks for the same always"):
        simulate(rigid((0, 1, 1)), nodes(2), find_scheduler("easy"), request_error=0.5)
    with pytest.raises(InputError, match="requests may not be wrong in a workload with gangs"):
        simulate(rigid((0, 2, 1)), nodes(2), find_scheduler("first-fit"), request_error=0.5)


POLICIES = """
from subak.policy import policy, fits

@policy
def last_fit(fleet, tasks, task):
    for machine in range(fleet.machines - 1, -1, -1):
        if fits(fleet, tasks, task, machine):
            return machine
    return -1

@policy
def by_amounts(fleet, tasks, task):
    for machine in range(fleet.machines):
        if fleet.free[0, machine] >= tasks.request[0, tasks.shape[task]]:
            return machine
    return -1

@policy
def never_the_last(fleet, tasks, task):
    for machine in range(fleet.machines - 1):
        if fits(fleet, tasks, task, machine):
            return machine
    return -1
"""


@pytest.mark.parametrize(("name", "expected"), [("last_fit", [4, 3, 5]), ("by_amounts", [4, 4, 5])])
def test_a_policy_of_ones_own_is_asked_about_machines_that_nobody_needs(tmp_path, name, expected):
    """One that looks at amounts alone answers a machine that is needed, which is no machine: its task waits."""
    (tmp_path / "p.py").write_text(POLICIES)
    scheduler = find_scheduler(f"{tmp_path}/p.py:{name}+easy")
    outcome = simulate(sizes(4, 1, 8), fleet_of((2,), (2,)), scheduler, check=check_amounts_alone)
    assert outcome.simulation.progress.start.tolist() == [0, 0, 0, *expected]


def test_a_gang_of_which_a_policy_takes_a_part_does_not_start(tmp_path):
    (tmp_path / "p.py").write_text(POLICIES)
    for option in ("", "+backfill", "+easy", "+conservative"):
        scheduler = find_scheduler(f"{tmp_path}/p.py:never_the_last{option}")
        outcome = simulate(rigid((0, 3, 5), (1, 2, 1)), nodes(3), scheduler, check=check_profile)
        started = outcome.simulation.progress.attempts.tolist()
        assert started[:3] == [0, 0, 0], option
        assert outcome.simulation.fleet.used.tolist() == [0], option
