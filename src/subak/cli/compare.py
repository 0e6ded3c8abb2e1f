"""`subak compare`: many schedulers and seeds on one workload, in parallel processes."""
import os
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
    parse_seeds,
    scenario_from,
    split_names,
)
from subak.cli.progress import RunBars
from subak.errors import RunError
from subak.policy import find_scheduler
from subak.report.experiment import Scenario, load_inputs
from subak.report.page import write_report
from subak.report.parallel import jobs_of, run_all
from subak.report.runs import load_runs
from subak.report.terminal import comparison_table
from subak.tables import new_folder, refuse_folder, write_toml

DEFAULT_SCHEDULERS = "first-fit,first-fit+backfill,best-fit+backfill,greedy,tetris"


def compare(
    workload: WorkloadOption = DEFAULT_WORKLOAD,
    schedulers: Annotated[str, typer.Option(metavar="NAME,NAME,...", help="Names from `subak schedulers`, or "
                                                                          "FILE.py:NAME.")] = DEFAULT_SCHEDULERS,
    seeds: Annotated[str, typer.Option(metavar="1,2,5-8", help="Each scheduler runs once with each seed.")] = "1",
    fleet: FleetOption = None,
    machines: MachinesOption = 0,
    capacity: CapacityOption = None,
    interval: IntervalOption = None,
    until: UntilOption = FOREVER,
    scenario: ScenarioOption = None,
    processes: Annotated[int | None, typer.Option(min=1, help="How many runs at once [default: one a core].",
                                                  show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", show_default=False,
                                             help="Keep the runs and report.html in this folder [default: only show "
                                                  "the table].")] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Compare schedulers on one workload: a table here, and with --out a page with charts.

    Without arguments it compares five on the shipped slice of Google's 2011 trace.
    Example: `subak compare W --schedulers first-fit,tetris,my_policy.py:mine --seeds 1-3 --out R`.
    """
    given = scenario_from(scenario, workload, split_names(schedulers), parse_seeds(seeds), fleet, machines, capacity,
                          interval, until)
    if out is not None:
        refuse_folder(out, "comparison.toml", overwrite)
    for name in given.schedulers:
        find_scheduler(name)
    tasks = len(load_inputs(given)[0].tasks)
    with tempfile.TemporaryDirectory() as scratch:
        folder = out if out is not None else Path(scratch) / "comparison"
        with new_folder(folder, "comparison.toml", overwrite) as partial:
            errors = _run(given, partial, processes or os.cpu_count() or 1, tasks)
            write_report(partial)
        Console().print(comparison_table(load_runs(folder)))
    if out is not None:
        typer.echo(f"Wrote {out}; open {out / 'report.html'}", err=True)
    if errors:
        raise RunError("; ".join(errors.values()))


def _run(given: Scenario, partial: Path, processes: int, tasks: int) -> dict[str, str]:
    """Do the runs and write what was compared; return the errors of those that failed."""
    (partial / "runs").mkdir()
    labels = [job.label for job in jobs_of(given)]
    write_toml({"workload": given.workload, "runs": labels}, partial / "comparison.toml")
    with RunBars(labels, tasks) as bars:
        return run_all(given, partial / "runs", processes, bars.show)
