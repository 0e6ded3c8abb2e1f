"""Many runs at once: one process a run, so that a run's memory is its own and one that dies takes nothing with it."""
import ctypes
import logging
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from subak.errors import InputError, RunError, SubakError
from subak.experiment.run import load_inputs, run_label, simulate_in
from subak.experiment.scenario import Scenario, seeds_of
from subak.policy_files import named_scheduler
from subak.simulator.engine.run_loop import Progress

POLL_S = 0.2
LABEL_BYTES = 200  # of the name of a run, which is that of its folder
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
STARTED, PROGRESS, NOTICE, DONE, FAILED = "started", "progress", "notice", "done", "failed"


@dataclass(frozen=True)
class Job:
    """One run of a comparison."""

    scheduler: str
    seed: int
    label: str


@dataclass(frozen=True)
class News:
    """What a run's process says: `kind` is one of the words above."""

    label: str
    kind: str
    progress: Progress | None = None
    error: str = ""
    notice: str = ""  # what its process has to say that is no error


def jobs_of(scenario: Scenario) -> list[Job]:
    """Return every scheduler with every seed that changes something. Raises InputError for names alike, or too long."""
    jobs = [
        Job(name, seed, run_label(name, seed, scenario.seeds))
        for name in scenario.schedulers for seed in seeds_of(scenario, name)
    ]
    by_label = {job.label: job for job in jobs}
    hidden = next((job for job in jobs if by_label[job.label] is not job), None)
    if hidden is not None:
        raise InputError(f"schedulers: {hidden.scheduler} and {by_label[hidden.label].scheduler} would both be called "
                         f"{hidden.label}; rename one")
    long = next((job for job in jobs if len(os.fsencode(job.label)) > LABEL_BYTES), None)
    if long is not None:
        raise InputError(f"schedulers: {long.label[:60]}... is too long for a folder, at most {LABEL_BYTES} bytes are "
                         "possible")
    return jobs


def in_good_order(jobs: list[Job]) -> list[Job]:
    """Put one job of each engine first: where they must be compiled, they are compiled side by side, and once."""
    engine = {job.scheduler: named_scheduler(job.scheduler).kernels for job in jobs}
    firsts = [next(job for job in jobs if engine[job.scheduler] == kind) for kind in dict.fromkeys(engine.values())]
    return firsts + [job for job in jobs if job not in firsts]


def run_all(
    scenario: Scenario, folder: Path, processes: int, on_news: Callable[[News], None] | None = None
) -> dict[str, str]:
    """Write every run of the scenario into *folder*/LABEL, *processes* at a time.

    Returns the error of each run that failed; the others are not touched by it. Raises RunError when every run failed.
    """
    jobs = in_good_order(jobs_of(scenario))
    errors = _in_processes(scenario, {job: folder / job.label for job in jobs}, processes, on_news)
    if len(errors) == len(jobs):
        raise RunError("; ".join(dict.fromkeys(errors.values())))
    return errors


def run_apart(scenario: Scenario, folder: Path, on_news: Callable[[News], None]) -> None:
    """Write the one run of the scenario into *folder*, which is empty, in a process that can be ended at any time.

    Raises RunError when it failed.
    """
    errors = _in_processes(scenario, {job: folder for job in jobs_of(scenario)}, 1, on_news)
    for error in errors.values():
        raise RunError(error)


def _in_processes(
    scenario: Scenario, folders: dict[Job, Path], processes: int, on_news: Callable[[News], None] | None
) -> dict[str, str]:
    """Do each job into its folder, *processes* at a time; return the errors by label, whose folders are gone."""
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue()
    waiting = list(folders)
    by_label = {job.label: folder for job, folder in folders.items()}
    running: dict[str, Any] = {}
    errors: dict[str, str] = {}
    notices: set[str] = set()
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                job = waiting.pop(0)
                folders[job].mkdir(exist_ok=True)
                running[job.label] = _started(context, queue, scenario, folders[job], job)
            for news in _news(queue, running):
                if news.kind in (DONE, FAILED):
                    running.pop(news.label).join()
                if news.kind == FAILED:
                    errors[news.label] = news.error
                    shutil.rmtree(by_label[news.label])
                if news.kind == NOTICE and news.notice not in notices:
                    notices.add(news.notice)
                    logging.getLogger("subak").warning(news.notice)
                if on_news:
                    on_news(news)
    finally:
        for process in running.values():
            process.kill()
            process.join()
    return errors


def _started(context: Any, queue: Any, scenario: Scenario, folder: Path, job: Job) -> Any:
    """Start a process that never hears the terminal's Ctrl-C: it is for this one, which then ends the others."""
    arguments = (queue, msgspec.msgpack.encode(scenario), folder, job, os.getpid())
    process = context.Process(target=_work, args=arguments, daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited, and kept through its imports
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def _news(queue: Any, running: dict[str, Any]) -> list[News]:
    """Wait a little for messages; a process that is gone without a last word has failed."""
    found: list[News] = []
    try:
        found.append(queue.get(timeout=POLL_S))
        while not queue.empty():
            found.append(queue.get())
    except multiprocessing.queues.Empty:  # type: ignore[attr-defined]
        silent = [label for label, process in running.items() if process.exitcode is not None]
        found.extend(News(label, FAILED, error=f"run {label}: its process died {_cause(running[label].exitcode)}")
                     for label in silent if queue.empty())
    return found


def _cause(code: int) -> str:
    """Say what ended a process, and what that may come from."""
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    if -code in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE):
        return f"of {name}; a policy that leaves its arrays does that, and --check-policy says where"
    return f"of {name} (out of memory?)" if -code == signal.SIGKILL else f"of {name}"


class _Forward(logging.Handler):
    """Says in the first process what is said in a run's: only one may write to the terminal."""

    def __init__(self, queue: Any, label: str) -> None:
        super().__init__()
        self.queue, self.label = queue, label

    def emit(self, record: logging.LogRecord) -> None:
        self.queue.put(News(self.label, NOTICE, notice=record.getMessage()))


def _work(queue: Any, packed: bytes, folder: Path, job: Job, parent: int) -> None:
    """Do one run, and say what became of it."""
    die_with(parent)
    logging.getLogger("subak").addHandler(_Forward(queue, job.label))
    try:
        scenario = msgspec.msgpack.decode(packed, type=Scenario)
        inputs = load_inputs(scenario)
        queue.put(News(job.label, STARTED))
        simulate_in(folder, scenario, job.scheduler, job.seed, inputs,
                    lambda progress: queue.put(News(job.label, PROGRESS, progress)))
        queue.put(News(job.label, DONE))
    except SubakError as error:
        queue.put(News(job.label, FAILED, error=str(error)))
    except MemoryError:
        queue.put(News(job.label, FAILED, error=f"run {job.label}: out of memory"))
    except KeyboardInterrupt:  # Ctrl-C does not come here, so it was raised by what it ran
        queue.put(News(job.label, FAILED, error=f"scheduler {job.scheduler} raised KeyboardInterrupt"))


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent dies: nobody would hear of its run any more."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)  # Linux has it
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before
        os._exit(1)
