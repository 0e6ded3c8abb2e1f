"""Gangs under every scheduler that there is: they start together, or the run is refused; apart only where asked for."""
import itertools
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from invariants import check_world
from naive import twin_of
from naive_fair_gangs import Twin
from naive_gangs import GangGreedy, GangLotes, GangTetris, GangTwin
from small import TWO, cases, fleet_of, staged
from subak.errors import InputError
from subak.experiment.folder import of_run
from subak.experiment.inputs import refuse_unfit
from subak.experiment.run import simulate_into
from subak.experiment.scenario import APART, Scenario
from subak.fleet.shapes import find_shapes
from subak.measures.run_folders import load_runs
from subak.placement.lotes.settings import FALLBACKS, ORDERS, LotesSettings
from subak.placement.schedulers import SCHEDULERS
from subak.policy import find_scheduler
from subak.queues.orders import FAIR_ORDERS
from subak.queues.tree import Queue, TreeFile
from subak.report.notes import notes
from subak.simulator.simulate import simulate
from subak.workload.table import make_workload
from test_engine_against_twin import engine_rows, lost_attempts, twin_rows
from test_lotes_dispatch import dispatcher_holds, planned_or_none

PLACEMENTS = ("best-fit", "aligned-fit")
NAMES = [*SCHEDULERS, *(f"{placement}+{order}" for placement, order in itertools.product(PLACEMENTS, FAIR_ORDERS)),
         "first-fit+backfill", "best-fit+easy", "worst-fit+conservative", "tetris+normalised", "lotes+drf"]


def ganged():
    """Nine gangs of three tasks, and tasks between them, on machines for one at a time: some must wait for others."""
    return in_gangs([(f"j{job}", float(job), (1, 1), [4.0 + job % 5] * (3 if job % 2 else 1), job % 2 == 1)
                     for job in range(18)]), fleet_of(*[(1, 1)] * 5, resources=TWO)


def in_gangs(jobs):
    """A workload of jobs (name, arrival, request, run times, is a gang), each with a queue of its own."""
    made = staged([{"job": number, "request": job[2]} for number, job in enumerate(jobs)],
                  [(number, job[1], seconds, 5.0) for number, job in enumerate(jobs) for seconds in job[3]], TWO,
                  [job[0] for job in jobs])
    units = [made.stages[resource.name] * resource.unit for resource in TWO]
    stages = made.stages.with_columns(*units, gang=pl.Series([job[4] for job in jobs]))
    return make_workload(made.jobs, stages, made.tasks, TWO)


@pytest.mark.parametrize("name", NAMES)
def test_gangs_start_together_or_the_run_is_refused(tmp_path, name):
    inputs, scenario = ganged(), Scenario(schedulers=[name])
    try:
        refuse_unfit(scenario, [find_scheduler(name)], inputs)
    except InputError as error:
        assert "has 9 gangs" in str(error) or name == "recorded", str(error)
        return
    simulate_into(tmp_path / "R", scenario, name, 1, inputs)
    tasks = load_runs(tmp_path / "R")[0].tasks().collect()
    starts = tasks.group_by("job").agg("start")
    assert tasks["start"].null_count() == 0
    apart = max(max(each) - min(each) for each in starts["start"])
    assert apart == 0 if not find_scheduler(name).architecture else apart < 0.01  # as messages come


def test_those_that_keep_gangs_are_as_many_as_before():
    kept = [name for name, each in SCHEDULERS.items() if each.keeps_gangs]
    assert {"first-fit", "easy", "conservative", "central", "megha", "recorded"} <= set(kept)
    assert {"tetris", "greedy", "lotes", *FAIR_ORDERS} <= set(kept)
    assert not {"sparrow", "hawk", "eagle", "dodoor", "pigeon", "delay-scheduling", "hmhs"} & set(kept)


def test_apart_takes_them_apart_and_says_so(tmp_path):
    inputs = ganged()
    scenario = Scenario(schedulers=["sparrow", "easy"], gangs=APART)
    refuse_unfit(scenario, [find_scheduler(name) for name in scenario.schedulers], inputs)
    for name in scenario.schedulers:
        simulate_into(tmp_path / name, of_run(scenario, name, [1]), name, 1, inputs)
    runs = load_runs(tmp_path / "sparrow", tmp_path / "easy")
    assert [run.summary.gangs_apart for run in runs] == [9, 0]
    said = " ".join(notes(runs))
    assert "Beware: sparrow started the tasks of 9 gangs one by one, not together (--gangs apart)" in said
    assert "gangs" not in " ".join(notes(runs[1:]))
    assert 'gangs = "apart"' in (tmp_path / "sparrow" / "scenario.toml").read_text()
    assert "gangs" not in (tmp_path / "easy" / "scenario.toml").read_text()


def test_apart_is_for_those_that_cannot():
    with pytest.raises(InputError, match="gangs: none of the schedulers easy, megha takes gangs apart; they keep"):
        Scenario(schedulers=["easy", "megha"], gangs=APART)
    with pytest.raises(InputError, match="gangs: must be one of together, apart, not 'both'"):
        Scenario(gangs="both")


# -- beside single tasks -----------------------------------------------------------------------------------------------

ONE_BY_ONE = ("tetris", "greedy", "lotes", "lotes+drf")  # they place tasks one by one
TWINS = {"greedy": GangGreedy, "tetris": GangTetris,
         "tetris+normalised": lambda world: GangTetris(world, normalised=True)}
quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


def with_gangs(case, flags):
    """The case with the stages as gangs that have a flag."""
    workload, fleet = case
    gang = pl.Series("gang", flags[: len(workload.stages)], pl.Boolean)
    return make_workload(workload.jobs, workload.stages.with_columns(gang), workload.tasks, workload.resources), fleet


def gang_world(case, seed):
    return twin_of(*case, seed, GangTwin).with_gangs(case[0].gang_sizes().tolist())


FLAGS = st.lists(st.booleans(), min_size=6, max_size=6)


@settings(quick, max_examples=300)
@given(case=cases(task_most=16), flags=FLAGS, scheduler=st.sampled_from([*TWINS]), seed=st.integers(0, 2**63))
def test_gangs_beside_single_tasks_start_where_and_when_the_plain_twin_starts_them(case, flags, scheduler, seed):
    case = with_gangs(case, flags)
    outcome = simulate(*case, find_scheduler(scheduler), seed=seed, interval=1.0, check=check_world)
    world = gang_world(case, seed)
    world.run(TWINS[scheduler](world))
    assert engine_rows(outcome) == twin_rows(world)
    assert lost_attempts(outcome) == sorted(world.losses)


@settings(quick, max_examples=150)
@given(case=cases(task_most=16), flags=FLAGS, seed=st.integers(0, 2**63), fallback=st.sampled_from(FALLBACKS),
       choice=st.sampled_from(["roulette", "deficit"]), order=st.sampled_from(ORDERS))
def test_lotes_with_gangs_is_its_plain_twin(case, flags, seed, fallback, choice, order):
    case, given_ = with_gangs(case, flags), LotesSettings(classes=2, choice=choice, fallback=fallback, order=order)
    plan = planned_or_none(case, given_)
    assume(plan is not None)
    outcome = simulate(*case, find_scheduler("lotes"), seed=seed, interval=1.0, lotes=given_,
                       check=lambda simulation, run: dispatcher_holds(simulation, run, check_world))
    world = gang_world(case, seed)
    kind = plan.class_of(find_shapes(case[0]))[outcome.simulation.tasks.shape].tolist()
    world.run(GangLotes(world, plan, kind, given_))
    assert engine_rows(outcome) == twin_rows(world)
    assert lost_attempts(outcome) == sorted(world.losses)


# -- fair orders -------------------------------------------------------------------------------------------------------


def started(workload, fleet, order, **more):
    """The start of each task by (job, its place in the job), of those that start."""
    outcome = simulate(workload, fleet, find_scheduler(order), **more)
    stage, seen, found = workload.tasks["stage"].to_list(), {}, {}
    for row, at in enumerate(outcome.simulation.progress.start.tolist()):
        name = workload.jobs["job"][stage[row]]
        place = seen.setdefault(name, itertools.count())
        number = next(place)
        if outcome.simulation.progress.attempts[row]:
            found[name, number] = at
    return found


@settings(deadline=None, max_examples=250)
@given(seed=st.integers(0, 10**6), width=st.sampled_from([2, 4, 9]), machines=st.integers(1, 5),
       after=st.sampled_from([0.0, 2.0, 5.0, math.inf]), count=st.sampled_from([12, 40]), power=st.sampled_from([1, 4]))
def test_drf_with_gangs_is_its_plain_twin(seed, width, machines, after, count, power):
    """Also with gangs that never fit, which nobody waits for, and with machines held back for the others."""
    random = np.random.default_rng(seed)
    fleet = [tuple(map(int, random.integers(1, 7, 2))) for _ in range(machines)]
    jobs = [(f"j{number}", float(at), tuple(map(int, random.integers(1, 4, 2))),
             tuple((random.random(random.integers(1, width + 1)) ** power * 9 * power + 0.5).tolist()),
             bool(random.random() < 0.5))
            for number, at in enumerate(np.sort(random.integers(0, count, count)))]
    workload = in_gangs(jobs)
    found = started(workload, fleet_of(*fleet, resources=TWO), "drf", hold_back_after=after)
    assert found == Twin(jobs, fleet, after).starts()


def test_a_gang_counts_as_all_of_its_tasks_in_limits_and_shares():
    """A limit of half of six forbids a gang of four, and allows one of three; a task of the other queue goes on."""
    jobs = [("a", 0.0, (1, 1), [5.0] * 4, True), ("b", 0.0, (1, 1), [5.0] * 3, True), ("c", 1.0, (1, 1), [5.0], False)]
    made = in_gangs(jobs)
    made = replace(made, jobs=made.jobs.with_columns(queue=pl.Series(["x", "x", "y"])))
    found = started(made, fleet_of((6, 6), resources=TWO), "drf", queues=TreeFile(queue=[Queue(name="x", limit=0.5)]))
    assert {name for name, _ in found} == {"b", "c"} and set(found.values()) == {0.0, 1.0}


@pytest.mark.parametrize("order", [*FAIR_ORDERS, *ONE_BY_ONE])
def test_what_is_lost_of_a_gang_takes_the_others_with_it(order):
    """The second machine leaves at 3 s and is back at 4 s: the gang begins anew as a whole; the single task runs on."""
    jobs = [("g", 0.0, (1, 1), [10.0] * 2, True), ("s", 0.5, (1, 1), [4.0], False)]
    fleet = fleet_of(*[(1, 1)] * 3, resources=TWO, changes=[(3.0, 1, False, 1, 1), (4.0, 1, True, 1, 1)])
    outcome = simulate(in_gangs(jobs), fleet, find_scheduler(order))
    assert outcome.simulation.progress.attempts.tolist() == [2, 2, 1]
    assert outcome.simulation.progress.start.tolist() == [4.0, 4.0, 0.5]


@pytest.mark.parametrize("order", ["drf", *ONE_BY_ONE])
def test_what_has_ended_of_a_gang_does_not_begin_again(order):
    """One of two ends at 3 s; at 5 s the machine of the other leaves for good, and it goes on alone on the first."""
    fleet = fleet_of((1, 1), (1, 1), resources=TWO, changes=[(5.0, 1, False, 1, 1)])
    outcome = simulate(in_gangs([("g", 0.0, (1, 1), [3.0, 10.0], True)]), fleet, find_scheduler(order))
    assert outcome.simulation.progress.start.tolist() == [0.0, 5.0]


@pytest.mark.parametrize("order", ["drf", *ONE_BY_ONE])
def test_a_gang_that_finds_no_room_lets_single_tasks_of_its_shape_go_on(order):
    jobs = [("s", 0.0, (1, 1), [9.0], False), ("g", 1.0, (1, 1), [5.0] * 3, True), ("t", 1.0, (1, 1), [2.0], False)]
    found = started(in_gangs(jobs), fleet_of(*[(1, 1)] * 3, resources=TWO), order)
    assert found == {("s", 0): 0.0, ("t", 0): 1.0, ("g", 0): 9.0, ("g", 1): 9.0, ("g", 2): 9.0}


def test_a_policy_that_places_some_of_a_gang_has_placed_none(tmp_path):
    """It wants the first machine alone, on which one of two has room: what it was given is given back."""
    (tmp_path / "p.py").write_text(
        "from subak.policy import next_fitting, policy\n\n@policy\ndef first(fleet, tasks, task):\n"
        '    """The first machine or none."""\n'
        "    return 0 if next_fitting(fleet, tasks, task, 0) == 0 else -1\n")
    made = in_gangs([("g", 0.0, (1, 1), [3.0, 3.0], True), ("s", 1.0, (1, 1), [2.0], False)])
    found = started(made, fleet_of((1, 1), (1, 1), resources=TWO), f"{tmp_path / 'p.py'}:first+drf")
    assert found == {("s", 0): 1.0}


def test_a_gang_that_never_fits_stops_nobody_and_is_said(tmp_path):
    jobs = [("g", 0.0, (1, 1), [5.0] * 4, True), ("s", 0.0, (1, 1), [5.0], False)]
    summary = simulate_into(tmp_path / "R", Scenario(schedulers=["mch"]), "mch", 1, (
        in_gangs(jobs), fleet_of(*[(1, 1)] * 3, resources=TWO)))
    assert summary.status["UNPLACEABLE"] == 4 and summary.status["FINISHED"] == 1
    assert "its gang of 4 is larger than all machines together ever hold" in summary.reasons[0].reason


def test_places_of_gangs_are_not_taken_back():
    inputs, scenario = ganged(), Scenario(schedulers=["mch"], reclaims_per_hour=60.0)
    with pytest.raises(InputError, match="reclaims_per_hour: takes places of one task for another, and unnamed has 9"):
        refuse_unfit(scenario, [find_scheduler("mch")], inputs)
