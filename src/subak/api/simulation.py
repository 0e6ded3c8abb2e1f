"""Runs one simulation, or many side by side."""
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Unpack

from subak.api.inputs import Inputs, load
from subak.api.keywords import Settings
from subak.api.progress import bars
from subak.api.results import Comparison, Run
from subak.api.settings import AnyScheduler, scenario_of
from subak.api.threads import in_threads
from subak.errors import InputError, RunError, SubakError
from subak.experiment.folder import Done, write_run
from subak.experiment.inputs import inputs_of, refuse_unfit, settle_resample
from subak.experiment.parallel import Job, in_good_order, jobs_of
from subak.experiment.run import do_run, without_memory
from subak.experiment.scenario import Scenario
from subak.measures import runs as measured
from subak.measures.run_folders import COMPARISON, load_runs
from subak.output.writing import new_folder
from subak.policy import find_scheduler
from subak.simulator.engine.run_loop import Progress
from subak.threads import usable_cores
from subak.toml_files import write_toml

SUMMARY = "summary.json"  # what every run folder holds


def run(
    inputs: Inputs | str | Path, scheduler: AnyScheduler = "first-fit", *, seed: int = 1,
    out: str | Path | None = None, overwrite: bool = False, progress: bool = True, **settings: Unpack[Settings],
) -> Run:
    """Simulate one scheduler on one workload.

    *inputs*: what `load` gave, or what it would be given; *scheduler*: a name that `subak schedulers` lists, a file's
    ``FILE.py:NAME``, or a function ``(fleet, tasks, task) -> machine or -1``, which `subak.policy` describes. The
    result is in memory, or with *out* in that folder, as `subak simulate` writes it. *settings* are those of a
    scenario file. Raises InputError for what no run could mean, PolicyError when a policy breaks a rule.
    """
    known, scenario = _prepared(inputs, [scheduler], [seed], settings)
    with _place(out, SUMMARY, overwrite, scenario) as folder:
        places = None if folder is None else {job.label: folder for job in jobs_of(scenario)}
        done, failed = _do(known, scenario, places, 1, progress)
        for error in failed.values():
            raise error
    return Run(_held(*done.values()) if out is None else load_runs(Path(out))[0])


def compare(
    inputs: Inputs | str | Path, schedulers: AnyScheduler | Sequence[AnyScheduler], *, seeds: int | Iterable[int] = 1,
    out: str | Path | None = None, overwrite: bool = False, threads: int | None = None, progress: bool = True,
    **settings: Unpack[Settings],
) -> Comparison:
    """Simulate several schedulers on one workload, each with each seed, some at once.

    *seeds*: one seed, or several such as ``range(1, 11)``, of which each draws the workload anew as *resample* says
    (of a trace the first is the trace itself, and ``range(1, 42)`` says most);
    *threads*: runs at once, by default one a core. The rest is as for `run`; with *out*, the folder is that of `subak
    compare`. A run that fails leaves the others: it is warned about, and is in `Comparison.errors`. Raises InputError
    for what no run could mean, RunError where all runs failed.
    """
    if threads is not None and threads < 1:
        raise InputError(f"threads: must be 1 or more, not {threads}")
    listed = [*schedulers] if isinstance(schedulers, Iterable) and not isinstance(schedulers, str) else [schedulers]
    known, scenario = _prepared(inputs, listed, [*seeds] if isinstance(seeds, Iterable) else [seeds], settings)
    jobs, at_once = jobs_of(scenario), threads or usable_cores()
    with _place(out, COMPARISON, overwrite, scenario) as folder:
        places = None if folder is None else {job.label: folder / "runs" / job.label for job in jobs}
        done, failed = _do(known, scenario, places, at_once, progress)
        if len(failed) == len(jobs):
            raise RunError("; ".join(dict.fromkeys(map(str, failed.values()))))
        if folder is not None:
            write_toml({"workload": scenario.workload, "runs": [job.label for job in jobs]}, folder / COMPARISON)
    errors = {label: str(error) for label, error in failed.items()}
    for error in errors.values():
        warnings.warn(error, stacklevel=2)
    found = [_held(done[job.label]) for job in jobs if job.label in done] if out is None else load_runs(Path(out))
    return Comparison(found, errors)


def _prepared(
    inputs: Inputs | str | Path, schedulers: Sequence[AnyScheduler], seeds: Iterable[int], settings: Settings
) -> tuple[Inputs, Scenario]:
    """Return the inputs and the scenario of some runs, which could all begin."""
    known = inputs if isinstance(inputs, Inputs) else load(inputs)
    scenario = scenario_of(known, schedulers, seeds, settings)
    jobs_of(scenario)
    both = known.workload, known.fleet
    refuse_unfit(scenario, [find_scheduler(name, scenario.check_policy) for name in scenario.schedulers], both)
    return known, settle_resample(scenario, known.workload)


def _place(
    out: str | Path | None, marker: str, overwrite: bool, scenario: Scenario
) -> AbstractContextManager[Path | None]:
    """Give the folder to write into, None where nothing is written; it appears under its name when it is whole."""
    if out is None:
        return nullcontext()
    return new_folder(Path(out), marker, overwrite, inputs_of(scenario))


def _do(
    inputs: Inputs, scenario: Scenario, places: dict[str, Path] | None, threads: int, progress: bool
) -> tuple[dict[str, Done], dict[str, SubakError]]:
    """Do the runs of a scenario; those with a place are written there, and their tables let go."""
    jobs = in_good_order(jobs_of(scenario))

    def work(job: Job, hear: Callable[[Progress], None]) -> Done:
        done = without_memory(do_run(scenario, job.scheduler, job.seed, (inputs.workload, inputs.fleet), hear))
        if places is None:
            return done
        folder = places[job.label]
        folder.mkdir(parents=True, exist_ok=True)
        write_run(folder, done, job.scheduler, job.seed)
        return done._replace(tables={})

    with bars([job.label for job in jobs], len(inputs.workload.tasks), scenario.schedulers, progress) as shown:
        return in_threads(jobs, work, threads, shown.show)


def _held(done: Done) -> measured.Run:
    return measured.Run(Path(), done.summary, done.tables)
