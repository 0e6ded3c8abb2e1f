"""Runs simulations on threads of this process, so that inputs and kernels are loaded once.

So a policy may be a function of a notebook, and runs share one workload in memory. The caller's thread hears what they
say, draws it, and is the one that Ctrl-C reaches.
"""
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from subak.errors import RunError, SubakError
from subak.experiment.parallel import Job
from subak.experiment.workers import FAILED, PROGRESS, Here, News, Say, news_of
from subak.simulator.engine.run_loop import Progress

T = TypeVar("T")
Work = Callable[[Job, Callable[[Progress], None]], T]


def in_threads(
    jobs: list[Job], work: Work[T], threads: int, on_news: Callable[[News], None]
) -> tuple[dict[str, T], dict[str, SubakError]]:
    """Do *work* for each job, *threads* at a time; return what each gave, and why others failed, by label.

    What is raised that is no failure of a run, such as Ctrl-C, ends all of them.
    """
    done: dict[str, T] = {}
    failed: dict[str, SubakError] = {}

    def here(job: Job) -> Here:
        def do(say: Say) -> None:
            try:
                done[job.label] = work(job, lambda progress: say(News(job.label, PROGRESS, progress)))
            except SubakError as error:
                failed[job.label] = error
                raise

        return Here(do)

    with closing(news_of(None, {job.label: here(job) for job in jobs}, threads, kept=False)) as found:
        for news in found:
            if news.kind == FAILED:
                failed.setdefault(news.label, RunError(news.error))
            on_news(news)
    return done, failed
