"""What schedulers are told of run times: drawn, or averaged by hand; the same for all, and no truth beside it."""
import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from naive import twin_run
from small import TWO, cases, fleet_of, plain, staged
from subak.errors import InputError
from subak.experiment.inputs import refuse_unfit
from subak.experiment.knowledge import knowledge
from subak.experiment.scenario import Scenario
from subak.federation.settings import Federation
from subak.placement.lotes.plan import make_plan
from subak.placement.mapreduce.batch import find_batch
from subak.placement.schedulers import KNOWLEDGE, SCHEDULERS
from subak.policy import find_scheduler, hooks, policy
from subak.simulator.engine.estimates import used_estimates, with_estimates
from subak.simulator.estimate_words import parse_estimates
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate
from subak.workload.mapreduce import MapReduce, draw_batch
from subak.workload.table import expected_seconds
from test_engine_against_twin import engine_rows, twin_rows

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
WORDS = ["exact", "factor=1", "factor=3.5", "class", "none"]
GOERS = ["tetris", "first-fit+shortest-first", "best-fit+backfill+shortest-first", "greedy"]


def told(workload, text, seed=1):
    return expected_seconds(with_estimates(workload, text, seed)).tolist()


def without_own(workload):
    return replace(workload, tasks=workload.tasks.drop("estimate", strict=False))


# What is told


def test_means_of_classes_and_of_all_by_hand():
    """Two ask for 1 core (4 s, 8 s), three for 2 (1 s, 3 s, for ever), one for 3 (9 s); all that end: 5 s."""
    tasks = [(0, 4, 1), (0, 1, 2), (1, 8, 1), (2, 3, 2), (3, math.inf, 2), (4, 9, 3)]
    assert told(plain(*tasks), "class") == [6, 2, 6, 2, 2, 5]
    assert told(plain(*tasks), "none") == [5] * 6


def test_constraints_tell_classes_apart_but_neither_jobs_nor_priorities_do():
    rack = [("rack", "=", "a")]
    stages = [{"job": 0, "request": (1,)}, {"job": 1, "request": (1,), "priority": 9},
              {"job": 2, "request": (1,), "constraints": rack}, {"job": 3, "request": (1,), "constraints": rack}]
    workload = staged(stages, [(0, 0, 1), (1, 0, 3), (2, 0, 10), (3, 0, 30)])
    assert told(workload, "class") == [2, 2, 20, 20]


def test_nobody_ends_and_nobody_is_told_otherwise():
    assert told(plain((0, math.inf, 1), (0, math.inf, 1)), "class") == [math.inf, math.inf]
    assert told(plain((0, math.inf, 1), (0, math.inf, 1)), "none") == [math.inf, math.inf]


def test_users_estimates_and_the_run_time_of_who_gave_none():
    workload = staged([{"request": (1,)}], [(0, 0, 5, 9), (0, 0, 6, None)])
    assert told(workload, "") == told(workload, "user") == [9, 6]
    assert told(workload, "exact") == [5, 6]
    assert (used_estimates("", workload), used_estimates("", without_own(workload))) == ("user", "exact")


def test_a_factor_is_uniform_and_belongs_to_the_seed_and_the_tasks_number():
    many = plain(*[(row, 10.0, 1) for row in range(4_000)])
    factors = np.array(told(many, "factor=3", seed=5)) / 10
    assert stats.kstest(factors, stats.uniform(1, 2).cdf).pvalue > 0.01
    assert told(plain(*[(row, 20.0, 2) for row in range(30)]), "factor=3", seed=5) == pytest.approx(factors[:30] * 20)
    assert told(many, "factor=3", seed=6) != told(many, "factor=3", seed=5)
    assert told(plain((0, 0, 1), (0, math.inf, 1)), "factor=3") == [0, math.inf]


@quick
@given(case=cases(), word=st.sampled_from(WORDS))
def test_what_is_told_is_what_the_plain_twin_tells(case, word):
    workload, _ = case
    stages = workload.stages.to_dicts()
    rows = [(task["run_time"], stages[task["stage"]]) for task in workload.tasks.to_dicts()]
    kinds = [(tuple(stage[each.name] for each in workload.resources),
              frozenset(str(each) for each in stage["constraints"])) for _, stage in rows]
    everybody = [seconds for seconds, _ in rows if seconds < math.inf]

    def mean(values):
        return sum(values) / len(values) if values else math.inf

    for number, (given_, kind) in enumerate(zip(told(workload, word), kinds, strict=True)):
        alike = [seconds for (seconds, _), each in zip(rows, kinds, strict=True)
                 if each == kind and seconds < math.inf]
        seconds = rows[number][0]
        if word == "factor=3.5":
            assert seconds <= given_ <= 3.5 * seconds
        else:
            assert given_ == pytest.approx({"class": mean(alike if len(alike) > 1 else everybody),
                                            "none": mean(everybody)}.get(word, seconds))


# Who is told it


@quick
@given(case=cases(), name=st.sampled_from(GOERS), word=st.sampled_from(["", "user", *WORDS]))
def test_schedulers_go_by_what_they_are_told_and_attempts_end_by_the_truth(case, name, word):
    workload, fleet = case
    if word == "user" and used_estimates("", workload) != "user":
        word = ""
    outcome = simulate(workload, fleet, find_scheduler(name), seed=4, interval=1.0, estimates=word)
    assert outcome.simulation.tasks.run_time.tolist() == workload.tasks["run_time"].to_list()
    assert engine_rows(outcome) == twin_rows(twin_run(with_estimates(workload, word, 4), fleet, name, 4))


@quick
@given(case=cases(), name=st.sampled_from([*GOERS, "first-fit", "mch"]))
def test_exact_is_the_run_of_a_workload_without_estimates(case, name):
    workload, fleet = case
    runs = [simulate(*pair, find_scheduler(name), interval=1.0)
            for pair in ((without_own(workload), fleet), (with_estimates(workload, "exact", 1), fleet))]
    runs.append(simulate(workload, fleet, find_scheduler(name), interval=1.0, estimates="exact"))
    first, *others = (task_table(outcome, workload, fleet) for outcome in runs)
    assert all(first.equals(other) for other in others)


def test_the_shortest_is_first_only_for_who_knows_it():
    """One machine for one task; at 0 arrive 8 s, 4 s, 2 s. Told the mean of all, 14 / 3 s, they go by number."""
    workload, fleet = plain((0, 8, 1), (0, 4, 1), (0, 2, 1)), fleet_of((1,))

    def starts(**more):
        outcome = simulate(workload, fleet, find_scheduler("first-fit+shortest-first"), **more)
        return outcome.simulation.progress.start.tolist()

    assert starts() == starts(estimates="exact") == [6, 2, 0]
    assert starts(estimates="none") == starts(estimates="class") == [0, 8, 12]


@policy
def spreads_long_ones(fleet, tasks, task):
    """A machine by the run time, as far as it is known: the second for whom it is above 5 s."""
    return 1 if tasks.run_time[task] > 5 else 0


def test_a_policy_from_a_file_finds_no_run_time_but_what_it_is_told():
    workload, fleet = plain((0, 8, 1), (0, 4, 1)), fleet_of((2,), (2,))
    for word, machines in (("exact", [1, 0]), ("none", [1, 1])):
        outcome = simulate(workload, fleet, spreads_long_ones, estimates=word)
        assert outcome.simulation.progress.machine.tolist() == machines
        assert outcome.simulation.tasks.run_time.tolist() == [8, 4]


def test_plans_are_made_of_what_is_told():
    drawn = draw_batch(MapReduce(jobs=3), 1)
    workload, fleet = drawn
    mean = workload.tasks["run_time"].mean()
    assert find_batch(*drawn).maps.seconds.tolist() != [pytest.approx(mean)] * 3
    assert find_batch(with_estimates(workload, "none", 1), fleet).maps.seconds.tolist() == [pytest.approx(mean)] * 3
    two = plain(*[(row, 1 + row % 2 * 8, 1 + row % 2, 1) for row in range(40)], resources=TWO)
    plans = [make_plan(with_estimates(two, word, 1), fleet_of((4, 4), resources=TWO)) for word in ("exact", "none")]
    assert [plan.classes.run_time.tolist() for plan in plans] == [[1, 9], [5, 5]]


def test_who_is_long_is_told_by_estimates():
    """Hawk, by a cutoff of 6 s, at which the mean of all is a short one: no job goes to its central scheduler."""
    workload, fleet = plain(*[(row, 10 if row % 4 == 0 else 1, 1) for row in range(40)]), fleet_of(*[(1,)] * 8)
    sent = [simulate(workload, fleet, find_scheduler("hawk"), estimates=word,
                     federation=Federation(global_masters=2, cutoff=6.0)).federated.roles.sparrow.batches.is_long.sum()
            for word in ("exact", "none")]
    assert sent == [10, 0]


# Refusals


@pytest.mark.parametrize("text", ["x", "User", "factor", "none ", "factor=1=2", "exact=1"])
def test_words_that_are_none_are_refused(text):
    with pytest.raises(InputError, match=r"^estimates: "):
        parse_estimates(text)


@pytest.mark.parametrize("number", ["", "x", "0.99", "-2", "nan", "inf", "1000001"])
def test_factors_that_cannot_be_are_refused(number):
    with pytest.raises(InputError, match=r"estimates: the factor must be from 1 to 1,000,000, such as factor=2, not"):
        Scenario(estimates=f"factor={number}")


def test_users_estimates_are_refused_where_there_are_none(tmp_path, run):
    workload = staged([{"request": (1,)}], [(0, 0, 5, None)])
    for none in (plain((0, 1, 1)), workload.__class__(**{**vars(workload), "tasks": workload.tasks.with_columns(
            estimate=pl.lit(None, pl.Float64))})):
        with pytest.raises(InputError, match="estimates: the workload has none of its users'"):
            simulate(none, fleet_of((1,)), find_scheduler("first-fit"), estimates="user")
        with pytest.raises(InputError, match="estimates: the workload has none of its users'"):
            refuse_unfit(Scenario(estimates="user"), [find_scheduler("first-fit")], (none, fleet_of((1,))))
    code, _, said = run("compare", "--estimates", "user", "--schedulers", "first-fit,tetris", "--out", tmp_path / "out")
    assert (code, said.count("\n")) == (2, 1)
    assert "the workload has none of its users'" in said
    assert not (tmp_path / "out").exists()


# Who knows what


@pytest.mark.parametrize(("name", "estimates", "settings_", "known"), [
    ("first-fit", "", {}, "nothing"), ("first-fit+backfill", "user", {}, "nothing"), ("greedy", "exact", {}, "nothing"),
    ("tetris", "exact", {}, "run times"), ("tetris", "", {}, "run times, as users estimate them"),
    ("tetris", "user", {}, "run times, as users estimate them"), ("tetris", "none", {}, "nothing"),
    ("tetris", "factor=2", {}, "run times, within a factor of 2"), ("tetris", "class", {}, "class means"),
    ("best-fit+shortest-first", "exact", {}, "run times"), ("first-fit+johnson", "exact", {}, "job means"),
    ("mch", "exact", {}, "nothing"), ("fifo-pri", "exact", {}, "job means"), ("hmhs", "class", {}, "class means"),
    ("lotes", "exact", {}, "class means"), ("lotes", "class", {}, "class means"), ("lotes", "none", {}, "nothing"),
    ("lotes", "factor=1.5", {}, "class means, within a factor of 1.5"), ("megha", "exact", {}, "nothing"),
    ("megha", "exact", {"placement": "bins"}, "class means"), ("sparrow", "exact", {}, "nothing"),
    ("hawk", "exact", {}, "nothing"), ("hawk", "exact", {"cutoff": 9.0}, "job means"),
    ("eagle", "exact", {}, "job means"), ("dodoor", "exact", {}, "job means"),
    ("dodoor", "exact", {"duration_weight": 0.0}, "nothing"), ("pigeon", "exact", {}, "nothing"),
    ("pigeon", "factor=2", {"cutoff": 9.0}, "long jobs, within a factor of 2"),
])
def test_what_a_scheduler_knew_is_said(name, estimates, settings_, known):
    workload = staged([{"request": (1,)}], [(0, 0, 5, 9)])
    scheduler = find_scheduler(name)
    federation = Federation(**settings_) if scheduler.architecture else None
    assert knowledge(scheduler, federation, estimates, workload) == known


def helper(tasks, task):
    return tasks.estimate[task]


def of_helper(fleet, tasks, task):
    return 0 if helper(tasks, task) > 1 else -1


def blind(fleet, tasks, task):
    return 0


def hook(fleet, tasks, lanes, memory, items, claims):
    """Nothing."""


def test_a_policy_that_names_estimates_knows_run_times():
    assert [policy(each).knows for each in (of_helper, blind)] == ["run times", "nothing"]
    assert [hooks(hook, hook, order=order).knows for order in ("fifo", "shortest-first")] == ["nothing", "run times"]
    assert all(each.knows in KNOWLEDGE for each in SCHEDULERS.values())


def test_a_run_says_what_was_known_and_is_repeated(tmp_path, run):
    folder, first, again = (tmp_path / name for name in ("workload", "first", "again"))
    (folder / "fleet").mkdir(parents=True)
    plain(*[(0, 1 + row % 7, 1) for row in range(40)]).write(folder)
    fleet_of((3,)).write(folder / "fleet")
    options = ("--scheduler", "tetris", "--estimates", "factor=4", "--seed", "3")
    assert run("simulate", folder, *options, "--out", first)[0] == 0
    assert run("simulate", "--scenario", first / "scenario.toml", "--out", again)[0] == 0
    assert (first / "tasks.parquet").read_bytes() == (again / "tasks.parquet").read_bytes()
    assert json.loads((first / "summary.json").read_text())["knows"] == "run times, within a factor of 4"
    assert 'estimates = "factor=4"' in (first / "scenario.toml").read_text()
    assert "class means" in run("schedulers")[1]
