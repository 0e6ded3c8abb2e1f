"""Processes of runs: forked by a server, with what their caller has at that time, and never there without it."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import asked
from subak.errors import RunError
from subak.experiment.fork_server import new_pool
from subak.experiment.processes import DONE, news_of

TESTS = Path(__file__).parent


def told(work, *jobs, processes=1, environment=None):
    """Return the last news of each job, in their order."""
    last = {news.label: news for news in news_of(work, {str(at): job for at, job in enumerate(jobs)}, processes,
                                                 kept=False, environment=environment)}
    return [last[str(at)] for at in range(len(jobs))]


def seen(**how):
    (news,) = told(asked.seen, None, **how)
    assert news.kind == DONE, news.error
    return json.loads(news.result)


def test_each_run_has_a_process_forked_by_a_server_that_has_loaded_and_has_no_threads():
    first, second = seen(), seen()
    assert (first["parent"], first["program"].count("forkserver")) == (second["parent"], second["program"].count("for"))
    assert first["process"] != second["process"]
    assert {first["threads"], second["threads"]} == {1}
    assert {"numba", "subak.federation.megha.roles"} <= set(first["modules"])
    assert "polars" not in first["modules"]  # which has threads
    assert first["collects"]


def test_a_process_has_what_its_caller_has_now(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("SECOND", "\udc80")  # no text
    seen()  # what the server was started with is older
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    monkeypatch.delenv("SECOND")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    found = seen(environment={"POLARS_MAX_THREADS": "1", "THIRD": "3"})
    assert found["variables"] == {**os.environ, "POLARS_MAX_THREADS": "1", "THIRD": "3"}
    assert (found["folder"], found["path"][0]) == (str(tmp_path), str(tmp_path / "modules"))
    assert found["polars"] == 1
    assert "THIRD" not in os.environ


def test_where_libraries_would_load_otherwise_each_process_loads_them(monkeypatch):
    assert not seen()["checked"]
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    found = seen()
    assert (found["checked"], found["parent"]) == (1, os.getpid())
    monkeypatch.delenv("NUMBA_BOUNDSCHECK")
    assert seen()["parent"] != os.getpid()


@pytest.mark.parametrize("checked", ["0", "1"])
def test_processes_of_a_killed_program_are_killed_whatever_they_do(tmp_path, checked):
    """It cannot end its runs; they would go on for hours, and write where others clear."""
    script = (f"import os, sys\nsys.path.insert(0, {str(TESTS)!r})\nimport asked\nasked.seen\n"
              f"from subak.experiment import fork_server\nfork_server.process_context()\n"
              f"os.environ['NUMBA_BOUNDSCHECK'] = '{checked}'\n"  # what the server has not; so they are spawned
              f"asked.two_that_loop({str(tmp_path)!r})\n")
    program = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "NUMBA_BOUNDSCHECK": "0"})
    numbers = set()
    try:
        assert until(lambda: {"one", "two"} <= {each.name for each in tmp_path.iterdir()}, 60)
        numbers |= {int(number) for name in ("one", "two") for number in (tmp_path / name).read_text().split()}
        assert (program.pid in numbers, len(numbers)) == (checked == "1", 3)
        assert all(map(is_alive, numbers))
        program.send_signal(signal.SIGKILL)
        program.wait()
        assert until(lambda: not any(map(is_alive, numbers)), 10)
    finally:
        program.kill()
        for number in filter(is_alive, numbers):
            os.kill(number, signal.SIGKILL)


def test_what_a_forked_process_died_of_is_said():
    assert [news.error for news in told(asked.dies, signal.SIGTERM, signal.SIGKILL)] == [
        "run 0: its process died of SIGTERM", "run 1: its process died of SIGKILL (out of memory?)"]


def test_a_server_that_is_killed_takes_no_run_with_it_and_is_started_again():
    server = seen()["parent"]
    assert told(asked.kills_the_server, None)[0].kind == DONE
    assert until(lambda: not is_alive(server), 10)
    assert seen()["parent"] not in (server, os.getpid())


def test_where_the_end_of_the_server_was_taken_processes_load_everything_for_themselves():
    """As by a program that waits for whatever child of it ends; then nobody can know whether the server is there."""
    script = (f"import os, signal, sys\nsys.path.insert(0, {str(TESTS)!r})\nimport test_fork_server as asks\n"
              "server = asks.seen()['parent']\nos.kill(server, signal.SIGKILL)\n"
              "while server != os.waitpid(-1, 0)[0]: pass\n"
              "assert [asks.seen()['parent'] for _ in range(2)] == 2 * [os.getpid()] != 2 * [server]\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, text=True,
                          timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def is_alive(process):
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][:3]
    except OSError:
        return False


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def test_without_semaphores_it_is_a_line(monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refuse)
    with pytest.raises(RunError, match=r"^no processes can be started for runs: .*Permission denied.*/dev/shm$"):
        new_pool(1, print)
