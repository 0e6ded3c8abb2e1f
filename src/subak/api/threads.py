"""Runs in threads of this process: kernels let others run beside them, and nothing is loaded or compiled twice.

So a policy may be a function of a notebook, and runs share one workload in memory. The caller's thread hears what they
say, draws it, and is the one that Ctrl-C reaches.
"""
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from subak.errors import SubakError
from subak.experiment.parallel import Job
from subak.experiment.processes import DONE, FAILED, PROGRESS, STARTED, News
from subak.simulator.engine.run_loop import Progress

POLL_S = 0.2
T = TypeVar("T")
Work = Callable[[Job, Callable[[Progress], None]], T]


class _StoppedError(BaseException):
    """Ends a run that nobody waits for any more."""


class _Crew(Generic[T]):
    """Some threads, and what they say."""

    def __init__(self, jobs: list[Job], work: Work[T]) -> None:
        self.work = work
        self.waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.said: queue.SimpleQueue[tuple[News, T | BaseException | None]] = queue.SimpleQueue()
        self.stopped = threading.Event()
        for job in jobs:
            self.waiting.put(job)

    def serve(self) -> None:
        """Do one job after the other, and say what became of each."""
        while not self.stopped.is_set():
            try:
                job = self.waiting.get_nowait()
            except queue.Empty:
                return
            self.said.put((News(job.label, STARTED), None))
            try:
                self.said.put((News(job.label, DONE), self.work(job, self._hearing(job.label))))
            except _StoppedError:
                return
            except BaseException as error:  # whatever it is, it is raised where somebody waits for it
                self.said.put((News(job.label, FAILED, error=str(error)), error))

    def _hearing(self, label: str) -> Callable[[Progress], None]:
        def hear(progress: Progress) -> None:
            if self.stopped.is_set():
                raise _StoppedError
            self.said.put((News(label, PROGRESS, progress), None))

        return hear


def in_threads(
    jobs: list[Job], work: Work[T], threads: int, on_news: Callable[[News], None]
) -> tuple[dict[str, T], dict[str, SubakError]]:
    """Do *work* for each job, *threads* at a time; return what each gave, and why others failed, by label.

    What is raised that is no failure of a run, such as Ctrl-C, ends all of them.
    """
    crew: _Crew[T] = _Crew(jobs, work)
    done: dict[str, T] = {}
    failed: dict[str, SubakError] = {}
    try:
        for _ in range(min(threads, len(jobs))):
            threading.Thread(target=crew.serve, daemon=True).start()
        while len(done) + len(failed) < len(jobs):
            try:
                news, result = crew.said.get(timeout=POLL_S)
            except queue.Empty:
                continue
            on_news(news)
            if isinstance(result, SubakError):
                failed[news.label] = result
            elif isinstance(result, BaseException):
                raise result
            elif result is not None:
                done[news.label] = result
    finally:
        crew.stopped.set()
    return done, failed
