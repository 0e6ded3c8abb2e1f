"""`subak convert`: from a published trace to a workload folder."""
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TimeRemainingColumn
from rich.table import Table

from subak.cli.options import parse_amounts
from subak.errors import InputError
from subak.output.writing import new_folder
from subak.report.console import Console, bars, echo, waiting
from subak.workload.readers import READERS
from subak.workload.readers.conversion import (
    Account,
    Censored,
    Computer,
    Conversion,
    FleetChoice,
    Options,
    Reader,
    Resubmissions,
    Shuffle,
    Slots,
    Unfinished,
)
from subak.workload.readers.swim import Model

MODEL_TEXT = ", ".join(f"{name}={value:.10g}" for name, value in msgspec.structs.asdict(Model()).items())
OPTION_NAMES = {"arrival_min": "--from", "arrival_end": "--until"}


def convert(
    trace_format: Annotated[str, typer.Argument(
        metavar="FORMAT", help=f"The trace's format: {', '.join(READERS)}.")],
    source: Annotated[Path, typer.Argument(
        metavar="SOURCE", help="The trace: a folder (google2011), a file (rumen, swim, tr, swf), or either "
                               "(alibaba2018, openb). Files may be plain, gz or xz.")],
    out: Annotated[Path, typer.Option(
        metavar="FOLDER", help="The workload folder to write; the machines, if the trace has any, go to its "
                               "subfolder `fleet`.")],
    resubmissions: Annotated[Resubmissions, typer.Option(
        help="google2011: a task submitted again is a new task, of job ID#2, ID#3 ... (as LoTES counts), or one more "
             "attempt of the same task, which then arrives at its first SUBMIT and runs as long as its last attempt.",
    )] = "new-task",
    censored: Annotated[Censored, typer.Option(
        help="google2011: a task still running when the parts end keeps the run time seen so far, is dropped, or runs "
             "forever.")] = "keep",
    fleet: Annotated[FleetChoice, typer.Option(
        help="google2011: the machines as of time 0, or every machine with its last capacity (Table 1 of LoTES), or "
             "machines joining and leaving during the run.")] = "at-start",
    from_: Annotated[float, typer.Option("--from", metavar="SECONDS", help="Keep tasks that arrive at or after this "
                                                                           "time.")] = 0.0,
    until: Annotated[float, typer.Option(metavar="SECONDS", help="Keep tasks that arrive before this time "
                                                                 "[default: no end].", show_default=False,
                                         )] = float("inf"),
    model: Annotated[list[str] | None, typer.Option(
        metavar="NAME=NUMBER", show_default=False,
        help=f"swim: a parameter of the model that makes tasks of bytes, such as block_bytes=64e6; once for each. "
             f"They are, with their defaults: {MODEL_TEXT}.")] = None,
    shuffle: Annotated[Shuffle, typer.Option(
        help="rumen, swim: the time in which a reduce copies the maps' output is ignored, as HMHS does, or is a figure "
             "of its stage that a reduce takes before it runs, or is part of each reduce's run time.")] = "ignored",
    slots: Annotated[Slots, typer.Option(
        help="swim: maps and reduces ask for the same kind of slot, or for one kind each: map_slot, reduce_slot.",
    )] = "common",
    computer: Annotated[Computer, typer.Option(
        help="swf: a job is a gang of tasks of one processor on the computer's nodes, which start together, or one "
             "task on one machine that stands for the whole computer.")] = "nodes",
    batch: Annotated[bool, typer.Option("--batch", help="rumen: all jobs arrive at 0, as in HMHS, and not when they "
                                                        "were submitted.")] = False,
    unfinished: Annotated[Unfinished, typer.Option(
        help="rumen: a task of which no attempt succeeded keeps its last attempt's time, or is dropped.")] = "keep",
    topology: Annotated[Path | None, typer.Option(
        metavar="FILE", help="rumen: racks and nodes, all of which become machines [default: the nodes on which "
                             "attempts ran].", show_default=False)] = None,
    map_slots: Annotated[int, typer.Option(metavar="N", help="rumen: map slots of each machine.")] = 2,
    reduce_slots: Annotated[int, typer.Option(metavar="N", help="rumen: reduce slots of each machine.")] = 2,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the workload folder if it exists.")] = False,
) -> None:
    """Convert a published trace into a workload folder, and account for every row that was read.

    Files may be of any size, their lines have 32 MiB at most (JSON's any length).

    Example: `subak convert google2011 traces/google2011 --out W`, then `subak inspect W`.
    """
    reader = _reader(trace_format)
    options = Options(resubmissions=resubmissions, censored=censored, fleet=fleet,
                      arrival_min=from_, arrival_end=until, shuffle=shuffle, slots=slots, computer=computer,
                      batch=batch, unfinished=unfinished, topology=str(topology or ""), map_slots=map_slots,
                      reduce_slots=reduce_slots,
                      model=parse_amounts(model or [], "--model", "NAME=NUMBER, such as block_bytes=64e6"))
    _refuse_unknown(trace_format, reader, options)
    inputs = [source, topology] if topology else [source]
    with new_folder(out, "workload.toml", overwrite, inputs) as folder:
        conversion = _read(reader, source, options)
        with waiting(f"Writing {out}"):
            conversion.write(folder)
    _show(conversion, Console())
    echo(f"Wrote {out}" + (f" and {out / 'fleet'}" if conversion.fleet else ""))


def _reader(name: str) -> Reader:
    if name not in READERS:
        raise InputError(f"format: must be one of {', '.join(READERS)}, not {name!r}")
    return READERS[name]


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
