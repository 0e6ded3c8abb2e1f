"""`subak torture --live`: runs federations of live nodes under simulated faults."""
import time
from collections import Counter

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from rich.table import Table

from subak.live.torture.torture import Ending, describe, missing, random_case, run_case, shrink
from subak.report.console import Console, bars, echo

FAILED, INCOMPLETE = 1, 2  # exit codes
ENOUGH = 1000  # seeds in which everything happens that can


def torture_live(first: int, seeds: int, coverage: bool, shrinking: bool, console: Console) -> None:
    """Torture as many federations, from the seed *first* on; say what went wrong in them, and the first that fails."""
    happened: Counter[str] = Counter()
    steps, began = 0, time.monotonic()
    with bars(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as shown:
        bar = shown.add_task("Torturing", total=seeds)
        for number in range(first, first + seeds):
            ending = run_case(random_case(number))
            steps, happened = steps + ending.steps, happened + ending.happened
            if ending.failure:
                shown.stop()
                _fail(ending, shrinking, console)
            shown.advance(bar)
    echo(f"{seeds:,} live federations, {steps:,} steps in {time.monotonic() - began:.1f} s: every rule held, and "
         "everything came to rest.")
    if coverage:
        console.print(_table(happened))
    never = missing(happened)
    if never:
        echo(f"Never happened: {', '.join(never)}")
        if seeds >= ENOUGH:
            raise typer.Exit(INCOMPLETE)


def replay_live(seed: int, console: Console) -> None:
    """Run one federation and print what happens."""
    ending = run_case(random_case(seed))
    _show(ending, console)
    if ending.failure:
        echo(f"seed {seed} fails: {ending.failure}", err=True)
        raise typer.Exit(FAILED)
    echo(f"seed {seed}: {ending.steps:,} steps in {ending.seconds:g} simulated seconds; every rule held.")


def _fail(ending: Ending, shrinking: bool, console: Console) -> None:
    """Say which seed failed and why, and show what happened in it, made smaller."""
    seed = ending.case.seed
    echo(f"seed {seed} fails: {ending.failure}", err=True)
    small = shrink(ending.case) if shrinking else ending
    _show(small, console)
    echo(f"It fails: {small.failure}", err=True)
    echo(f"Replay the whole of it: subak torture --live --seed {seed}", err=True)
    raise typer.Exit(FAILED)


def _show(ending: Ending, console: Console) -> None:
    for line in (*describe(ending.case), *ending.log):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _table(happened: Counter[str]) -> Table:
    table = Table("What happened", "Times", title="Faults, and what they led to", title_justify="left")
    for what, times in sorted(happened.items()):
        table.add_row(what, f"{times:,}")
    return table
