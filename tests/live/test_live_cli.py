"""The commands for a live federation, end to end against masters in a thread."""
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import msgspec
import pytest
import yaml

from serving import Serving
from subak.cli import app
from subak.cli.live import jobs, up
from subak.cli.live.change import _show
from subak.cli.live.commands import COMMAND_SIZE
from subak.cli.live.follow import _line
from subak.cli.live.hints import hint
from subak.cli.live.next_steps import _place
from subak.cli.live.options import Output
from subak.cli.live.show import cores_text, outcome_text
from subak.cli.live.side_by_side import LabelledWriter, Labels
from subak.cli.live.writing import OutputWriter
from subak.live.api.errors import UnavailableError
from subak.live.api.models import STANDS, Event, Free, JobView, NewPerson, StageView, TaskCounts, TaskState
from subak.live.client.transport import Transport
from subak.live.jobfile.command import from_script
from subak.live.jobfile.wrapped import FEED
from subak.live.role.global_master import history
from subak.live.tokens import PEOPLE, new_token
from subak.live.up.folder import Home
from subak.live.up.plan import Wish
from subak.report.number_text import NOTHING

COLUMNS = 160
JOB = "metadata: {{name: {name}}}\nqueue: research/ada\ncommand: {command}\n"


@pytest.fixture
def serving(monkeypatch, tmp_path):
    serving = Serving(("g0", "g1"), stop_s=0)
    monkeypatch.setenv("SUBAK_ADDRESS", serving.addresses["g0"])
    monkeypatch.setenv("SUBAK_TOKEN", serving.token)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setattr("subak.live.client.client.PATIENCE_S", 0.0)
    yield serving
    serving.stop()


@pytest.fixture
def write(tmp_path):
    def _write(text, name="job.yaml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name
    return _write


def job(command="['true']", name="a", more=""):
    return JOB.format(command=command, name=name) + more


def later(serving, work, after=0.3):
    """Do something beside the servers, a little later."""
    threading.Timer(after, lambda: serving.do(work)).start()


# -- submitting --------------------------------------------------------------------------------------------------------


def test_submit_says_the_id_and_waits_when_asked(serving, run, write):
    good, bad = write(job(more="tasks: 3\n")), write(job("['false']", "b"), "bad.yaml")
    assert run("submit", good) == (0, "g0-0 a submitted to research/ada: 3 tasks\n", "")
    code, out, err = run("submit", good, bad, "--wait")
    assert code == 1
    assert out == "g0-1 a submitted to research/ada: 3 tasks\ng0-2 b submitted to research/ada: 1 task\n"
    assert sorted(err.splitlines()) == [
        "subak: g0-1 a finished: 3 finished", "subak: g0-2 b failed: exit code 1; subak logs g0-2 shows its output"]
    assert run("submit", good, "--wait")[0] == 0


def test_at_a_terminal_submit_says_what_waits_and_what_to_type_next(serving, run, write, monkeypatch):
    one, two, large = (write(job("[sleep]", name, f"resources: {{cpu: {cpu}}}\n"), f"{name}.yaml")
                       for name, cpu in (("one", 1), ("two", 4), ("large", 9)))
    gang = write(job("[sleep]", "gang", "tasks: 9\ngang: true\n"), "gang.yaml")
    assert run("submit", one)[2] == ""
    for command in ("submit", "rerun"):
        monkeypatch.setattr(f"subak.cli.live.{command}.is_seen", lambda: True)
    assert run("submit", one, "-o", "json")[2] == ""
    assert run("submit", one)[2] == (
        "subak: subak list shows it; subak logs -f g0-2 follows it; subak cancel g0-2 ends it\n")
    them = "subak: subak list shows them; subak logs -f {} follows one; subak cancel --all ends all\n"
    assert run("submit", one, two)[2] == them.format("g0-3")
    assert run("submit", two, two, two, gang)[2] == (
        f"subak: 3 jobs wait for machines: subak explain g0-6 says what is lacking; {SHARE}\n" + them.format("g0-5"))
    assert run("list")[2].startswith("subak: 3 jobs wait for machines: subak explain g0-8 ")
    assert "wait for" not in run("submit", large)[2]
    assert run("rerun", "--force", "g0-0")[2].startswith("subak: subak list shows it; ")
    run("cancel", "--all", "-y")
    monkeypatch.setattr("subak.live.client.Client.wait", interrupted)
    assert run("submit", one, "--wait")[2] == "subak: g0-11 goes on; subak cancel g0-11 ends it\n"


def test_a_wait_for_several_says_their_ends_in_order(serving, run, write):
    files = [write(job("[sleep]", name), f"{name}.yaml") for name in ("first", "last", "middle", "middle")]
    service = serving.services["g0"]
    for number, (id, code) in enumerate((("g0-2.0", 1), ("g0-3.0", 1), ("g0-0.0", 0), ("g0-1.0", 0))):
        later(serving, service.finish(id, code), 1 + 0.1 * number)
    code, _, err = run("submit", *files, "--wait")
    assert (code, err.splitlines()) == (1, [
        "subak: g0-2 failed: exit code 1; subak logs g0-2 shows its output",
        "subak: g0-3 failed: exit code 1; subak logs g0-3 shows its output",
        "subak: g0-0 first finished", "subak: g0-1 last finished"])


def test_rerun_submits_what_was_submitted(serving, run, write, tmp_path, monkeypatch):
    """With its script as it was, its environment and folder, to its queue and by its name."""
    monkeypatch.chdir(tmp_path)
    script = write("#!/usr/bin/env python3\nprint('then')\n", "train.py")
    run("submit", script, "--queue", "web", "-e", "SEED=7", "--array", "0-3", "--cpu", "2", "--time-limit", "1h")
    stages = "stages: [{name: a, command: [x]}, {name: b, command: [y], depends_on: [a]}]\n"
    run("submit", write(job(more=stages).replace("command: ['true']\n", "")))
    script.unlink()
    assert run("rerun", "g0-0", "g0-1", "--force") == (0, "g0-2 train submitted to web: 4 tasks, as g0-0 was\n"
                                            "g0-3 a submitted to research/ada: 2 tasks, as g0-1 was\n", "")
    jobs = serving.services["g0"].jobs_by_id
    assert jobs["g0-2"].spec == jobs["g0-0"].spec and jobs["g0-3"].spec == jobs["g0-1"].spec
    assert msgspec.json.decode(run("rerun", "g0-2", "--force", "-o", "json")[1])[0]["id"] == "g0-4"
    code, _, err = run("rerun", "g0-99")
    assert (code, err) == (3, "subak: there is no job g0-99\n")


def test_a_job_that_has_not_ended_is_not_run_again_unawares(serving, run, write):
    run("submit", write(job("[sleep]"))), run("submit", write(job(name="b"), "b.yaml"))
    assert run("rerun", "b", "a") == (
        5, "", "subak: nothing was submitted, for g0-0 a is running; --force submits it again, beside that one\n")
    assert run("rerun", "--force", "a")[:2] == (0, "g0-2 a submitted to research/ada: 1 task, as g0-0 was\n")


def test_only_failed_tasks_run_again_with_their_numbers(serving, run, write):
    """And of those again only the ones that failed again."""
    words = '[sh, -c, "echo $SUBAK_TASK_INDEX $1 >&2", x, two]'
    service = serving.services["g0"]
    run("submit", write(job(words, "sweep", "tasks: 12\nresources: {cpu: 100m}\n")))
    for index in range(12):
        serving.do(service.finish(f"g0-0.{index}", int(index in (3, 10, 11))))
    assert run("rerun", "--failed", "sweep") == (
        0, "g0-1 sweep submitted to research/ada: 3 tasks, as g0-0 (of which 3, 10, 11 failed) was\n", "")

    def numbers(id):
        stage, = service.jobs_by_id[id].spec.stages
        return [subprocess.run(stage.command, env={**os.environ, "SUBAK_TASK_INDEX": str(index)}, check=True,
                               stderr=subprocess.PIPE).stderr.decode() for index in range(stage.tasks)]

    assert numbers("g0-1") == ["3 two\n", "10 two\n", "11 two\n"]
    assert service.jobs_by_id["g0-1"].spec.stages[0].resources == {"cpu": 100}
    for index in range(3):
        serving.do(service.finish(f"g0-1.{index}", int(index == 2)))
    run("rerun", "--failed", "sweep")
    assert numbers("g0-2") == ["11 two\n"]
    serving.do(service.finish("g0-2.0", 1))
    assert run("rerun", "--failed", "g0-2")[1] == "g0-3 sweep submitted to research/ada: 1 task, as g0-2 was\n"
    serving.do(service.finish("g0-3.0"))
    assert run("rerun", "--failed", "sweep") == (
        1, "", "subak: g0-3 sweep: no task has failed, so none runs again\n")
    stages = "stages: [{name: a, command: ['false'], tasks: 2}, {name: b, command: [y]}]\n"
    run("submit", write(job(more=stages, name="two").replace("command: ['true']\n", "")))
    serving.do(service.finish("g0-4.2"))
    assert run("rerun", "--failed", "two")[0::2] == (
        2, "subak: --failed: goes with jobs of one stage, and no gang, and g0-4 is another; subak rerun two runs all "
           "its tasks again\n")


def test_what_has_not_ended_is_skipped_where_failed_tasks_run_again(serving, run, write):
    service = serving.services["g0"]
    for name in ("a", "b", "c"):
        run("submit", write(job("[sleep]", name, "tasks: 3\nresources: {cpu: 100m}\n")))
    for index, code in enumerate((1, 0, 0)):
        serving.do(service.finish(f"g0-1.{index}", code))
    assert run("rerun", "--failed", "a", "b") == (
        0, "g0-3 b submitted to research/ada: 1 task, as g0-1 (of which 0 failed) was\n",
        "subak: g0-0 a is running, and is left alone\n")
    serving.do(service.finish("g0-0.2", 1))
    left = ("subak: g0-0 a is running, and is left alone; --force runs again, beside it, what has failed of it so far: "
            "1 task\n")
    assert run("rerun", "--failed", "a") == (1, "", left)
    assert run("rerun", "--failed", "--force", "a")[:2] == (
        0, "g0-4 a submitted to research/ada: 1 task, as g0-0 (of which 2 failed) was\n")
    code, out, err = run("rerun", "--failed", "absent", "g0-1")  # what cannot run again is named, and the others run
    assert (code, out[:5], err) == (3, "g0-5 ", "subak: there is no job called absent\n")


def test_all_that_failed_runs_again_by_the_latest_run_of_each_name(serving, run, write, monkeypatch):
    service = serving.services["g0"]

    def ran(name, code=None, more=""):
        run("submit", write(job("[sleep]", name, f"resources: {{cpu: 10m}}\n{more}")))
        if code is not None:
            id = max(service.jobs_by_id, key=lambda id: int(id.partition("-")[2]))
            serving.do(service.finish(f"{id}.0", code))

    ran("mended", 1), ran("mended", 0), ran("fails", 0), ran("fails", 1), ran("runs", 1), ran("runs"), ran("good", 0)
    run("submit", write(job("[sleep]", "other").replace("research/ada", "web")))
    ran("other", 1)
    ran("stopped"), run("cancel", "stopped")
    run("submit", write(job(name="wide", more="stages: [{name: a, command: [x]}, {name: b, command: [y]}]\n").replace(
        "command: ['true']\n", "")))
    assert run("rerun", "--failed") == (
        0, "g0-11 fails submitted to research/ada: 1 task, as g0-3 was\n"
           "g0-12 other submitted to research/ada: 1 task, as g0-8 was\n",
        "subak: left alone, for the latest run finished: mended\n"
        "subak: left alone, for the latest run has not ended: wide, other, runs\n"
        "subak: left alone, for the latest run was cancelled: stopped\n")
    code, out, err = run("rerun", "--failed")  # all of it runs by now
    assert (code, out) == (1, "") and err.endswith("of no job of yours has the latest run failed, so nothing runs "
                                                   "again\n")
    for id in ("g0-11", "g0-12"):
        serving.do(service.finish(f"{id}.0", 1))
    monkeypatch.setattr("subak.cli.live.rerun.UNASKED_MAX", 1)
    code, _, err = run("rerun", "--failed")
    assert code == 2 and err.endswith("subak: nothing was submitted; --yes runs 2 jobs again without asking\n")
    code, out, _ = run("rerun", "--failed", "--yes")
    assert (code, out.count("submitted")) == (0, 2)
    for index in range(2):
        serving.do(service.finish(f"g0-10.{index}", int(not index)))
    code, out, err = run("rerun", "--failed", "--yes")
    assert (code, out) == (2, "") and err.endswith("g0-10 is another; subak rerun wide runs all its tasks again\n")
    for wrong in ((), ("--yes", "fails"), ("--failed", "--force"), ("--yes",)):
        assert run("rerun", *wrong)[0] == 2
    serving.stop("g1")
    assert run("rerun", "--failed")[0] == 4  # which may keep a later run


def test_jobs_of_others_do_not_run_again_unless_they_are_named(serving, run, write):
    run("submit", write(job("['false']", "mine")))
    service = serving.services["g0"]
    run("submit", write(job("['false']", "theirs")))
    service.jobs_by_id["g0-1"].user = "somebody"
    assert run("rerun", "--failed")[1] == "g0-2 mine submitted to research/ada: 1 task, as g0-0 was\n"


def test_a_job_is_called_by_its_name_where_no_other_has_it(serving, run, write, monkeypatch):
    for name in ("train_0", "train_1", "lab-1", "twice", "twice", "lab.3"):
        run("submit", write(job("[echo, hello]", name)))
    assert run("logs", "train_0", "g0-1") == (0, "hello\nhello\n", (
        "subak: task g0-0.0 of train_0:\nsubak: task g0-1.0 of train_1:\n"))
    assert run("logs", "train_1.0", "lab-1") == (0, "hello\nhello\n", (
        "subak: task g0-1.0:\nsubak: task g0-2.0 of lab-1:\n"))
    assert run("describe", "train_1")[1].startswith("g0-1 train_1: ")
    assert run("describe", "lab.3")[1].startswith("g0-5 lab.3: ")  # and not task 3 of lab
    assert run("describe", "m0")[1].startswith("m0: ")
    assert run("history", "train_0")[1].startswith("g0-0 train_0: ")
    assert run("explain", "train_0.0")[1].startswith("g0-0.0 ")
    assert run("rerun", "lab-1")[1] == "g0-6 lab-1 submitted to research/ada: 1 task, as g0-2 was\n"
    assert run("watch", "absent")[0::2] == (3, "subak: there is no job called absent\n")
    assert run("preempt", "absent.1")[0::2] == (3, "subak: there is no job called absent.1\n")
    assert run("describe", "absent")[0] == 3


def test_of_several_jobs_of_a_name_the_open_one_is_meant_or_else_the_latest(serving, run, write):
    twice = write(job("[sleep]", "twice"))
    for _ in range(3):
        run("submit", twice)
    for command in ("logs", "watch", "history", "explain", "describe", "cancel"):
        code, out, err = run(command, "twice")
        assert (code, out) == (2, "")
        assert err == ("subak: 3 open jobs are called twice: g0-2 (running), g0-1 (running), g0-0 (running); "
                       "give an id\n")
    assert run("rerun", "--force", "twice")[1] == "g0-3 twice submitted to research/ada: 1 task, as g0-2 was\n"
    run("cancel", "g0-0", "g0-2", "g0-3")
    assert run("describe", "twice")[1:] == run("describe", "g0-1")[1:]
    assert run("preempt", "twice.0")[1].startswith("g0-1.0 preempted")
    assert run("cancel", "twice")[1].startswith("g0-1 twice is cancelled")
    code, out, err = run("describe", "twice")
    assert (code, out[:5], err) == (0, "g0-3 ", "subak: all jobs called twice have ended; this is g0-3, the latest\n")
    assert json.loads(run("describe", "twice.0", "-o", "json")[1])["id"] == "g0-3.0"
    for arguments in (("cancel", "twice"), ("preempt", "twice.0")):
        assert run(*arguments) == (5, "", "subak: all jobs called twice have ended, g0-3 the latest\n")
    for _ in range(6):
        run("submit", twice)
    err = run("logs", "twice")[2]
    assert err.startswith("subak: several open jobs are called twice: g0-9 ") and ", ...; give an id" in err


@pytest.mark.parametrize(("arguments", "words"), [
    (("rerun", "sweep.1"), "JOB: takes whole jobs, and sweep.1 is a task of sweep"),
    (("watch", "sweep.1"), "JOB: takes whole jobs, and sweep.1 is a task of sweep"),
    (("rerun", "g0-0.1"), "JOB: takes whole jobs, and g0-0.1 is a task"),
    (("preempt", "lab.3"), "TASK: takes tasks, and lab.3 is a job; lab.3.0 is its first task")])
def test_a_task_is_no_job_and_a_job_no_task(serving, run, write, arguments, words):
    run("submit", write(job(name="sweep", more="tasks: 2\n")))
    run("submit", write(job(name="lab.3")))
    assert run(*arguments) == (2, "", f"subak: {words}\n")


def test_a_script_stands_for_its_job_and_a_mistyped_name_gets_a_hint(serving, run, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("submit", write("#!/bin/sh\ntrue\n", "train_0.py"), "--queue", "web")
    for name in ("train_0.py", "./train_0.py", str(tmp_path / "train_0.py")):
        assert run("history", name)[1].startswith("g0-0 train_0: "), name
    assert run("describe", "train_0.py")[1].startswith("g0-0 train_0: ")
    assert run("explain", "train_0.py")[1].startswith("g0-0.0 ")
    for arguments, code in ((("logs", "train0"), 3), (("rerun", "train_O"), 3), (("cancel", "trian_0"), 3)):
        assert run(*arguments) == (
            code, "", f"subak: there is no job called {arguments[1]}; did you mean 'train_0'?\n")
    assert run("describe", "tran_0")[2] == (
        "subak: there is no job called tran_0, and no machine; did you mean 'train_0'?\n")
    assert run("logs", "other.py")[2] == "subak: there is no job called other.py\n"
    for long in (f"{'a' * 63}-7", f"train_0.{'1' * 12}"):  # which no service takes as a name or an id
        code, _, err = run("watch", long)
        assert code == 3 and "matching regex" not in err, err


def test_a_name_is_not_trusted_while_a_master_cannot_be_asked(serving, run, write):
    run("submit", write(job()))
    assert run("explain", "a")[0] == 0
    serving.stop("g1")
    code, out, err = run("explain", "a")
    assert (code, out) == (4, "")
    assert err.startswith("subak: names are unknown while a master cannot be asked: g1: ")
    assert run("explain", "g0-0")[0] == 0


def test_a_key_is_one_job(serving, run, write):
    file = write(job())
    for _ in range(2):
        assert run("submit", file, "--key", "nightly")[1].startswith("g0-0 ")
    code, out, err = run("submit", write(job(name="other")), "--key", "nightly")
    assert (code, out) == (5, "")
    assert err.startswith("subak: nightly was used for job g0-0")
    assert run("submit", file, file, "--key", "x")[0] == 2


def test_standard_input_is_a_file(serving, run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(job().encode())))
    assert run("submit", "-")[1].startswith("g0-0 a submitted")


def test_mistakes_of_a_job_file_are_one_line_with_file_and_line(serving, run, write):
    file = write("metadata: {name: a}\nqueue: web\ncommand: [x]\nresources: {memory: 4gigs}\n")
    code, out, err = run("submit", file)
    assert (code, out) == (2, "")
    assert "job.yaml:4: resources.memory" in err
    assert err.count("\n") == 1


def test_all_mistakes_of_a_job_file_are_said_a_line_each(serving, run, write):
    file = write("metadata: {name: a}\nqueu: web\ncommand: x\ntasks: many\nstages:\n  - {name: b, tasks: 0}\n")
    code, out, err = run("submit", file)
    assert (code, out) == (2, "")
    assert [line.partition("job.yaml:")[2].partition(": must")[0] for line in err.splitlines()] == [
        "2: queu: there is no such field; is queue meant?", "3: command", "4: tasks", "6: stages[0].tasks",
        "6: stages[0].command"]


def test_submit_names_the_tasks_that_did_not_finish(serving, run, write):
    run("submit", write(job("[sleep]", more="tasks: 8\n")), "--key", "k")
    service = serving.services["g0"]

    async def go():
        await service.cancel("g0-0.6")
        for index in (0, 1, 2, 4, 5, 7):
            await service.finish(f"g0-0.{index}")
        await service.finish("g0-0.3", 4)

    later(serving, go())
    code, _, err = run("submit", write(job("[sleep]", more="tasks: 8\n")), "--wait", "--key", "k")
    assert code == 1
    assert err.splitlines() == [
        "subak: g0-0 a failed: 6 finished, 1 failed, 1 cancelled; subak logs g0-0 shows its output",
        "subak: g0-0.3 failed: exit code 4",
        "subak: g0-0.6 cancelled: cancelled by its user"]


def test_what_no_machine_is_large_enough_for_is_warned_of_or_refused(serving, run, write):
    words = "it can never run: it asks for cpu 64, the largest machine has cpu 4"
    file = write(job(more="resources: {cpu: 64}\n"))
    assert run("submit", file, "--strict") == (2, "", f"subak: {words}\n")
    assert run("run", "--strict", "--cpu", "64", "--", "true")[0::2] == (125, f"subak: {words}\n")
    assert not serving.services["g0"].jobs_by_id
    code, out, err = run("submit", file)
    assert (code, out) == (0, "g0-0 a submitted to research/ada: 1 task\n")
    cure = ("subak: ask for less (subak cancel, then again with a smaller --cpu or --memory); or make a machine "
            "larger: change [capacity] in its worker-*.toml, beside client.toml, then subak "
            "down and subak up\n")
    assert err == f"subak: g0-0: warning: {words}\n{cure.replace('subak: ', 'subak: --strict refuses such a job; ', 1)}"
    assert run("submit", write(job(more="resources: {cpu: 4}\n")), "--strict") == (
        0, "g0-1 a submitted to research/ada: 1 task\n", "")
    _, shown, err = run("list")
    assert err == cure
    reason = "no machine is large enough: it asks for cpu 64, the largest machine has cpu 4"
    assert reason in " ".join(shown.split())
    assert shown.count("large enough") == 1
    _, why, err = run("explain", "g0-0")
    assert why.splitlines()[:2] == ["g0-0.0 waits", f"why  it waits: {reason}"]
    assert err == cure


# -- a script ----------------------------------------------------------------------------------------------------------


def test_a_script_becomes_the_job_that_the_options_say(serving, run, write):
    text = "#!/usr/bin/env -S python3 -u\nprint('$HOME \\\\ `x`')\n"
    file = write(text, "train.py")
    code, out, _ = run("submit", file, "--array", "0-9", "--cpu", "500m", "--memory", "2Gi",
                       "--gpus", "1", "--retries", "2", "--queue", "web", "-e", "A=b")
    assert (code, out) == (0, "g0-0 train submitted to web: 10 tasks\n")
    (stage,) = serving.services["g0"].jobs_by_id["g0-0"].spec.stages
    assert stage.command[:2] == ("/bin/sh", "-c")
    assert stage.command[3:] == (text, str(file.parent), "/usr/bin/env", "-S python3 -u")
    assert (stage.tasks, stage.retries, stage.env) == (10, 2, {"PYTHONUNBUFFERED": "1", "A": "b"})
    assert stage.resources == {"cpu": 500, "memory": 2048, "gpu": 1}


@pytest.mark.parametrize(("text", "arguments", "words"), [
    ("#!bin/sh\n", (), "x.sh:1: must name an interpreter by its path, such as #!/bin/sh, not '#!bin/sh'"),
    ("#!\n", (), "x.sh:1: must name an interpreter"), ("#!/bin/sh\r\n", (), "x.sh:1: must end its lines"),
    ("#!/bin/sh\n", ("--array", "1-10"), "--array: must be 0-N, such as 0-9 for ten tasks"),
    ("#!/bin/sh\n", ("--array", "0-3", "-n", "4"), "--array: says the same as --tasks"),
    ("#!/bin/sh\n", ("-n", "0"), "tasks: must be a whole number from 1"),
    ("#!/bin/sh\n", ("--cpu", "2", "-r", "cpu=3"), "--cpu: --resource cpu=3 says it already"),
    ("#!/bin/sh\n", ("--memory", "512"), "resources.memory: must be a quantity such as 512Mi"),
    ("#!/bin/sh\n", ("--gpus", "half"), "resources.gpu: must be a whole number"),
    ("#!/bin/sh\n" + "x" * 140_000, (), "command[3]: must be text of at most 131,071 bytes"),
])
def test_what_no_script_can_be_is_one_line(serving, run, write, text, arguments, words):
    code, out, err = run("submit", write(text, "x.sh"), *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert not serving.services["g0"].jobs_by_id


def test_a_job_file_says_all_of_its_job(serving, run, write):
    code, _, err = run("submit", write(job()), "--cpu", "2")
    assert code == 2 and "job.yaml: is a job file, and says resources itself" in err


def test_scripts_without_an_interpreter_are_run_where_they_lie(serving, run, write):
    """`subak submit *.py --cpu 0.25`: a job for each, called by the script, four of which share a core."""
    files = [write("print(1)\n", name) for name in ("a.py", "b.py", "c.sh")]
    code, out, _ = run("submit", *files, "--cpu", "0.25")
    assert (code, out.splitlines()) == (0, [
        f"g0-{number} {name} submitted to research: 1 task" for number, name in enumerate("abc")])
    stages = [job.spec.stages[0] for job in serving.services["g0"].jobs_by_id.values()]
    assert [stage.command for stage in stages] == [
        ("python3", str(files[0])), ("python3", str(files[1])), ("sh", str(files[2]))]
    assert [stage.resources["cpu"] for stage in stages] == [250] * 3


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", f"#!{sys.executable} -B", "#!/usr/bin/env -S python3 -B"])
def test_a_script_of_python_that_travels_finds_the_modules_beside_it(serving, run, write, tmp_path, monkeypatch, first):
    """First of all, as where it lies; and then those of PYTHONPATH. Of a link it is those beside the file."""
    for name, words in (("lab/helpers.py", "a"), ("other/helpers.py", "b"), ("other/more.py", "c")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"words = {words!r}\n")
    file = write(f"{first}\nimport helpers, more\nprint(helpers.words, more.words)\n", "lab/train.py")
    (tmp_path / "link.py").symlink_to(file)
    monkeypatch.chdir(tmp_path)
    run("submit", "lab/train.py", "link.py")
    file.write_text("raise SystemExit(1)\n")  # its text is that of its submission
    for spec in (each.spec for each in serving.services["g0"].jobs_by_id.values()):
        done = subprocess.run(spec.stages[0].command, capture_output=True, text=True, check=False, cwd="/",
                              env={**os.environ, "PYTHONPATH": str(tmp_path / "other")})
        assert (done.returncode, done.stdout, done.stderr) == (0, "a c\n", "")


def test_a_script_of_another_language_gets_no_folder(serving, run, write):
    run("submit", write("#!/bin/sh\necho $PYTHONPATH\n", "a.sh"))
    assert serving.services["g0"].jobs_by_id["g0-0"].spec.stages[0].command == (
        "/bin/sh", "-c", FEED, "#!/bin/sh\necho $PYTHONPATH\n", "/bin/sh")


# -- a script, and what follows it -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "command", "name"), [
    (("t.py", "--epochs", "3", "--help"), ("python3", "HERE/t.py", "--epochs", "3", "--help"), "t"),
    (("t.py", "--", "--epochs", "3", "--", "x"), ("python3", "HERE/t.py", "--epochs", "3", "--", "x"), "t"),
    (("--", "t.py", "-n", "3"), ("python3", "HERE/t.py", "-n", "3"), "t"),
    (("s.py",), ("/usr/bin/env", "-S python3 -u", "HERE/s.py"), "s"),
    (("./x.sh", "a"), ("./x.sh", "a"), "x"),  # which a shell would find, too
    (("python3", "-O", "t.py", "--", "a.sh"), ("python3", "-O", "t.py", "--", "a.sh"), "t"),
    (("/opt/bin/python3.11", "-m", "lab.train"), ("/opt/bin/python3.11", "-m", "lab.train"), "lab.train"),
    (("absent.py", "--", "x"), ("absent.py", "--", "x"), "absent"), (("git", "log", "--", "t.py"), None, "git"),
    (("python3",), None, "python3"), (("n" * 300 + ".py",), None, "n" * 63),
])
def test_what_follows_a_script_goes_to_it(serving, run, write, monkeypatch, words, command, name):
    here = write("#!/bin/sh\n", "x.sh").parent
    monkeypatch.chdir(here)
    write("import sys\n", "t.py"), write("#!/usr/bin/env -S python3 -u\n", "s.py")
    (here / "x.sh").chmod(0o755)
    assert run("run", "--detach", *words)[:2] == (0, "g0-0\n")
    spec = serving.services["g0"].jobs_by_id["g0-0"].spec
    expected = words if command is None else tuple(word.replace("HERE", str(here)) for word in command)
    assert (spec.stages[0].command, spec.metadata.name) == (expected, name)


@pytest.mark.parametrize(("words", "said", "taken"), [
    (("t.py", "--cpu", "0.25"), "--cpu 0.25", "1 core"), (("t.py", "x", "--name=y", "--cpu", "1"), "--name=y", ""),
    (("--cpu", "2", "t.py", "--cpu=0.25"), "--cpu=0.25", "--cpu 2"),
    (("t.py", "--array", "0-3"), "--array 0-3", "1 task"),
    (("--tasks", "2", "t.py", "--tasks", "3"), "--tasks 3", "--tasks 2"),
    (("t.py", "--strict", "--x"), "--strict", ""), (("t.py", "--", "--cpu", "1"), "", ""),
    (("--", "t.py", "--cpu", "1"), "", ""), (("--cpu", "1", "t.py", "--epochs", "3"), "", ""),
    (("make", "--cpu", "1"), "", "")])
def test_an_option_behind_a_script_is_said_to_go_to_it(serving, run, write, monkeypatch, words, said, taken):
    """And what the job takes instead."""
    monkeypatch.chdir(write("import sys\n", "t.py").parent)
    assert run("run", "--detach", *words) == (0, "g0-0\n", said and (
        f"subak: {said} is given to t.py{', and the job takes ' * bool(taken)}{taken}; put Subak's options before "
        "the script (a -- behind it says that all others are its own)\n"))


def test_a_variable_without_a_value_is_that_of_the_shell(serving, run, write, monkeypatch):
    monkeypatch.chdir(write("import sys\n", "t.py").parent)
    monkeypatch.setenv("DEVICES", "0,1=x")
    assert run("submit", "t.py", "-e", "DEVICES", "-e", "SEED=7", "-e", "EMPTY=")[0] == 0
    assert dict(serving.services["g0"].jobs_by_id["g0-0"].spec.stages[0].env) == {
        "DEVICES": "0,1=x", "SEED": "7", "EMPTY": "", "PYTHONUNBUFFERED": "1"}
    assert run("submit", "t.py", "-e", "ABSENT") == (
        2, "", "subak: --env: ABSENT is not set here; set it, or give ABSENT=VALUE\n")
    assert run("submit", "t.py", "-e", "")[0] == 2


def test_another_python_than_that_of_this_shell_is_said(serving, run, write, tmp_path, monkeypatch):
    """Where a script looks for it by PATH, and the federation is one of `subak up` on this machine."""
    monkeypatch.chdir(tmp_path)
    write("import sys\n", "t.py"), write("#!/usr/bin/env python3\n", "e.py"), write("#!/bin/sh\n", "t.sh")
    write(f"#!{sys.executable}\n", "named.py")
    folder = tmp_path / "subak-federation"
    for each in (folder, tmp_path / "theirs", tmp_path / "ours"):
        each.mkdir()
        (each / "python3").touch(0o755)
    (folder / "people.token").write_text(serving.token)
    (folder / "people.token").chmod(0o600)
    (folder / "client.toml").write_text(f'address = "{serving.addresses["g0"]}"\ntoken_file = "people.token"\n')
    monkeypatch.delenv("SUBAK_ADDRESS")
    monkeypatch.delenv("SUBAK_TOKEN")
    monkeypatch.setenv("PATH", f"{tmp_path / 'ours'}:/bin")
    line = (f"subak: it runs with {tmp_path}/theirs/python3, of the shell in which subak up was started, and not with "
            f"{tmp_path}/ours/python3, of this one: -e PATH takes this one\n")
    assert run("submit", "t.py")[2] == ""  # nothing is known
    with subprocess.Popen(["/bin/sleep", "60"], env={"PATH": f"{tmp_path / 'theirs'}:/bin"}) as up:
        (folder / "up.pid").write_text(f"{up.pid} 1 ready\n")
        try:
            for words, said in (
                    (("submit", "t.sh", "t.py", "e.py"), line), (("run", "-d", "t.py"), line),
                    (("run", "-d", "python3", "t.py"), line), (("submit", "-e", "PATH", "t.py"), ""),
                    (("submit", "t.sh", "named.py"), ""), (("run", "-d", "sleep"), ""),
                    (("run", "-d", sys.executable, "t.py"), "")):
                assert run(*words)[0::2] == (0, said)
            monkeypatch.setenv("PATH", f"{tmp_path / 'theirs'}:/bin")
            assert run("submit", "t.py")[2] == ""
        finally:
            up.kill()


@pytest.mark.parametrize(("words", "begin"), [
    (("t.py", "--epochs", "3"), "No such option: --epochs; a script"),
    (("t.py", "--", "--epochs"), "--epochs: is no file"),
    (("t.py --epochs 3",), "t.py --epochs 3: is no file; a script")])
def test_submit_says_how_a_script_gets_arguments(serving, run, write, monkeypatch, words, begin):
    monkeypatch.chdir(write("import sys\n", "t.py").parent)
    code, out, err = run("submit", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"subak: {begin}")
    assert "a script with arguments is submitted by subak run --detach train.py --epochs 3" in err


@pytest.mark.parametrize(("words", "said"), [
    (("submit", "t.py", "-h"), "No such option: -h (see"), (("submit", "t.py", "-c", "2"), "-c; is --cpu meant? (see"),
    (("submit", "t.py", "-cpu", "0.25"), "-c; is --cpu meant? (see"),
    (("submit", "t.py", "--cpus", "2"), "--cpus (Possible options: --cpu, --gpus) (see"),
    (("submit", "--cpu", "1", "t.py", "--epochs", "3"), "--epochs; a script with arguments"),
    (("submit", "t"), "no file t here; is t.py meant?"), (("submit", "absent"), "no file absent here\n"),
    (("submit", "python", "t.py"), "python: is no file, but a command; subak run -- python SCRIPT runs it"),
    (("submit", "python t.py"), "python t.py: is no file, but a command; subak run -- python t.py runs it"),
    (("run", "python t.py"), "'python t.py': is one word, and no shell reads it; subak run -- python t.py"),
    (("list", "--failed"), "No such option: --failed; is --state failed meant?"),
    (("list", "--state", "fail"), "Invalid value for '--state': 'fail' is not one of"),
    (("list", "a", "--name", "a"), "--name: goes without JOB"),
    (("up", "-detach"), "is --detach meant?"),
    (("up", "detach"), "detach: is the name of a folder here; is --detach meant?")])
def test_what_is_mistyped_gets_what_is_meant(serving, run, write, monkeypatch, words, said):
    monkeypatch.chdir(write("import sys\n", "t.py").parent)
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert said in err


def test_a_script_that_a_program_would_not_find_is_said(serving, run, write, monkeypatch):
    monkeypatch.chdir(write("import sys\n", "train_1.py").parent)
    said = "subak: there is no file train_2.py here; is train_1.py meant?\n"
    for words, line in ((("python", "train_2.py"), said), (("python3", "-u", "train_2.py"), said),
                        (("--workdir", "/", "python", "train_2.py"), ""), (("python", "train_1.py"), ""),
                        (("make", "train_2.py"), ""), (("python", "-m", "lab"), "")):
        assert run("run", "--detach", *words)[0::2] == (0, line)


def test_run_says_at_a_terminal_what_submit_says(serving, run, monkeypatch):
    assert run("run", "--detach", "--", "sleep")[1] == "g0-0\n"  # for scripts
    monkeypatch.setattr("subak.cli.live.submit.is_seen", lambda: True)
    assert run("run", "--detach", "--queue", "web", "--", "sleep")[1] == "g0-1 sleep submitted to web: 1 task\n"


def test_list_takes_names_and_ids(serving, run, write):
    for name in ("a", "b", "a", "c-0"):
        run("submit", write(job(name=name)))

    def listed(*words):
        return [line.split()[0] for line in run("list", *words)[1].splitlines()[1:]]

    assert listed("a") == ["g0-2", "g0-0"] and listed("a", "b.py") == ["g0-2", "g0-1", "g0-0"]
    assert listed("g0-1", "a", "--limit", "2") == ["g0-2", "g0-1"]
    assert listed("c-0") == ["g0-3"] and listed("absent") == []
    assert listed("a", "g0-1", "--state", "failed") == []


@pytest.mark.parametrize(("outcome", "reason", "words"), [
    ("failed", "it failed with exit code 1", "failed: exit code 1"), ("finished", "", "finished"),
    ("cancelled", "cancelled by a user", "cancelled by a user"), ("lost", "it left", "lost: it left")])
def test_how_something_ended_is_said_once(outcome, reason, words):
    assert outcome_text(outcome, reason) == words
    view = {"id": "g0-1", "name": "a", "queue": "q", "version": 1}
    ended = {**view, "state": "ended", "outcome": outcome, "reason": reason}
    assert _line(JobView(**ended, tasks=1, counts=TaskCounts(failed=1))) == f"g0-1 a {words}"
    several = _line(JobView(**ended, tasks=2, counts=TaskCounts(failed=2)))
    assert several.startswith(f"g0-1 a {outcome}") and several.endswith(": 2 failed") and several.count(outcome) <= 2
    assert _line(JobView(**view, state="running", tasks=1, counts=TaskCounts(backoff=1))) == "g0-1 a running: 1 backoff"


def test_a_script_that_cannot_be_read_is_one_line(serving, run, write, monkeypatch):
    file = write("x\n", "t.py")

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("subak.cli.live.scripts.Path.open", denied)  # as root may read all
        assert run("run", file) == (2, "", f"subak: {file}: cannot be read: Permission denied\n")


@pytest.mark.parametrize(("options", "value"), [((), "1"), (("-e", "PYTHONUNBUFFERED="), ""), (("-e", "A=1"), "1")])
def test_python_keeps_nothing_back_unless_it_is_told_to(serving, run, options, value):
    run("run", "--detach", *options, "--", "make")
    assert serving.services["g0"].jobs_by_id["g0-0"].spec.stages[0].env["PYTHONUNBUFFERED"] == value


def test_run_says_what_it_waits_for_where_no_machine_is_large_enough(serving, run):
    later(serving, serving.services["g0"].cancel("g0-0"), 1.5)
    code, _, err = run("run", "--cpu", "64", "--", "true")
    assert (code, err.splitlines()[2]) == (130, (
        "subak: g0-0 waits: no machine is large enough: it asks for cpu 64, the largest machine has cpu 4; Ctrl-C "
        "cancels it"))


@pytest.mark.parametrize(("request_", "words"), [
    ({"cpu": 250}, "4 tasks of --cpu 250m share a core already; with a smaller --cpu more do"),
    ({"cpu": 600, "tasks": 1}, "one task of --cpu 600m keeps a core to itself; with --cpu 0.5 two share one"),
    ({"cpu": 1000}, 'with --cpu 0.25 four tasks share a core (docs/jobs.md, "Sharing a core")'),
    ({"cpu": 4000}, "each task keeps 4 cores, however many threads it starts; with a smaller --cpu more run at once"),
    ({"cpu": 1000, "memory": 9}, ""), ({"memory": 9}, ""), ({}, "")])
def test_each_share_of_a_core_has_its_sentence(request_, words):
    assert cores_text(request_) == words


def test_machines_that_have_as_much_free_are_one_entry():
    """A job waits that finds no place behind those above it, wherever the machines are counted together."""
    def placed(stages, *free):
        left = [Free(amounts={"cpu": cpu, "tasks": 9}, machines=count) for cpu, count in free]
        return [_place(StageView(name="a", tasks=tasks, request={"cpu": cpu}, gang=gang), left)
                for tasks, cpu, gang in stages], [(alike.amounts["cpu"], alike.machines) for alike in left]

    assert placed([(5, 2, False)], (4, 3)) == ([5], [(0, 2), (2, 1)])
    assert placed([(7, 2, False), (1, 1, False)], (4, 3), (1, 9)) == ([6, 1], [(0, 3), (0, 1), (1, 8)])
    assert placed([(7, 2, True)], (4, 3)) == ([0], [(4, 3)])
    assert placed([(1, 2, False)], (1, 9)) == ([0], [(1, 9)])


SHARE = 'with --cpu 0.25 four tasks share a core (docs/jobs.md, "Sharing a core")'


def test_who_waits_for_full_machines_is_told_how_to_share_them(serving, run, monkeypatch):
    """`run` says so after a while, `list` below the table; not of jobs that ask for little, or that run."""
    run("run", "--detach", "-n", "13", "--", "sleep")
    assert run("list")[2] == ""
    monkeypatch.setattr("subak.cli.live.submit.FULL_S", 0.1)
    service = serving.services["g0"]

    async def go():
        await service.cancel("g0-0")
        await service.finish("g0-1.0")

    later(serving, go(), 3.0)
    code, _, err = run("run", "sleep")
    assert (code, err) == (0, f"subak: g0-1 waits for machines: subak explain g0-1 says what is lacking; {SHARE}\n")
    run("run", "--detach", "-n", "12", "--", "sleep")
    for _ in range(2):
        run("run", "--detach", "--", "sleep")
    assert run("list")[2] == f"subak: 2 jobs wait for machines: subak explain g0-4 says what is lacking; {SHARE}\n"
    assert run("list", "-o", "json")[2] == ""
    run("cancel", "g0-3", "g0-4")
    run("run", "--detach", "--cpu", "0.25", "-r", "memory=8Gi", "--", "sleep")
    assert run("list")[2] == "subak: g0-5 waits for machines: subak explain g0-5 says what is lacking\n"


def test_a_script_runs_as_its_interpreter_would_run_it():
    """Its text is not read by the shell that hands it over; exit code and signal are its own."""
    text = b"#!/bin/bash -e\nread line\necho \"$line $((1 + 1)) \\\\ `echo x` '$0'\" EOF\nexit 7\n"
    command = from_script(text, "a/b.sh").stages[0].command
    done = subprocess.run(command, input="in\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "in 2 \\ x '/dev/fd/3' EOF\n", "")
    killed = subprocess.run(from_script(b"#!/bin/sh\nkill -9 $$\n", "b").stages[0].command, check=False)
    assert killed.returncode == -9
    long = b"#!/bin/sh\n" + b"# comment\n" * 13_000 + b"exit 3\n"
    assert subprocess.run(from_script(long, "c").stages[0].command, check=False).returncode == 3


# -- run ---------------------------------------------------------------------------------------------------------------


def test_run_shows_the_output_and_ends_with_the_exit_code(serving, run):
    assert run("run", "--queue", "research/ada", "--", "echo", "hello", "--help") == (0, "hello --help\n", "")
    code, out, err = run("run", "--queue", "research/ada", "exit", "7")
    assert (code, out, err) == (7, "", "subak: g0-1.0 failed: exit code 7\n")
    assert run("run", "--queue", "research/ada", "--", "exit", "3")[0] == 3


@pytest.mark.parametrize(("exit_code", "signal", "code", "words"), [
    (None, "SIGKILL", 137, "signal SIGKILL"), (137, "", 137, "exit code 137"),
    (None, "SIGTERM", 143, "signal SIGTERM")])
def test_a_signal_and_an_exit_code_read_differently(serving, run, exit_code, signal, code, words):
    service = serving.services["g0"]

    async def go():
        task = service.jobs_by_id["g0-0"].tasks[0]
        await service.finish(task.id, code)
        task.exit_code, task.signal, task.reason = exit_code, signal, f"it failed with {words}"

    later(serving, go())
    got, _, err = run("run", "--queue", "research/ada", "--", "sleep")
    assert (got, err) == (code, f"subak: g0-0.0 failed: it failed with {words}\n")
    shown = run("describe", "g0-0.0")[1]
    assert (f"exit code  {exit_code}" in " ".join(shown.split("\n")), signal in shown) == (not signal, True)


def test_run_follows_both_streams(serving, run):
    service = serving.services["g0"]

    async def go():
        await service.write("g0-0.0", b"out\n")
        await service.write("g0-0.0", b"err\n", "stderr")
        await service.finish("g0-0.0")

    later(serving, go())
    assert run("run", "--queue", "research/ada", "--", "make") == (0, "out\n", "err\n")


def test_run_asks_for_what_it_is_told_to(serving, run):
    code, out, _ = run("run", "--queue", "research/ada", "-d", "-r", "cpu=500m", "-r", "memory=1Gi", "-e", "A=b=c",
                       "--name", "n", "--time-limit", "90s", "--priority", "5", "--workdir", "/tmp", "--", "sleep", "9")
    assert (code, out) == (0, "g0-0\n")
    spec = serving.services["g0"].jobs_by_id["g0-0"].spec
    (stage,) = spec.stages
    assert (spec.metadata.name, stage.command, stage.env) == (
        "n", ("sleep", "9"), {"PYTHONUNBUFFERED": "1", "A": "b=c"})
    assert stage.resources == {"cpu": 500, "memory": 1024}
    assert (stage.time_limit_s, stage.priority, stage.workdir) == (90.0, 5, "/tmp")


@pytest.mark.parametrize("options", [("-r", "cpu"), ("-r", "cpu=x"), ("-e", "=1"), ("-e", "A=1", "-e", "A=2"),
                                     ("--time-limit", "soon"), ("--priority", "x"), ("--workdir", "n" * 5000)])
def test_what_run_is_told_is_checked(serving, run, options):
    code, out, err = run("run", "--queue", "research/ada", *options, "--", "true")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not serving.services["g0"].jobs_by_id


def test_a_job_of_a_command_line_runs_where_that_was_typed(serving, run, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for option in ((), ("--workdir", "."), ("--workdir", "sub/..")):
        assert run("run", *option, "--", "true")[0] == 0
    assert run("submit", write("#!/bin/sh\ntrue\n", "s.sh"))[0] == 0
    jobs = serving.services["g0"].jobs_by_id.values()
    assert {job.spec.stages[0].workdir for job in jobs} == {str(tmp_path)} and len(jobs) == 4


def test_errors_of_run_are_no_exit_codes_of_commands(serving, run):
    assert run("run", "--queue", "nowhere", "--", "true")[0] == 125
    serving.services["g0"].is_full = True
    assert run("run", "--queue", "research/ada", "--", "true")[0] == 125


def test_run_without_a_queue_goes_to_the_first(serving, run, write):
    assert run("run", "--", "true")[0] == 0
    assert run("submit", write("metadata: {name: a}\ncommand: ['true']\n"))[1] == (
        "g0-1 a submitted to research: 1 task\n")
    service = serving.services["g0"]
    service.weights["default"] = 1.0
    run("run", "true")
    assert [job.spec.queue for job in service.jobs_by_id.values()] == ["research", "research", "default"]


def test_run_of_several_shows_all_and_names_what_failed(serving, run):
    assert run("run", "-n", "2", "--", "echo", "hello") == (0, "hello\nhello\n", "")
    code, _, err = run("run", "--array", "0-21", "exit", "3")
    assert code == 3
    assert err.splitlines()[0] == "subak: g0-1.0 failed: exit code 3"
    assert err.splitlines()[19:] == ["subak: g0-1.19 failed: exit code 3",
                                     "subak: 2 more did not finish; subak describe g0-1 counts them"]


def test_run_that_is_cancelled_or_lost(serving, run):
    later(serving, serving.services["g0"].cancel("g0-0"))
    code, _, err = run("run", "--queue", "research/ada", "--", "sleep")
    assert (code, err) == (130, "subak: g0-0.0 cancelled: cancelled by its user\n")


def test_ctrl_c_cancels_what_runs(serving, run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("threading.Thread.join", interrupted)
        code, _, err = run("run", "--queue", "research/ada", "--", "sleep")
    assert (code, err) == (130, "subak: g0-0 is cancelled\n")
    assert serving.services["g0"].jobs_by_id["g0-0"].view().outcome == "cancelled"


ASKING = {  # the commands of a live federation that ask its masters
    "submit": ("job.yaml",), "run": ("sleep",), "rerun": ("g0-0",), "list": (), "describe": ("g0-0",),
    "logs": ("g0-0",), "watch": ("g0-0",), "cancel": ("g0-0",), "preempt": ("g0-0.0",), "machines": (),
    "cordon": ("m0",), "uncordon": ("m0",), "drain": ("m0",), "history": ("g0-0",), "apply": ("job.yaml",),
    "whoami": (), "audit": ()}
BY_SIGNALS = {"up", "down", "global-master", "local-master", "worker", "store", "people", "init", "doctor", "ca"}


def interrupted(*_arguments, **_more):
    raise KeyboardInterrupt


@pytest.mark.parametrize("word", [*ASKING, "queues", "explain"])
def test_ctrl_c_of_no_live_command_says_that_nothing_was_done(serving, run, write, tmp_path, monkeypatch, word):
    """A master may have done what was asked of it."""
    monkeypatch.chdir(tmp_path)
    write(job())
    monkeypatch.setattr("subak.live.client.transport.Transport.ask", interrupted)
    code, out, err = run(word, *ASKING.get(word, ["g0-0"] if word == "explain" else []))
    assert (code, out, err.count("\n")) == (130, "", 1)
    assert "nothing was written" not in err
    assert {each.name for each in app.COMMANDS if each.panel == app.LIVE} == {*ASKING, *BY_SIGNALS}


def test_ctrl_c_of_a_wait_says_which_jobs_go_on(serving, run, write, monkeypatch):
    files = [write(job("[sleep]", name), f"{name}.yaml") for name in "abcdef"]
    short = write(job(name="short"), "short.yaml")
    monkeypatch.setattr("subak.live.client.Client.wait", lambda self, id, **_: (
        self.job(id) if serving.services["g0"].jobs_by_id[id].is_over else interrupted()))
    assert run("submit", files[0], "--wait")[0::2] == (130, "subak: g0-0 goes on; subak cancel g0-0 ends it\n")
    assert run("submit", short, *files[:2], "--wait")[2] == (
        "subak: g0-1 short finished\nsubak: 2 jobs go on; subak cancel g0-2 g0-3 ends them\n")
    assert run("submit", *files, "--wait")[2] == "subak: 6 jobs go on; subak list shows them\n"
    goes_on = "g0-0 goes on; subak cancel g0-0 ends it\n"
    assert run("watch", "g0-0")[0::2] == (130, f"subak: no longer watched; {goes_on}")
    with monkeypatch.context() as patch:
        patch.setattr("threading.Thread.join", interrupted)
        assert run("logs", "-f", "g0-0")[0::2] == (130, f"subak: no longer followed; {goes_on}")
        err = run("logs", "-f", "g0-0.0", "g0-2.0")[2]
    assert err.endswith("no longer followed; 2 tasks go on; subak cancel g0-0.0 g0-2.0 ends them\n")


def test_ctrl_c_of_logs_names_only_what_goes_on(serving, run, write, monkeypatch):
    run("submit", write(job("[sleep]", "stays"), "a.yaml"), write(job("[sleep]", "gone"), "b.yaml"))

    def meanwhile(*_):
        run("cancel", "g0-1")
        interrupted()

    monkeypatch.setattr("subak.cli.live.follow.follow_together", meanwhile)
    assert run("logs", "-f", "stays", "gone")[0::2] == (
        130, "subak: no longer followed; stays goes on; subak cancel stays ends it\n")
    run("cancel", "stays")
    assert run("logs", "-f", "g0-0", "g0-1")[2].endswith("subak: no longer followed; all have ended\n")


def test_logs_without_a_name_are_those_of_the_latest_job_or_follow_all_that_are_open(serving, run, write, monkeypatch):
    assert run("logs") == (3, "", "subak: there is no job yet: subak submit SCRIPT submits one\n")
    assert run("logs", "-f") == (0, "", "subak: no job is open; subak list shows those that have ended\n")
    run("submit", write(job("[echo, hello]", "first")), write(job("[echo, bye]", "last"), "last.yaml"))
    assert run("logs") == (0, "bye\n", "subak: g0-1 last, the latest job:\n")
    run("submit", *(write(job("[sleep]", name), f"{name}.yaml") for name in ("one", "two")))
    for number, id in enumerate(("g0-2.0", "g0-3.0")):
        later(serving, serving.services["g0"].finish(id, number), 0.5)
    code, _, err = run("logs", "-f")
    assert (code, err.splitlines()[0]) == (1, "subak: follows 2 jobs: one, two")
    assert sorted(err.splitlines()[1:]) == [
        "subak: one finished", "subak: two failed: exit code 1; subak logs two shows its output"]
    run("submit", *(write(job("[sleep]", name), f"{name}.yaml") for name in ("one", "two")))
    monkeypatch.setattr("subak.cli.live.follow.FOLLOWED_MAX", 1)
    assert run("logs", "-f")[0::2] == (
        2, "subak: JOB|TASK: must be given where more than 1 jobs are open, and 2 are\n")


def test_ctrl_c_of_many_logs_asks_for_all_jobs_at_once(serving, run, write, monkeypatch):
    run("submit", *(write(job("[sleep]", f"j{number}"), f"{number}.yaml") for number in range(30)))
    asked, ask = [], Transport.ask

    def meanwhile(*_):
        monkeypatch.setattr(Transport, "ask", lambda self, question, *more: (
            asked.append(question.path), ask(self, question, *more))[1])
        interrupted()

    monkeypatch.setattr("subak.cli.live.follow.follow_together", meanwhile)
    assert run("logs", "-f")[2].endswith("no longer followed; 30 jobs go on; subak list shows them\n")
    assert asked == ["/v1/masters", "/v1/jobs", "/v1/jobs"]  # of two masters


@pytest.mark.parametrize(("id", "typed", "words"), [
    ("g0-1", "", "g0-1"), ("g0-1", "train", "train"), ("g0-1", "a b.py", "'a b.py'"), ("g0-1.3", "train", "train.3"),
    ("g0-1.3", "train.3", "train.3"), ("g0-1.3", "train.py", "g0-1.3"), ("g0-1.3", "", "g0-1.3")])
def test_a_hint_calls_a_job_as_the_user_did(id, typed, words):
    assert hint("logs -f", id, typed) == f"subak logs -f {words}"


def test_every_hint_about_a_job_is_worded_in_one_place():
    """No other text of the live commands names a job behind a command."""
    folder = Path(jobs.__file__).parent
    named_by_hand = re.compile(
        r"subak (logs|logs -f|cancel|explain|describe|rerun|watch|history) (\{(?!command)|\" *$)", re.MULTILINE)
    assert [file.name for file in folder.glob("*.py") if named_by_hand.search(file.read_text())] == []


def test_each_state_of_a_task_is_a_sentence_behind_its_id():
    assert set(STANDS) == set(get_args(TaskState))
    assert not {"is ended", "is backoff", "is blocked"} & {*STANDS.values()}


def test_watch_and_explain_call_a_job_as_the_user_did(serving, run, write, monkeypatch):
    run("submit", write(job("[sleep]", "stays")), write(job("['false']", "bad", "tasks: 2\n"), "bad.yaml"))
    assert run("explain", "bad")[2].endswith("subak: subak logs bad.0 prints what that task wrote\n")
    assert run("explain", "bad.1")[1:] == ("g0-1.1 has ended\nwhy  exit code 1\n", (
        "subak: subak logs bad.1 prints what it wrote\n"))
    monkeypatch.setattr("subak.live.client.Client.wait", interrupted)
    assert run("watch", "stays")[2] == "subak: no longer watched; stays goes on; subak cancel stays ends it\n"


def test_logs_of_what_has_failed_end_with_how(serving, run, write):
    run("submit", write(job("['false']", name="bad"), "bad.yaml"), "--wait")
    assert run("logs", "bad")[0::2] == (
        0, "subak: g0-0.0 has written nothing (failed)\nsubak: bad failed: exit code 1\n")


@pytest.mark.parametrize(("arguments", "name", "words"), [
    (("down", "lab"), "stop", "subak down lab waits again for its end"),
    (("up", "lab", "--detach"), "start_detached", "what was started goes on, and subak down lab ends it")])
def test_ctrl_c_of_up_and_down_says_that_they_go_on(run, monkeypatch, arguments, name, words):
    monkeypatch.setattr(f"subak.live.up.control.{name}", interrupted)
    assert run(*arguments) == (130, "", f"subak: interrupted; {words}\n")


# -- looking -----------------------------------------------------------------------------------------------------------


def test_list_and_describe(serving, run, write):
    run("submit", write(job("[sleep]", more="tasks: 20\n")))
    serving.do(serving.services["g0"].finish("g0-0.1", 4))
    run("submit", write(job(name="b")))
    code, out, err = run("list")
    lines = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]
    assert (code, err) == (0, f"subak: g0-1 waits for machines: subak explain g0-1 says what is lacking; {SHARE}\n")
    assert [line[:4] for line in lines] == [
        ["job", "name", "queue", "state"], ["g0-1", "b", "research/ada", "waiting"],
        ["g0-0", "a", "research/ada", "running"]]
    assert lines[2][4:6] == ["20", "19"]
    assert "g0-0" not in run("list", "--name", "b")[1]
    assert "g0-1" not in run("list", "--state", "running")[1]
    assert run("list", "--queue", "web")[1].count("\n") == 1
    serving.do(serving.services["g0"].cancel("g0-1"))
    for spelling in (("--state", "cancelled"), ("--state=CANCELLED",)):
        assert [line.split()[0] for line in run("list", *spelling)[1].splitlines()] == ["job", "g0-1"]
    assert run("list", "--state", "failed")[1].count("\n") == 1
    code, _, err = run("list", "--state", "fialed")
    assert code == 2 and "'failed'" in err and "'timed-out'" in err
    code, out, _ = run("describe", "g0-0")
    assert out.startswith("g0-0 a: running\n")
    assert "12 running" in out
    assert re.search(r"g0-0\.1 +failed +m0 +1 +4 +exit code 4", out)
    assert "exit code  4" in run("describe", "g0-0.1")[1]
    assert "cpu 4/4" in run("describe", "m0")[1]


def fact(out, name):
    """Return what stands behind a name in what describe prints."""
    return re.search(rf"^{name}  +(.*?) *$", out, re.MULTILINE)[1]


def test_describe_shows_what_a_job_runs(serving, run, write, tmp_path, monkeypatch):
    """And of its environment only the names: values may be secret."""
    monkeypatch.chdir(tmp_path)
    write("import sys\n", "train.py"), write("#!/usr/bin/env python3\nimport sys\n", "sent.py")
    run("run", "--detach", "-e", "API_KEY=hush", "train.py", "--lr", "0.1", "--note", "two words")
    command = f"python3 {tmp_path}/train.py --lr 0.1 --note 'two words'"
    for id in ("train", "g0-0.0"):
        out = run("describe", id)[1]
        assert fact(out, "command") == command
        assert fact(out, "folder") == str(tmp_path)
        assert "API_KEY" in out and "hush" not in out
    run("submit", "sent.py")
    assert fact(run("describe", "sent")[1], "command") == "/usr/bin/env python3 (its script of 2 lines is in the job)"
    stages = "stages: [{name: a, command: [x, 1]}, {name: b, command: [y, 2]}]\n"
    run("submit", write(job(name="two", more=stages).replace("command: ['true']\n", "")))
    out = run("describe", "two")[1]
    assert (fact(out, "command of a"), fact(out, "command of b")) == ("x 1", "y 2")
    assert fact(run("describe", "g0-2.1")[1], "command") == "y 2"
    run("run", "--detach", "--name", "long", "--", "echo", "x" * 900)
    out = re.sub(r"\s", "", run("describe", "long")[1])
    assert re.search("x{9,}", out)[0] == "x" * (COMMAND_SIZE - len("echo ") - 1) and "x\u2026" in out


def test_a_rerun_is_described_by_what_it_runs(serving, run, write):
    service = serving.services["g0"]
    run("submit", write(job("[python3, sweep.py, --seed, '7']", "sweep", "tasks: 3\nresources: {cpu: 10m}\n")))
    for id in ("g0-0", "g0-1"):
        for index, code in enumerate((1, 1, 0)[:service.jobs_by_id[id].spec.task_count]):
            serving.do(service.finish(f"{id}.{index}", code if id == "g0-0" else index))
        run("rerun", "--failed", id)
    assert fact(run("describe", "g0-2")[1], "command") == "python3 sweep.py --seed 7"
    assert run("list")[1].count("--seed 7") == 3


def test_a_list_shows_arguments_where_jobs_share_a_name(serving, run, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "COLUMNS", 80)
    write("", "train.py"), write("", "other.py")
    run("run", "--detach", "other.py", "--alone")
    assert "arguments" not in run("list")[1]
    for rate in ("0.1", "0.2"):
        run("run", "--detach", "--cpu", "0.1", "train.py", "--lr", rate)
    lines = run("list")[1].splitlines()
    assert lines[0].split()[-2:] == ["arguments", "reason"]
    assert [line for line in lines if "--alone" in line] == []
    assert [re.search(r"--lr \S+", line)[0] for line in lines if " train " in line] == ["--lr 0.2", "--lr 0.1"]
    assert len(lines) == 4 and all(len(line) <= 80 for line in lines), lines
    for rate in ("0.1", "0.2"):
        run("run", "--detach", "--cpu", "0.1", "other.py", "--data", "a-long-name.csv", "--lr", rate)
    out = run("list", "--name", "other")[1]
    assert "\u2026 --lr 0.2 " not in out  # one has other words
    assert "--data a-long-name.\u2026" in out
    run("cancel", "g0-0"), run("cancel", "g0-3"), run("cancel", "g0-4")
    assert "\u2026 --lr 0.2 " in run("list", "--name", "other", "--limit", "2")[1]
    asked = []
    monkeypatch.setattr("subak.live.client.Client.file", lambda self, id: asked.append(id) or 1 / 0)
    assert run("list", "-o", "json")[0] == 0 and not asked


def test_commands_of_others_are_not_shown_to_who_may_not_look_into_their_jobs(serving, run, write, monkeypatch):
    for _ in range(2):
        run("submit", write(job("[sleep, '60']", "theirs")))
    made = serving.do(serving.services["g0"].add_person(NewPerson(name="ada", role="reader"), "admin"))
    monkeypatch.setenv("SUBAK_TOKEN", made.token)
    code, out, _ = run("describe", "g0-0")
    assert code == 0 and "shown only to whoever submitted it" in out and "sleep" not in out
    code, out, _ = run("list")
    assert code == 0 and "arguments" not in out and out.count("theirs") == 2


def test_eight_jobs_are_eight_lines_of_80_columns(serving, run, write, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "COLUMNS", 80)
    serving.services["g0"].weights["research"] = 1.0
    run("run", "--detach", "-n", "12", "--queue", "research", "--name", "train_0", "--", "sleep")
    for index in range(1, 8):
        run("run", "--detach", "--queue", "research", "--name", f"train_{index}", "--", "sleep")
    jobs = serving.services["g0"].jobs_by_id
    now = time.time()
    for number in range(8):
        jobs[f"g0-{number}"].submitted = now
    code, out, err = run("list")
    head, below, *lines = out.splitlines()
    assert (code, len(lines), err.count("\n")) == (0, 8, 1)
    assert head.strip() == "submitted" and time.strftime("%Z") in below.split()
    assert lines[0].split() == ["g0-7", "train_7", "research", "waiting", "1", "1",
                                time.strftime("%H:%M:%S", time.localtime(now)), NOTHING, "waits", "for", "machines"]
    jobs["g0-7"].submitted = now + 3 * 86400  # another day than today
    run("run", "--detach", "--cpu", "900", "--queue", "research", "--name", "large", "--", "sleep")
    out, err = run("list")[1:]
    lines = out.splitlines()
    assert len(lines) == 11 and max(map(len, lines)) <= 80
    assert time.strftime("%Y-%m-%d %H:%M ", time.localtime(now + 3 * 86400)) in lines[2]
    assert re.search(r" no machine is ?…$", lines[3])  # where it is cut depends on the width of the columns
    assert "subak: reasons are cut to the width of the terminal: subak describe JOB has all\n" in err
    monkeypatch.setattr(sys.modules[__name__], "COLUMNS", 200)
    out, err = run("list")[1:]
    assert "…" not in out and "are cut" not in err and f"submitted {time.strftime('%Z')}" in out.splitlines()[0]


def test_describe_shows_failed_tasks_of_a_job_first_wherever_they_are(serving, run, write):
    """The first tasks of a large job may all have finished, or wait, and the failed one be the last."""
    run("submit", write(job("[sleep]", more="tasks: 12\n")))
    serving.do(serving.services["g0"].finish("g0-0.11", 4))
    serving.do(serving.services["g0"].finish("g0-0.0", 0))
    lines = run("describe", "g0-0")[1].splitlines()
    first = next(place for place, line in enumerate(lines) if line.lstrip().startswith("task ")) + 1
    assert [line.split()[0] for line in lines[first:]] == ["g0-0.11", *(f"g0-0.{index}" for index in range(1, 11))]


def test_what_lists_leave_out_is_said(serving, run, write, monkeypatch):
    for _ in range(3):
        run("submit", write(job("[sleep]", more="tasks: 12\nresources: {cpu: 300m}\n")))
    code, out, err = run("list", "--limit", "2")
    assert (code, out.count("\n"), err) == (0, 3, "subak: only the latest 2: --limit 20 lists more\n")
    assert run("list", "--limit", "3")[2] == ""
    monkeypatch.setattr("subak.cli.live.jobs.TASKS_SHOWN", 5)
    code, out, err = run("describe", "g0-0")
    assert err == "subak: 7 more tasks have not finished; the table above counts them\n"


def test_answers_as_json_and_yaml(serving, run, write):
    run("submit", write(job()))
    found = json.loads(run("list", "-o", "json")[1])
    assert [each["id"] for each in found["items"]] == ["g0-0"]
    assert found["unreachable"] == []
    assert yaml.safe_load(run("list", "-o", "yaml")[1]) == found
    described = msgspec.json.decode(run("describe", "g0-0", "-o", "json")[1], type=JobView)
    assert described == serving.services["g0"].jobs_by_id["g0-0"].view()
    assert yaml.safe_load(run("queues", "-o", "yaml")[1])["items"][0]["path"] == ""
    assert json.loads(run("machines", "-o", "json")[1])[0]["capacity"] == {"cpu": 4000, "memory": 8192, "tasks": 12}


def test_a_master_that_is_silent_is_named(serving, run, write):
    run("submit", write(job()))
    serving.stop("g1")
    code, out, err = run("list")
    assert code == 0
    assert "g0-0" in out
    assert err.startswith("subak: g1: http://127.0.0.1")


def test_logs(serving, run, write):
    run("submit", write(job("[sleep]", more="tasks: 1\n")))
    service = serving.services["g0"]
    serving.do(service.write("g0-0.0", b"one\ntwo\n"))
    serving.do(service.write("g0-0.0", b"oops\n", "stderr"))
    assert run("logs", "g0-0.0") == (0, "one\ntwo\n", "subak: g0-0.0, standard error:\noops\n")
    assert run("logs", "g0-0", "--tail", "1")[1] == "two\n"
    assert run("logs", "g0-0", "--tail", "9")[1] == "one\ntwo\n"
    assert run("logs", "g0-0", "--stderr") == (0, "oops\n", "")
    assert run("logs", "g0-0", "--stdout") == (0, "one\ntwo\n", "")
    assert run("logs", "g0-0", "--stdout", "--stderr")[0] == 2

    async def go():
        await service.write("g0-0.0", b"three\n")
        await service.finish("g0-0.0")

    later(serving, go())
    assert run("logs", "-f", "g0-0") == (0, "one\ntwo\nthree\n", "oops\n")
    assert run("logs", "-f", "g0-0", "--stderr") == (0, "oops\n", "")


def test_logs_say_where_nothing_was_written(serving, run, write):
    run("submit", write(job("[sleep]")))
    code, out, err = run("logs", "g0-0")
    assert (code, out) == (0, "")
    assert err == ("subak: g0-0.0 runs, and has written nothing yet; a program may keep back what it prints, as Python "
                   "does without PYTHONUNBUFFERED=1\n")
    serving.do(serving.services["g0"].finish("g0-0.0"))
    assert run("logs", "g0-0.0") == (0, "", "subak: g0-0.0 has written nothing (finished)\n")
    serving.do(serving.services["g0"].write("g0-0.0", b"oops\n", "stderr"))
    assert run("logs", "g0-0.0")[2] == "subak: g0-0.0, standard error:\noops\n"


def test_logs_of_a_job_are_those_of_all_its_tasks(serving, run, write):
    run("submit", write(job("[echo, hello]", more="tasks: 2\n")))
    assert run("logs", "g0-0") == (0, "hello\nhello\n", "subak: task g0-0.0 of a:\nsubak: task g0-0.1 of a:\n")
    assert run("logs", "g0-0.1", "-f") == (0, "hello\n", "")


def test_logs_of_a_job_pass_over_tasks_that_have_not_begun(serving, run, write):
    """Of a large job, most have not: none of them is asked for."""
    run("submit", write(job("[sleep]", more="tasks: 30\n")))
    code, _, err = run("logs", "g0-0")
    begun = [line for line in err.splitlines() if line.startswith("subak: task ")]
    assert (code, err.splitlines()[-1]) == (0, f"subak: {30 - len(begun)} tasks of a have not begun")
    assert 0 < len(begun) < 30


def test_logs_of_a_job_go_on_behind_a_task_that_cannot_be_asked(serving, run, write, monkeypatch):
    run("submit", write(job("[echo, hello]", more="tasks: 2\n")))
    logs = serving.services["g0"].logs

    async def fails(id, *more):
        if id == "g0-0.0":
            raise UnavailableError("its machine does not answer now")
        return await logs(id, *more)

    monkeypatch.setattr(serving.services["g0"], "logs", fails)
    code, out, err = run("logs", "g0-0")
    assert (code, out) == (4, "hello\n")
    assert "subak: task g0-0.0: its machine does not answer now" in err.splitlines()


def test_logs_of_a_task_that_is_tried_again(serving, run, write):
    run("submit", write(job("[sleep]", more="tasks: 1\nretries: 1\n")))
    service = serving.services["g0"]
    serving.do(service.write("g0-0.0", b"one\n"))
    serving.do(service.finish("g0-0.0", 1))
    serving.do(service.write("g0-0.0", b"another\n"))
    assert run("logs", "g0-0") == (0, "another\n", "")
    assert run("logs", "g0-0", "--attempt", "1") == (0, "one\n", "")
    later(serving, service.finish("g0-0.0"))
    assert run("logs", "-f", "g0-0", "--attempt", "1") == (
        0, "one\nanother\n", "subak: g0-0.0 runs again: attempt 2\n")


def test_several_jobs_are_followed_at_once(serving, run, write):
    """A line is never torn, and stands behind the name of its job."""
    names = [f"train_{number}" for number in range(30)]
    for name in names:
        run("submit", write(job("[sleep]", name, "resources: {cpu: 1m}\n")))
    service = serving.services["g0"]

    async def go():
        for half in (b"begin-", b"end\n", b"left"):
            for number in range(30):
                await service.write(f"g0-{number}.0", half)
        await service.write("g0-1.0", b"oops", "stderr")
        for number in reversed(range(30)):
            await service.finish(f"g0-{number}.0", int(number == 1))

    later(serving, go())
    code, out, err = run("logs", "-f", *names)
    assert code == 1
    assert sorted(out.splitlines()) == sorted(
        f"{name:<8} | {line}" for name in names for line in ("begin-end", "left"))
    assert "train_1  | oops" in err.splitlines()
    assert "subak: train_1 failed: exit code 1; subak logs train_1 shows its output" in err.splitlines()
    assert "subak: train_0 finished" in err.splitlines() and len(err.splitlines()) == 31
    code, out, err = run("logs", "-f", "train_0", "g0-2.0", "train_2", "--stdout")
    assert (code, sorted(out.splitlines())[0::2]) == (
        0, [f"{name:<9} | begin-end" for name in ("train_0", "train_2", "train_2.0")])
    assert "subak: train_2.0 finished" in err.splitlines()


def test_a_job_that_cannot_be_followed_does_not_end_the_others(serving, run, write, monkeypatch):
    for name in "ab":
        run("submit", write(job("[echo, hello]", name)))
    logs = serving.services["g0"].logs

    async def fails(id, *more):
        if id == "g0-0.0":
            raise UnavailableError("its machine does not answer now")
        return await logs(id, *more)

    monkeypatch.setattr(serving.services["g0"], "logs", fails)
    code, out, err = run("logs", "-f", "a", "b")
    assert (code, out) == (4, "b | hello\n")
    assert sorted(err.splitlines()) == ["subak: a: its machine does not answer now", "subak: b finished"]


def test_followed_jobs_of_one_name_go_by_their_ids(serving, run, write):
    for _ in range(2):
        run("submit", write(job("[echo, hello]", more="tasks: 2\n")))
    assert sorted(run("logs", "-f", "g0-0", "g0-1")[1].splitlines()) == [
        "g0-0 | hello"] * 2 + ["g0-1 | hello"] * 2


def test_following_says_that_a_job_failed(serving, run, write):
    run("submit", write(job("[exit, '3']")))
    assert run("logs", "-f", "a") == (1, "", "subak: a failed: exit code 3\n")


@pytest.mark.parametrize("names", ["a", "ab"])
def test_following_ends_when_nobody_reads_any_more(serving, run, write, names):
    service = serving.services["g0"]
    for number, name in enumerate(names):
        run("submit", write(job("[sleep]", name)))
        serving.do(service.write(f"g0-{number}.0", b"one\n"))
    with subprocess.Popen([sys.executable, "-m", "subak", "logs", "-f", *names], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().endswith(b"one\n")
        process.stdout.close()
        serving.do(service.write("g0-0.0", b"two\n"))
        assert process.wait(20) == 141
        assert process.stderr.read() == b""


def test_labels_are_coloured_on_a_terminal(monkeypatch):
    def written(*pieces, raw=False):
        below = io.BytesIO()
        stream = Terminal(below, encoding="utf-8")
        labels = Labels(["a", "long"])
        writers = [LabelledWriter(stream, raw, labels, name) for name in ("a", "long")]
        for piece in pieces:
            for writer in writers:
                writer.write(piece)
        for writer in writers:
            writer.end()
        return below.getvalue().decode()

    first, second = "\x1b[36ma    | \x1b[0m", "\x1b[33mlong | \x1b[0m"
    assert written(b"\r 50%\r\x1b[32m10", b"0%\x1b[0m\r\n\x1b[2J") == (
        f"{first}100%\n{second}100%\n{first}\\x1b[2J\n{second}\\x1b[2J\n")
    assert written(b"\x1b[2J", raw=True) == f"{first}\x1b[2J\n{second}\x1b[2J\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert written(b"x" * (1 << 16), b"y") == "".join(
        f"{name:<4} | {line}\n" for line in ("x" * (1 << 16), "y") for name in ("a", "long"))


def test_several_are_watched_until_all_have_ended(serving, run, write):
    assert run("watch") == (0, "", "subak: no job is open; subak list shows those that have ended\n")
    run("submit", write(job(name="before")))
    for name in "ab":
        run("submit", write(job("[sleep]", name)))
    service = serving.services["g0"]
    later(serving, service.finish("g0-2.0"), 0.3)
    later(serving, service.finish("g0-1.0", 1), 1.4)
    service.jobs_by_id["g0-1"].version += 1  # a change that cannot be seen
    for ids in ((), ("a", "b")):
        code, out, _ = run("watch", *ids)
        lines = [line.split(" ", 1)[1] for line in out.splitlines()]
        assert code == 1
        assert lines[-2:] == ["g0-2 b finished", "g0-1 a failed: exit code 1"]
        if not ids:
            assert lines[:-2] == ["g0-1 a running", "g0-2 b running"]


def test_a_change_that_cannot_be_seen_is_no_line(serving, run, write):
    run("submit", write(job("[sleep]")))
    service = serving.services["g0"]

    async def change():
        service.jobs_by_id["g0-0"].version += 1
        await service.write("g0-0.0", b"")

    later(serving, change(), 0.2)
    later(serving, service.finish("g0-0.0"), 0.7)
    assert [line.split(" ", 1)[1] for line in run("watch", "a")[1].splitlines()] == [
        "g0-0 a running", "g0-0 a finished"]


def test_watch_ends_with_the_job(serving, run, write):
    run("submit", write(job("[sleep]", more="tasks: 2\n")))
    service = serving.services["g0"]
    later(serving, service.finish("g0-0.0"), 0.2)
    later(serving, service.finish("g0-0.1", 1), 0.9)
    code, out, _ = run("watch", "g0-0")
    lines = [line.split(" ", 1)[1] for line in out.splitlines()]
    assert code == 1
    assert lines == ["g0-0 a running: 2 running", "g0-0 a running: 1 running, 1 finished",
                     "g0-0 a failed (exit code 1): 1 finished, 1 failed"]
    run("submit", write(job()))
    assert run("watch", "g0-1")[0] == 0


def test_watch_says_the_end_of_a_job_whatever_its_version_then_is(serving, run, write):
    """The version of a job that has ended is counted anew, and may be that of its last change."""
    run("submit", write(job("[sleep]")))
    service = serving.services["g0"]
    service.jobs_by_id["g0-0"].tell = lambda *_, **__: None
    later(serving, service.finish("g0-0.0"))
    code, out, _ = run("watch", "g0-0")
    assert code == 0
    lines = [line.split(" ", 1)[1] for line in out.splitlines()]
    assert lines == ["g0-0 a running", "g0-0 a finished"]


def test_history_since(serving, run, write, monkeypatch):
    for name in "ab":
        run("submit", write(job(name=name)))
    service = serving.services["g0"]
    for at, id in ((1_000.0, "g0-0"), (5_000.0, "g0-1")):
        task = service.jobs_by_id[id].tasks[0]
        task.ended = at
        service.jobs_by_id[id].events = [Event(number=number, at=when, id=id, what=what) for number, (when, what)
                                         in enumerate(((at - 500.0, "began"), (at, "ended")))]
    monkeypatch.setattr("subak.cli.live.jobs.time", SimpleNamespace(time=lambda: 10_000.0))
    assert [each["id"] for each in json.loads(run("history", "--since", "2h", "-o", "json")[1])] == ["g0-1"]
    assert [each["id"] for each in json.loads(run("history", "--since", "3h", "-o", "json")[1])] == ["g0-1", "g0-0"]
    assert "g0-0" in run("history", "--since", "1970-01-01")[1]
    events = json.loads(run("history", "g0-1", "--since", "5200s", "-o", "json")[1])
    assert [event["what"] for event in events] == ["ended"]


def test_history_says_how_long_attempts_ran_and_describe_what_was_stopped(serving, run, write, monkeypatch):
    """What subak down stopped is not called lost."""
    assert (jobs.BEGAN, jobs.ATTEMPT_STOPPED) == (history.BEGAN, history.ATTEMPT_STOPPED)
    run("submit", write(job("[sleep]")))
    service = serving.services["g0"]
    service.jobs_by_id["g0-0"].events = [
        Event(number=number, at=at, id="g0-0.0", what=what, attempt=attempt)
        for number, (at, what, attempt) in enumerate((
            (1000.0, "began", 1), (1090.0, "attempt stopped", 1), (1100.0, "began", 2), (1102.5, "attempt lost", 2)))]
    lines = run("history", "g0-0.0")[1].splitlines()
    assert [line.rstrip().split("  ")[-1].strip() for line in lines[2:]] == [NOTHING, "90 s", NOTHING, "2.50 s"]
    view = type(service.jobs_by_id["g0-0"].tasks[0]).view
    for lost, words in ((1, ["stopped    1 time, with its machine"]), (2, ["stopped    1 time, with its machine",
                                                                        "lost       1 time"]), (0, [])):
        monkeypatch.setattr("fake_service.FakeTask.view", lambda task, lost=lost: msgspec.structs.replace(
            view(task), lost=lost))
        out = run("describe", "g0-0.0")[1]
        assert [line.rstrip() for line in out.splitlines() if line.startswith(("stopped", "lost"))] == words


def test_explain_and_history_say_why(serving, run, write):
    run("submit", write(job("[sleep]", more="tasks: 13\nresources: {cpu: 1}\n")))
    code, out, _ = run("explain", "g0-0.12")
    assert code == 0
    assert out.startswith("g0-0.12 waits\n")
    assert re.search(r"west +2 of 2 +resource +cpu", out)
    assert re.search(r"east +1 of 1 +resource +cpu", out)
    run("preempt", "g0-0.0")
    assert "by operator: it was asked for" in run("explain", "g0-0.0")[1]
    head, *lines = run("history", "g0-0.0")[1].splitlines()
    assert head == "g0-0.0 of a: running"
    assert [re.split(r"\s{2,}", line)[2] for line in lines[1:]][:3] == ["started", "preempted", "started"]
    assert json.loads(run("explain", "g0-0.12", "-o", "json")[1])["shortages"]


def test_explain_takes_a_job_by_its_id_or_name(serving, run, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("submit", write(job("[sleep]", more="tasks: 13\nresources: {cpu: 1}\n")))
    serving.do(serving.services["g0"].finish("g0-0.3", 4))
    run("submit", write(job("[sleep]", "train-3")))
    code, out, _ = run("explain", "g0-0")
    assert (code, out.splitlines()[0]) == (0, "g0-0 a: running")
    assert re.search(r"1 +failed +exit code 4 +g0-0\.3", out) and re.search(r"12 +running +\S+ +g0-0\.0", out)
    assert json.loads(run("explain", "a", "-o", "json")[1])["tasks"][0]["first"] == "g0-0.3"
    waits = run("explain", "train-3")[1]
    assert waits == run("explain", "g0-1")[1] == run("explain", "g0-1.0")[1]
    assert waits.startswith("g0-1.0 waits\n")
    assert run("explain", "train")[0::2] == (
        3, "subak: there is no job called train, and no run folder train; did you mean 'train-3'?\n")
    assert run("explain", "g0-9")[0] == 3
    (tmp_path / "train-3").mkdir()  # a run, whose task is missing
    assert run("explain", "train-3")[0] == 2


# -- changing ----------------------------------------------------------------------------------------------------------


def test_cancel_and_preempt(serving, run, write):
    run("submit", write(job("[sleep]", more="tasks: 2\n")))
    assert run("cancel", "g0-0.1")[1] == "g0-0.1 is cancelled; tasks of a: 1 running, 1 cancelled\n"
    assert run("preempt", "g0-0.0")[0] == 0
    code, _, err = run("preempt", "g0-0.1")
    assert (code, err) == (5, "subak: task g0-0.1 does not run: it is ended\n")
    code, out, err = run("cancel", "g0-0.1")
    assert (code, out, err) == (5, "", "subak: g0-0.1 has ended already (cancelled)\n")
    assert run("cancel", "g0-0")[1] == "g0-0 is cancelled; tasks of a: 2 cancelled\n"
    assert run("cancel", "g0-0")[0::2] == (5, "subak: g0-0 has ended already (cancelled)\n")


def test_explain_says_where_the_output_of_a_failed_task_is(serving, run, write):
    run("submit", write(job("[sleep]", more="tasks: 3\n")))
    for index, code in enumerate((0, 4, 5)):
        serving.do(serving.services["g0"].finish(f"g0-0.{index}", code))
    assert run("explain", "g0-0")[2] == "subak: subak logs g0-0.1 prints what that task wrote\n"
    assert run("explain", "g0-0.2")[2] == "subak: subak logs g0-0.2 prints what it wrote\n"


def test_cancel_of_what_still_ends_says_so(capsys):
    counts = TaskCounts(ending=1, cancelled=2)
    _show("g0-0", JobView(id="g0-0", name="a", queue="q", state="running", version=1, counts=counts, submitted=0.0),
          Output.TABLE)
    assert capsys.readouterr().out == (
        "g0-0 is being cancelled, and ends within its grace period; tasks of a: 1 ending, 2 cancelled\n")


def test_cancel_and_preempt_go_on_behind_one_that_cannot_be(serving, run, write):
    """What had ended, or is not there, is named; the exit code says so when all others are done."""
    for _ in range(3):
        run("submit", write(job("[sleep]")))
    run("cancel", "g0-0")
    code, out, err = run("cancel", "g0-0", "g0-1", "g0-99")
    assert (code, out) == (5, "g0-1 a is cancelled\n")
    assert [line[:16] for line in err.splitlines()] == ["subak: g0-0 has ", "subak: there is "]
    assert run("cancel", "g0-99")[0] == 3
    code, out, err = run("preempt", "g0-1.0", "g0-2.0")
    assert (code, out[:16], err) == (5, "g0-2.0 preempted", "subak: task g0-1.0 does not run: it is ended\n")


def test_all_is_cancelled_when_somebody_agrees(serving, run, write, monkeypatch):
    for name in "abc":
        run("submit", write(job("[sleep]", name)))
    run("cancel", "g0-1")
    run("run", "--detach", "--queue", "web", "--", "sleep")
    assert run("cancel", "--all")[0::2] == (
        2, "subak: nothing was cancelled; --yes cancels 3 jobs without asking\n")
    assert run("cancel", "--all", "--queue", "web", "--yes")[:2] == (
        0, "g0-3 sleep is cancelled\n")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True, readline=lambda: "n"))
    assert run("cancel", "--all")[2].startswith("Cancel 2 jobs: c, a? [y/N] ")
    assert [line[:4] for line in run("cancel", "--all", "-y")[1].splitlines()] == ["g0-0", "g0-2"]
    assert run("cancel", "--all") == (0, "no job is open\n", "")
    for name in "defghi":
        run("submit", write(job("[sleep]", name)))
    assert run("cancel", "--all")[2].startswith("Cancel 6 jobs: i, h, g, f, e and 1 more? [y/N] ")
    run("cancel", "--all", "-y")
    for wrong in ((), ("g0-0", "--all"), ("g0-0", "--yes"), ("g0-0", "--queue", "web")):
        assert run("cancel", *wrong)[0] == 2
    serving.stop("g1")
    assert run("cancel", "--all", "-y")[0] == 4  # what it keeps may run on


def test_jobs_that_wait_are_cancelled_before_those_that_run(serving, run, write):
    """Else each would start, for a moment, on what the one before it left."""
    run("submit", write(job("[sleep]", "runs")))
    run("run", "--detach", "--cpu", "900", "--", "sleep")
    assert [line[:4] for line in run("cancel", "--all", "-y")[1].splitlines()] == ["g0-1", "g0-0"]


def test_machines_are_cordoned_and_drained(serving, run, write):
    run("submit", write(job("[sleep]")))
    assert run("cordon", "m0", "m1")[1] == "m0 cordoned; 1 task runs there\nm1 cordoned; 0 tasks run there\n"
    said = run("machines", "--cluster", "west")[1]
    assert re.search(r"m0 +west +ready +1 +cpu 1/4, memory \S+, tasks \S+ +cordoned", said)
    assert run("drain", "m0")[1] == "m0 is drained; 0 tasks run there\n"
    assert serving.services["g0"].jobs_by_id["g0-0"].tasks[0].machine == "m2"
    assert run("uncordon", "m0")[1] == "m0 may be used again; 0 tasks run there\n"
    assert serving.services["g0"].cordoned == {"m1"}
    assert run("cordon", "none") == (3, "", "subak: there is no machine none\n")


def test_a_machine_that_is_lost_is_removed(serving, run):
    assert run("machines", "remove", "m0") == (5, "", "subak: machine m0 is not lost\n")
    serving.services["g0"].lost.add("m0")
    assert run("machines", "remove", "m0") == (0, "m0 removed\n", "")
    assert run("machines", "remove", "m0") == (3, "", "subak: there is no machine m0\n")
    assert "m0" not in run("machines")[1]
    assert run("machines", "retire", "m1")[0] == run("machines", "remove")[0] == 2


def test_apply_shows_what_changes_and_asks(serving, run, write, monkeypatch):
    file = write("[queues]\nresearch = 3.0\n\"research/ada\" = 1.0\nnew = 1.0\n", "f.toml")
    code, out, err = run("apply", file, "--dry-run")
    assert out.splitlines() == [f"+ queue new: {NOTHING} -> 1", "~ queue research: weight: 2 -> 3",
                                f"- queue web: 1 -> {NOTHING}"]
    assert (code, err) == (0, "")
    code, _, err = run("apply", file)
    assert code == 2
    assert "--yes applies it" in err
    assert serving.services["g0"].version == 1

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert run("apply", file)[0] == 2
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    code, out, _ = run("apply", file)
    assert code == 0
    assert out.endswith("applied; configuration 2 is in force\n")
    assert run("apply", file, "--yes")[1] == "nothing changes; configuration 2 is in force\n"


def test_a_configuration_that_changed_meanwhile_is_not_applied(serving, run, write, monkeypatch):
    service = serving.services["g0"]
    plan = service.plan

    async def planned(config):
        found = await plan(config)
        service.version += 1
        return found

    monkeypatch.setattr(service, "plan", planned)
    code, _, err = run("apply", write("[queues]\nweb = 9.0\n", "f.toml"), "--yes")
    assert code == 5
    assert "is in force by now" in err
    assert service.weights["web"] == 1.0


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (("describe", "g0-9"), 3, "there is no job g0-9"), (("describe", "g0-9.1"), 3, "there is no job g0-9"),
    (("describe", "[red]x"), 2, "must be the name of a machine"), (("cancel", "x/"), 2, "must be a job such as"),
    (("logs", "x "), 2, "must be a job"),
    (("watch", "g0-1.2"), 2, "JOB: takes whole jobs, and g0-1.2 is a task"),
    (("history",), 2, "JOB|TASK: must be given, or --since"),
    (("history", "--since", "soon"), 2, "--since: must be a duration such as 2h or a time such as"),
    (("explain", "a/b"), 2, "is not a job or a task of a live federation"), (("history", "../x"), 2, "must be a job"),
    (("preempt", "g0-1"), 2, "must be a task"), (("submit", "absent.yaml"), 2, "absent.yaml: cannot be read"),
    (("apply", "absent.toml"), 2, "absent.toml: cannot be read"),
    (("queues", "--queues", "x"), 2, "goes with a workload"),
    (("queues", "google2011", "-o", "json"), 2, "--output: says nothing of google2011"),
    (("explain", "R", "0", "-o", "json"), 2, "--output: says nothing of R"), (("list", "--state", "odd"), 2, "--state"),
    (("explain", "g0-1.1", "--classes", "3"), 2, "goes only with lotes"), (("list", "--limit", "0"), 2, "--limit"),
    (("list", "--client", "absent.toml"), 2, "absent.toml: cannot be read"),
    (("run", "--queue", "research/ada"), 2, "COMMAND"), (("submit",), 2, "FILE"),
])
def test_a_mistake_is_a_line_and_an_exit_code(serving, run, arguments, code, words):
    got, out, err = run(*arguments)
    assert (got, out, err.count("\n")) == (code, "", 1), err
    assert words in err


def test_a_federation_that_is_not_there_or_not_ours(serving, run, monkeypatch):
    monkeypatch.setenv("SUBAK_TOKEN", new_token(PEOPLE))
    code, _, err = run("list")
    assert code == 6
    assert "token" in err
    assert serving.token not in err
    monkeypatch.setenv("SUBAK_ADDRESS", "http://127.0.0.1:1")
    assert run("queues") == (4, "", "subak: http://127.0.0.1:1: cannot be reached: Connection refused; if it was "
                                "stopped, subak up starts it with its jobs\n")


# -- what others have written ------------------------------------------------------------------------------------------

HOSTILE = "\x1b[2J[bold]x[/bold]\u202egpj\x9b31m :cat:"


def test_a_federation_that_is_stopped_is_not_waited_for(run, tmp_path, monkeypatch):
    """Unless `subak up` runs there, and its masters are to come."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "subak-federation"
    folder.mkdir()
    (folder / "people.token").write_text(new_token(PEOPLE))
    (folder / "people.token").chmod(0o600)
    (folder / "client.toml").write_text('address = "http://127.0.0.1:1"\ntoken_file = "people.token"\n')
    monkeypatch.delenv("SUBAK_ADDRESS", raising=False)
    monkeypatch.delenv("SUBAK_TOKEN", raising=False)
    monkeypatch.setattr("subak.live.client.client.PATIENCE_S", 0.5)

    def asked(*more):
        began = time.monotonic()
        code, _, err = run("list", *more)
        return code, err, time.monotonic() - began >= 0.3

    refused = ("subak: http://127.0.0.1:1: cannot be reached: Connection refused; if it was stopped, subak up starts "
               "it with its jobs\n")
    stopped = f"subak: {folder}: the federation of this folder is stopped; subak up starts it with its jobs\n"
    assert asked() == (4, refused, True)
    (folder / "up.pid").write_text(f"{os.getpid()} 1 starting\n")
    assert asked() == (4, refused, True)
    gone = subprocess.Popen(["true"])
    gone.wait()
    (folder / "up.pid").write_text(f"{gone.pid} 1 ready\n")
    assert asked() == (4, stopped, False)
    assert asked("--client", "subak-federation/client.toml") == (4, stopped, False)
    monkeypatch.setenv("SUBAK_ADDRESS", "http://127.0.0.1:2")
    assert asked() == (4, refused.replace(":1:", ":2:"), True)


def test_no_text_of_a_job_steers_a_terminal(serving, run, write):
    run("submit", write(job("[sleep]")))
    task = serving.services["g0"].jobs_by_id["g0-0"].tasks[0]
    task.reason, task.preempted_by, task.preempted_why = HOSTILE, HOSTILE, HOSTILE
    serving.services["g0"].attributes["m0"]["kernel"] = HOSTILE
    serving.do(serving.services["g0"].cancel("g0-0"))
    task.reason = HOSTILE
    for arguments in (("describe", "g0-0"), ("describe", "g0-0.0"), ("explain", "g0-0.0"), ("describe", "m0"),
                      ("watch", "g0-0"), ("describe", "g0-0.0", "-o", "yaml"), ("describe", "g0-0.0", "-o", "json")):
        _, out, _ = run(*arguments)
        assert not re.search("[\x1b\x9b\u202e]", out), arguments
        assert "[bold]x[/bold]" in out.replace("\n", ""), arguments


class Terminal(io.TextIOWrapper):
    """Standard output that is a terminal."""

    def isatty(self):
        return True


def test_output_is_bytes_but_to_a_terminal():
    pieces = [b"\x1b[31m\xc3", b"\xbc\r\n\ttab\xff", b"\xe2\x82"]

    def written(kind, raw):
        below = io.BytesIO()
        writer = OutputWriter(kind(below, encoding="utf-8"), raw)
        for piece in pieces:
            writer.write(piece)
        writer.end()
        writer.stream.flush()
        return below.getvalue()

    assert written(io.TextIOWrapper, False) == b"".join(pieces)
    assert written(Terminal, True) == b"".join(pieces)
    assert written(Terminal, False).decode() == "ü\n\ttab\\xff\\xe2\\x82"


def on_terminal(*pieces):
    below = io.BytesIO()
    writer = OutputWriter(Terminal(below, encoding="utf-8"), False)
    for piece in pieces:
        writer.write(piece)
    writer.end()
    writer.stream.flush()
    return below.getvalue().decode()


def test_a_terminal_gets_the_last_state_of_a_progress_bar():
    bar = b"\r  0%|  |\r\x1b[32m 50%|# |\x1b[0m\r100%|##|\r\nend\r\r\n"
    assert on_terminal(bar) == "100%|##|\nend\n"
    screen = re.sub("[^\n]*\r\x1b\\[K", "", on_terminal(*(bar[at:at + 1] for at in range(len(bar)))))
    assert screen == "100%|##|\nend\n"
    assert on_terminal(b"\r 50%", b"\r100%") == " 50%\r\x1b[K100%"
    assert on_terminal(b"a\r") == "a"


def test_a_terminal_gets_nothing_else_that_steers_it():
    assert on_terminal(b"\x1b[1;3", b"1mred\x1b[0m") == "red"
    assert on_terminal(b"\x1b[2J\x1b]0;x\x07\x08\x1b[1", b"A\x1b") == (
        "\\x1b[2J\\x1b]0;x\\x07\\x08\\x1b[1A\\x1b")


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_mistyped_script_gets_the_nearest(serving, command, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_text("print(1)")
    code, _, err = run(command, "god.py")
    assert (code, "no file god.py here; is good.py meant?" in err) == (2, True), err


def test_submit_names_no_script_where_none_is_near(serving, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_text("print(1)")
    code, _, err = run("submit", "other.sh")
    assert (code, "no file other.sh here" in err, "meant" in err) == (2, True, False), err


# -- weight and help ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("list",), ("queues",), ("explain", "g0-1.1"), ("submit", "absent"),
                                       ("run", "--queue", "q", "--", "true"), ("machines", "--help")])
def test_they_load_nothing_of_the_simulator(arguments, tmp_path):
    code = ("import sys, json\nfrom subak.cli.main import main\ntry:\n    main()\nexcept SystemExit:\n"
            "    print('\\n' + json.dumps(sorted(sys.modules)))\n")
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True,
                          env={"HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)})
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert ("subak.live.client" in loaded) == ("--help" not in arguments)
    heavy = {"numba", "numpy", "polars", "scipy", "altair", "litestar", "uvicorn", "asyncio"}
    assert not heavy & {name.partition(".")[0] for name in loaded}
    assert ("yaml" in loaded) == (arguments[0] == "run")


@pytest.mark.parametrize("word", sorted(command.name for command in app.COMMANDS if ".live." in command.where))
def test_help_teaches_by_example(run, word):
    code, out, _ = run(word, "--help")
    assert code == 0
    assert f"subak {word}" in out.split("Usage:")[1].split("\n", 1)[1]


def test_the_simulators_words_are_still_its_own(serving, run):
    code, out, _ = run("queues", "google2011", "--rows", "1")
    assert code == 0
    assert "Requested" in out
    assert run("explain", "absent", "0")[0] == 2
    assert "A live federation" in run("--help-all")[1]
    assert run("list")[0] == 0


def test_a_federation_needs_the_live_part_and_makes_nothing_without_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr(up, "OF_LIVE", ("yaml", "no_such_server"))
    code, out, err = run("up", tmp_path / "F")
    assert (code, out) == (2, "") and not (tmp_path / "F").exists()
    assert err == ("subak: a live federation needs no_such_server, which the extra `live` installs: pip install "
                   "'subak[live]', or in a clone pip install '.[live]'\n")


WITHOUT = """
import sys
lacking = sys.argv.pop(1)
class Without:
    def find_spec(self, name, *_):
        if name.split(".")[0] == lacking:
            raise ModuleNotFoundError("No module named " + name, name=name)
sys.meta_path.insert(0, Without())
from subak.cli.main import main
main()
"""


@pytest.mark.parametrize(("module", "arguments", "is_said"), [
    ("yaml", ("run", "--", "true"), True), ("litestar", ("global-master", "global-master-g0.toml"), True),
    ("polars", ("compare",), False)])
def test_what_the_live_part_lacks_is_one_line_and_any_other_module_a_defect(tmp_path, module, arguments, is_said):
    Home(tmp_path / "F", Wish(1, 1, None, None, None, None))
    done = subprocess.run([sys.executable, "-c", WITHOUT, module, *arguments], cwd=tmp_path / "F", capture_output=True,
                          text=True, check=False, timeout=60)
    said = f"subak: a live federation needs {module}, which the extra `live` installs"
    assert (done.stderr.startswith(said), "Traceback" in done.stderr) == (is_said, not is_said)
    assert (done.returncode, done.stderr.count("\n") == 1) == ((2, True) if is_said else (1, False))


@pytest.mark.parametrize(("word", "hint"), [
    ("status", ". Did you mean list (or describe JOB)?"), ("ps", ". Did you mean list (or describe JOB)?"),
    ("kill", ". Did you mean cancel (or down, for the federation)?"), ("submitt", ". Did you mean 'submit'?"),
    ("xyzzy", "")])
def test_an_unknown_command_names_the_one_that_is_meant(run, word, hint):
    assert run(word) == (2, "", f"subak: No such command '{word}'{hint} (see subak --help)\n")


def test_hints_are_of_commands_that_are_there():
    names = {each.name for each in app.COMMANDS}
    assert not names & set(app.MEANT)
    assert {hint.split()[0] for hint in app.MEANT.values()} <= names
