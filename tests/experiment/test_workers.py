"""Jobs side by side: in processes that end with their caller, and on threads of its own."""
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import asked
from subak.errors import RunError
from subak.experiment import workers
from subak.experiment.spawn import new_pool
from subak.experiment.workers import DONE, FAILED, STARTED, Here, news_of

SUPPORT = Path(__file__).parents[1] / "support"


def told(work, *jobs, processes=1, environment=None):
    """Return the last news of each job, in their order."""
    last = {news.label: news for news in news_of(work, {str(at): job for at, job in enumerate(jobs)}, processes,
                                                 kept=False, environment=environment)}
    return [last[str(at)] for at in range(len(jobs))]


def seen(**how):
    (news,) = told(asked.seen, None, **how)
    assert news.kind == DONE, news.error
    return json.loads(news.result)


def test_a_process_is_a_new_python_with_what_its_caller_has_now(monkeypatch, tmp_path):
    monkeypatch.setenv("SECOND", "\udc80")  # no text
    first = seen()
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")
    monkeypatch.delenv("SECOND")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    found = seen(environment={"POLARS_MAX_THREADS": "1", "THIRD": "3"})
    assert (found["process"] != first["process"], found["parent"], first["parent"]) == (True, *2 * [os.getpid()])
    assert (first["variables"]["SECOND"], "SECOND" in found["variables"]) == ("\udc80", False)
    assert found["variables"].items() >= {**os.environ, "POLARS_MAX_THREADS": "1", "THIRD": "3"}.items()
    assert (found["folder"], found["path"][0]) == (str(tmp_path), str(tmp_path / "modules"))
    assert ("polars" in found["modules"], found["polars"]) == (False, 1)  # it reads its variable when it loads
    assert "THIRD" not in os.environ


def test_processes_of_a_killed_program_are_killed_whatever_they_do(tmp_path):
    """It cannot end its runs; they would go on for hours, and write where others clear."""
    script = (f"import sys\nsys.path.insert(0, {str(SUPPORT)!r})\nimport asked\n"
              f"asked.two_that_loop({str(tmp_path)!r})\n")
    program = subprocess.Popen([sys.executable, "-c", script])
    numbers = set()
    try:
        assert until(lambda: {"one", "two"} <= {each.name for each in tmp_path.iterdir()}, 60)
        numbers |= {int(number) for name in ("one", "two") for number in (tmp_path / name).read_text().split()}
        assert (program.pid in numbers, len(numbers)) == (True, 3)
        assert all(map(is_alive, numbers))
        program.send_signal(signal.SIGKILL)
        program.wait()
        assert until(lambda: not any(map(is_alive, numbers)), 10)
    finally:
        program.kill()
        for number in filter(is_alive, numbers):
            os.kill(number, signal.SIGKILL)


def test_what_a_process_died_of_is_said_and_others_go_on():
    assert [(news.kind, news.error) for news in told(asked.dies, signal.SIGTERM, 0, signal.SIGKILL)] == [
        (FAILED, "run 0: its process died of SIGTERM"), (DONE, ""),
        (FAILED, "run 2: its process died of SIGKILL (out of memory?)")]


def test_threads_and_processes_share_the_places_and_no_more_jobs_run_than_are_asked_for():
    """While the process has its job a thread has one; then two have."""
    running, most, lock, apart = [], [], threading.Lock(), threading.Event()

    def do(say):
        assert apart.wait(60)
        with lock:
            running.append(1)
            most.append(len(running))
        time.sleep(0.05)
        with lock:
            running.pop()

    jobs = {"apart": None, **{str(number): Here(do) for number in range(6)}}
    news = []
    for each in news_of(asked.seen, jobs, 2, kept=False):
        news.append(each)
        if (each.label, each.kind) == ("apart", DONE):
            apart.set()
    assert sorted(each.label for each in news if each.kind == DONE) == sorted(jobs)
    assert max(most) == 2
    assert max(beside_the_process(news)) == 1


def beside_the_process(news):
    """Return how many threads had a job each time that one began or ended, before the process had done its own."""
    count = 0
    for each in news:
        count += {STARTED: 1, DONE: -1}.get(each.kind, 0) if each.label != "apart" else 0
        yield count
        if (each.label, each.kind) == ("apart", DONE):
            return


@pytest.mark.parametrize(("error", "said"), [
    (RunError("no"), "no"), (MemoryError(), "run bad: out of memory")])
def test_a_job_on_a_thread_that_fails_says_why_and_others_go_on(error, said):
    def fail(_say):
        raise error

    jobs = {"bad": Here(fail), "good": Here(lambda _say: None)}
    last = {news.label: news for news in news_of(None, jobs, 1, kept=False)}
    assert [(last[label].kind, last[label].error) for label in jobs] == [(FAILED, said), (DONE, "")]


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


def test_a_thread_that_a_signal_interrupts_the_start_of_is_known(monkeypatch):
    """Whoever ends the program looks whether a thread still computes; a signal may fall into the very start of one."""
    go_on, start = threading.Event(), threading.Thread.start

    def interrupted(thread):
        start(thread)
        raise SystemExit(143)

    before = set(workers.threads)
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(SystemExit):
        list(news_of(None, {"a": Here(lambda say: go_on.wait(60))}, 1, kept=False))
    assert [thread.is_alive() for thread in workers.threads if thread not in before] == [True]
    go_on.set()


def test_threads_that_have_ended_are_forgotten():
    others = {thread for thread in workers.threads if thread.is_alive()}  # of tests that left a job to itself
    for _ in range(20):
        list(news_of(None, {"a": Here(lambda say: None)}, 1, kept=False))
        workers.threads[-1].join(10)
    assert len([thread for thread in workers.threads if thread not in others]) == 1
