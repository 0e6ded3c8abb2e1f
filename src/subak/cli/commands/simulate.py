"""`subak simulate`: one scheduler on one workload."""
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from subak.cli.progress import RunBars
from subak.experiment.parallel import run_apart
from subak.experiment.run import inputs_of, load_inputs, refuse_unfit, run_label, simulate_into
from subak.experiment.scenario import Scenario
from subak.fleet.table import Fleet
from subak.measures.runs import load_runs
from subak.output.places import refuse_folder
from subak.output.writing import new_folder, scratch_folder
from subak.policy import find_scheduler
from subak.policy_files import policy_file
from subak.report.console import Console, echo
from subak.report.terminal import run_panel
from subak.workload.table import Workload


def simulate(scenario: Scenario, files: list[Path], out: Path | None, overwrite: bool) -> None:
    """Do the one run of a scenario, and show it; *files* are read, too."""
    if out is not None:
        refuse_folder(out, "summary.json", overwrite, inputs_of(scenario, *files))
    found = find_scheduler(scenario.schedulers[0], scenario.check_policy, scenario.parameters)
    inputs = load_inputs(scenario)
    refuse_unfit(scenario, [found], inputs)
    with _scratch() if out is None else nullcontext(out) as folder:
        _run(scenario, inputs, folder, overwrite)
        Console().print(run_panel(load_runs(folder)[0]))
    echo(f"Wrote {out}" if out is not None else "Nothing was kept; give --out FOLDER to keep the run.", err=True)


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
                run_apart(scenario, partial, bars.show)


@contextmanager
def _scratch() -> Iterator[Path]:
    with scratch_folder() as folder:
        yield folder / "run"
