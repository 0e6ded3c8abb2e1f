"""`subak simulate`: runs one scheduler on one workload."""
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from subak.cli.progress import RunBars
from subak.errors import InputError
from subak.experiment.chunks import (
    Chunks,
    Stored,
    is_larger,
    open_inputs,
    refuse_checkpoint,
    simulate_in_chunks,
)
from subak.experiment.parallel import run_apart
from subak.experiment.run import inputs_of, load_inputs, refuse_unfit, run_label, simulate_into
from subak.experiment.scenario import Scenario
from subak.fleet.table import Fleet
from subak.measures.run_folders import load_runs
from subak.output.places import refuse_folder
from subak.output.writing import new_folder, scratch_folder
from subak.policy_files import named_scheduler, policy_file
from subak.report.console import Console, echo
from subak.report.terminal import run_panel
from subak.workload.piped import PIPE, piped_workload
from subak.workload.table import Workload


def simulate(
    scenario: Scenario, files: list[Path], out: Path | None, overwrite: bool,
    chunked: tuple[int | None, Path | None] = (None, None),
) -> None:
    """Do the one run of a scenario, and show it; *files* are read, too; *chunked*: tasks at a time, checkpoint.

    A workload of the name PIPE is read from standard input.
    """
    if scenario.workload == PIPE and policy_file(scenario.schedulers[0]) is not None:
        raise InputError(f"workload {PIPE}: goes with built-in schedulers; one from a file is run in another process")
    with piped_workload(sys.stdin.buffer) if scenario.workload == PIPE else nullcontext():
        _simulate(scenario, files, out, overwrite, Chunks(*chunked))


def _simulate(scenario: Scenario, files: list[Path], out: Path | None, overwrite: bool, chunks: Chunks) -> None:
    if out is not None:
        refuse_folder(out, "summary.json", overwrite, inputs_of(scenario, *files))
    if chunks.checkpoint is not None:
        refuse_checkpoint(chunks.checkpoint, out, inputs_of(scenario, *files))
    stored = _stored(scenario, chunks)
    if stored is None:
        found = named_scheduler(scenario.schedulers[0], scenario.parameters)  # its process compiles it, and may refuse
        inputs = load_inputs(scenario)
        refuse_unfit(scenario, [found], inputs)
    with _scratch() if out is None else nullcontext(out) as folder:
        if stored is not None:
            _run_in_chunks(scenario, stored, chunks, folder, overwrite, kept=out is not None)
        else:
            _run(scenario, inputs, folder, overwrite)
        Console().print(run_panel(load_runs(folder)[0]))
    echo(f"Wrote {out}" if out is not None else "Nothing was kept; give --out FOLDER to keep the run.", err=True)


def _stored(scenario: Scenario, chunks: Chunks) -> Stored | None:
    """Return the inputs of a run in chunks: of one that is asked for, or that is too large for the memory.

    Raises InputError for what is asked for, and cannot be; a large run that cannot be is one in memory, as is any else.
    """
    if chunks != Chunks():
        return open_inputs(scenario)
    if is_larger(scenario):
        try:
            stored = open_inputs(scenario)
            stored.workload.refuse_unsorted()
            return stored
        except InputError as error:
            echo(f"All tasks are read at once, which needs much memory: {error}", err=True)
    return None


def _run_in_chunks(
    scenario: Scenario, stored: Stored, chunks: Chunks, folder: Path, overwrite: bool, kept: bool
) -> None:
    label = run_label(scenario.schedulers[0], scenario.seeds[0], scenario.seeds)
    with RunBars([label], stored.workload.tasks, scenario.schedulers) as bars:
        bars.begin(label)
        simulate_in_chunks(folder, scenario, stored, chunks, lambda progress: bars.advance(label, progress), overwrite,
                           kept)


def _run(scenario: Scenario, inputs: tuple[Workload, Fleet], folder: Path, overwrite: bool) -> None:
    """Do the scenario's one run, and write its folder."""
    name, seed = scenario.schedulers[0], scenario.seeds[0]
    label = run_label(name, seed, scenario.seeds)
    with RunBars([label], len(inputs[0].tasks), scenario.schedulers) as bars:
        if policy_file(name) is None:
            bars.begin(label)
            simulate_into(folder, scenario, name, seed, inputs, lambda progress: bars.advance(label, progress),
                          overwrite)
        else:  # a policy of somebody's may loop for ever, or die, and take this process with it
            with new_folder(folder, "summary.json", overwrite) as partial:
                run_apart(scenario, inputs, partial, bars.show)


@contextmanager
def _scratch() -> Iterator[Path]:
    with scratch_folder() as folder:
        yield folder / "run"
