"""`subak compare`: many schedulers and seeds on one workload, in parallel processes."""
import os
from pathlib import Path
from typing import Annotated

import typer

from subak.cli.options import (
    OUTPUT,
    OverwriteOption,
    ScenarioOptions,
    parse_seeds,
    scenario_from,
    split_names,
    takes_scenario,
)
from subak.cli.progress import RunBars
from subak.errors import RunError
from subak.experiment.parallel import jobs_of, run_all
from subak.experiment.run import inputs_of, load_inputs, refuse_unfit
from subak.experiment.scenario import Scenario
from subak.measures.runs import load_runs
from subak.output.places import refuse_folder
from subak.output.writing import new_folder, scratch_folder
from subak.policy import find_scheduler
from subak.report.console import Console, echo, waiting
from subak.report.terminal import comparison_table
from subak.toml_files import write_toml

DEFAULT_SCHEDULERS = "first-fit,first-fit+backfill,best-fit+backfill,greedy,tetris"
PROCESSES_MAX = 4096
MARKER = "comparison.toml"  # only a folder with it is ever replaced


@takes_scenario
def compare(
    schedulers: Annotated[str | None, typer.Option(
        metavar="NAME,NAME,...", help="Names from `subak schedulers`, with options behind plus signs, or FILE.py:NAME "
                                      f"for policies of your own [default: {DEFAULT_SCHEDULERS.replace(',', ', ')}].",
        show_default=False)] = None,
    seeds: Annotated[str | None, typer.Option(
        metavar="1,2,5-8", help="Each scheduler runs once with each seed [default: 1].",
        show_default=False)] = None,
    given: ScenarioOptions = ScenarioOptions(),
    processes: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=PROCESSES_MAX, help="How many runs at once [default: one a core].",
        show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Keep the runs and report.html in this folder [default: only show the table].",
        show_default=False, rich_help_panel=OUTPUT)] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Compare schedulers on one workload: a table here, and with --out a page with charts.

    Without arguments it compares five on the shipped slice of Google's 2011 trace.

    - `subak compare --out R` also writes R/report.html and a folder for each run.
    - `subak compare W --schedulers first-fit,tetris --seeds 1-3 --out R` runs each three times.
    - `subak compare W --schedulers first-fit,my_policy.py:mine` adds a policy of your own.
    - `subak compare W --schedulers central,megha,sparrow --delay 0.001` compares federations.

    A run that fails leaves the others as they are; the exit code is then 2.
    """
    scenario = scenario_from(given, None if schedulers is None else split_names(schedulers),
                             None if seeds is None else parse_seeds(seeds), split_names(DEFAULT_SCHEDULERS))
    inputs = inputs_of(scenario, *given.files)
    if out is not None:
        refuse_folder(out, MARKER, overwrite, inputs)
    labels = [job.label for job in jobs_of(scenario)]
    tasks = _count_tasks(scenario)
    at_once = processes or len(os.sched_getaffinity(0))
    if out is None:
        with scratch_folder() as folder:
            errors = _run(scenario, labels, folder, at_once, tasks)
            table = comparison_table(load_runs(folder))
    else:
        with new_folder(out, MARKER, overwrite, inputs) as folder:
            errors = _run(scenario, labels, folder, at_once, tasks)
        _write_page(out)  # the runs are safe by now
        table = comparison_table(load_runs(out))
    Console().print(table)
    if out is not None:
        echo(f"Wrote {out}; open {out / 'report.html'}", err=True)
    if errors:
        raise RunError("; ".join(errors.values()))


def _count_tasks(scenario: Scenario) -> int:
    """Return the tasks of the workload, which every run reads for itself. Raises InputError where none could begin."""
    found = [find_scheduler(name, scenario.check_policy) for name in scenario.schedulers]
    loaded = load_inputs(scenario)
    refuse_unfit(scenario, found, loaded)
    return len(loaded[0].tasks)


def _write_page(folder: Path) -> None:
    from subak.report.page import write_report  # noqa: PLC0415  (the charts' library takes a while to load)

    with waiting("Drawing the page"):
        write_report(folder)


def _run(scenario: Scenario, labels: list[str], folder: Path, processes: int, tasks: int) -> dict[str, str]:
    """Do the runs and write what was compared; return the errors of those that failed."""
    (folder / "runs").mkdir()
    write_toml({"workload": scenario.workload, "runs": labels}, folder / MARKER)
    with RunBars(labels, tasks, scenario.schedulers) as bars:
        return run_all(scenario, folder / "runs", processes, bars.show)
