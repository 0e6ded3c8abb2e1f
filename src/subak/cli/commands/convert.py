"""`subak convert`: from a published trace to a workload folder."""
from pathlib import Path

import msgspec
from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TimeRemainingColumn
from rich.table import Table

from subak.errors import InputError
from subak.output.writing import new_folder
from subak.report.console import Console, bars, echo, waiting
from subak.workload.readers import READERS
from subak.workload.readers.conversion import Account, Conversion, Reader
from subak.workload.readers.options import (
    Options,
)

OPTION_NAMES = {"arrival_min": "--from", "arrival_end": "--until"}


def convert(trace_format: str, source: Path, out: Path, options: Options, overwrite: bool) -> None:
    """Convert a trace of a format that there is, and print the account of its rows."""
    reader = READERS[trace_format]
    _refuse_unknown(trace_format, reader, options)
    inputs = [source, Path(options.topology)] if options.topology else [source]
    with new_folder(out, "workload.toml", overwrite, inputs) as folder:
        conversion = _read(reader, source, options)
        with waiting(f"Writing {out}"):
            conversion.write(folder)
    _show(conversion, Console())
    echo(f"Wrote {out}" + (f" and {out / 'fleet'}" if conversion.fleet else ""))


def _refuse_unknown(name: str, reader: Reader, options: Options) -> None:
    chosen, default = msgspec.structs.asdict(options), msgspec.structs.asdict(Options())
    for option, value in chosen.items():
        if value != default[option] and option not in reader.options:
            flag = OPTION_NAMES.get(option, "--" + option.replace("_", "-"))
            raise InputError(f"{flag}: has no meaning for the format {name}")


def _read(reader: Reader, source: Path, options: Options) -> Conversion:
    total = sum(path.stat().st_size for path in reader.files(source))
    with bars(SpinnerColumn(), BarColumn(), DownloadColumn(), TimeRemainingColumn()) as progress:
        bar = progress.add_task(f"Reading {source}", total=total)
        return reader.read(source, options, lambda read: progress.advance(bar, read))


def _show(conversion: Conversion, console: Console) -> None:
    for account in conversion.accounts:
        console.print(_account_table(account))
    remarks = Table(title="Remarks", title_justify="left", show_header=False)
    for name, value in conversion.remarks.items():
        remarks.add_row(name, f"{value:,}" if isinstance(value, int | float) else value)
    workload = conversion.workload
    remarks.add_row("jobs, stages, tasks written", f"{len(workload.jobs):,}, {len(workload.stages):,}, "
                                                   f"{len(workload.tasks):,}")
    console.print(remarks)


def _account_table(account: Account) -> Table:
    table = Table("row", "count", "share", title=f"{account.table}: {account.rows:,} rows read", title_justify="left",
                  show_footer=True)
    table.columns[1].justify = table.columns[2].justify = "right"
    for kind, counts in (("used", account.used), ("dropped", account.dropped)):
        for name, count in counts.items():
            table.add_row(f"{kind}: {name}", f"{count:,}", f"{count / account.rows:.2%}")
    table.columns[0].footer, table.columns[1].footer = "all rows", f"{account.rows:,}"
    return table
