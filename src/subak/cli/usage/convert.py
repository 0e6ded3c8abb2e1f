"""Declares the arguments and help of `subak convert`."""
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from subak.cli import completion
from subak.cli.ending import loading
from subak.dates import When, when_reader
from subak.errors import InputError
from subak.nearest import did_you_mean
from subak.resources import parse_numbers
from subak.settings import WHEN
from subak.workload.readers import ALIASES, FORMATS
from subak.workload.readers.options import (
    Amounts,
    Blanks,
    Censored,
    Computer,
    FleetChoice,
    Model,
    Options,
    Resubmissions,
    Shuffle,
    Slots,
    Unfinished,
)

MODEL_TEXT = ", ".join(f"{name}={value:.10g}" for name, value in msgspec.structs.asdict(Model()).items())


def convert(
    trace_format: Annotated[str, typer.Argument(
        metavar="FORMAT", help=f"The trace's format: {', '.join(FORMATS)}.",
        autocompletion=completion.words(tuple(FORMATS)))],
    source: Annotated[Path, typer.Argument(
        metavar="SOURCE", help="The trace: a folder (google2011, google2019), a file (acme, azure, dlrm2025, fdata, "
                               "frontier, helios, in2p3, pm100, rumen, sacct, supercloud, swf, swim, table, tr), or "
                               "either (alibaba2018, openb, pai2020, philly, pods, wfformat). Files may be plain, gz "
                               "or xz.")],
    out: Annotated[Path | None, typer.Option(
        metavar="FOLDER", show_default=False,
        help="The workload folder to write; the machines, if the trace has any, go to its subfolder `fleet`.")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Read, show the understood columns, the rows that would be "
                                                            "dropped and the first tasks, and write nothing.")] = False,
    map_: Annotated[list[str] | None, typer.Option(
        "--map", metavar="NAME=COLUMN,...", show_default=False,
        help="table: which column is what, such as arrival=Submit,run_time=Elapsed,cpu=ReqCPUS[cores]; a unit or a "
             "time format in brackets, NAME==VALUE for the same in all rows. Names: arrival, start, end, run_time, "
             "estimate, job, queue, user, priority, tasks, outcome; any other is a resource.")] = None,
    separator: Annotated[str, typer.Option(
        metavar="SIGN", show_default=False,
        help="table: the separator of fields: a comma, a semicolon, a tab or | [default: found in the first line].",
    )] = "",
    columns: Annotated[str, typer.Option(
        metavar="NAME,...", show_default=False,
        help="table: the names of all columns, in order, if the file has no header.")] = "",
    blanks: Annotated[Blanks, typer.Option(
        help="table, acme, pai2020, fdata, pm100, in2p3: an empty amount is 0; or it is unknown, and its row is "
             "dropped.")] = "zero",
    gang: Annotated[bool, typer.Option("--gang", help="table: the tasks of a row start together.")] = False,
    amounts: Annotated[Amounts, typer.Option(
        help="sacct, supercloud, swf: the request of a job is its allocated amounts, if the file has them, or the "
             "amounts that its user requested.")] = "allocated",
    zone: Annotated[str, typer.Option(
        metavar="ZONE", show_default=False,
        help="sacct, helios, table, fdata, pm100: the zone of times without one, such as Europe/Paris [default: times "
             "as they stand; then hours that clocks skip or repeat go unnoticed].")] = "",
    max_lost: Annotated[str, typer.Option(
        metavar="SHARE", help="Refuse a trace if unreadable rows hold more than this share of its load.",
    )] = "10%",
    resubmissions: Annotated[Resubmissions, typer.Option(
        help="google2011, google2019: a task submitted again is a new task, of job ID#2, ID#3 ... (as LoTES counts), "
             "or one more attempt of the same task, which then arrives at its first SUBMIT and runs as long as its "
             "last attempt.",
    )] = "new-task",
    censored: Annotated[Censored, typer.Option(
        help="google2011, google2019, pods: a task still running when the parts end keeps the run time seen so far, is "
             "dropped, or runs forever.")] = "keep",
    fleet: Annotated[FleetChoice, typer.Option(
        help="google2011, google2019: the machines at time 0; or every machine with its last capacity (Table 1 of "
             "LoTES); or machines that join and leave during the run.")] = "at-start",
    from_: Annotated[float, typer.Option(
        "--from", parser=when_reader("--from"), metavar=WHEN,
        help="Keep tasks that arrive at or after this time, such as 90, 30min, 1-12:00:00 or the date 2024-03-01.",
    )] = 0.0,
    until: Annotated[float, typer.Option(
        parser=when_reader("--until"), metavar=WHEN, show_default=False,
        help="Keep tasks that arrive before this time [default: no end].")] = float("inf"),
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
        help="rumen: a task without a successful attempt keeps its last attempt's time, or is dropped.")] = "keep",
    topology: Annotated[Path | None, typer.Option(
        metavar="FILE", help="rumen: racks and nodes, all of which become machines [default: the nodes on which "
                             "attempts ran].", show_default=False)] = None,
    map_slots: Annotated[int, typer.Option(metavar="N", help="rumen: map slots of each machine.")] = 2,
    reduce_slots: Annotated[int, typer.Option(metavar="N", help="rumen: reduce slots of each machine.")] = 2,
    rack_local: Annotated[float, typer.Option(
        metavar="TIMES", help="rumen: how many times as long a map takes whose input is on another machine of the "
                              "rack.")] = 1.0,
    off_rack: Annotated[float, typer.Option(
        metavar="TIMES", help="rumen: and one whose input is in another rack.")] = 1.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the workload folder if it exists.")] = False,
) -> None:
    """Convert a trace, or a cluster's own log, into a workload folder, and account for every row that was read.

    Files may be of any size; their lines may have 32 MiB (JSON: any length).

    Example: `subak convert google2011 traces/google2011 --out W`, then `subak inspect W`.

    Any table of jobs: `subak convert table jobs.csv --map arrival=Submit,run_time=Elapsed,memory=Mem[MiB]
    --preview`.

    Units of --map: instants in `iso`, `epoch`, `epoch-ms`, `s`, `ms`, `%d/%m/%Y %H:%M`, or with a zone as
    `iso@Europe/Paris`; durations in `s`, `ms`, `min`, `h`, `hms` (1-02:03:04); amounts in `cores`, `millicores`,
    `GPUs`, `MiB`, `GiB`, `GB`, `%`, with `/tasks` if all tasks of a row share them. Without a unit, the first rows
    decide.

    Slurm's accounting: `export SLURM_TIME_FORMAT=%s`, then `sacct -aXP --noconvert -S 2024-01-01 -E 2024-02-01
    --format=JobID,Partition,Account,User,Submit,Eligible,Start,Elapsed,Timelimit,State,NNodes,NTasks,ReqTRES,AllocTRES`
    into a file jobs.txt, then `subak convert sacct jobs.txt --out W`.

    Kubernetes: `kubectl get pods -A -o json > K/pods.json; kubectl get nodes -o json > K/nodes.json`, then `subak
    convert pods K --out W`.
    """
    trace_format = ALIASES.get(trace_format, trace_format)
    if trace_format not in FORMATS:
        raise InputError(f"format: must be one of {', '.join(FORMATS)}, not {trace_format!r}"
                         + did_you_mean(trace_format, FORMATS))
    options = Options(resubmissions=resubmissions, censored=censored, fleet=fleet,
                      **_slice(from_, until), shuffle=shuffle, slots=slots, computer=computer,
                      batch=batch, unfinished=unfinished, topology=str(topology or ""), map_slots=map_slots,
                      reduce_slots=reduce_slots, rack_local=rack_local, off_rack=off_rack, columns=tuple(map_ or ()),
                      separator=separator, gang=gang, amounts=amounts, blanks=blanks, zone=zone,
                      names=tuple(name.strip() for name in columns.split(",")) if columns else (),
                      max_lost=_share("--max-lost", max_lost),
                      model=parse_numbers(model or [], "--model", "NAME=NUMBER, such as block_bytes=64e6"))
    if (out is None) == (not preview):
        raise InputError("--out: must name the folder to write, or --preview be given, which writes none; not both")
    with loading():
        from subak.cli.commands.workloads import convert as command  # noqa: PLC0415  (loads the readers)

    if out is None:
        command.preview(trace_format, source, options)
    else:
        command.convert(trace_format, source, out, options, overwrite)


def _slice(begin: When, end: When) -> dict[str, Any]:
    """Return the options of a slice whose ends are seconds or dates."""
    return {("from_date" if isinstance(begin, str) else "arrival_min"): begin,
            ("until_date" if isinstance(end, str) else "arrival_end"): end}


def _share(option: str, text: str) -> float:
    """Return a share such as 0.1 or 10%. Raises InputError, naming *option*, for what is none."""
    number, percent = text.removesuffix("%"), text.endswith("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{option}: must be a share from 0 to 1, such as 0.1 or 10%, not {text[:40]!r}")
    return value
