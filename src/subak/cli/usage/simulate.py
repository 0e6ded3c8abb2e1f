"""Declares the arguments and help of `subak simulate`."""
from pathlib import Path
from typing import Annotated

import typer

from subak.cli import completion
from subak.cli.ending import loading
from subak.cli.options import NOTHING_GIVEN, Given, OverwriteOption, scenario_from, takes_scenario
from subak.errors import InputError
from subak.settings import OUTPUT

DEFAULT_SCHEDULER = "first-fit"
CHUNKS = "A long run"  # heading of the help


@takes_scenario
def simulate(
    scheduler: Annotated[str | None, typer.Option(
        metavar="NAME", help="A name from `subak schedulers`, with options behind plus signs, or a policy of "
                             f"your own, FILE.py:NAME or pipe:COMMAND [default: {DEFAULT_SCHEDULER}].",
        show_default=False, autocompletion=completion.scheduler)] = None,
    seed: Annotated[int | None, typer.Option(
        metavar="N", min=0, help="Seed of the run's random numbers; the same seed gives the same bytes [default: 1].",
        show_default=False)] = None,
    given: Given = NOTHING_GIVEN,
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Keep the run in this folder [default: only show it].", show_default=False,
        rich_help_panel=OUTPUT)] = None,
    overwrite: OverwriteOption = False,
    chunk: Annotated[int | None, typer.Option(
        metavar="N", min=1, help="Read the workload N tasks at a time and keep only open tasks in memory; the results "
                                 "are the same [default: all at once up to 16,000,000 tasks, 1,048,576 at a time "
                                 "beyond]. Supported: an order or a fair order with a placement of single tasks, "
                                 "greedy, tetris, megha and central; see "
                                 "docs/decisions/0049-runs-in-chunks.md.",
        show_default=False, rich_help_panel=CHUNKS)] = None,
    checkpoint: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Save the state of the run in this folder about every minute: the same command resumes "
                               "from it, with the same results. The folder is deleted when the run is done. Implies "
                               "--chunk.",
        show_default=False, rich_help_panel=CHUNKS)] = None,
) -> None:
    """Simulate one scheduler on one workload and show the results.

    Without arguments it runs first-fit on a shipped sample of Google's 2011 trace.

    - `subak simulate W --scheduler best-fit+backfill --out R` keeps the run; `subak report R` draws it.
    - `subak simulate W --machines 500 --capacity slot=1` uses 500 identical machines.
    - `subak simulate W --scheduler megha --global-masters 3 --heartbeat 5` simulates a federation.
    - `subak simulate --scenario R/scenario.toml --out R2` repeats a run to the byte.
    - `subak simulate W --out R --checkpoint C` may be stopped; the same command resumes it.
    - `subak generate --tasks 1000000 --out - | subak simulate - --chunk 100000` passes a workload through a pipe.
    """
    scenario = scenario_from(given, None if scheduler is None else [scheduler], None if seed is None else [seed],
                             [DEFAULT_SCHEDULER])
    if len(scenario.schedulers) > 1 or len(scenario.seeds) > 1:
        raise InputError("scenario: `subak simulate` takes one scheduler and one seed; `subak compare` takes several")
    with loading():
        from subak.cli.commands.simulate import simulate as simulate_one  # noqa: PLC0415  (loads the simulator)

    simulate_one(scenario, given.files, out, overwrite, (chunk, checkpoint))
