"""The processes of a federation, real ones: started from files, killed, started again; what they are refused for."""
import subprocess
import sys

import msgspec
import pytest

from federations import PATIENCE_S, Folder, left, until
from subak.live.api.errors import RefusedError
from subak.live.config import FederationFile, read
from subak.live.tokens import JOIN, PEOPLE, new_token

ACTIVE = ("a", "g0", "g1", "a1")


@pytest.fixture(scope="module")
def federation():
    federation = Folder(clusters=1, workers=1)
    for name in (*ACTIVE, "a-standby"):
        federation.start(name)
    yield federation
    federation.over()
    until(lambda: not left(federation.folder), words=lambda: left(federation.folder))


@pytest.fixture(scope="module")
def paper():
    federation = Folder(clusters=1, workers=1, preemption="strict")
    yield federation
    federation.over()


# -- files with mistakes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "before", "after", "words"), [
    ("worker-a1", 'name = "a1"', 'name = "a 1"', "name: must match"),
    ("worker-a1", 'data = ', 'date = ', "unknown field `date`"),
    ("worker-a1", "cpu = ", "cpu = -",
     'capacity.cpu: must be cores, such as 4, 0.5 or "500m", at most 2,147,483, not -'),
    ("worker-a1", "cpu = ", "gpu = 1.5 #", "capacity.gpu: must be a whole number from 0 to 2,147,483,647, not 1.5"),
    ("worker-a1", "cpu = ", "cpu = true #", "at most 2,147,483, not true"),
    ("worker-a1", "memory = ", "memory = 8192 #",  # as it was said before, in MiB
     'capacity.memory: must be such as "8Gi" or "512Mi", or bytes, from 1,048,576 on, not 8192'),
    ("worker-a1", "data = ", 'output_bytes = "x"\ndata = ', "output_bytes: must be bytes, such as "),
    ("worker-a1", "data = ", 'output_bytes = "1Ki"\ndata = ', "Expected `int` >= 4096 - at `$.output_bytes`"),
    ("worker-a1", "data/a1", "data/" + 120 * "x", "a socket's path at most 107"),
    ("local-master-a", 'cluster = "a"', 'cluster = "z"', "the federation has no cluster 'z'; it has a"),
    ("local-master-a", "standby = false", 'standby = "no"', "Expected `bool`, got `str` - at `$.standby`"),
    ("local-master-a", '"python"', '"quick"', "Invalid enum value 'quick' - at `$.handlers`"),
    ("global-master-g0", 'name = "g0"', 'name = "g7"', "the federation has no global master 'g7'; it has g0, g1"),
    ("global-master-g0", 'name = "g0"', "name = g0", "Invalid value"),
    ("federation", '"strict"', "1", "Expected `str`, got `int` - at `$.timing.preemption`"),
    ("federation", '"strict"', '"hard"', "Invalid enum value 'hard' - at `$.timing.preemption`"),
    ("federation", '"drf"', '"dfr"', "order: must be one of round-robin, "),
    ("federation", '"memory"', '"memory", "tasks"', "resources: must not name tasks: each task counts as one"),
    ("federation", '"127.0.0.1:', '"127.0.0.1/', "must be HOST:PORT"),
])
def test_a_mistake_in_a_file_is_one_line_and_exit_code_two(paper, run, name, before, after, words):
    role = "global-master" if name == "federation" else name.rpartition("-")[0]
    file = paper.folder / ("global-master-g0.toml" if name == "federation" else f"{name}.toml")
    wrong = paper.folder / f"{name}.toml"
    text = wrong.read_text()
    assert before in text
    wrong.write_text(text.replace(before, after))
    try:
        code, out, err = run(role, file)
    finally:
        wrong.write_text(text)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("subak: ")
    assert words in err


def test_what_cannot_be_read_is_one_line(paper, run):
    assert run("worker", paper.folder / "none.toml") == (2, "", f"subak: {paper.folder}/none.toml: No such file or "
                                                                "directory\n")


def test_preemption_is_said_in_words(paper):
    assert read(paper.folder / "federation.toml", FederationFile).timing.rules(True).preemption == 1


def test_a_worker_without_a_token_or_with_one_for_people_is_refused(paper, run):
    token = paper.folder / "join.token"
    kept = token.read_text()
    for text, words in ((None, "no such file"), (new_token(PEOPLE), "one for join is needed")):
        token.unlink(missing_ok=True)
        if text is not None:
            token.touch(0o600)
            token.write_text(text)
        code, _, err = run("worker", paper.members["a1"].file)
        assert (code, err.count("\n")) == (2, 1)
        assert words in err
    token.write_text(kept)


def test_a_worker_loads_nothing_of_the_scheduler():
    code = ("import sys; sys.argv = ['subak', 'worker', '/none']\nfrom subak.cli.main import main\n"
            "try: main()\nexcept SystemExit: pass\n"
            "print([name for name in ('numba', 'polars', 'litestar', 'yaml') if name in sys.modules], "
            "'subak.live.process.worker' in sys.modules)\n"
            "import subak.live.process.worker\n"
            "print([name for name in ('numba', 'polars', 'litestar', 'yaml') if name in sys.modules])")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[] True\n[]\n"


# -- while they run ----------------------------------------------------------------------------------------------------


def ready(federation, machines=1):
    def holds():
        with federation.client() as client:
            masters, there = client.masters(), client.machines()
        return (all(master.state == "ready" for master in masters if master.role != "global")
                and sum(machine.state == "ready" for machine in there) == machines)
    until(holds)


def test_jobs_of_both_global_masters_run(federation):
    ready(federation)
    with federation.client() as client:
        jobs = [client.submit(federation.stamped(f"both{queue}") + f"queue: {queue}\ntasks: 3\n")
                for queue in ("research", "web")]
        assert {job.id.split("-")[0] for job in jobs} == {"g0", "g1"}
        assert [client.wait(job.id).outcome for job in jobs] == ["finished", "finished"]
        for _ in range(20):  # who asks just when a job ends is told of it, too
            job = client.submit("metadata: {name: quick}\nqueue: web\ncommand: ['true']\n")
            assert client.wait(job.id).outcome == "finished"
    assert all(len(federation.stamps(f"both{queue}.{index}.end")) == 1
               for queue in ("research", "web") for index in range(3))


@pytest.mark.parametrize("limit", [262_144, 262_145, 3_388_895])
def test_output_is_whole_however_long_it_is(federation, limit):
    """A piece that is shorter than was asked for is no end: of 3.4 MB, 262,144 bytes came, and exit code 0."""
    ready(federation)
    with federation.client() as client:
        job = client.submit(f"metadata: {{name: much}}\nqueue: web\n"
                            f"command: [sh, -c, 'seq 1 500000 | head -c {limit}']\n")
        found = b"".join(chunk.data for chunk in client.follow(f"{job.id}.0"))
        written = "".join(f"{number}\n" for number in range(1, 500_001)).encode()[:limit]
        assert len(found) == limit and found == written
        assert client.logs(f"{job.id}.0", tail=3).data == b"".join(written.splitlines(keepends=True)[-3:])


def test_what_attempts_have_written_is_read_one_after_the_other(federation):
    ready(federation)
    words = "echo from $0; echo wrong >&2; test -e $0 && exit 0; touch $0; exit 7"
    with federation.client() as client:
        job = client.submit(f"metadata: {{name: again}}\nqueue: web\nretries: 2\nbackoff: 0s\n"
                            f"command: [sh, -c, '{words}', {federation.folder}/again]\n")
        assert client.wait(job.id).outcome == "finished"
        task = f"{job.id}.0"
        found = [(chunk.attempt, chunk.data.decode()) for chunk in client.follow(task, attempt=1)]
        assert found == [(nth, f"from {federation.folder}/again\n") for nth in (1, 2)]
        assert client.logs(task, "stderr").data == client.logs(task, "stderr", attempt=1).data == b"wrong\n"
        assert [(event.what, event.attempt, event.why) for event in client.history(task)] == [
            ("began", 1, ""), ("attempt failed", 1, "exit code 7"), ("began", 2, ""), ("finished", 2, "finished")]
        assert (client.task(task).attempts, client.task(task).lost) == (2, 0)


@pytest.mark.parametrize("name", ["g0", "a1", "a"])
def test_a_second_process_on_one_folder_is_refused(federation, name):
    file = federation.members[name].file
    second = subprocess.run([sys.executable, "-m", "subak", federation.members[name].role, file], check=False,
                            capture_output=True, text=True, timeout=60)
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == f"subak: {federation.folder}/data/{name}: another process uses this folder\n"


def test_a_wrong_join_token_is_refused(federation):
    other = federation.folder / "other.token"
    other.touch(0o600)
    other.write_text(new_token(JOIN))
    file = federation.folder / "other.toml"
    file.write_text(federation.members["a1"].file.read_text().replace('"a1"', '"stranger"').replace("data/a1", "data/x")
                    .replace("[capacity]", 'join_token_file = "other.token"\n[capacity]'))
    stranger = subprocess.Popen([sys.executable, "-m", "subak", "worker", file], stderr=subprocess.PIPE, text=True)
    try:
        assert "its join token is not that of this federation" in stranger.stderr.readline()
        with federation.client() as client:
            assert [machine.name for machine in client.machines()] == ["a1"]
    finally:
        stranger.terminate()
        assert stranger.wait(20) == 0  # it ends in order while nobody lets it in
        stranger.stderr.close()


@pytest.mark.parametrize("name", ["g0", "g1", "a1", "a", "a-standby"])
def test_a_process_that_is_killed_and_started_again_loses_no_job(federation, name):
    ready(federation)
    task = f"again-{name}"
    with federation.client() as client:
        jobs = [client.submit(federation.stamped(f"{task}-{queue}", seconds) + f"queue: {queue}\n")
                for queue, seconds in (("research", 1.5), ("web", 0))]
        until(lambda: federation.stamps(f"{task}-research.0.start"))
        federation.kill(name)
        federation.start(name)
        for job in jobs:
            ended = client.wait(job.id)
            assert (ended.outcome, ended.reason) == ("finished", "")
    for queue in ("research", "web"):
        assert len(federation.stamps(f"{task}-{queue}.0.start")) == 1  # it ran once, while its process was away
        assert len(federation.stamps(f"{task}-{queue}.0.end")) == 1


def test_a_machine_that_was_removed_is_refused_and_its_worker_ends_with_one_line():
    federation = Folder(clusters=1, workers=1)
    try:
        for name in (*ACTIVE, "a-standby"):
            federation.start(name)
        ready(federation)
        with federation.client() as client:
            with pytest.raises(RefusedError, match="machine a1 is not lost"):
                client.remove("a1")
            federation.kill("a1")
            until(lambda: [machine.state for machine in client.machines()] == ["lost"])
            assert client.remove("a1").reason == "removed"
            until(lambda: not client.machines())
            federation.start("a1")
            until(lambda: federation.running["a1"].poll() is not None)
            assert federation.said("a1").splitlines()[-1].startswith(
                "subak: machine a1 was removed from the federation; to join again as another")
    finally:
        federation.over()


def test_a_worker_that_leaves_ends_its_tasks_and_its_machine_is_gone_at_once():
    federation = Folder(clusters=1, workers=1)
    try:
        for name in ("a", "a-standby", "g0", "g1"):
            federation.start(name)
        worker = federation.start("a1", "--leave")
        with federation.client() as client:
            until(lambda: any(machine.state == "ready" for machine in client.machines()))
            job = client.submit(msgspec.json.encode({
                "apiVersion": "subak/v1", "kind": "Job", "metadata": {"name": "long"}, "queue": "research",
                "command": ["sleep", "1000"], "grace_period": "100ms"}))
            until(lambda: client.job(job.id).counts.running == 1)
            worker.terminate()
            assert worker.wait(PATIENCE_S) == 0
            assert "leaves the federation" in federation.said("a1")
            until(lambda: not client.machines())
            assert client.job(job.id).counts.waiting == 1  # for another machine
    finally:
        federation.over()


def test_all_end_in_order_when_they_are_told_to(federation):
    ready(federation)
    for name in ("a1", "g0", "g1", "a", "a-standby"):
        process = federation.running.pop(name)
        process.terminate()
        assert process.wait(60) == 0, federation.said(name)
        assert federation.said(name).endswith(": ended\n")
    assert [line for line in left(federation.folder) if "subak.live.agent" not in line] == []
