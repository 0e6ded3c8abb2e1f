"""`subak torture`: random federations under random faults, every invariant checked after every message."""
import time
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from rich.table import Table

from subak.cli.options import COUNT_MAX, SEED_MAX
from subak.cli.torture.exhaustive import STATES_MAX, walk_all
from subak.cli.torture.live import replay_live, torture_live
from subak.errors import InputError
from subak.report.console import Console, bars, echo
from subak.simulator.exhaustive.configurations import CONFIGURATIONS
from subak.simulator.torture.coverage import REQUIRED, Coverage
from subak.simulator.torture.torture import Ending, describe, random_case, run_case, shrink

FAILED, INCOMPLETE = 1, 2  # exit codes
SEEDS, FIRST = 1000, 1  # unless others are asked for
STATES_LIMIT = 200_000_000


def torture(
    seeds: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=COUNT_MAX, help=f"How many federations to torture [default: {SEEDS}].",
        show_default=False)] = None,
    first: Annotated[int | None, typer.Option(
        metavar="SEED", min=0, max=SEED_MAX, help=f"The seed of the first [default: {FIRST}].",
        show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(
        metavar="SEED", min=0, max=SEED_MAX, help="Only this one, with every message and its answers printed; without "
                                                  "the other options.", show_default=False)] = None,
    coverage: Annotated[bool, typer.Option(
        "--coverage", help="Print how often each row of the roles' transition tables was taken; with `--live`, how "
                           "often what happened.")] = False,
    shrinking: Annotated[bool, typer.Option(
        "--shrink/--no-shrink", help="Make a failing federation smaller before its messages are printed.")] = True,
    live: Annotated[bool, typer.Option(
        "--live", help="Torture nodes, as processes run them: with disks, connections and executors that fail.",
    )] = False,
    exhaustive: Annotated[bool, typer.Option(
        "--exhaustive", help="Instead, walk every order in which the messages and timers of tiny federations can come; "
                             "with `--config` and `--states-max` only.")] = False,
    config: Annotated[list[str] | None, typer.Option(
        metavar="NAME", help="With `--exhaustive`: only this one of "
                             f"{', '.join(each.name for each in CONFIGURATIONS)}; may be repeated [default: all].",
        show_default=False)] = None,
    states_max: Annotated[int | None, typer.Option(
        metavar="N", min=1, max=STATES_LIMIT, help="With `--exhaustive`: stop a walk after so many states "
                                                f"[default: {STATES_MAX}].", show_default=False)] = None,
) -> None:
    """Torture Megha: small random federations, messages lost, doubled, late, roles cut off and crashed.

    After every message all invariants are checked: no machine oversubscribed, no task run twice at once, every view a
    past state, nothing lost. When the faults are over, everything must come to rest. A failure says its seed.

    - `subak torture --seeds 1000` tortures a thousand; exit code 1 when one fails, 2 when some row of the roles'
      transition tables was never taken (with 1000 seeds or more).
    - `subak torture --seed 26` replays one, and prints its messages.
    - `subak torture --live` tortures nodes: processes killed between any two steps, machines switched off, disks full,
      connections cut, clients that submit again. Every job that was acknowledged ends once, no task runs twice at once.
    - `subak torture --exhaustive` draws nothing: of some tiny federations it sees every state that any order of
      messages and timers, and a few faults, can lead to, and looks whether from each the work can still be done. It
      prints the shortest way to what is wrong; exit code 1.
    """
    console = Console()
    others = seeds is not None or first is not None or coverage or not shrinking
    if exhaustive:
        _refuse(others or live or seed is not None, "--exhaustive: goes with --config and --states-max only")
        walk_all(config or [], states_max, console)
        return
    _refuse(config or states_max is not None, "--config, --states-max: go with --exhaustive only")
    if seed is not None:
        _refuse(others, "--seed: replays one federation, so the other options must be left out")
        (replay_live if live else _replay)(seed, console)
        return
    seeds, first = seeds or SEEDS, FIRST if first is None else first
    if live:
        torture_live(first, seeds, coverage, shrinking, console)
    else:
        _torture(first, seeds, coverage, shrinking, console)


def _torture(first: int, seeds: int, coverage: bool, shrinking: bool, console: Console) -> None:
    """Torture as many federations, from the seed *first* on; say what was covered, and the first that fails."""
    covered, events, began = Coverage(), 0, time.monotonic()
    with bars(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as shown:
        bar = shown.add_task("Torturing", total=seeds)
        for number in range(first, first + seeds):
            ending = run_case(random_case(number), covered)
            events += ending.events
            if ending.failure:
                shown.stop()
                _fail(ending, shrinking, console)
            shown.advance(bar)
    missing = covered.missing()
    echo(f"{seeds:,} federations, {events:,} events in {time.monotonic() - began:.1f} s: every invariant held "
         "after every message.")
    echo(f"{len(covered.kinds)} kinds of message were handled; {len(REQUIRED) - len(missing)} of {len(REQUIRED)} "
         "rows of the transition tables were taken.")
    if coverage:
        console.print(_table(covered))
    if missing:
        echo("Never taken: " + ", ".join(f"{kind} on {state}" for kind, state in missing))
        if seeds >= 1000:
            raise typer.Exit(INCOMPLETE)


def _refuse(contradicts: object, why: str) -> None:
    """Raise InputError where options contradict each other."""
    if contradicts:
        raise InputError(why)


def _replay(seed: int, console: Console) -> None:
    """Run one case and print what happens."""

    def show(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    case = random_case(seed)
    for line in describe(case).split("\n"):
        show(line)
    ending = run_case(case, on_event=show)
    if ending.failure:
        echo(f"seed {seed} fails {ending.failure}", err=True)
        raise typer.Exit(FAILED)
    show(f"seed {seed}: {ending.events:,} events in {ending.seconds:g} simulated seconds; every invariant held.")


def _fail(ending: Ending, shrinking: bool, console: Console) -> None:
    """Say which seed failed and why, and show the last messages of it, made smaller."""
    seed = ending.case.seed
    echo(f"seed {seed} fails {ending.failure}", err=True)
    small = shrink(ending.case) if shrinking else ending
    lines: list[str] = []
    again = run_case(small.case, on_event=lines.append)
    for line in (*describe(small.case).split("\n"), *again.trace):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    echo(f"It fails {again.failure}", err=True)
    echo(f"Replay the whole of it: subak torture --seed {seed}", err=True)
    raise typer.Exit(FAILED)


def _table(covered: Coverage) -> Table:
    table = Table("Message", "Meets", "Times", title="Rows of the transition tables", title_justify="left")
    for (kind, state), times in sorted(covered.seen.items()):
        table.add_row(kind, state, f"{times:,}")
    return table
