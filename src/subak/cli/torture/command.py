"""`subak torture`: random federations under random faults, every invariant checked after every message."""
import time

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from rich.table import Table

from subak.cli.torture.exhaustive import walk_all
from subak.cli.torture.live import replay_live, torture_live
from subak.report.console import Console, bars, echo
from subak.simulator.torture.by_hand import SEED_BY_HAND, case_of
from subak.simulator.torture.coverage import REQUIRED, Coverage
from subak.simulator.torture.torture import Ending, describe, run_case, shrink

FAILED, INCOMPLETE = 1, 2  # exit codes


def torture(first: int, seeds: int, coverage: bool, shrinking: bool, live: bool) -> None:
    """Torture as many federations, from the seed *first* on; *live*: of nodes, as processes run them."""
    (torture_live if live else _torture)(first, seeds, coverage, shrinking, Console())


def replay(seed: int, live: bool) -> None:
    """Torture the federation of one seed, and print what happens."""
    (replay_live if live else _replay)(seed, Console())


def walk(names: list[str], states_max: int) -> None:
    """Walk every order of events of tiny federations."""
    walk_all(names, states_max, Console())


def _torture(first: int, seeds: int, coverage: bool, shrinking: bool, console: Console) -> None:
    """Torture seed 0's federation, and as many from *first* on; say what was covered, and the first that fails."""
    covered, events, began = Coverage(), 0, time.monotonic()
    numbers = (SEED_BY_HAND, *range(first, first + seeds))
    with bars(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as shown:
        bar = shown.add_task("Torturing", total=len(numbers))
        for number in numbers:
            ending = run_case(case_of(number), covered)
            events += ending.events
            if ending.failure:
                shown.stop()
                _fail(ending, number, shrinking, console)
            shown.advance(bar)
    missing = covered.missing()
    echo(f"{seeds:,} drawn federations and one by hand, {events:,} events in {time.monotonic() - began:.1f} s: every "
         "invariant held after every message.")
    echo(f"{len(covered.kinds)} kinds of message were handled; {len(REQUIRED) - len(missing)} of {len(REQUIRED)} "
         "rows of the transition tables were taken.")
    if coverage:
        console.print(_table(covered))
    if missing:
        echo("Never taken: " + ", ".join(f"{kind} on {state}" for kind, state in missing))
        if seeds >= 1000:
            raise typer.Exit(INCOMPLETE)


def _replay(seed: int, console: Console) -> None:
    """Run one case and print what happens."""

    def show(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    case = case_of(seed)
    for line in describe(case).split("\n"):
        show(line)
    ending = run_case(case, on_event=show)
    if ending.failure:
        echo(f"seed {seed} fails {ending.failure}", err=True)
        raise typer.Exit(FAILED)
    show(f"seed {seed}: {ending.events:,} events in {ending.seconds:g} simulated seconds; every invariant held.")


def _fail(ending: Ending, seed: int, shrinking: bool, console: Console) -> None:
    """Say which seed failed and why, and show the last messages of it, made smaller."""
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
