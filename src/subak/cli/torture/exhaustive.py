"""`subak torture --exhaustive`: walks every interleaving of tiny federations."""
import typer
from rich.progress import SpinnerColumn
from rich.table import Table

from subak.report.console import Console, TextColumn, bars, echo
from subak.simulator.exhaustive.check import check, length
from subak.simulator.exhaustive.explore import Report
from subak.simulator.exhaustive.leases import lease_bounds
from subak.simulator.exhaustive.proof import Proof, prove
from subak.simulator.exhaustive.roles.configurations import CONFIGURATIONS, named

FAILED = 1  # exit code
SETS_MAX = 80_000  # sets of role states of a proof, at most


def walk_all(names: list[str], states_max: int, console: Console) -> None:
    """Walk the configurations of these names, or all, and print what was found; stop at the first that is wrong."""
    chosen = [named(name) for name in names] or list(CONFIGURATIONS)
    runs_until, lost_from = lease_bounds()
    if runs_until >= lost_from:
        echo(f"leases: a worker may run something for {runs_until:g} s after it was last heard, and be declared lost "
             f"after {lost_from:g} s", err=True)
        raise typer.Exit(FAILED)
    reports: list[Report] = []
    proofs: list[Proof] = []
    with bars(SpinnerColumn(), TextColumn("{task.fields[state]}")) as shown:
        for configuration in chosen:
            bar = shown.add_task(configuration.name, total=None, state="")

            def show(seen: int, known: int, bar: object = bar) -> None:
                shown.update(bar, state=f"{seen:,} of {known:,} states so far")  # type: ignore[arg-type]

            reports.append(check(configuration, states_max, show))
            if reports[-1].wrong:
                shown.stop()
                _fail(reports, proofs, console)
            proofs.append(prove(configuration, min(states_max, SETS_MAX), show))
            shown.remove_task(bar)
    _print(reports, proofs, console)
    echo(f"A worker that hears nothing has stopped after {runs_until:g} s, and is declared lost after {lost_from:g} s "
         "at the earliest.")
    left = [report for report in reports if not report.complete]
    for report in left:
        echo(f"{report.configuration.name}: not all states were seen: {report.why}")
    echo(f"{sum(report.states for report in reports):,} states: "
         + ("nothing is wrong in those that were seen." if left else "all were seen, and nothing is wrong in any."))


def _fail(reports: list[Report], proofs: list[Proof], console: Console) -> None:
    """Say what is wrong, and how it came to it."""
    report = reports[-1]
    echo(f"{report.configuration.name}: {report.wrong}, after {length(report.script)} moves", err=True)
    for line in report.script:
        console.print(line, soft_wrap=True)
    _print(reports, proofs, console)
    raise typer.Exit(FAILED)


def _print(reports: list[Report], proofs: list[Proof], console: Console) -> None:
    """Print what each walk found: of orders and faults, and of whatever the network may do."""
    table = Table("Configuration", title="Every order, and the configuration's faults", title_justify="left")
    for header in ("States", "Moves", "Calls", "Not followed", "Seconds"):
        table.add_column(header, justify="right")
    table.add_column("Seen")
    for report in reports:
        seen = "all" if report.complete else "to what is wrong" if report.wrong else "not all"
        table.add_row(report.configuration.name, f"{report.states:,}", f"{report.moves:,}", f"{report.calls:,}",
                      f"{report.cuts:,}", f"{report.seconds:.1f}", seen)
    console.print(table)
    if proofs:
        console.print(_proofs(reports, proofs))


def _proofs(reports: list[Report], proofs: list[Proof]) -> Table:
    table = Table("Configuration", title="Whatever was sent may come at any time, or never", title_justify="left")
    for header in ("Role states", "Messages", "Not followed", "Seconds"):
        table.add_column(header, justify="right")
    table.add_column("Safe")
    for report, proof in zip(reports, proofs, strict=False):
        table.add_row(report.configuration.name, f"{proof.states:,}", f"{proof.messages:,}", f"{proof.cuts:,}",
                      f"{proof.seconds:.1f}", _verdict(proof))
    return table


def _verdict(proof: Proof) -> str:
    if proof.wrong:
        return f"perhaps {proof.wrong}"
    if not proof.complete:
        return "open: too many role states"
    return "yes" if not proof.cuts else "yes, as far as followed"
