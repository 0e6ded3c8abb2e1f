"""`subak simulate`: one scheduler on one workload."""
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.options import OUTPUT, OverwriteOption, ScenarioOptions, scenario_from, takes_scenario
from subak.cli.progress import RunBars
from subak.errors import InputError
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

DEFAULT_SCHEDULER = "first-fit"


@takes_scenario
def simulate(
    scheduler: Annotated[str | None, typer.Option(
        metavar="NAME", help="A name from `subak schedulers`, with options behind plus signs, or FILE.py:NAME for a "
                             f"policy of your own [default: {DEFAULT_SCHEDULER}].", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(
        metavar="N", min=0, help="Of the run's random numbers; the same seed gives the same bytes [default: 1].",
        show_default=False)] = None,
    given: ScenarioOptions = ScenarioOptions(),
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Keep the run in this folder [default: only show it].", show_default=False,
        rich_help_panel=OUTPUT)] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Simulate one scheduler on one workload and show how it did.

    Without arguments it runs first-fit on the shipped slice of Google's 2011 trace.

    - `subak simulate W --scheduler best-fit+backfill --out R` keeps the run; `subak report R` draws it.
    - `subak simulate W --machines 500 --capacity slot=1` brings its own machines.
    - `subak simulate W --scheduler megha --global-masters 3 --heartbeat 5` simulates a federation.
    - `subak simulate --scenario R/scenario.toml --out R2` repeats a run to the byte.
    """
    scenario = scenario_from(given, None if scheduler is None else [scheduler], None if seed is None else [seed],
                             [DEFAULT_SCHEDULER])
    if len(scenario.schedulers) > 1 or len(scenario.seeds) > 1:
        raise InputError("scenario: `subak simulate` takes one scheduler and one seed; `subak compare` takes several")
    if out is not None:
        refuse_folder(out, "summary.json", overwrite, inputs_of(scenario, *given.files))
    found = find_scheduler(scenario.schedulers[0], scenario.check_policy)
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
