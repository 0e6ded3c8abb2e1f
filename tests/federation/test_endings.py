"""How tasks end that do not finish: columns, counts, reasons and words of a run, and how a plan gets into one."""
import filecmp
import io
import json

import numpy as np
import polars as pl
import pytest

from fake_runs import write_comparison, write_run
from small import CPU, fleet_of, plain
from subak.errors import InputError
from subak.experiment.scenario import Scenario
from subak.federation.megha.jobs import OUTCOME_OF
from subak.federation.messages import (
    CANCELLED,
    FINISHED_WELL,
    HAS_FAILED,
    LOST_TOO_OFTEN,
    RAN_TOO_LONG,
    STAGE_FAILED,
    WAITED_TOO_LONG,
)
from subak.federation.settings import Federation
from subak.measures.fairness.trail import attempt_trail
from subak.measures.of_run import outcome_counts, reasons, recorded_counts, status_counts
from subak.measures.run_folders import load_runs
from subak.placement.claims import STATUSES, TASK_BLOCKED, TASK_FINISHED, TASK_GIVEN_UP
from subak.policy import find_scheduler
from subak.report.comparison import compare, recorded_note
from subak.report.console import Console
from subak.report.explain import explain
from subak.report.page import write_report
from subak.report.terminal import run_panel
from subak.simulator.failures.plan import FailurePlan, Rule
from subak.simulator.results import attempts_lost, task_table
from subak.simulator.simulate import simulate
from subak.workload.samples import sample_folder
from subak.workload.table import make_workload

SMALL = Federation(global_masters=2, local_masters=2)
MACHINES = ("--machines", 4, "--capacity", "slot=1", "--global-masters", 2, "--local-masters", 2)


def ended(workload, endings, plan=None, scheduler="megha"):
    """Run a workload to its end; return its table of tasks as if they had ended so: (reason, exit code, failed)."""
    outcome = simulate(workload, fleet_of((2,), (2,)), find_scheduler(scheduler), federation=SMALL,
                       failures=plan or FailurePlan())
    table = outcome.federated.roles.jobs.ending
    for task, (reason, code, failed) in endings.items():
        values = table[task]
        values["outcome"], values["reason"], values["code"], values["failed"] = OUTCOME_OF[reason], reason, code, failed
        outcome.simulation.claims.status[task] = TASK_FINISHED if reason == FINISHED_WELL else TASK_GIVEN_UP
    return task_table(outcome, workload, fleet_of((2,), (2,)))


def test_the_columns_of_tasks_say_how_each_ended():
    plan = FailurePlan(task=[Rule(job="j5", wait_max=60.0), Rule(job="j4", run_max=9.0, retries=1),
                             Rule(job="j3", losses_max=2)])
    tasks = ended(plain(*[(0, 1, 1)] * 8), {
        0: (FINISHED_WELL, 0, 0), 1: (HAS_FAILED, 7, 1), 2: (CANCELLED, 0, 0), 3: (LOST_TOO_OFTEN, 0, 0),
        4: (RAN_TOO_LONG, 0, 2), 5: (WAITED_TOO_LONG, 0, 0), 6: (FINISHED_WELL, 0, 3), 7: (STAGE_FAILED, 0, 0)}, plan)
    assert tasks.columns[-3:] == ["outcome", "exit_code", "attempts_failed"]
    assert tasks["outcome"].to_list() == [
        "FINISHED", "FAILED", "CANCELLED", "LOST", "TIMED_OUT", "TIMED_OUT", "FINISHED", "CANCELLED"]
    assert tasks["exit_code"].to_list() == [0, 7, None, None, None, None, 0, None]
    assert tasks["attempts_failed"].to_list() == [0, 1, 0, 0, 2, 0, 3, 0]
    assert tasks["status"].to_list() == ["FINISHED", *["GIVEN_UP"] * 5, "FINISHED", "GIVEN_UP"]
    assert tasks["reason"].to_list() == [
        None, "its attempt failed with exit code 7", "cancelled by a user",
        "its attempts were lost more often than losses_max allows (2 times)",
        "none of its 2 attempts finished; the last ran for longer than it may (9 s)",
        "it waited longer than its wait limit (60 s)", None, "a stage that it depends on failed"]
    gone = tasks.filter(pl.col("status") == "GIVEN_UP")
    for name in ("start", "finish", "machine", "communication"):
        assert gone[name].is_null().all(), name


def test_counts_of_a_run_say_how_its_tasks_ended():
    tasks = ended(plain(*[(0, 1, 1)] * 4), {
        0: (HAS_FAILED, 1, 4), 1: (HAS_FAILED, 1, 4), 2: (CANCELLED, 0, 0), 3: (FINISHED_WELL, 0, 1),
    }, scheduler="central")
    found = outcome_counts(tasks)
    assert found.outcomes == {"FINISHED": 1, "FAILED": 2, "CANCELLED": 1, "TIMED_OUT": 0, "LOST": 0}
    assert found.attempts_failed == 9
    assert status_counts(tasks) == {**dict.fromkeys(STATUSES, 0), "FINISHED": 1, "GIVEN_UP": 3}
    assert [(each.status, each.reason, each.tasks) for each in reasons(tasks)] == [
        ("GIVEN_UP", "none of its 4 attempts finished; the last failed with exit code 1", 2),
        ("GIVEN_UP", "cancelled by a user", 1)]


def test_a_task_between_two_attempts_says_so():
    workload = plain((0, 1, 1), (0, 1, 1))
    outcome = simulate(workload, fleet_of((2,), (2,)), find_scheduler("megha"), federation=SMALL,
                       failures=FailurePlan())
    outcome.simulation.claims.status[0] = TASK_BLOCKED
    assert task_table(outcome, workload, fleet_of((2,), (2,)))["reason"].to_list() == [
        "its attempt failed or ran for too long, and it waits to be tried again", None]


def test_a_run_without_a_plan_has_the_columns_it_had():
    workload = plain((0, 1, 1))
    outcome = simulate(workload, fleet_of((2,), (2,)), find_scheduler("megha"), federation=SMALL)
    tasks = task_table(outcome, workload, fleet_of((2,), (2,)))
    assert "outcome" not in tasks.columns
    assert "GIVEN_UP" not in tasks["status"].dtype.categories
    assert outcome_counts(tasks) is None


def test_a_task_that_was_given_up_demands_nothing_after_its_last_attempt():
    tasks = pl.DataFrame({
        "job": [0, 1, 2], "index": [0, 0, 0], "queue": ["a", "a", "b"], "ready": [0.0, 1.0, 2.0],
        "start": [5.0, None, None], "finish": [6.0, None, None], "status": ["FINISHED", "GIVEN_UP", "GIVEN_UP"]},
        schema_overrides={"job": pl.UInt32, "index": pl.UInt32, "status": pl.Enum(STATUSES)})
    attempts = pl.DataFrame({"job": [1, 0, 1], "index": [0, 0, 0], "start": [2.0, 1.0, 6.0], "end": [3.0, 4.0, 8.0]},
                            schema_overrides={"job": pl.UInt32, "index": pl.UInt32})
    made = plain(*[(0, 1, 1)] * 3)
    workload = make_workload(made.jobs.with_columns(queue=pl.Series(["a", "a", "b"])),
                             made.stages.with_columns(pl.col("cpu").cast(pl.Float64)), made.tasks, CPU)
    trail = attempt_trail(tasks, attempts, workload)
    # task 1 waits from 1 to 2 and from 3 to 6, task 2 never runs
    assert sorted(trail.waits.tolist()) == [0.0, 1.0, 3.0, 4.0, np.inf, np.inf]
    assert sorted(trail.starts.tolist()) == [1.0, 2.0, 5.0, 6.0, np.inf, np.inf]


def test_an_attempt_that_failed_was_not_lost():
    """j0 fails on machine 0 from 0 to 2 and from 3 to 5; j1 loses machine 1 at 6 s, and runs on machine 0 to 16 s."""
    plan = FailurePlan(task=[Rule(job="j0", fail=1.0, fail_after=0.5, retries=1, backoff=1.0)])
    settings = Federation(global_masters=1, local_masters=1, delay=0.0, service_scale=0.0, heartbeat=1.0)
    fleet = fleet_of((1,), (1,), changes=[(6.0, 1, False, 0)])
    outcome = simulate(plain((0, 4, 1), (0, 10, 1)), fleet, find_scheduler("megha"), federation=settings, failures=plan)
    assert outcome.simulation.progress.attempts.tolist() == [2, 2]
    assert outcome.simulation.progress.start[1] == 6.0
    assert attempts_lost(outcome) == (1, 6.0)


# -- what the trace recorded -------------------------------------------------------------------------------------------


def test_every_run_counts_how_the_trace_recorded_what_finished():
    made = plain(*[(0, 1, 1)] * 5)
    outcomes = pl.Series(["FINISH", "KILL", "FAIL", None, "KILL"])
    workload = make_workload(made.jobs, made.stages.with_columns(pl.col("cpu").cast(pl.Float64)),
                             made.tasks.with_columns(outcome=outcomes), CPU)
    tasks = pl.DataFrame({"status": ["FINISHED"] * 4 + ["WAITING"]})
    assert recorded_counts(tasks, workload) == {"FINISH": 1, "FAIL": 1, "KILL": 1}
    assert recorded_counts(tasks, made) == {}


def test_inspect_and_a_run_count_the_outcomes_of_googles_trace(run, tmp_path):
    code, out, said = run("inspect", sample_folder("google2011"), "--json")
    assert code == 0, said
    recorded = json.loads(out)["workload"]["parts"]["outcome"]
    assert (recorded["FAIL"], recorded["KILL"]) == (1375, 20291)
    code, out, said = run("simulate", "--until", 600, "--out", tmp_path / "R")
    assert code == 0, said
    summary = json.loads((tmp_path / "R" / "summary.json").read_bytes())
    assert 0 < sum(summary["recorded"].values()) == summary["status"]["FINISHED"]
    assert all(count <= recorded[name] for name, count in summary["recorded"].items())
    assert "Of the tasks that finished here, the trace recorded" in " ".join(out.split())
    assert summary["failures"] is None


# -- words -------------------------------------------------------------------------------------------------------------

PLANNED = {"outcomes": {"FINISHED": 3900, "FAILED": 7, "CANCELLED": 0, "TIMED_OUT": 11, "LOST": 2},
           "attempts_failed": 345}


def said_of(folder):
    printed = io.StringIO()
    Console(width=120, file=printed).print(run_panel(load_runs(folder)[0]))
    return printed.getvalue()


def test_terminal_and_page_show_how_tasks_ended_where_a_plan_was_given(tmp_path):
    write_run(tmp_path / "R", failures=PLANNED, recorded={"FINISH": 3000, "KILL": 900})
    text, page = said_of(tmp_path / "R"), write_report(tmp_path / "R").read_text()
    rows = [" ".join(line.strip("│").split()) for line in text.splitlines()]
    for row in ("failed 7", "cancelled 0", "timed out 11", "lost 2", "attempts failed 345"):
        assert row in rows
    assert "the trace recorded 3,000 FINISH, 900 KILL." in text
    assert "Tasks that ended, by how" in page
    assert "Tasks that finished, as the trace recorded them" in page


def test_they_say_nothing_of_it_where_there_was_none(tmp_path):
    write_run(tmp_path / "R", recorded={"FINISH": 3900})
    text, page = said_of(tmp_path / "R"), write_report(tmp_path / "R").read_text()
    assert "attempts failed" not in text
    assert "recorded" not in text
    assert "Tasks that ended, by how" not in page
    assert "as the trace recorded them" not in page
    assert recorded_note(load_runs(tmp_path / "R")[0].summary) == ""


def test_a_comparison_prefers_fewer_failures(tmp_path):
    folder = write_comparison(tmp_path / "C", labels=("first-fit", "best-fit"))
    for label, failed in (("first-fit", 9), ("best-fit", 4)):
        file = folder / "runs" / label / "summary.json"
        file.write_text(json.dumps({**json.loads(file.read_text()),
                                    "failures": {"outcomes": {"FAILED": failed}, "attempts_failed": 20}}))
    rows = {(row.measure.family, row.measure.title): row for row in compare(load_runs(folder))}
    assert rows["Tasks", "failed"].values == [4, 9]
    assert rows["Tasks", "failed"].best == {0}
    assert rows["Tasks", "lost"].values == [0, 0]


# -- from the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def site(run, tmp_path):
    """A workload of 40 tasks of two jobs each second, without a fleet or outcomes."""
    (tmp_path / "site.tr").write_text("".join(f"{second} 2 2 1 3\n" for second in range(20)))
    assert run("convert", "tr", tmp_path / "site.tr", "--out", tmp_path / "W")[0] == 0
    return tmp_path / "W"


def test_a_plan_is_copied_and_a_run_repeats_itself_from_the_copy(run, site, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text("seed = 3\n[[task]]\nfail = 0.2\nretries = 2\nbackoff = 1.0\n")
    first, second = tmp_path / "first", tmp_path / "second"
    code, _, said = run("simulate", site, *MACHINES, "--scheduler", "megha", "--failures", plan, "--out", first)
    assert code == 0, said
    assert (first / "failures.toml").read_bytes() == plan.read_bytes()
    assert 'failures = "failures.toml"' in (first / "scenario.toml").read_text()
    assert run("simulate", "--scenario", first / "scenario.toml", "--out", second)[0] == 0
    names = ["tasks.parquet", "attempts.parquet", "failures.toml", "scenario.toml"]
    assert filecmp.cmpfiles(first, second, names, shallow=False) == (names, [], [])
    summary = json.loads((first / "summary.json").read_bytes())
    assert summary["failures"].keys() == {"outcomes", "attempts_failed"}
    assert summary["failures"]["attempts_failed"] == pl.read_parquet(first / "attempts.parquet").height > 0
    assert (summary["attempts_lost"], summary["run_time_lost"]) == (0, 0.0)
    explained(first)


def explained(folder):
    """Explain a task of a run as if it had been given up."""
    table = pl.read_parquet(folder / "tasks.parquet")
    first = pl.int_range(pl.len()) == 0
    changes = {"status": "GIVEN_UP", "outcome": "FAILED", "exit_code": 9, "attempts_failed": 3, "start": None,
               "reason": "none of its 3 attempts finished; the last failed with exit code 9"}
    table = table.with_columns(pl.col("reason").cast(pl.String)).with_columns(
        pl.when(first).then(pl.lit(value, table.schema[name] if name != "reason" else pl.String))
        .otherwise(pl.col(name)).alias(name) for name, value in changes.items())
    table.write_parquet(folder / "tasks.parquet")
    found = explain(folder, "0")
    assert found.title.endswith("is given up")
    assert ("Outcome", "failed, exit code 9") in found.facts
    assert "3 failed or ran too long" in dict(found.facts)["Attempts"]
    assert found.why == ["None of its 3 attempts finished; the last failed with exit code 9."]


@pytest.mark.parametrize(("scheduler", "plan", "said"), [
    ("megha", None, "plan.toml: no such file"),
    ("megha", "[[task]]\nfail = 2", "plan.toml: task.fail: must be a probability from 0 to 1, not 2"),
    ("megha", "[[task]]\nqueue = 'x'", "plan.toml: task.queue: the workload has no queue 'x'; it has all"),
    ("megha", "recorded = true", "plan.toml: recorded: the tasks of workload W have no column outcome"),
    ("first-fit", "", "failures: first-fit does not support them; only megha and central do"),
    ("pigeon", "", "failures: pigeon does not support them; only megha and central do"),
])
def test_what_is_refused_before_anything_runs(run, site, tmp_path, monkeypatch, scheduler, plan, said):
    monkeypatch.chdir(tmp_path)
    if plan is not None:
        (tmp_path / "plan.toml").write_text(plan)
    masters = MACHINES if scheduler == "megha" else MACHINES[:4]
    for command, option in (("simulate", "--scheduler"), ("compare", "--schedulers")):
        code, out, error = run(command, site, *masters, option, scheduler, "--failures", "plan.toml", "--out", "R")
        assert (code, out) == (2, ""), error
        assert said in error.splitlines()[-1]
        assert not (tmp_path / "R").exists()


def test_a_gang_with_retries_is_refused_by_the_names_of_file_and_rule(run, site, tmp_path):
    stages = pl.read_parquet(site / "stages.parquet")
    stages.with_columns(gang=pl.lit(True)).write_parquet(site / "stages.parquet")
    (tmp_path / "plan.toml").write_text("[[task]]\nretries = 1\n")
    code, _, error = run("simulate", site, *MACHINES, "--scheduler", "megha", "--failures", tmp_path / "plan.toml")
    assert code == 2
    assert "plan.toml: task.retries: must be 0 for gangs" in " ".join(error.split())


def test_from_python_other_schedulers_are_refused_too():
    with pytest.raises(InputError, match="failures: first-fit is no federation"):
        simulate(plain((0, 1, 1)), fleet_of((1,)), find_scheduler("first-fit"), failures=FailurePlan())
    with pytest.raises(InputError, match="failures: only megha and central know of them"):
        simulate(plain((0, 1, 1)), fleet_of((1,)), find_scheduler("sparrow"), failures=FailurePlan())
    with pytest.raises(InputError, match="failures: greedy does not support them"):
        Scenario(schedulers=["megha", "greedy"], failures="plan.toml")
