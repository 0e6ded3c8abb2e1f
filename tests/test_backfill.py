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
from published import answers
from small import CPU, TWO, cases, fleet_of, fleets, staged, workloads
from subak.placement.claims import TASK_RUNNING, TASK_WAITING
from subak.placement.rigid.profile import IS_OPEN, RESERVATIONS
from subak.policy import find_scheduler
from subak.simulator.central.rigid import gangs_of_tasks
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


@settings(quick, max_examples=400)
@given(data=st.data(), rule=st.sampled_from(sorted(RULES)), order=st.sampled_from(sorted(ORDERINGS)),
       placement=st.sampled_from(["first-fit", "best-fit"]), until=st.sampled_from([math.inf, math.inf, 1.0, 4.0]))
def test_gangs_go_as_in_the_plain_twin(data, rule, order, placement, until):
    resources = data.draw(st.sampled_from([CPU, TWO]))
    workload = data.draw(workloads(resources, task_most=24))
    fleet = data.draw(fleets(resources, changes_most=0))
    flags = data.draw(st.lists(st.booleans(), min_size=len(workload.stages), max_size=len(workload.stages)))
    agree(with_gangs(workload, flags), fleet, rule, order, placement, until)


@settings(quick, max_examples=150)
@given(case=cases(task_most=24), rule=st.sampled_from(["easy", "conservative"]),
       order=st.sampled_from(sorted(ORDERINGS)))
def test_reservations_are_made_anew_when_the_fleet_changes(case, rule, order):
    agree(*case, rule, order, "first-fit")


# -- the textbook's, of nodes that are alike ---------------------------------------------------------------------------


def textbook(jobs, nodes, rule):
    """Starts of (arrival, nodes, run time, estimate), estimates long enough, by counts of nodes alone."""
    start, now = {}, 0.0
    while len(start) < len(jobs):
        waiting = [job for job in range(len(jobs)) if jobs[job][0] <= now and job not in start]
        busy = [(start[job] + jobs[job][3], jobs[job][1]) for job in start if start[job] + jobs[job][2] > now]
        if rule == "easy":
            ready = easy_round(jobs, nodes, now, waiting, busy)
        else:
            ready = [job for job in waiting if not any(earlier not in start for earlier in waiting[:waiting.index(job)])
                     ][:1]
            ready = [job for job in ready if nodes - sum(held for _, held in busy) >= jobs[job][1]]
        if ready:
            start[ready[0]] = now
            continue
        times = [each[0] for each in jobs if each[0] > now]
        times += [start[job] + jobs[job][2] for job in start if start[job] + jobs[job][2] > now]
        now = min(times, default=math.inf)
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
                          st.sampled_from([1, 2, 3, 5, 7.5]), st.sampled_from([0, 0, 1, 4])), min_size=1, max_size=25)


@settings(quick, max_examples=250)
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


# -- promises ----------------------------------------------------------------------------------------------------------


class Promises:
    """No reservation is put off, and each is kept."""

    def __init__(self, rule):
        self.rule, self.promised, self.made = rule, {}, 0

    def __call__(self, simulation, state):
        check_amounts_alone(simulation, state)
        check_profile(simulation, state)
        now, gangs = simulation.clock[0], state.gangs
        for gang in range(gangs.rank.size):
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
    profile, gangs, now = state.profile, state.gangs, simulation.clock[0]
    if not profile.size[IS_OPEN]:
        assert profile.size[RESERVATIONS] == 0
        return
    held = []
    for task, status in enumerate(simulation.claims.status.tolist()):
        gang, shape = gangs.of_task[task], simulation.tasks.shape[task]
        if status == TASK_RUNNING:
            held.append((int(gangs.pool[task]), -math.inf, float(gangs.until[gang]), profile.demand[:, shape]))
        elif status == TASK_WAITING and gangs.reserved[gang] < math.inf:
            begin = float(gangs.reserved[gang])
            held.append((int(gangs.pool[task]), begin, begin + gangs.seconds[gang], profile.demand[:, shape]))
    times = {now} | {time for _, *span, _ in held for time in span if now <= time < math.inf}
    capacity = capacity_of_pools(simulation, profile)
    for pool, first in enumerate(profile.first.tolist()):
        segment = first
        for time in sorted(times):
            while profile.next[segment] >= 0 and profile.time[profile.next[segment]] <= time:
                segment = int(profile.next[segment])
            taken = [amounts for where, begin, end, amounts in held if where == pool and begin <= time < end]
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
    for pool, amounts in zip(pools, capacity.T, strict=True):
        found[:, pool] += amounts
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
