"""`subak up` and `subak down`, real ones: what is started, shown, started again, ended, and never left behind."""
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from federations import PATIENCE_S, Folder, left, until
from subak.cli.live.up_screen import how_to_ask
from subak.errors import InputError
from subak.live.api.models import QueueView
from subak.live.client.settings import read_settings, usual_file
from subak.live.config import FederationFile, WorkerFile, read
from subak.live.up.folder import Home, free_ports, members_of
from subak.live.up.picture import Picture, look
from subak.live.up.plan import Wish, files_of, parse_capacity, parse_queue, planned

HOME = {"HOME": "/nonexistent"}
OF_BEFORE = ("1 job from before is open (subak list): tasks that were stopped start again from the beginning; subak "
             "cancel --all ends it")
STOPPED = "1 running task was stopped; it starts again from the beginning at the next subak up"
OTHERS = "subak down FOLDER, or SUBAK_FEDERATION=FOLDER, ends another's"
KEEPS = ": all processes have ended; it keeps all jobs for the next subak up, until you delete it"


@pytest.fixture(scope="module")
def kept():
    kept = Folder(clusters=1, workers=2, capacity=(("cpu", 1000), ("memory", 512)), queues=None)
    yield kept
    kept.over()


@pytest.fixture
def lab(kept):
    """What a test that has failed has left does not make others fail."""
    yield kept
    kept.sweep()


class Seen:
    """What a `subak up` prints, line by line."""

    def __init__(self, lab, *options, **more):
        self.process = lab.command("up", lab.folder, *options, **more)
        self.lines = []

    def until(self, words):
        """Read until a line holds *words*; return it."""
        for line in self.process.stdout:
            self.lines.append(line)
            if words in line:
                return line
        raise AssertionError("".join(self.lines))

    def end(self, number):
        """Send a signal, and return the exit code and the rest."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out


def nothing_is_left(lab):
    until(lambda: not left(lab.folder), 30, lambda: "\n".join(left(lab.folder)))


def submitted(lab, client, name, seconds=0.0, queue="default", more=""):
    return client.submit(lab.stamped(name, seconds) + f"queue: {queue}\n{more}")


# -- files -------------------------------------------------------------------------------------------------------------


def test_what_is_written_is_what_processes_read(tmp_path):
    wish = Wish(clusters=2, workers=3, queues=(("research/ada", 2.0), ('we"b', 0.5)),
                capacity=(("cpu", 500), ("gpu", 2)), order="mch", preemption="paper")
    for name, text in files_of(planned(wish), "home", list(range(7000, 7006))).items():
        (tmp_path / name).write_text(text)
    file = read(tmp_path / "federation.toml", FederationFile)
    assert [(queue.name, queue.weight) for queue in file.queue] == [("research/ada", 2.0), ('we"b', 0.5)]
    assert (file.order, file.timing.preemption, file.resources) == ("mch", "paper", ("cpu", "memory", "gpu"))
    addresses = [master.http for master in file.global_master] + [*file.local_addresses().values()]
    assert sorted(addresses) == [f"127.0.0.1:{port}" for port in range(7000, 7006)]
    members, broken = members_of(tmp_path)
    assert broken == []
    assert [member.name for member in members] == [
        "a", "a-standby", "b", "b-standby", "g0", "g1", "a1", "a2", "b1"]
    workers = [read(member.file, WorkerFile) for member in members if member.role == "worker"]
    assert [worker.capacity["gpu"] for worker in workers] == [2, 2, 2]
    a, _, b = workers
    assert [a.local_masters, b.local_masters] == [(each.local_master, each.standby) for each in file.cluster]


def test_an_equal_part_of_this_machine_is_what_each_worker_has():
    cores = len(os.sched_getaffinity(0))
    plan = planned(Wish(clusters=1, workers=2 * cores))
    assert plan.capacity["cpu"] == 1000  # so that what asks for a core fits somewhere


def test_by_default_one_machine_has_all_cores_and_memory_of_this_one(monkeypatch):
    """So that a job may ask for two of two cores."""
    monkeypatch.setattr("subak.live.up.plan.usable_cores", lambda: 2)
    plan = planned(Wish())
    assert (plan.clusters, plan.workers, plan.capacity["cpu"]) == ("a", [("a1", "a")], 2000)
    part = planned(Wish(workers=4))
    assert abs(4 * part.capacity["memory"] - plan.capacity["memory"]) < 4
    said = (2, None), (1, 3), (3, 1)
    assert [len(planned(Wish(clusters, workers)).workers) for clusters, workers in said] == [2, 3, 1]
    assert [len(planned(Wish(workers=workers)).clusters) for workers in (1, 2, 5)] == [1, 2, 2]


@pytest.mark.parametrize(("options", "words"), [
    (("--clusters", "0"), "--clusters: must be from 1 to 8, not 0"),
    (("--workers", "65"), "--workers: must be from 1 to 64, not 65"),
    (("--queue", "a=b"), "--queue: must be NAME or NAME=WEIGHT"),
    (("--queue", "a=-1"), "queue a: weight must be more than 0, not -1"),
    (("--queue", "a", "--queue", "a"), "queue: 'a' is there twice"),
    (("--capacity", "cpu=x"), "--capacity: must be such as cpu=2,memory=4Gi, and 'cpu=x' is not"),
    (("--order", ""), "order: must be one of round-robin, "),
    (("--preemption", "hard"), "Invalid enum value 'hard'"),
])
def test_a_wish_that_cannot_be_is_one_line_and_no_federation(run, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)  # a short name: sockets are in it
    code, out, err = run("up", "f", *options)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_says_itself_what_it_has(lab, run):
    for option, value, way in (("--clusters", "3", "docs/live.md"), ("--queue", "a", "subak apply"),
                               ("--order", "drf", "change "), ("--capacity", "cpu=4", "change [capacity] in each")):
        code, _, err = run("up", lab.folder, option, value)
        assert (code, err.count("\n")) == (2, 1)
        assert err.startswith(f"subak: {option}: {lab.folder} was made before, and says so itself: {way}")


def test_workers_are_added_to_a_folder_that_is_there(run, monkeypatch):
    """As many as are said, each with an equal part; none is taken out, and to say it again changes nothing."""
    monkeypatch.setattr("subak.live.up.plan.usable_cores", lambda: 2)
    folder = Folder(clusters=2, workers=2).folder
    before = {file: file.read_text() for file in folder.glob("*.toml")}
    for _ in range(2):
        home = Home(folder, Wish(workers=5))
        home.close()
        assert [member.name for member in home.members if member.role == "worker"] == ["a1", "a2", "a3", "b1", "b2"]
    assert {file: file.read_text() for file in before} == before
    added = read(folder / "worker-b2.toml", WorkerFile)
    old = read(folder / "worker-b1.toml", WorkerFile)
    assert (added.name, added.local_masters, added.data) == ("b2", old.local_masters, "data/b2")
    assert (added.capacity["cpu"], old.capacity["cpu"]) == (1000, 1000)
    assert 2 * old.capacity["memory"] // 5 - 1 <= added.capacity["memory"] <= 2 * old.capacity["memory"] // 5 + 1
    assert run("up", folder, "--workers", "65")[2] == "subak: --workers: must be from 1 to 64, not 65\n"
    code, _, err = run("up", folder, "--workers", "4")
    assert code == 2 and err.startswith(f"subak: --workers: {folder} has 5; to take one out, remove its file while")
    shutil.rmtree(folder)


def test_a_name_too_long_for_sockets_is_refused(run, tmp_path):
    code, _, err = run("up", tmp_path / ("x" * 100))
    assert code == 2
    assert "its name is too long by" in err


def test_ports_are_free_ones():
    first, second, third = free_ports(3, 31_000)
    with socket.create_server(("127.0.0.1", second)):
        assert second not in free_ports(3, first)
        assert free_ports(2, first)[0] == first
    assert len({first, second, third}) == 3


def test_words_are_parsed():
    assert parse_capacity("cpu=500m,memory=1Gi,gpu=2") == (("cpu", 500), ("memory", 1024), ("gpu", 2))
    assert [parse_queue("web"), parse_queue("a/b=2.5")] == [("web", 1.0), ("a/b", 2.5)]


def test_where_commands_find_it(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert usual_file(HOME) == Path("/nonexistent/.config/subak/client.toml")
    Path("subak-federation").symlink_to(lab.folder)
    assert usual_file(HOME) == Path("subak-federation/client.toml")
    assert read_settings(None, HOME) == lab.settings
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # a folder that somebody else has put there
    assert usual_file(HOME) == Path("/nonexistent/.config/subak/client.toml")
    assert usual_file({**HOME, "SUBAK_FEDERATION": str(lab.folder)}) == lab.folder / "client.toml"
    with pytest.raises(Exception, match=r"SUBAK_FEDERATION: there is no none/client\.toml"):
        usual_file({**HOME, "SUBAK_FEDERATION": "none"})


def test_the_folder_that_is_to_be_exported_is_named_from_the_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my lab").mkdir()
    (tmp_path / "my lab/client.toml").touch()
    assert how_to_ask(Path("my lab")).endswith(f"export SUBAK_FEDERATION='{tmp_path}/my lab'")


def test_what_goes_on_and_what_is_stopped_is_counted_over_the_top_of_the_tree():
    def picture(*counts):
        return Picture(queues=tuple(QueueView(path=path, weight=1, guarantee=1, dominant_share=0, jobs=jobs,
                                              running=running) for path, jobs, running in counts))

    two = picture(("", 9, 9), ("a", 2, 1000), ("a/b", 2, 1000), ("web", 6, 1))
    assert two.of_before() == [OF_BEFORE.replace("1 job from before is", "8 jobs from before are").replace(
        "ends it", "ends them")]
    assert two.stopped() == [
        "1,001 running tasks were stopped; they start again from the beginning at the next subak up"]
    one, none = picture(("web", 1, 1)), picture(("web", 0, 0))
    assert (one.of_before(), one.stopped(), none.of_before(), none.stopped()) == ([OF_BEFORE], [STOPPED], [], [])
    assert (Picture().of_before(), Picture().stopped()) == (
        [], ["tasks that ran, if any, start again from the beginning at the next subak up"])


def test_down_without_up(lab, run):
    assert run("down", lab.folder) == (2, "", f"subak: no federation runs in {lab.folder}; {OTHERS}\n")


def test_up_and_down_take_the_folder_that_is_exported_where_none_is_named(run, tmp_path, monkeypatch):
    """As all other commands do: `up` says so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUBAK_FEDERATION", raising=False)
    assert run("down")[2] == f"subak: no federation runs in {tmp_path}/subak-federation; {OTHERS}\n"
    monkeypatch.setenv("SUBAK_FEDERATION", str(tmp_path / "lab"))
    assert run("down")[2] == f"subak: no federation runs in {tmp_path}/lab; {OTHERS}\n"
    assert run("down", "other")[2] == f"subak: no federation runs in {tmp_path}/other; {OTHERS}\n"
    asked = []
    monkeypatch.setattr("subak.live.up.control.start_detached",
                        lambda folder, *_: asked.append(folder) or (_ for _ in ()).throw(InputError("no")))
    run("up", "--detach"), run("up", "other", "--detach")
    assert asked == [tmp_path / "lab", Path("other")]
    monkeypatch.setattr("subak.live.up.folder.Home.__init__", lambda self, folder, *_: asked.append(folder) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("up")
    assert asked[2:] == [tmp_path / "lab"]


def test_down_asks_at_a_terminal_while_tasks_run(run, tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr("subak.live.up.control.runs_in", lambda folder: SimpleNamespace(pid=1, is_there=lambda: False))
    monkeypatch.setattr("subak.live.up.control.send", lambda *signal: sent.append(signal))

    def down(running, answer, *options):
        monkeypatch.setattr("subak.live.up.control.picture_of", lambda folder: Picture(queues=(
            QueueView(path="a", weight=1, guarantee=1, dominant_share=0, jobs=3, running=running),)))
        monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: answer is not None, readline=lambda: answer))
        code, _, err = run("down", tmp_path, *options)
        return code, err, len(sent)

    asks = "they start again from the beginning at the next subak up. Stop? [y/N] \n"
    assert down(3, "\n") == (2, f"3 tasks run; {asks}subak: nothing was stopped; --yes stops it without asking\n", 0)
    assert down(1, "y\n", "--now") == (0, f"1 task runs; {asks}".replace("they start", "it starts"), 1)
    assert down(3, "n", "--yes")[0::2] == (0, 2)
    assert down(0, "n")[0::2] == (0, 3)
    assert down(3, None)[0::2] == (0, 4)  # scripts


# -- from start to end -------------------------------------------------------------------------------------------------


def test_from_the_start_to_ctrl_c_and_kill_nine_and_the_end(lab, run, monkeypatch):
    stopping, stopped = _what_dies_is_started_again_until_ctrl_c(lab, run, monkeypatch)
    later = _what_ran_runs_again_and_nothing_outlives_kill_nine(lab, stopping, stopped)
    _what_was_killed_runs_again_detached(lab, *later)


def _what_dies_is_started_again_until_ctrl_c(lab, run, monkeypatch):
    monkeypatch.setenv("SUBAK_FEDERATION", str(lab.folder))
    seen = Seen(lab)
    seen.until("ready after")
    assert run("run", "--resource", "cpu=100m", "--resource", "memory=16Mi", "--", "echo", "hello")[
        :2] == (0, "hello\n")
    _which_python_a_script_runs_with(lab, run, monkeypatch)
    assert [machine["state"] for machine in msgspec.json.decode(run("machines", "-o", "json")[1])] == ["ready"] * 2
    assert run("up", lab.folder)[2] == f"subak: {lab.folder}: another process uses this folder\n"
    with lab.client() as client:
        job = submitted(lab, client, "long", 600)
        until(lambda: lab.stamps("long.0.start"))
    for name in ("a1", "a", "g1", "g0"):  # the last one has had more than a second to write when it began
        os.kill(next(int(line.split()[0]) for line in left(lab.folder)
                     if "subak.live.process" in line and f"-{name}.toml" in line), signal.SIGKILL)
        assert re.search(rf"{name} was killed by SIGKILL; it is started again in 0\.\d s", seen.until(f"{name} was"))
        seen.until(f"{name} is started again")
        seen.until(f" {name}: ready")
    assert len(lab.stamps("long.0.start")) == 1  # it outlived them
    until(lambda: look(lab.settings).stopped() == [STOPPED])  # g0 knows again what runs
    stopping = time.time()
    code, out = seen.end(signal.SIGINT)
    assert code == 0
    waits = [line.split(" ", 1)[1] for line in out.splitlines() if "waiting for" in line]
    assert waits == ["waiting for workers", "waiting for tasks", "waiting for masters"]
    assert out.endswith(" all processes have ended\n")
    assert f" {STOPPED}\n" in out
    assert left(lab.folder) == []
    assert lab.stamps("long.0.end") == []
    assert job.id == "g0-6"
    return stopping, time.time()


def _which_python_a_script_runs_with(lab, run, monkeypatch):
    """The page of jobs says which: that of `subak up`, or of PATH where it is passed on, or of the first line."""
    script, venv = lab.folder / "where.py", lab.folder / "venv"
    run_python = "import sys, os; print(sys.prefix, os.environ.get('DEVICES'), os.environ.get('VIRTUAL_ENV'))\n"
    script.write_text(run_python)
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
    (venv / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    said = [("-e", "PATH"), (str(venv / "bin" / "python3"),), ("-e", "PATH", "-e", "DEVICES")]
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{venv / 'bin'}:{os.environ['PATH']}")
        patch.setenv("DEVICES", "7")
        patch.setenv("VIRTUAL_ENV", str(venv))
        amounts = ("-r", "cpu=100m", "-r", "memory=64Mi")
        found = [run("run", *amounts, *words, script)[1] for words in said]
        script.write_text(f"#!{venv / 'bin' / 'python3'}\n{run_python}")
        found.append(run("run", *amounts, script)[1])
    assert found == [f"{venv} None None\n", f"{venv} None None\n", f"{venv} 7 None\n", f"{venv} None None\n"]


def _what_ran_runs_again_and_nothing_outlives_kill_nine(lab, stopping, stopped):
    time.sleep(1)  # so that what a restart makes up is told from what was
    seen = Seen(lab)
    seen.until("ready after")
    assert next(seen.process.stdout).endswith(f" {OF_BEFORE}\n")
    until(lambda: len(lab.stamps("long.0.start")) == 2)
    with lab.client() as client:
        client.cancel("g0-6")
        assert client.wait("g0-6").outcome == "cancelled"
        first, over, second, _ = client.history("g0-6")
        assert [each.what for each in (first, over, second)] == ["began", "attempt stopped", "began"]
        one, two = lab.stamps("long.0.start")
        assert abs(first.at - one) < 1 and stopping < over.at < stopped and abs(second.at - two) < 1
        job = submitted(lab, client, "later", 5)
        until(lambda: lab.stamps("later.0.start"))
        until(lambda: client.task(f"{job.id}.0").state == "running")
        began = client.task(f"{job.id}.0").started
    seen.process.kill()
    seen.process.communicate(timeout=PATIENCE_S)
    nothing_is_left(lab)
    return job.id, began


def _what_was_killed_runs_again_detached(lab, later, began):
    up = lab.command("up", lab.folder, "--detach")
    out, _ = up.communicate(timeout=2 * PATIENCE_S)
    assert up.returncode == 0, out
    assert re.fullmatch(rf"{lab.folder}: ready after [\d.]+ s, as process \d+; subak down {lab.folder} ends it\n"
                        rf"{re.escape(OF_BEFORE)}\nask it with: .*: export SUBAK_FEDERATION={lab.folder}\n", out)
    again = lab.command("up", lab.folder, "--detach")
    assert again.communicate(timeout=PATIENCE_S)[0].startswith(f"subak: {lab.folder}: a federation runs here already")
    assert again.returncode == 2
    with lab.client() as client:
        assert client.wait(later).outcome == "finished"  # what was killed with its machine
        first = client.history(later)[0]
        assert (first.what, first.at) == ("began", began)
        script = f"trap '' TERM; touch {lab.folder}/deaf; while :; do sleep 1; done"
        job = client.submit("metadata: {name: deaf}\nresources: {cpu: 100m, memory: 16Mi}\n"
                            f'grace_period: 10m\ncommand: [sh, -c, "{script}"]\n')
        until((lab.folder / "deaf").exists)
    down = lab.command("down", lab.folder, "--now")
    assert down.communicate(timeout=PATIENCE_S)[0] == f"{STOPPED}\n{lab.folder}{KEEPS}\n"
    assert down.returncode == 0
    assert left(lab.folder) == []
    assert job.id.startswith("g0-")


def test_a_mistake_in_a_file_ends_it_at_once(lab):
    file = lab.members["g1"].file
    text = file.read_text()
    file.write_text(text.replace('"g1"', '"g9"'))
    up = lab.command("up", lab.folder)
    out, _ = up.communicate(timeout=PATIENCE_S)
    file.write_text(text)
    assert up.returncode == 2
    assert "g1 cannot be started: subak global-master: name: the federation has no global master 'g9'" in out
    assert left(lab.folder) == []


def test_a_mistake_in_the_file_of_a_worker_keeps_only_that_one_from_starting(lab):
    text = lab.members["a1"].file.read_text()
    broken = {"x1": text + "[capacity", "x2": text.replace("capacity", "capacities"), "x3": "name = '\xff'",
              "x4": text.replace('data = "data/a1"', 'data = "lock/a1"').replace('name = "a1"', 'name = "x4"')}
    files = {name: lab.folder / f"worker-{name}.toml" for name in broken}
    try:
        for name, file in files.items():
            file.write_bytes(broken[name].encode("latin-1"))
        up = Seen(lab)
        assert "2 machines" in up.until("ready after")
        said = [line for line in up.lines if "this worker does not start, all others do" in line]
        assert [str(files[name]) in line for name, line in zip(broken, said, strict=True)] == [True] * 4, up.lines
        assert "capacities" in said[1]
        assert not any("x4 is started again" in line for line in up.lines)
        assert up.end(signal.SIGTERM)[0] == 0
    finally:
        for file in files.values():
            file.unlink()
    nothing_is_left(lab)


def test_a_federation_without_machines_is_not_said_to_be_ready(lab):
    """Its masters serve; which workers are missing is said, and the exit code tells."""
    files = [lab.members[name].file for name in ("a1", "a2")]
    texts = [file.read_text() for file in files]
    try:
        for file, text in zip(files, texts, strict=True):
            file.write_text(text.replace("cpu = ", "cpu = -"))
        up = lab.command("up", lab.folder, "--detach")
        out, _ = up.communicate(timeout=2 * PATIENCE_S)
        assert up.returncode == 1
        assert f"{lab.folder}: masters are ready after " in out
        assert "but no machine has joined, so all tasks wait" in out
        assert f"subak: not there: worker a1, worker a2; {lab.folder}/log says why\n" in out
        assert out.count("this worker does not start, all others do") == 2
        files[0].write_text(texts[0])
        assert lab.command("down", lab.folder).wait(PATIENCE_S) == 0
        up = lab.command("up", lab.folder, "--detach")
        out, _ = up.communicate(timeout=2 * PATIENCE_S)
        assert up.returncode == 0
        assert f"{lab.folder}: ready after " in out
        assert "subak: not there: worker a2; " in out
        assert lab.command("down", lab.folder).wait(PATIENCE_S) == 0
    finally:
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
    nothing_is_left(lab)


def test_a_terminal_shows_all_there_is(lab):
    """A second Ctrl-C kills, and what was drawn is there."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal can be made here (no /dev/pts): {error}")
    up = subprocess.Popen([sys.executable, "-m", "subak", "up", lab.folder], stdin=theirs, stdout=theirs,
                          stderr=theirs, start_new_session=True,
                          env={**os.environ, "COLUMNS": "120", "LINES": "50", "TERM": "xterm"})
    os.close(theirs)
    seen = bytearray()

    def shown(words):
        if select.select([ours], [], [], 0.1)[0]:
            seen.extend(os.read(ours, 65_536))
        return words in seen

    until(lambda: shown(b": ready"), 2 * PATIENCE_S)
    for words in (b"speaks for its cluster", b"standby", b"guarantee", b"default", b"a1", b"in use"):
        until(lambda words=words: shown(words))
    up.send_signal(signal.SIGINT)
    time.sleep(0.05)
    up.send_signal(signal.SIGINT)
    with suppress(OSError):
        while os.read(ours, 65_536):
            pass
    os.close(ours)
    assert up.wait(PATIENCE_S) == 0
    assert left(lab.folder) == []
