"""Declares the arguments and help of `subak experiment`."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli import completion
from subak.cli.ending import loading
from subak.cli.options import NOTHING_GIVEN, Given, split_names
from subak.cli.sweeps import study_from, takes_lists
from subak.cli.usage.compare import PROCESSES_MAX
from subak.errors import InputError
from subak.experiment.seeds import parse_seeds
from subak.experiment.study.shards import ALL, parse_shard
from subak.settings import OUTPUT

WHERE = "Where it runs"


@takes_lists(typer.Argument(
    metavar="STUDY", help="A study file, STUDY.toml, which holds everything; or a workload folder or sample, with the "
                          "options below.", show_default=False, autocompletion=completion.workload))
def experiment(
    schedulers: Annotated[str | None, typer.Option(
        metavar="NAME,NAME,...", help="Names from `subak schedulers`, or FILE.py:NAME; each runs at every point "
                                      "[default: first-fit].",
        show_default=False, autocompletion=completion.separated(completion.scheduler))] = None,
    seeds: Annotated[str | None, typer.Option(
        metavar="1,2,5-8", help="Seeds for every scheduler at every point; differences have intervals from three seeds "
                                "on, means from six [default: 1].", show_default=False)] = None,
    measures: Annotated[str | None, typer.Option(
        metavar="NAME,NAME,...", help="Measures that the page draws and ranks points by, such as wait_time_mean: "
                                      "columns of the table of runs [default: of eight usual ones, those that differ].",
        show_default=False)] = None,
    given: Given = NOTHING_GIVEN,
    processes: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=PROCESSES_MAX, help="How many runs at once on this machine [default: one a core].",
        show_default=False, rich_help_panel=WHERE)] = None,
    shard: Annotated[str | None, typer.Option(
        metavar="K/N", help="Do only the K-th of N parts, for example in a Slurm array; `subak merge` joins their "
                            "folders.",
        show_default=False, rich_help_panel=WHERE)] = None,
    on: Annotated[str | None, typer.Option(
        metavar="ray[://HOST:PORT]", help="Do the runs on a Ray cluster: this machine's, or the one at an address.",
        show_default=False, rich_help_panel=WHERE)] = None,
    dry_run: Annotated[bool, typer.Option(
        "--dry-run", help="Check everything, print the number of runs, and stop.")]
    = False,
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="The folder of the study. Finished runs in it are not repeated.",
        show_default=False, rich_help_panel=OUTPUT)] = None,
    overwrite: Annotated[bool, typer.Option(
        "--overwrite", help="Do every run again, also those in the folder of --out.",
        rich_help_panel=OUTPUT)] = False,
) -> None:
    """Run a study (parameter sweep): every combination of listed settings once, with a table and a page.

    A study file is a scenario file in which any key may hold a list. On the command line any option may hold one:

    - `subak experiment W --schedulers megha --heartbeat 1,5,10 --seeds 1-6 --out R`
    - `subak experiment STUDY.toml --out R` writes R/runs.parquet, one row per run, and R/report.html: measures over
      one and two settings and against each other, and the best points. The same command resumes.
    - `subak experiment STUDY.toml --shard 3/10 --out R3` does a tenth of it, for `subak merge R* --out R`.
    - `subak experiment STUDY.toml --on ray --out R` lets Ray distribute the runs.

    A failed run does not affect the others; the exit code is then 2, and the same command tries it again.
    """
    study = study_from(given, None if schedulers is None else split_names(schedulers),
                       None if seeds is None else parse_seeds(seeds),
                       None if measures is None else split_names(measures))
    part = ALL if shard is None else parse_shard(shard)
    if on is not None and on != "ray" and not on.startswith("ray://"):
        raise InputError(f"--on: must be ray or ray://HOST:PORT, not {on!r}")
    if on is not None and processes is not None:
        raise InputError("--processes: is for runs on this machine; with --on, Ray says how many run at once")
    if out is None and not dry_run:
        raise InputError("--out: must name the folder of the study, or give --dry-run")
    with loading():
        from subak.cli.commands.experiment import experiment as run_study  # noqa: PLC0415  (loads the simulator)

    run_study(study, [Path(given.workload), *given.files], out, processes, part, on, dry_run, overwrite)
