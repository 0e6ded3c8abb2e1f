"""`subak simulate`: one scheduler on one workload."""
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from subak.cli.options import (
    DEFAULT_WORKLOAD,
    FOREVER,
    CapacityOption,
    FleetOption,
    IntervalOption,
    MachinesOption,
    OverwriteOption,
    ScenarioOption,
    UntilOption,
    WorkloadOption,
    scenario_from,
)
from subak.cli.progress import RunBars
from subak.errors import InputError
from subak.report.experiment import load_inputs, run_label, simulate_into
from subak.report.runs import load_runs
from subak.report.terminal import run_panel
from subak.tables import refuse_folder


def simulate(
    workload: WorkloadOption = DEFAULT_WORKLOAD,
    scheduler: Annotated[str, typer.Option(help="A name from `subak schedulers`, with options behind plus signs, or "
                                                "FILE.py:NAME for a policy of your own.")] = "first-fit",
    seed: Annotated[int, typer.Option(min=0, help="Of the run's random numbers.")] = 1,
    fleet: FleetOption = None,
    machines: MachinesOption = 0,
    capacity: CapacityOption = None,
    interval: IntervalOption = None,
    until: UntilOption = FOREVER,
    scenario: ScenarioOption = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", show_default=False,
                                             help="Keep the run in this folder [default: only show it].")] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Simulate one scheduler on one workload and show how it did.

    Without arguments it runs the shipped slice of Google's 2011 trace.
    Example: `subak simulate W --scheduler best-fit+backfill --out R`, then `subak report R`.
    """
    given = scenario_from(scenario, workload, [scheduler], [seed], fleet, machines, capacity, interval, until)
    if len(given.schedulers) > 1 or len(given.seeds) > 1:
        raise InputError("scenario: `subak simulate` takes one scheduler and one seed; `subak compare` takes several")
    if out is not None:
        refuse_folder(out, "summary.json", overwrite)
    inputs = load_inputs(given)
    name = given.schedulers[0]
    label = run_label(name, given.seeds[0], given.seeds)
    with tempfile.TemporaryDirectory() as scratch:
        folder = out if out is not None else Path(scratch) / "run"
        with RunBars([label], len(inputs[0].tasks)) as bars:
            bars.begin(label)
            simulate_into(folder, given, name, given.seeds[0], inputs,
                          lambda progress: bars.advance(label, progress), overwrite)
        Console().print(run_panel(load_runs(folder)[0]))
    typer.echo(f"Wrote {out}" if out is not None else "Nothing was kept; give --out FOLDER to keep the run.", err=True)
