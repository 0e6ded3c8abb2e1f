"""`subak convert`: turns a trace into a workload folder."""
from dataclasses import replace
from pathlib import Path

import msgspec
import polars as pl
from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TimeRemainingColumn
from rich.table import Table

from subak.cli.commands.workloads.next_command import next_command
from subak.errors import InputError
from subak.output.writing import new_folder
from subak.report.console import Console, bars, echo, waiting
from subak.report.number_text import counted
from subak.workload.readers import READERS
from subak.workload.readers.conversion import Account, Conversion, Reader, Shown
from subak.workload.readers.options import DATED, SLICE, Options
from subak.workload.readers.rows import NEVER_STARTED
from subak.workload.table import SLURM_JOBS, Workload, slurm_jobs

OPTION_NAMES = {"arrival_min": "--from", "arrival_end": "--until", "columns": "--map", "names": "--columns",
                "from_date": "--from", "until_date": "--until"}
SACCT = "sacct"
FIRST_TASKS_SHOWN = LINES_SHOWN = 3


def preview(trace_format: str, source: Path, options: Options) -> None:
    """Read a trace, print the account of its rows and the first tasks, and write nothing."""
    reader = READERS[trace_format]
    _refuse_unknown(trace_format, reader, options)
    conversion, console = _read(reader, source, options), Console()
    _show(conversion, console)
    console.print(_shown_table(_first_tasks(conversion.workload)))
    _say_load(conversion)
    _say_unstarted(conversion)
    echo("Nothing was written: this was a preview.")


def convert(trace_format: str, source: Path, out: Path, options: Options, overwrite: bool) -> None:
    """Convert a trace of a format that there is, and print the account of its rows."""
    reader = READERS[trace_format]
    _refuse_unknown(trace_format, reader, options)
    inputs = [source, Path(options.topology)] if options.topology else [source]
    with new_folder(out, "workload.toml", overwrite, inputs) as folder:
        conversion = _named(_read(reader, source, options), out)
        with waiting(f"Writing {out}"):
            conversion.write(folder)
    _show(conversion, Console())
    _say_load(conversion)
    _say_unstarted(conversion)
    echo(f"Wrote {out}" + (f" and {out / 'fleet'}" if conversion.fleet else ""))
    if trace_format == SACCT:
        for line in next_command(conversion.workload, out):
            echo(line)


def _named(conversion: Conversion, out: Path) -> Conversion:
    """Name the workload as its folder is: that is how its user knows it in titles, not by the format's files."""
    workload = conversion.workload
    provenance = msgspec.structs.replace(workload.provenance, name=out.absolute().name or workload.provenance.name)
    return replace(conversion, workload=replace(workload, provenance=provenance))


def _refuse_unknown(name: str, reader: Reader, options: Options) -> None:
    chosen, default = msgspec.structs.asdict(options), msgspec.structs.asdict(Options())
    for option, value in chosen.items():
        if value != default[option] and option not in reader.options:
            flag = OPTION_NAMES.get(option, "--" + option.replace("_", "-"))
            if option in DATED - SLICE:
                raise InputError(f"{flag}: must be a time since the trace's begin such as 2d, not {value}: the format "
                                 f"{name} has no dates")
            raise InputError(f"{flag}: has no meaning for the format {name}")


def _read(reader: Reader, source: Path, options: Options) -> Conversion:
    total = sum(path.stat().st_size for path in reader.files(source))
    with bars(SpinnerColumn(), BarColumn(), DownloadColumn(), TimeRemainingColumn()) as progress:
        bar = progress.add_task(f"Reading {source}", total=total)
        return reader.read(source, options, lambda read: progress.advance(bar, read))


def _show(conversion: Conversion, console: Console) -> None:
    if conversion.understood is not None:
        console.print(_shown_table(conversion.understood))
    for account in conversion.accounts:
        console.print(_account_table(account, conversion.dropped))
    remarks = Table(title="Remarks", title_justify="left", show_header=False)
    for name, value in conversion.remarks.items():
        remarks.add_row(name, f"{value:,}" if isinstance(value, int | float) else value)
    workload = conversion.workload
    remarks.add_row("jobs, stages, tasks written", f"{len(workload.jobs):,}, {len(workload.stages):,}, "
                                                   f"{len(workload.tasks):,}")
    jobs = slurm_jobs(workload.gang_sizes(), len(workload.tasks))
    if jobs != len(workload.tasks):
        remarks.add_row(SLURM_JOBS, f"{jobs:,}")
    console.print(remarks)


def _say_load(conversion: Conversion) -> None:
    """Say what share of the work is kept: run time x tasks x amount, of each resource."""
    guessed = max(each.guessed_rows for each in conversion.loads)
    echo("Kept of the work: " + "; ".join(each.words for each in conversion.loads)
         + (f". Rows whose work is unknown, which count as the mean: {guessed:,}." if guessed else "."))


def _say_unstarted(conversion: Conversion) -> None:
    """Say how many rows never started: cancelled or pending, they may have waited for long, and nobody counts them."""
    counts = {each.table: each.dropped.get(NEVER_STARTED, 0) for each in conversion.accounts}
    if any(counts.values()):
        said = " and ".join(counted(count, table.removesuffix("s")) for table, count in counts.items() if count)
        echo(f"Never started, so left out: {said}, cancelled or pending while they waited.")


def _account_table(account: Account, dropped: pl.DataFrame | None) -> Table:
    lines = {} if dropped is None else _first_lines(dropped.filter(table=account.table))
    table = Table("row", "count", "share", *["where"] * bool(lines), title_justify="left", show_footer=True,
                  title=f"{account.table}: {counted(account.rows, 'row')} read")
    table.columns[1].justify = table.columns[2].justify = "right"
    for kind, counts in (("used", account.used), ("dropped", account.dropped)):
        for name, count in counts.items():
            where = [lines.get(name, "") if kind == "dropped" else ""] * bool(lines)
            table.add_row(f"{kind}: {name}", f"{count:,}", f"{count / account.rows:.2%}", *where)
    table.columns[0].footer, table.columns[1].footer = "all rows", f"{account.rows:,}"
    return table


def _first_lines(dropped: pl.DataFrame) -> dict[str, str]:
    """Return for each reason the first lines that were dropped for it; dropped.csv names all."""
    found = {}
    for reason, lines in dropped.group_by("reason", maintain_order=True).agg("line").rows():
        more = f" and {len(lines) - LINES_SHOWN:,} more, see dropped.csv" if len(lines) > LINES_SHOWN else ""
        found[reason] = ", ".join(map(str, lines[:LINES_SHOWN])) + more
    return found


def _first_tasks(workload: Workload) -> Shown:
    """Return the first tasks of a workload, in words."""
    tasks = workload.tasks.head(FIRST_TASKS_SHOWN)
    stages = workload.stages[tasks["stage"]]
    jobs = workload.jobs[stages["job"]]
    seconds = {name: [f"{value:.10g} s" for value in tasks[name]] for name in ("arrival", "run_time")}
    amounts = {each.name: [f"{value * each.unit:.10g} {each.of}" for value in stages[each.name]]
               for each in workload.resources}
    columns = {**{name: jobs[name].to_list() for name in ("job", "queue", "user")}, **seconds, **amounts}
    return Shown("The first tasks", tuple(columns), tuple(zip(*columns.values(), strict=True)))


def _shown_table(shown: Shown) -> Table:
    table = Table(*shown.columns, title=shown.title, title_justify="left")
    for row in shown.rows:
        table.add_row(*row)
    return table
