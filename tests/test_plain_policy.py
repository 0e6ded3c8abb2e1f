"""Policies in plain Python: the same results as compiled, the same checks, and every mistake is one clear line."""
import json
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

import subak as laboratory
from in_process import subak
from small import TWO, cases, fleet_of, plain, some_workload
from subak.errors import PolicyError
from subak.experiment.inputs import load_inputs
from subak.experiment.scenario import Scenario
from subak.fleet.feasible import next_fitting as searched
from subak.kernels.kernel import by_address
from subak.placement.schedulers import NOTHING, RUN_TIMES
from subak.policy import claim, find_scheduler, fitting, hooks, next_fitting, policy, pop, push
from subak.policy_files import Given
from subak.simulator.results import task_table, timeline_table
from subak.simulator.simulate import simulate
from test_engine_against_twin import engine_rows
from test_gangs import ganged

SHARE = 0.8
OPTIONS = ("", "backfill", "shortest-first", "easy", "conservative", "mch")


def first(fleet, tasks, task):
    """The first machine that fits."""
    return next_fitting(fleet, tasks, task, 0)


def reserved(fleet, tasks, task):
    """The tutorial's."""
    machine = next_fitting(fleet, tasks, task, 0)
    if tasks.estimate[task] > 60.0 and machine >= SHARE * fleet.machines:
        return -1
    return machine


def last(fleet, tasks, task):
    """The last machine that fits."""
    found = -1
    machine = next_fitting(fleet, tasks, task, 0)
    while machine != -1:
        found = machine
        machine = next_fitting(fleet, tasks, task, machine + 1)
    return found


def arrive(fleet, tasks, lanes, memory, arrived, claims):
    for task in arrived:
        machine = next_fitting(fleet, tasks, task, 0)
        memory.whole[0, 0] += 1
        if machine == -1 or not claim(claims, fleet, tasks, task, machine):
            push(lanes, tasks.rank, 0, task)


def leave(fleet, tasks, lanes, memory, freed, claims):
    while lanes.root[0] != -1:
        machine = next_fitting(fleet, tasks, lanes.root[0], 0)
        if machine == -1:
            return
        claim(claims, fleet, tasks, pop(lanes, tasks.rank, 0), machine)


def both(function, *options):
    """The scheduler of a function, compiled and as plain Python."""
    return [find_scheduler(Given(policy(function, *options, compiled=compiled))) for compiled in (True, False)]


def left_by(outcome):
    """All that a run leaves, as bytes where it is numbers."""
    result = outcome.loop_result
    return (engine_rows(outcome), result.timeline.tobytes(), result.end, result.events,
            [each.tobytes() for each in result.losses])


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=40)
@given(case=cases())
def test_a_plain_policy_decides_as_the_compiled_one(case):
    for function in (last, reserved):
        for option in OPTIONS:
            compiled, called = [simulate(*case, each) for each in both(function, *filter(None, [option]))]
            assert left_by(called) == left_by(compiled)
            assert compiled.decisions is None


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=40)
@given(case=cases())
def test_a_plain_pair_of_hooks_decides_as_the_compiled_one(case):
    compiled, called = (simulate(*case, find_scheduler(Given(
        hooks(arrive, leave, memory=((1, 1), (0, 0), []), compiled=compiled)))) for compiled in (True, False))
    assert left_by(called) == left_by(compiled)
    assert called.decisions is not None


@pytest.mark.parametrize("option", ["", "easy", "mch"])
def test_gangs_see_the_fleet_without_what_is_held_back(option):
    soon = {"hold_back_after": 1.0} if option == "mch" else {}
    compiled, called = (simulate(*ganged(), each, **soon) for each in both(last, *filter(None, [option])))
    assert left_by(called) == left_by(compiled)


@pytest.mark.parametrize("option", ["easy", "conservative"])
def test_a_plain_policy_sees_no_machines_that_others_have_reserved(option):
    case = some_workload(60, 2, 3)  # in which it would choose one of them
    compiled, called = (simulate(*case, each) for each in both(last, option))
    assert left_by(called) == left_by(compiled)


@pytest.mark.parametrize("function", [first, reserved])
def test_the_sample_has_the_same_bytes(function):
    workload, fleet = load_inputs(Scenario(workload="google2011-sampled"))
    outcomes = [simulate(workload, fleet, each, until=900.0) for each in both(function, "backfill")]
    tables = [(task_table(each, workload, fleet), timeline_table(each, workload)) for each in outcomes]
    for compiled, called in zip(*tables, strict=True):
        assert compiled.equals(called)
    assert len(tables[0][0].filter(pl.col("status") != "NOT_ARRIVED")) > 10_000


def test_the_search_of_a_plain_policy_is_compiled():
    seen = set()

    def look(fleet, tasks, task):
        for machine in range(fleet.machines):
            assert next_fitting(fleet, tasks, task, machine) == searched(fleet, tasks, task, machine)
        seen.add(fleet.search is not None)
        return next_fitting(fleet, tasks, task, 0)

    simulate(*some_workload(8), policy(look, compiled=False))
    assert seen == {by_address()}


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=40)
@given(case=cases())
def test_all_that_fit_are_those_that_the_search_finds(case):
    def look(fleet, tasks, task):
        found, machine = [], next_fitting(fleet, tasks, task, 0)
        while machine != -1:
            found.append(machine)
            machine = next_fitting(fleet, tasks, task, machine + 1)
        assert np.flatnonzero(fitting(fleet, tasks, task)).tolist() == found
        return found[-1] if found else -1

    for option in ("backfill", "easy"):
        simulate(*case, policy(look, option, compiled=False))


def test_the_documented_model_runs(tmp_path):
    page = (Path(__file__).parent.parent / "docs" / "policies.md").read_text()
    file = tmp_path / "nearest.py"
    file.write_text(page.split("```python\n# nearest.py\n")[1].split("```")[0])
    outcome = simulate(*some_workload(), find_scheduler(f"{file}:nearest+backfill"))
    assert {row[0] for row in engine_rows(outcome)} == {"FINISHED"}


# -- what a policy may not ---------------------------------------------------------------------------------------------

WRONG = """from subak.policy import policy

@policy{how}
def wrong(fleet, tasks, task):
    {body}
"""


def said(tmp_path, body, how="(compiled=False)", inputs=None):
    file = tmp_path / "mine.py"
    file.write_text(WRONG.format(how=how, body=body))
    with pytest.raises(PolicyError) as error:
        simulate(*(inputs or some_workload(4)), find_scheduler(f"{file}:wrong+backfill"))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("answer", ["-7", "10**9", "2**62", "0"])
def test_a_wrong_machine_is_refused_in_the_same_words(tmp_path, answer):
    inputs = plain((0, 5, 2, 1), (0, 5, 4, 4), resources=TWO), fleet_of((2, 2), (4, 4), resources=TWO)
    (tmp_path / "compiled").mkdir()
    told = [said(tmp_path, f"return {answer}", "(compiled=False)", inputs),
            said(tmp_path / "compiled", f"return {answer}", "", inputs)]
    assert told[0] == told[1]
    assert told[0].startswith("scheduler mine.py:wrong+backfill answered a machine that ")


@pytest.mark.parametrize(("answer", "shown"), [
    ("1.5", "1.5"), ("None", "None"), ("True", "True"), ("2**63", "9223372036854775808"), ("'1'", "'1'"),
    ("fleet.scale[0]", "np.float64(0.125)"),
])
def test_an_answer_that_is_no_machine_is_refused(tmp_path, answer, shown):
    assert said(tmp_path, f"return {answer}") == (
        "scheduler mine.py:wrong+backfill must return a whole number on every path, a machine's or -1 for none; it "
        f"returned {shown}")


@pytest.mark.parametrize(("body", "words"), [
    ("raise ValueError('boo\\nand more')", "raised ValueError: boo (mine.py, line 5)"),
    ("return [][task]", "raised IndexError: list index out of range (mine.py, line 5)"),
    ("return (lambda: {}[7])()", "raised KeyError: 7 (mine.py, line 5)"),
    ("import json\n    return json.loads('{')", "raised JSONDecodeError: Expecting property name enclosed in double "
     "quotes: line 1 column 2 (char 1) (mine.py, line 6)"),
    ("raise SystemExit(3)", "raised SystemExit: 3 (mine.py, line 5)"),
    ("fleet.free[0, 0] = 99\n    return 0",
     "raised ValueError: assignment destination is read-only (mine.py, line 5)"),
    ("tasks.request[0] = 0\n    return 0", "raised ValueError: assignment destination is read-only (mine.py, line 5)"),
    ("return fleet.free[0, 10**6]", "raised IndexError: index 1000000 is out of bounds for axis 1 with size 64 "
                                    "(mine.py, line 5)"),
])
def test_an_exception_names_file_line_and_exception(tmp_path, body, words):
    assert said(tmp_path, body) == f"scheduler mine.py:wrong+backfill {words}"


def test_an_interrupt_in_a_policy_is_raised_as_it_is():
    def stopped(fleet, tasks, task):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(*some_workload(4), policy(stopped, compiled=False))


def test_after_an_exception_nobody_is_asked():
    calls = []

    def fail(fleet, tasks, task):
        calls.append(task)
        raise RuntimeError("no")

    with pytest.raises(PolicyError, match="raised RuntimeError: no"):
        simulate(plain((0, 1, 1), (0, 1, 2), (0, 1, 3)), fleet_of((4,)), policy(fail, "backfill", compiled=False))
    assert calls == [0]


def test_an_exception_in_a_hook_ends_the_run():
    calls = []

    def fail(fleet, tasks, lanes, memory, items, claims):
        calls.append(items.size)
        raise RuntimeError("no")

    with pytest.raises(PolicyError, match=r"raised RuntimeError: no \(test_plain_policy\.py, line \d+\)"):
        simulate(*some_workload(4), hooks(fail, fail, compiled=False))
    assert len(calls) == 1


def test_a_policy_that_forces_its_way_is_found_out(tmp_path):
    forced = "tasks.request.base.flags.writeable = True; tasks.request.base[0] = 0\n    return 0"
    assert "changed tasks.request; a policy may only read it" in said(tmp_path, forced)


@pytest.mark.parametrize("parameters", ["fleet, tasks", "fleet, tasks, task, more"])
def test_a_function_that_cannot_be_called_is_refused_before_the_run(tmp_path, parameters):
    file = tmp_path / "mine.py"
    file.write_text("from subak.policy import policy\n@policy(compiled=False)\n"
                    f"def wrong({parameters}):\n    return 0\n")
    with pytest.raises(PolicyError) as error:
        find_scheduler(f"{file}:wrong")
    assert str(error.value) == (f"{file}: policy wrong cannot be called: it takes {parameters}, and must take fleet, "
                                "tasks, task")


# -- what it knows of run times ----------------------------------------------------------------------------------------


def of_helper(tasks):
    return min(range(2), key=lambda task: tasks.estimate[task])


def test_what_a_policy_names_in_functions_inside_it_is_known():
    def inside(fleet, tasks, task):
        return min(range(2), key=lambda each: tasks.run_time[each])

    def helped(fleet, tasks, task):
        return [of_helper(tasks) for _ in range(2)][1]

    assert [policy(each, compiled=False).knows for each in (inside, helped, first)] == [RUN_TIMES, RUN_TIMES, NOTHING]


@pytest.mark.parametrize("name", ["estimate", "run_time"])
def test_a_policy_that_reads_run_times_out_of_sight_is_refused(name):
    hidden = name[:3], name[3:]

    def dark(fleet, tasks, task):
        return int(getattr(tasks, "".join(hidden))[task])

    with pytest.raises(PolicyError, match=r"scheduler dark reads tasks\.estimate out of sight; name it"):
        simulate(*some_workload(4), policy(dark, compiled=False))
    simulate(*some_workload(4), policy(lambda fleet, tasks, task: next_fitting(fleet, tasks, task, 0), compiled=False))


# -- where it is used --------------------------------------------------------------------------------------------------

MINE = """import statistics
from subak.policy import next_fitting, policy

@policy(compiled=False)
def mine(fleet, tasks, task):
    \"\"\"First fit; with a library that no compiler knows.\"\"\"
    assert statistics.mean([1, 3]) == 2
    return next_fitting(fleet, tasks, task, 0)

@policy(compiled=False)
def fails(fleet, tasks, task):
    raise OSError("no model here")
"""
TRACE = "".join(f"{second} 3 2.5 2 {second % 7 + 1} 3\n" for second in range(20))


@pytest.fixture
def home(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "jobs.tr").write_text(TRACE)
    assert subak("convert", "tr", tmp_path / "jobs.tr", "--out", tmp_path / "W").returncode == 0
    return tmp_path


FLEET = ("--machines", "3", "--capacity", "slot=2")


def test_runs_and_comparisons_say_that_it_was_called_as_python(home):
    done = subak("simulate", home / "W", *FLEET, "--scheduler", f"{home}/mine.py:mine", "--out", home / "R")
    assert done.returncode == 0
    assert "mine.py-mine was called as plain Python" in " ".join(done.stdout.replace("│", " ").split())
    speed = json.loads((home / "R" / "summary.json").read_bytes())["speed"]
    assert speed["decisions_per_second"] > 0
    done = subak("compare", home / "W", *FLEET, "--schedulers", f"first-fit,{home}/mine.py:mine", "--out", home / "C")
    assert done.returncode == 0
    runs = home / "C" / "runs"
    same = [pl.read_parquet(runs / name / "tasks.parquet") for name in ("first-fit", "mine.py-mine")]
    assert same[0].equals(same[1])
    assert "decisions_per_second" not in (runs / "first-fit" / "summary.json").read_text()


def test_a_study_may_have_one(home):
    (home / "study.toml").write_text('workload = "W"\nmachines = [2, 3]\ncapacity = { slot = 2 }\n'
                                     'schedulers = ["first-fit", "mine.py:mine"]\n')
    done = subak("experiment", home / "study.toml", "--out", home / "S")
    assert done.returncode == 0, done.stderr
    assert len(list((home / "S" / "runs").iterdir())) == 4


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_policy_that_fails_ends_the_run_and_leaves_nothing(home, command):
    option = "--scheduler" if command == "simulate" else "--schedulers"
    done = subak(command, home / "W", *FLEET, option, f"{home}/mine.py:fails", "--out", home / "R")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "subak: scheduler mine.py:fails raised OSError: no model here (mine.py, line 12)")
    left = sorted(each.name for each in home.iterdir() if each.name != "__pycache__")  # Python's own, of mine.py
    assert left == ["W", "jobs.tr", "mine.py"]


def test_chunks_refuse_it_as_any_policy_from_a_file(home):
    done = subak("simulate", home / "W", *FLEET, "--scheduler", f"{home}/mine.py:mine", "--chunk", "5")
    assert done.returncode == 2
    assert "a policy from a file" in done.stderr


def test_two_at_once_are_kept_apart_and_one_may_simulate_inside():
    work = laboratory.load(pl.DataFrame({"arrival": [0.0, 0.0, 1.0, 2.0], "run_time": [5.0, 5.0, 5.0, 5.0],
                                         "cpu": [1, 1, 1, 1]}), machines=3, capacity={"cpu": 1})
    met, inner = threading.Barrier(2, timeout=30), []

    def one(fleet, tasks, task):
        if task == 0:
            met.wait()
            inner.append(engine_rows(simulate(*some_workload(4), policy(last, compiled=False))))
        return next_fitting(fleet, tasks, task, 0)

    def other(fleet, tasks, task):
        if task == 0:
            met.wait()
        return next_fitting(fleet, tasks, task, 0) if task else 1

    found = laboratory.compare(work, [policy(one, compiled=False), policy(other, compiled=False)], threads=2,
                               progress=False)
    assert [found[name].tasks["machine"].to_list()[:3] for name in ("one", "other")] == [["0", "1", "2"],
                                                                                         ["1", "0", "2"]]
    assert inner == [engine_rows(simulate(*some_workload(4), both(last)[0]))]
