"""Many runs at once: one process a run, so that a run's memory is its own and one that dies takes nothing with it."""
import logging
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from subak.errors import InputError, RunError
from subak.experiment.processes import FAILED, NOTICE, PROGRESS, STARTED, News, Say, news_of
from subak.experiment.run import load_inputs, run_label, simulate_in
from subak.experiment.scenario import Scenario, seeds_of
from subak.policy_files import named_scheduler

LABEL_BYTES = 200  # of the name of a run, which is that of its folder


@dataclass(frozen=True)
class Job:
    """One run of a comparison."""

    scheduler: str
    seed: int
    label: str


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
    packed = msgspec.msgpack.encode(scenario)
    jobs = {job.label: (packed, folder, job) for job, folder in folders.items()}
    errors: dict[str, str] = {}
    notices: set[str] = set()
    with closing(news_of(_run, jobs, processes, kept=False)) as found:
        for news in found:
            if news.kind == FAILED:
                errors[news.label] = news.error
                shutil.rmtree(jobs[news.label][1], ignore_errors=True)
            if news.kind == NOTICE and news.notice not in notices:
                notices.add(news.notice)
                logging.getLogger("subak").warning(news.notice)
            if on_news:
                on_news(news)
    return errors


def _run(label: str, work: tuple[bytes, Path, Job], say: Say) -> bytes:
    """Do one run into its folder."""
    packed, folder, job = work
    scenario = msgspec.msgpack.decode(packed, type=Scenario)
    folder.mkdir(exist_ok=True)
    inputs = load_inputs(scenario)
    say(News(label, STARTED))
    simulate_in(folder, scenario, job.scheduler, job.seed, inputs,
                lambda progress: say(News(label, PROGRESS, progress)))
    return b""
