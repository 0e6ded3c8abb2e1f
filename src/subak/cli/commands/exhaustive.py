"""`subak torture --exhaustive`: every interleaving of tiny federations."""
import typer
from rich.progress import SpinnerColumn
from rich.table import Table

from subak.report.console import Console, TextColumn, bars, echo
from subak.simulator.exhaustive.check import check, length
from subak.simulator.exhaustive.configurations import CONFIGURATIONS, named
from subak.simulator.exhaustive.explore import Report

FAILED = 1  # exit code
STATES_MAX = 20_000_000  # unless another is asked for


def walk_all(names: list[str], states_max: int | None, console: Console) -> None:
    """Walk the configurations of these names, or all, and print what was found; stop at the first that is wrong."""
    chosen = [named(name) for name in names] or list(CONFIGURATIONS)
    reports = []
    with bars(SpinnerColumn(), TextColumn("{task.fields[state]}")) as shown:
        for configuration in chosen:
            bar = shown.add_task(configuration.name, total=None, state="")

            def show(seen: int, known: int, bar: object = bar) -> None:
                shown.update(bar, state=f"{seen:,} of {known:,} states so far")  # type: ignore[arg-type]

            reports.append(check(configuration, states_max or STATES_MAX, show))
            shown.remove_task(bar)
            if reports[-1].wrong:
                shown.stop()
                _fail(reports, console)
    console.print(_table(reports))
    left = [report for report in reports if not report.complete]
    for report in left:
        echo(f"{report.configuration.name}: not all states were seen: {report.why}")
    echo(f"{sum(report.states for report in reports):,} states: "
         + ("nothing is wrong in those that were seen." if left else "all were seen, and nothing is wrong in any."))


def _fail(reports: list[Report], console: Console) -> None:
    """Say what is wrong, and how it came to it."""
    report = reports[-1]
    echo(f"{report.configuration.name}: {report.wrong}, after {length(report.script)} moves", err=True)
    for line in report.script:
        console.print(line, soft_wrap=True)
    console.print(_table(reports))
    raise typer.Exit(FAILED)


def _table(reports: list[Report]) -> Table:
    table = Table("Configuration", title="States of tiny federations", title_justify="left")
    for header in ("States", "Moves", "Calls of handlers", "Not followed", "Seconds"):
        table.add_column(header, justify="right")
    table.add_column("Seen")
    for report in reports:
        seen = "all" if report.complete else "to what is wrong" if report.wrong else "not all"
        table.add_row(report.configuration.name, f"{report.states:,}", f"{report.moves:,}", f"{report.calls:,}",
                      f"{report.cuts:,}", f"{report.seconds:.1f}", seen)
    return table
