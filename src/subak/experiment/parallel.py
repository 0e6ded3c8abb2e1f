"""Runs many simulations at once: built-in schedulers on threads, a user's policy in a process of its own."""
import logging
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from subak.errors import InputError, RunError
from subak.experiment.folder import Done, run_label, write_run
from subak.experiment.inputs import load_inputs
from subak.experiment.run import do_run, without_memory
from subak.experiment.scenario import Scenario, seeds_of
from subak.experiment.workers import DONE, FAILED, NOTICE, PROGRESS, STARTED, Here, News, Say, news_of
from subak.fleet.table import Fleet
from subak.policy_files import is_users, named_scheduler
from subak.simulator.engine.run_loop import Progress
from subak.workload.table import Workload

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
    scenario: Scenario, inputs: tuple[Workload, Fleet], folder: Path, at_once: int,
    on_news: Callable[[News], None] | None = None,
) -> dict[str, str]:
    """Write every run of the scenario into *folder*/LABEL, so many *at_once*; its inputs are loaded.

    Returns the error of each run that failed; the others are not touched by it. Raises RunError when every run failed.
    """
    jobs = in_good_order(jobs_of(scenario))
    errors = _done(scenario, inputs, {job: folder / job.label for job in jobs}, at_once, on_news)
    if len(errors) == len(jobs):
        raise RunError("; ".join(dict.fromkeys(errors.values())))
    return errors


def run_apart(
    scenario: Scenario, inputs: tuple[Workload, Fleet], folder: Path, on_news: Callable[[News], None]
) -> None:
    """Write the one run of the scenario into *folder*, which is empty; a user's policy can be ended at any time.

    Raises RunError when it failed.
    """
    errors = _done(scenario, inputs, {job: folder for job in jobs_of(scenario)}, 1, on_news)
    for error in errors.values():
        raise RunError(error)


def _done(
    scenario: Scenario, inputs: tuple[Workload, Fleet], folders: dict[Job, Path], at_once: int,
    on_news: Callable[[News], None] | None,
) -> dict[str, str]:
    """Do each job into its folder, so many *at_once*; return the errors by label, whose folders are gone.

    What a thread has done is written here, so that nobody writes any more once this ends.
    """
    packed = msgspec.msgpack.encode(scenario)
    held: dict[str, Done] = {}
    of_label = {job.label: job for job in folders}
    jobs = {job.label: (packed, folder, job) if is_users(job.scheduler) else
            _held_job(job, scenario, inputs, held) for job, folder in folders.items()}
    errors: dict[str, str] = {}
    notices: set[str] = set()
    with closing(news_of(_run, jobs, at_once, kept=False)) as found:
        for news in found:
            if news.kind == FAILED:
                errors[news.label] = news.error
                shutil.rmtree(folders[of_label[news.label]], ignore_errors=True)
            if news.kind == DONE and news.label in held:
                job = of_label[news.label]
                folders[job].mkdir(exist_ok=True)
                write_run(folders[job], held.pop(news.label), job.scheduler, job.seed)
            if news.kind == NOTICE and news.notice not in notices:
                notices.add(news.notice)
                logging.getLogger("subak").warning(news.notice)
            if on_news:
                on_news(news)
    return errors


def _held_job(job: Job, scenario: Scenario, inputs: tuple[Workload, Fleet], held: dict[str, Done]) -> Here:
    """Return a job for a thread: one run, which it puts among the *held* by its label."""
    def do(say: Say) -> None:
        def hear(progress: Progress) -> None:
            say(News(job.label, PROGRESS, progress))

        held[job.label] = without_memory(do_run(scenario, job.scheduler, job.seed, inputs, hear))

    return Here(do)


def _run(label: str, work: tuple[bytes, Path, Job], say: Say) -> bytes:
    """Do one run into its folder, in a process of its own."""
    packed, folder, job = work
    scenario = msgspec.msgpack.decode(packed, type=Scenario)
    folder.mkdir(exist_ok=True)
    inputs = load_inputs(scenario)
    say(News(label, STARTED))
    done = do_run(scenario, job.scheduler, job.seed, inputs, lambda progress: say(News(label, PROGRESS, progress)))
    write_run(folder, done, job.scheduler, job.seed)
    return b""
