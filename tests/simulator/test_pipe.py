"""Schedulers in a process of their own: what is said to them, what they may answer, and how each fault ends the run."""
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

import subak as laboratory
from in_process import subak
from small import TWO, cases, fleet_of, plain, some_workload, staged
from subak.errors import InputError, PolicyError
from subak.experiment.folder import run_label
from subak.experiment.scenario import Scenario
from subak.experiment.study.digest import Contents, run_digest
from subak.policy import find_scheduler
from subak.policy_files import piped_command
from subak.simulator.simulate import simulate
from test_engine_against_twin import engine_rows
from test_gangs import ganged

EXAMPLES = Path(__file__).parents[2] / "examples"
FIRST_FIT = f"pipe:{sys.executable} {EXAMPLES / 'first_fit.py'}"
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
ANSWERS = '''
import json, sys, time

def event(kind, **data):
    return {{"timestamp": now, "type": kind, "data": data}}

def execute(job, alloc):
    return event("EXECUTE_JOB", job_id=job, alloc=alloc)

def answer(events):
    print(json.dumps({{"now": now, "events": events}}), flush=True)

for number, line in enumerate(sys.stdin):
    with open({heard!r}, "a") as heard:
        heard.write(line)
    message = json.loads(line)
    now, kinds = message["now"], [each["type"] for each in message["events"]]
    jobs = [each["data"]["job_id"] for each in message["events"] if each["type"] == "JOB_SUBMITTED"]
    {body}
'''


@pytest.fixture
def piped(tmp_path):
    """Makes the scheduler of a program that answers each message as some lines of Python say."""
    def make(body, **settings):
        file = tmp_path / "answers.py"
        text = "\n    ".join(body.splitlines())
        file.write_text(ANSWERS.format(heard=str(tmp_path / "heard"), body=text))
        made = find_scheduler(f"pipe:{sys.executable} {file}")
        return type(made)(**{**vars(made), "name": "mine", **settings})

    return make


def heard(tmp_path):
    """The messages that the program was sent."""
    return [json.loads(line) for line in (tmp_path / "heard").read_text().splitlines()]


def kinds_of(messages):
    return [[each["type"] for each in message["events"]] for message in messages]


# -- what is said ------------------------------------------------------------------------------------------------------


def test_the_example_decides_as_first_fit():
    case = some_workload()
    found = simulate(*case, find_scheduler(FIRST_FIT))
    assert engine_rows(found) == engine_rows(simulate(*case, find_scheduler("first-fit")))
    assert found.decisions > 100


@pytest.mark.skipif(COMPILER is None, reason="there is no compiler of C")
def test_the_example_in_c_decides_as_first_fit(tmp_path):
    text = (EXAMPLES / "first_fit.c").read_text()
    assert len(text.splitlines()) < 150
    program = tmp_path / "first fit"
    subprocess.run([COMPILER, "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, EXAMPLES / "first_fit.c"],
                   check=True, timeout=120)
    for case in (some_workload(), some_workload(200, 2, 9)):
        found = simulate(*case, find_scheduler(f"pipe:'{program}'"))
        assert engine_rows(found) == engine_rows(simulate(*case, find_scheduler("first-fit")))


def test_the_messages_are_those_of_the_page(tmp_path, piped):
    stages = [{"request": (2, 1)},
              {"request": (1, 1), "depends_on": [0], "constraints": [("rack", "=", "a")]}]
    workload = staged(stages, [(0, 1.5, 4.0, 8.0), (1, 1.5, 1.0)], resources=TWO)
    fleet = fleet_of((2, 2), (4, 4), resources=TWO, attributes=[(1, "rack", "a")])
    outcome = simulate(workload, fleet, piped("answer([execute(job, '1') for job in jobs])"), estimates="user")
    assert [row[4] for row in engine_rows(outcome)] == [1, 1]
    begins, *others = heard(tmp_path)
    assert begins["now"] == 1.5
    told = begins["events"][0]["data"]
    assert [(each["id"], each["name"], each["capacity"], each["properties"]) for each in told["compute_resources"]] == [
        (0, "m0", [2, 2], {}), (1, "m1", [4, 4], {"rack": "a"})]
    assert (told["nb_resources"], told["resources"], told["units"]) == (2, ["cpu", "memory"], [1.0, 1.0])
    assert told["allow_compute_sharing"] is True
    assert kinds_of(others) == [["JOB_SUBMITTED"], ["JOB_COMPLETED"], ["JOB_SUBMITTED"], ["JOB_COMPLETED"],
                                ["SIMULATION_ENDS"]]
    assert [message["now"] for message in others] == [1.5, 5.5, 5.5, 6.5, 6.5]
    assert others[0]["events"][0] == {"timestamp": 1.5, "type": "JOB_SUBMITTED", "data": {"job_id": "w0!0", "job": {
        "id": "w0!0", "subtime": 1.5, "res": 1, "walltime": 8.0, "profile": "task", "request": [2, 1],
        "constraints": []}}}
    assert others[2]["events"][0]["data"]["job"]["constraints"] == [
        {"attribute": "rack", "operator": "=", "value": "a"}]
    assert others[1]["events"][0]["data"] == {"job_id": "w0!0", "job_state": "COMPLETED_SUCCESSFULLY",
                                              "return_code": 0, "alloc": "1"}


def test_machines_that_leave_come_and_change_are_told_and_their_tasks_come_again(tmp_path, piped):
    fleet = fleet_of((1,), (1,), present=[True, False], changes=[
        (2, 0, False, 0), (3, 1, True, 1), (4, 1, True, 5)])
    body = ("at = '0' if now < 2 else '1'\n"
            "answer([execute(job, at) for job in jobs] if now != 2 else [])\n")
    outcome = simulate(plain((0, 10, 1), (6, 1, 1)), fleet, piped(body))
    messages = heard(tmp_path)[1:]
    told = [(message["now"], each["type"], each["data"].get("type", each["data"].get("job_state")),
             each["data"].get("capacity")) for message in messages for each in message["events"]]
    assert told == [
        (0, "NOTIFY", "event_machine_unavailable", None), (0, "JOB_SUBMITTED", None, None),
        (2, "JOB_COMPLETED", "COMPLETED_KILLED", None), (2, "NOTIFY", "event_machine_unavailable", None),
        (2, "JOB_SUBMITTED", None, None),
        (3, "NOTIFY", "event_machine_available", [1]), (4, "NOTIFY", "event_machine_available", [5]),
        (6, "JOB_SUBMITTED", None, None), (7, "JOB_COMPLETED", "COMPLETED_SUCCESSFULLY", None),
        (7, "SIMULATION_ENDS", None, None)]
    assert [row[0] for row in engine_rows(outcome)] == ["WAITING", "FINISHED"]


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=15)
@given(case=cases(task_most=20))
def test_what_ran_and_ended_is_told_once(case, tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    file = folder / "answers.py"
    file.write_text(ANSWERS.format(heard=str(folder / "heard"), body="answer([])"))
    simulate(*case, find_scheduler(f"pipe:{sys.executable} {file}"))
    if not (folder / "heard").exists():
        return  # no task could be placed
    submitted = [each["data"]["job_id"] for message in heard(folder) for each in message["events"]
                 if each["type"] == "JOB_SUBMITTED"]
    assert len(set(submitted)) == len(submitted)


def test_a_machine_for_one_task_is_not_shared(tmp_path, piped):
    simulate(plain((0, 1, 1)), fleet_of((1,), (1,)), piped("answer([])"))
    assert heard(tmp_path)[0]["events"][0]["data"]["allow_compute_sharing"] is False


def test_a_rejected_job_waits_to_the_end(tmp_path, piped):
    outcome = simulate(plain((0, 1, 1)), fleet_of((1,)),
                       piped("answer([event('REJECT_JOB', job_id=job) for job in jobs])"))
    assert [row[0] for row in engine_rows(outcome)] == ["WAITING"]


def test_what_changes_nothing_is_read_past(tmp_path, piped):
    body = ("answer([event('NOTIFY', type='registration_finished'), *[event('SET_JOB_METADATA', job_id=job)"
            " for job in jobs], *[execute(job, '0') for job in jobs]])")
    assert engine_rows(simulate(plain((0, 1, 1)), fleet_of((1,)), piped(body)))[0][0] == "FINISHED"


# -- what it may not ---------------------------------------------------------------------------------------------------


def fault(scheduler, inputs=None):
    with pytest.raises(PolicyError) as error:
        simulate(*(inputs or (plain((0, 5, 1), (1, 5, 1)), fleet_of((1,), (1,)))), scheduler)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("scheduler mine ")
    return str(error.value).removeprefix("scheduler mine ")


@pytest.mark.parametrize(("body", "words"), [
    ("answer([execute('w0!2', '0')] if jobs else [])", "names job 'w0!2', but jobs are w0!0 to w0!1"),
    ("answer([execute('w1!0', '0')] if jobs else [])", "names job 'w1!0', but jobs are w0!0 to w0!1"),
    ("answer([event('EXECUTE_JOB')] if jobs else [])", "names job None, but jobs are"),
    ("answer([execute('w0!0', '0-1')] if jobs else [])", 'executes job w0!0 on \'0-1\'; a job runs on one machine'),
    ("answer([execute('w0!0', '-1')] if jobs else [])", "executes job w0!0 on '-1'; a job runs on one machine"),
    ("answer([execute('w0!0', '')] if jobs else [])", "executes job w0!0 on ''; a job runs on one machine"),
    ("answer([execute('w0!0', '2')] if jobs else [])",
     "answered a machine that does not exist: machine 2 for task 0; machines are 0 to 1, or -1 for none"),
    ("answer([execute('w0!0', '0')] * 2 if jobs else [])", "answered a task that is not waiting: machine 0 for task 0"),
    ("answer([execute('w0!1', '0')] if jobs else [])", "answered a task that is not waiting: machine 0 for task 1"),
    ("answer([execute(job, '0') for job in jobs])",
     "answered a machine that cannot hold the task: machine 0 for task 1; cpu asked 1 core, free 0"),
    ("answer([event('REJECT_JOB', job_id='w0!0'), execute('w0!0', '0')] if jobs else [])",
     "executes job w0!0, which it rejected"),
    ("answer([event('KILL_JOB')] if jobs else [])",
     "answered 'KILL_JOB', which is not supported; EXECUTE_JOB and REJECT_JOB are"),
    ("answer([event('CALL_ME_LATER')])", "answered 'CALL_ME_LATER', which is not supported"),
    ("print('{', flush=True)", "answered what is no message: Input data was truncated"),
    ("print('[]', flush=True)", "answered what is no message: Expected `object`, got `array`"),
    ("print('{\"events\": [{}]}', flush=True)", "answered what is no message: Object missing required field `type`"),
    ("sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()", "answered what is no message: "),
    ("answer([])\nif 'SIMULATION_ENDS' in kinds:\n    time.sleep(0.05)\n    print('x', flush=True)",
     "answered more than one line to a message; it said last: 'x'"),
    ("answer([]); answer([])", "answered more than one line to a message"),
    ("sys.exit(3)", "ended before the run with exit code 3; it said nothing before"),
    ("import os; os.abort()", "ended before the run of SIGABRT"),
    ("print('{\"eve', end='', flush=True); sys.exit(0)",
     "ended before the run with exit code 0; it left half a line: '{\"eve'"),
    ("import os; os.close(1); time.sleep(60)", "closed its pipe before the end"),
    ("answer([]) if number == 0 else sys.exit('no model')",
     "ended before the run with exit code 1; it said last: '{\"now\": 0.0, \"events\": []}'; on standard error: "
     "'no model'"),
])
def test_a_fault_ends_the_run_in_one_line(monkeypatch, piped, body, words):
    monkeypatch.setattr("subak.simulator.central.process.END_SECONDS", 0.2)
    assert fault(piped(body)).startswith(words)


@pytest.mark.parametrize("body", ["time.sleep(60)", "print('half', end='', flush=True); time.sleep(60)"])
def test_one_that_hangs_is_ended(piped, body):
    began = time.monotonic()
    assert fault(piped(body, answer_timeout=0.5)).startswith("did not answer within 0.5 s (--answer-timeout)")
    assert time.monotonic() - began < 30


def test_one_that_does_not_read_is_ended():
    many = fleet_of(*[(1,)] * 3000)
    scheduler = find_scheduler(f"pipe:{sys.executable} -c 'import time; time.sleep(60)'")
    with pytest.raises(PolicyError, match=r"did not answer within 0\.5 s"):
        simulate(plain((0, 5, 1)), many, type(scheduler)(**{**vars(scheduler), "answer_timeout": 0.5}))


def test_what_it_started_ends_with_it(tmp_path, piped):
    body = ("import subprocess\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
            f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\nprint('{{', flush=True)\ntime.sleep(60)")
    fault(piped(body))
    child = Path(f"/proc/{(tmp_path / 'child').read_text()}/stat")
    for _ in range(100):
        if not child.exists() or child.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("it runs on")


def test_gangs_are_refused_before_the_run(tmp_path):
    work, fleet = ganged()
    with pytest.raises(InputError, match="has 9 gangs"):
        laboratory.run(laboratory.load(work, fleet), FIRST_FIT, progress=False)


# -- its name ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "words"), [
    ("pipe:", "must name a command, pipe:COMMAND"), ("pipe:  ", "must name a command"),
    ("pipe:a 'b", "must be pipe:COMMAND, quoted as for a shell: No closing quotation"),
])
def test_a_name_without_a_command_is_refused(name, words):
    with pytest.raises(InputError, match=words):
        find_scheduler(name)


def test_a_command_is_words_and_a_label_is_their_last_parts():
    name = "pipe:python3 'a b/first.py:x' -t 3+backfill"
    assert piped_command(name) == ("python3", "a b/first.py:x", "-t", "3+backfill")
    assert run_label(name, 1, [1]) == "pipe-python3-first.py-x--t-3+backfill"


def test_one_that_cannot_be_started_is_named():
    with pytest.raises(PolicyError, match=r"^scheduler pipe:/no/such cannot be started: /no/such: No such file"):
        simulate(*some_workload(2), find_scheduler("pipe:/no/such"))


def test_a_study_runs_again_when_the_program_changed(tmp_path):
    (tmp_path / "a.py").write_text("1")
    scenario = Scenario(workload="google2011-sampled", schedulers=[f"pipe:python3 {tmp_path}/a.py"])
    before = run_digest(scenario, Contents())
    assert run_digest(scenario, Contents()) == before
    (tmp_path / "a.py").write_text("2")
    assert run_digest(scenario, Contents()) != before


# -- where it is used --------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path):
    (tmp_path / "jobs.tr").write_text("".join(f"{second} 3 2.5 2 {second % 7 + 1} 3\n" for second in range(20)))
    assert subak("convert", "tr", tmp_path / "jobs.tr", "--out", tmp_path / "W").returncode == 0
    return tmp_path


FLEET = ("--machines", "3", "--capacity", "slot=2")


def test_it_is_compared_with_others_and_its_run_can_be_repeated(home):
    done = subak("compare", home / "W", *FLEET, "--schedulers", f"first-fit,{FIRST_FIT}", "--answer-timeout", "30s",
                 "--out", home / "C")
    assert done.returncode == 0, done.stderr
    runs = sorted((home / "C" / "runs").iterdir())
    assert len(runs) == 2
    assert pl.read_parquet(runs[0] / "tasks.parquet").equals(pl.read_parquet(runs[1] / "tasks.parquet"))
    piped = next(run for run in runs if run.name.startswith("pipe-"))
    again = subak("simulate", "--scenario", piped / "scenario.toml", "--out", home / "R")
    assert again.returncode == 0, again.stderr
    assert pl.read_parquet(home / "R" / "tasks.parquet").equals(pl.read_parquet(piped / "tasks.parquet"))


def test_a_fault_leaves_nothing(home):
    done = subak("simulate", home / "W", *FLEET, "--scheduler", "pipe:false", "--out", home / "R")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("subak: scheduler pipe:false ended before the run with exit code 1")
    assert not (home / "R").exists()


def test_the_timeout_is_for_processes_alone(home):
    done = subak("simulate", home / "W", *FLEET, "--scheduler", "first-fit", "--answer-timeout", "5s")
    assert done.returncode == 2
    assert "answer_timeout: none of the schedulers first-fit is a process of its own" in done.stderr


def test_it_runs_from_python():
    work = laboratory.load(pl.DataFrame({"arrival": [0.0, 0.0], "run_time": [5.0, 5.0], "cpu": [1, 1]}),
                           machines=1, capacity={"cpu": 1})
    found = laboratory.compare(work, ["first-fit", FIRST_FIT], progress=False)
    assert [found[name].tasks["start"].to_list() for name in found.runs] == [[0.0, 5.0]] * 2


@pytest.mark.skipif(importlib.util.find_spec("batsim") is None or importlib.util.find_spec("zmq") is None,
                    reason="pybatsim is not installed")
def test_an_unmodified_scheduler_of_pybatsim_decides():
    bridge = f"pipe:{sys.executable} {EXAMPLES / 'zeromq.py'} tcp://127.0.0.1:28765"
    name = f"{bridge} {sys.executable} -m batsim.cmds.launcher -t 0 -s tcp://127.0.0.1:28765 easyBackfill"
    case = plain(*[(time, 3 + time % 4, 1) for time in range(30)]), fleet_of((1,), (1,), (1,))
    starts = [sorted(row[2] for row in engine_rows(simulate(*case, find_scheduler(each))))
              for each in (name, "first-fit")]
    assert starts[0] == starts[1]
