"""Processes that do one job after another, so that what one has loaded and compiled serves its next job too.

Each has a pipe of its own: one that dies, whatever kills it, takes nothing with it but the job in its hands.
"""
import logging
import multiprocessing
import pickle
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import TYPE_CHECKING, Any

from subak.collection import without_collection
from subak.errors import RunError, SubakError
from subak.experiment.fork_server import Caller, caller, process_context, starting, take_over

if TYPE_CHECKING:  # a process loads what it needs once it has said that nothing of that is garbage
    from subak.simulator.engine.run_loop import Progress

STARTED, PROGRESS, NOTICE, DONE, FAILED = "started", "progress", "notice", "done", "failed"
LAST = (DONE, FAILED)  # what is said of a job at its end


@dataclass(frozen=True)
class News:
    """What is said of a job: `kind` is one of the words above."""

    label: str
    kind: str
    progress: "Progress | None" = None
    error: str = ""
    notice: str = ""  # what its process has to say that is no error
    result: bytes = b""  # of a job that is done


Say = Callable[[News], None]
Work = Callable[[str, Any, Say], bytes]  # does the job of a label; a function of a module, which a process can find


@dataclass
class _Worker:
    process: Any
    pipe: Any
    label: str = ""  # of the job that it does

    def give(self, label: str, job: Any) -> None:
        self.label = label
        with suppress(OSError):  # it is dead: its pipe says so to who listens
            self.pipe.send((label, job))

    def heard(self) -> News:
        """Return what it says; one that is gone without a last word has failed."""
        try:
            found: News = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            found = News(self.label, FAILED,
                         error=f"run {self.label}: its process died {_cause(self.process.exitcode)}")
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def news_of(work: Work, jobs: Mapping[str, Any], processes: int, kept: bool,
            environment: Mapping[str, str] | None = None) -> Generator[News, None, None]:
    """Do each job by *work*, *processes* at a time, and yield what is said of each; DONE or FAILED comes last.

    Processes are *kept* for the next job, or each does one, so that its memory is that of its job. They have the
    variables of *environment* beside this one's. Who stops listening ends them.
    """
    due = list(jobs.items())[::-1]
    idle: list[_Worker] = []
    busy: list[_Worker] = []

    def give() -> None:
        while due and len(busy) < processes:
            worker = idle.pop() if idle else _started(work, environment or {})
            worker.give(*due.pop())
            busy.append(worker)

    try:
        give()
        while busy:
            for pipe in wait([worker.pipe for worker in busy]):
                worker = next(each for each in busy if each.pipe is pipe)
                news = worker.heard()
                if news.kind in LAST:
                    busy.remove(worker)
                    if kept and news.kind == DONE:  # who failed may be short of memory, or dead
                        idle.append(worker)
                    else:
                        worker.end()
                    give()  # before the listener takes its time
                yield news
    finally:
        for worker in (*busy, *idle):
            worker.end()


def _started(work: Work, environment: Mapping[str, str]) -> _Worker:
    """Start a process. Raises RunError where the server is gone that would fork it."""
    try:
        return _started_in(process_context(), work, environment)
    except ChildProcessError:  # the server's end was taken by who waits for whatever child of this process ends
        return _started_in(multiprocessing.get_context("spawn"), work, environment)


def _started_in(context: ForkServerContext | SpawnContext, work: Work, environment: Mapping[str, str]) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(caller(environment), pickle.dumps(work), theirs), daemon=True)
    try:
        with starting():
            process.start()
    except (EOFError, ConnectionError):
        raise RunError("the server that forks processes died (out of memory?)") from None
    theirs.close()  # so that its end is the pipe's
    return _Worker(process, ours)


def _cause(code: int) -> str:
    """Say what ended a process, and what that may come from."""
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    if -code in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE):
        return f"of {name}; a policy that leaves its arrays does that, and --check-policy says where"
    return f"of {name} (out of memory?)" if -code == signal.SIGKILL else f"of {name}"


class _Forward(logging.Handler):
    """Says in the first process what is said in another: only one may write to the terminal."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self.say, self.label = say, ""

    def emit(self, record: logging.LogRecord) -> None:
        self.say(News(self.label, NOTICE, notice=record.getMessage()))


def _serve(told: Caller, packed: bytes, pipe: Any) -> None:
    """Do what comes through the pipe, and say what became of it, until nobody is there any more."""
    take_over(told)
    with without_collection():
        work: Work = pickle.loads(packed)  # loads the module of the function
    forward = _Forward(pipe.send)
    logging.getLogger("subak").addHandler(forward)
    with suppress(EOFError):
        while True:
            label, job = pipe.recv()
            forward.label = label
            pipe.send(_done(work, label, job, pipe.send))


def _done(work: Work, label: str, job: Any, say: Say) -> News:
    try:
        return News(label, DONE, result=work(label, job, say))
    except SubakError as error:
        return News(label, FAILED, error=str(error))
    except MemoryError:
        return News(label, FAILED, error=f"run {label}: out of memory")
    except KeyboardInterrupt:  # Ctrl-C does not come here, so it was raised by what it ran
        return News(label, FAILED, error=f"run {label}: its scheduler raised KeyboardInterrupt")
