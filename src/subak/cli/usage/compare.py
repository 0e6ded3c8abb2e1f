"""Declares the arguments and help of `subak compare`."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli import completion
from subak.cli.ending import loading
from subak.cli.options import NOTHING_GIVEN, Given, OverwriteOption, scenario_from, split_names, takes_scenario
from subak.experiment.seeds import parse_seeds
from subak.settings import OUTPUT

DEFAULT_SCHEDULERS = "first-fit,first-fit+backfill,best-fit+backfill,greedy,tetris"
PROCESSES_MAX = 4096


@takes_scenario
def compare(
    schedulers: Annotated[str | None, typer.Option(
        metavar="NAME,NAME,...", help="Names from `subak schedulers`, with options behind plus signs, or policies of "
                                      "your own, FILE.py:NAME or pipe:COMMAND "
                                      f"[default: {DEFAULT_SCHEDULERS.replace(',', ', ')}].",
        show_default=False, autocompletion=completion.separated(completion.scheduler))] = None,
    seeds: Annotated[str | None, typer.Option(
        metavar="1,2,5-8", help="Each scheduler runs once with each seed; several draw the workload anew, see "
                                "--resample; 1-10 for a generated one, 1-41 for a trace [default: 1].",
        show_default=False)] = None,
    given: Given = NOTHING_GIVEN,
    processes: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=PROCESSES_MAX, help="How many runs at once [default: one a core].",
        show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Keep the runs and report.html in this folder [default: only show the table].",
        show_default=False, rich_help_panel=OUTPUT)] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Compare schedulers on one workload: a table, and with --out a page with charts.

    Without arguments it compares five on a shipped sample of Google's 2011 trace.

    - `subak compare --out R` also writes R/report.html and a folder for each run.
    - `subak compare W --schedulers first-fit,tetris --seeds 1-10 --out R` runs each on ten workloads of W's model, and
      shows differences in the typical seed with 95 % intervals. For a trace use --seeds 1-41: the trace itself, and 40
      redraws of its days (at least seven seeds).
    - `subak compare W --objective 'wait.p95 < 60s for length=short'` says which schedulers meet it.
    - `subak compare W --schedulers recorded,easy,conservative` compares two with the log itself.
    - `subak compare W --schedulers first-fit,my_policy.py:mine` adds a policy of your own.
    - `subak compare W --schedulers central,megha,sparrow --delay 0.001` compares federations.

    A failed run does not affect the others; the exit code is then 2.
    """
    scenario = scenario_from(given, None if schedulers is None else split_names(schedulers),
                             None if seeds is None else parse_seeds(seeds), split_names(DEFAULT_SCHEDULERS))
    with loading():
        from subak.cli.commands.compare import compare as compare_all  # noqa: PLC0415  (loads the simulator)

    compare_all(scenario, given.files, processes, out, overwrite)
