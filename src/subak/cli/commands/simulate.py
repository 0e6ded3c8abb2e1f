"""`subak simulate`: runs one scheduler on one workload."""
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from subak.cli.progress import RunBars
from subak.errors import InputError
from subak.experiment.checkpoints import Chunks, refuse_checkpoint
from subak.experiment.folder import run_label
from subak.experiment.inputs import inputs_of, is_larger, load_inputs, open_inputs, refuse_unfit
from subak.experiment.parallel import run_apart
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.fleet.table import Fleet
from subak.measures.run_folders import load_runs
from subak.measures.tasks.job_sums import JobSums
from subak.output.places import refuse_folder
from subak.output.writing import new_folder, scratch_folder
from subak.policy_files import is_users, named_scheduler
from subak.report.console import Console, echo
from subak.report.terminal import run_panel
from subak.workload.piped import PIPE, piped_workload
from subak.workload.stored import StoredWorkload, work_of
from subak.workload.table import Workload


def simulate(
    scenario: Scenario, files: list[Path], out: Path | None, overwrite: bool,
    chunked: tuple[int | None, Path | None] = (None, None),
) -> None:
    """Do the one run of a scenario, and show it; *files* are read, too; *chunked*: tasks at a time, checkpoint.

    A workload of the name PIPE is read from standard input.
    """
    if scenario.workload == PIPE and is_users(scenario.schedulers[0]):
        raise InputError(f"workload {PIPE}: goes with built-in schedulers; one from a file is run in another process")
    with piped_workload(sys.stdin.buffer) if scenario.workload == PIPE else nullcontext():
        _simulate(scenario, files, out, overwrite, Chunks(*chunked))


def _simulate(scenario: Scenario, files: list[Path], out: Path | None, overwrite: bool, chunks: Chunks) -> None:
    if out is not None:
        refuse_folder(out, "summary.json", overwrite, inputs_of(scenario, *files))
    if chunks.checkpoint is not None:
        refuse_checkpoint(chunks.checkpoint, out, inputs_of(scenario, *files))
    inputs, sums = _inputs(scenario, chunks)
    chunks = chunks._replace(kept=out is not None, sums=sums)
    with _scratch() if out is None else nullcontext(out) as folder:
        _run(scenario, inputs, folder, overwrite, chunks)
        Console().print(run_panel(load_runs(folder)[0]))
    echo(f"Wrote {out}" if out is not None else "Nothing was kept; give --out FOLDER to keep the run.", err=True)


def _inputs(
    scenario: Scenario, chunks: Chunks
) -> tuple[tuple[Workload | StoredWorkload, Fleet], JobSums | None]:
    """Return inputs that a run can begin with, and sums of jobs; a run in chunks if asked for, or if it is too large.

    Raises InputError for a run in chunks that is asked for and cannot be; a large one that cannot be is in memory.
    """
    if chunks != Chunks():
        return _fit(scenario, open_inputs(scenario))
    if is_larger(scenario):
        try:
            stored, fleet = open_inputs(scenario)
            found = _fit(scenario, (stored, fleet))
            stored.refuse_unsorted()
            return found
        except InputError as error:
            echo(f"All tasks are read at once, which needs much memory: {error}", err=True)
    return _fit(scenario, load_inputs(scenario))


def _fit(
    scenario: Scenario, inputs: tuple[Workload | StoredWorkload, Fleet]
) -> tuple[tuple[Workload | StoredWorkload, Fleet], JobSums | None]:
    found = named_scheduler(scenario.schedulers[0], scenario.parameters)  # its process compiles it, and may refuse
    return inputs, refuse_unfit(scenario, [found], inputs)


def _run(
    scenario: Scenario, inputs: tuple[Workload | StoredWorkload, Fleet], folder: Path, overwrite: bool, chunks: Chunks
) -> None:
    """Do the scenario's one run, and write its folder."""
    name, seed = scenario.schedulers[0], scenario.seeds[0]
    label = run_label(name, seed, scenario.seeds)
    with RunBars([label], work_of(inputs[0]).tasks, scenario.schedulers) as bars:
        if isinstance(inputs[0], StoredWorkload) or not is_users(name):
            bars.begin(label)
            simulate_into(folder, scenario, name, seed, inputs, lambda progress: bars.advance(label, progress),
                          overwrite, chunks)
        else:  # a policy of somebody's may loop for ever, or die, and take this process with it
            with new_folder(folder, "summary.json", overwrite) as partial:
                run_apart(scenario, (inputs[0], inputs[1]), partial, bars.show)


@contextmanager
def _scratch() -> Iterator[Path]:
    with scratch_folder() as folder:
        yield folder / "run"
