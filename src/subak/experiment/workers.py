"""Runs jobs side by side on threads or in processes, and reports the outcome of each.

A kernel lets other threads run beside it, so runs of our own schedulers need no processes. A policy of somebody's does:
it may loop for ever, or leave its arrays. Each worker has a pipe of its own. A process that dies, whatever kills it,
takes nothing with it but the job in its hands.
"""
import logging
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from subak.errors import SubakError
from subak.experiment.spawn import CONTEXT, end_with, lifeline, starting

if TYPE_CHECKING:  # a process loads what it needs once its variables are set
    from subak.simulator.engine.run_loop import Progress

STARTED, PROGRESS, NOTICE, DONE, FAILED = "started", "progress", "notice", "done", "failed"
LAST = (DONE, FAILED)  # what is said of a job at its end
threads: list[threading.Thread] = []  # of jobs; the dead ones are dropped when another begins


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


@dataclass(frozen=True)
class Here:
    """A job that a thread of this process does: a function, which is told how to say how far it is."""

    do: Callable[[Say], None]


class _StoppedError(BaseException):
    """Ends a job that nobody waits for any more."""


@dataclass
class _Process:
    process: Any
    pipe: Any
    label: str = ""  # of the job that it does

    def give(self, label: str, job: object) -> None:
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


class _Thread:
    """A thread for one job."""

    def __init__(self, label: str, job: Here) -> None:
        self.label = label
        self.fault: BaseException | None = None
        self.pipe, theirs = Pipe()
        self.thread = threading.Thread(target=self._serve, args=(job, theirs), daemon=True)
        threads[:] = [*(each for each in threads if each.is_alive()), self.thread]  # a signal may come in `start`
        self.thread.start()

    def heard(self) -> News:
        """Return what it says. Raises what its job raised, where that was no failure of a run."""
        found: News = self.pipe.recv()
        if found.kind in LAST and self.fault is not None:
            raise self.fault
        return found

    def end(self) -> None:
        """Let its job end when it next says something."""
        self.pipe.close()

    def _serve(self, job: Here, pipe: "Connection[object, object]") -> None:
        def say(news: News) -> None:
            try:
                pipe.send(news)
            except OSError:  # closed at the other end
                raise _StoppedError from None

        with suppress(_StoppedError), pipe:
            say(News(self.label, STARTED))
            try:
                job.do(say)
                last = News(self.label, DONE)
            except SubakError as error:
                last = News(self.label, FAILED, error=str(error))
            except MemoryError:
                last = News(self.label, FAILED, error=f"run {self.label}: out of memory")
            except _StoppedError:
                raise
            except BaseException as error:  # whatever it is, it is raised where somebody waits for the job
                self.fault = error
                last = News(self.label, FAILED, error=str(error))
            say(last)


def news_of(work: Work | None, jobs: Mapping[str, object], at_once: int, kept: bool,
            environment: Mapping[str, str] | None = None) -> Generator[News, None, None]:
    """Do each job, so many *at_once*, and yield what is said of each; DONE or FAILED comes last.

    A thread does a job that is a `Here`; all others a process does by *work*. Processes are *kept* for the next job, or
    each does one, so that its memory is that of its job. They have the variables of *environment* beside this one's.
    A listener that stops ends them, and threads when they next say something. Raises what a job on a thread raised that
    is no failure of a run.
    """
    due = list(jobs.items())[::-1]
    idle: list[_Process] = []
    busy: list[_Process | _Thread] = []

    def give() -> None:
        while due and len(busy) < at_once:
            label, job = due.pop()
            if isinstance(job, Here):
                busy.append(_Thread(label, job))
                continue
            assert work is not None
            worker = idle.pop() if idle else _started(work, environment or {})
            worker.give(label, job)
            busy.append(worker)

    try:
        give()
        while busy:
            for pipe in wait([worker.pipe for worker in busy]):
                worker = next(each for each in busy if each.pipe is pipe)
                news = worker.heard()
                if news.kind in LAST:
                    busy.remove(worker)
                    if kept and news.kind == DONE and isinstance(worker, _Process):  # who failed may be dead
                        idle.append(worker)
                    else:
                        worker.end()
                    give()  # before the listener takes its time
                yield news
    finally:
        for each in (*busy, *idle):
            each.end()


def _started(work: Work, environment: Mapping[str, str]) -> _Process:
    ours, theirs = CONTEXT.Pipe()
    told = (lifeline(), dict(environment), pickle.dumps(work), theirs)
    process = CONTEXT.Process(target=_serve, args=told, daemon=True)
    with starting():
        process.start()
    theirs.close()  # so that its end is the pipe's
    return _Process(process, ours)


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


def _serve(line: "Connection[object, object]", environment: dict[str, str], packed: bytes, pipe: Any) -> None:
    """Do what comes through the pipe, and say what became of it, until nobody is there any more."""
    os.environ.update(environment)
    end_with(line)
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
