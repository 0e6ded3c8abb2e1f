"""Backfilling with reservations, of gangs: published answers, hand-worked cases, the textbook's algorithms."""
import math

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invariants import check_amounts, check_attempts, check_counts, check_frontiers, check_summaries
from naive import twin_of
from naive_backfill import Rigid
from published import answers
from small import CPU, TWO, cases, fleet_of, fleets, staged, workloads
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
