"""Slurm's accounting, as `sacct --parsable2` prints it: a file of one line a job, or also one a step.

The commands, for a month; times are in seconds since 1970, so that no change to summer time is in the way, and -aXP is
--allusers --allocations --parsable2:

    export SLURM_TIME_FORMAT=%s
    fields=JobID,Partition,Account,User,Submit,Eligible,Start,Elapsed,Timelimit,State,NNodes,NTasks,ReqTRES,AllocTRES
    sacct -aXP --noconvert -S 2024-01-01 -E 2024-02-01 --format=$fields > jobs.txt

JobID, Submit, Start, Elapsed and State are needed, and ReqTRES or AllocTRES; the others may be missing, and more are
not read. Times may also be ISO 8601, as sacct prints them without SLURM_TIME_FORMAT; Unknown, None and 0 are unknown.

- A line whose JobID has a dot (123.0, 123.batch, 123.extern) is a step, and dropped; so is a job that never started. Of
  lines with the same JobID (with --duplicates, a job that was requeued) the one that was submitted last counts.
- 123_4 is element 4 of the array 123. The elements of an array are tasks of one job, each started by itself. The parts
  of a heterogeneous job (123+0, 123+1) are jobs.
- A job of several nodes (NNodes; where it is missing, node= of the TRES, then NTasks) is a gang of as many tasks, which
  start together and ask for equal parts of what the job asks for.
- It asks for what ReqTRES says, else AllocTRES: cpu, mem (in MiB; a letter is 1024-fold) and gres/gpu (where only
  gres/gpu:TYPE are given, their sum). Other TRES are remarked, and not modelled.
- It arrives when it was submitted, or became eligible if that was later (it waited for another job, or for --begin).
  Times are counted from the first. Start is the recorded start, Elapsed the run time, Timelimit the user's estimate
  (none where it is UNLIMITED or Partition_Limit).
- COMPLETED is FINISH; FAILED, OUT_OF_MEMORY FAIL; CANCELLED, TIMEOUT, DEADLINE KILL; PREEMPTED, REQUEUED EVICT;
  NODE_FAIL, BOOT_FAIL LOST; RUNNING CENSORED: it keeps the time that it had run.
- The queue is partition/account/user, without what is missing. A column Priority is read where it is given: Slurm's of
  the last moment.
- No fleet is written: the accounting names no machines that stood idle.

Source: the manual page of sacct, https://slurm.schedmd.com/sacct.html (24.11).
"""
from pathlib import Path

import polars as pl

from subak.errors import InputError
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.readers.conversion import Conversion, Reader, account_of, dropped_of, fate, kept_of, notes
from subak.workload.readers.files.delimited import Dialect, Rows, column_names, listed, text_rows
from subak.workload.readers.files.stream import Advance, refuse_lines, single_file
from subak.workload.readers.files.times import (
    DAY_S,
    clock_seconds,
    instant_text,
    known,
    limited,
    number,
    stamp_seconds,
)
from subak.workload.readers.options import Options
from subak.workload.readers.rows import (
    NEVER_STARTED,
    refuse_amounts,
    refuse_times,
    since_first,
    usual_rules,
    workload_of_rows,
)
from subak.workload.readers.slurm.states import is_no_state, outcome_of, state_word

RESOURCES = (Resource("cpu", 1e-3, "cores"), Resource("memory", 1.0, "MiB"), Resource("gpu", 1e-3, "GPUs"))
NEEDED = ("JobID", "Submit", "Start", "Elapsed", "State")
OPTIONAL = ("User", "Account", "Partition", "Priority", "Eligible", "Timelimit", "NNodes", "NTasks", "ReqTRES",
            "AllocTRES")
TRES = ("ReqTRES", "AllocTRES")
PIPES = Dialect("|")
STEP, NO_TRES = "a step of a job", "what it asks for is unknown"
LETTERS = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}  # MiB
GPUS_TYPED = r"gres/gpu:[^=,]+=(\d+)"


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read what sacct printed. Raises InputError naming the line and the column of the first mistake."""
    single_file(source)
    names = column_names(source, PIPES)
    _refuse_missing(source, names)
    wanted = tuple(name for name in (*NEEDED, *OPTIONAL) if name in names)
    tables = [_jobs(rows) for rows in text_rows(source, PIPES, wanted, advance)]
    if not tables:
        raise InputError(f"{source}: has no jobs")
    table, origin = since_first(pl.concat(tables), "arrival", "recorded_start")
    fated = _with_fates(table, options)
    kept, dropped = kept_of(fated, source, "lines"), dropped_of("jobs", fated, source)
    resources = tuple(each for each in RESOURCES if each.name == "cpu" or kept[each.name].sum() > 0)
    accounts = (account_of("jobs", fated),)
    del tables, table, fated  # a gigabyte of two million jobs
    remarks = _remarks(kept, [name for name in names if name and name not in wanted], origin)
    chosen = {"from": options.arrival_min, "until": options.arrival_end}
    provenance = Provenance(source.name.split(".")[0], f"file {source.name}: Slurm's sacct", "not stated",
                            notes(accounts, remarks, chosen))
    workload = workload_of_rows(kept, resources, provenance)
    return Conversion(workload, None, accounts, remarks, dropped)


READER = Reader("a file that Slurm's sacct --parsable2 printed", single_file, read,
                frozenset({"arrival_min", "arrival_end"}))


def _refuse_missing(source: Path, names: tuple[str, ...]) -> None:
    missing = [name for name in NEEDED if name not in names]
    if missing or not set(TRES) & set(names):
        raise InputError(f"{source}, line 1: must name the columns {', '.join(NEEDED)} and ReqTRES or AllocTRES, with "
                         f"| between them; {missing[0] if missing else 'ReqTRES'} is missing")


# Fields


def _jobs(rows: Rows) -> pl.DataFrame:
    """Return ROW_COLUMNS of a block's lines, and what the fates need."""
    table = rows.table.with_columns(pl.lit(None, pl.String).alias(name) for name in OPTIONAL
                                    if name not in rows.table.columns)
    texts = table.with_columns(known(pl.col(name)).alias(name) for name in (*NEEDED, *OPTIONAL))
    state = state_word(pl.col("State"))
    refuse_lines(texts, is_no_state(pl.col("State")), rows.block, "State must be one of sacct's state codes", "State")
    refuse_lines(texts, ~pl.col("JobID").str.contains(r"^\d+").fill_null(False), rows.block,
                 "JobID must begin with a number", "JobID")
    times = _checked_times(texts, rows)
    asked = _asked(texts, rows)
    said = texts.select("line", "JobID", "User", "Account", "Partition", "AllocTRES", state=state)
    whole = pl.concat([said, times, asked], how="horizontal")
    names = [pl.col(name).str.replace_all("/", "_", literal=True) for name in ("Partition", "Account", "User")]
    found = whole.select(
        "line", "JobID", "count", "asks", "others", *(each.name for each in RESOURCES),
        # Older versions say of a job that was cancelled while it waited that it started when it was
        waited=(pl.col("state") == "CANCELLED") & (pl.col("Elapsed") == 0) & pl.col("AllocTRES").is_null(),
        submit="Submit", late=pl.col("Eligible") > pl.col("Submit"),
        arrival=pl.max_horizontal("Submit", "Eligible"), run_time="Elapsed", recorded_start="Start",
        estimate="Timelimit", job=pl.col("JobID").str.extract(r"^(\d+(?:\+\d+)?)"),
        queue=pl.concat_str(names, separator="/", ignore_nulls=True), user=pl.col("User").fill_null("unknown"),
        outcome=outcome_of(pl.col("state")), priority=pl.col("Priority").fill_null(0), gang=pl.lit(True),
    )
    refuse_lines(found, pl.col("queue").str.contains("[[:cntrl:]]"), rows.block,
                 "Partition, Account and User must be names", "queue")
    return found.with_columns(queue=pl.when(pl.col("queue") != "").then("queue").otherwise(pl.lit("unknown")))


def _checked_times(texts: pl.DataFrame, rows: Rows) -> pl.DataFrame:
    """Return the times of each line in seconds. Raises InputError for a field that is none."""
    texts = texts.with_columns(Timelimit=limited(pl.col("Timelimit")))
    found = {}
    for name in ("Submit", "Eligible", "Start", "Elapsed", "Timelimit"):
        lasts = name in ("Elapsed", "Timelimit")
        text = pl.col(name)
        found[name] = pl.coalesce(number(text), clock_seconds(text) if lasts else stamp_seconds(text))
        form = "a duration as D-HH:MM:SS" if lasts else "an instant as 2024-01-31T12:00:00, or seconds since 1970"
        bad = texts.select(text.is_not_null() & found[name].is_null()).to_series()
        refuse_lines(texts.with_columns(bad=bad), pl.col("bad"), rows.block, f"{name} must be {form}", name)
    times = texts.select("line", **found)
    of_1970 = [pl.when(pl.col(name).abs() > DAY_S).then(name) for name in ("Submit", "Eligible", "Start")]
    times = times.with_columns(of_1970)  # that an instant is 0 says that it never was
    refuse_times(times, rows.block, *found)
    for name in ("Elapsed", "Timelimit"):
        refuse_lines(times, pl.col(name) < 0, rows.block, f"{name} must not be negative", name)
    return times.drop("line")


def _asked(texts: pl.DataFrame, rows: Rows) -> pl.DataFrame:
    """Return how many tasks a line is, and what each asks for. Raises InputError for what is no number."""
    tres = pl.coalesce(*TRES)
    memory = tres.str.extract(r"(?:^|,)mem=([0-9.]+)([A-Za-z]*)", 1).cast(pl.Float64, strict=False)
    letter = tres.str.extract(r"(?:^|,)mem=([0-9.]+)([A-Za-z]*)", 2)
    every = tres.str.extract_all(GPUS_TYPED)
    sums = every.list.eval(pl.element().str.extract(GPUS_TYPED).cast(pl.Float64)).list.sum()
    typed = pl.when(every.list.len() > 0).then(sums)
    numbers = texts.select(
        "line", "Priority", nodes=number(pl.col("NNodes")), tasks=number(pl.col("NTasks")), written=tres,
        cpu=_of(tres, "cpu"), node=_of(tres, "node"), gpu=pl.coalesce(_of(tres, "gres/gpu"), typed),
        memory=memory * letter.replace_strict(LETTERS, default=None, return_dtype=pl.Float64),
        priority=number(pl.col("Priority")), NNodes="NNodes", NTasks="NTasks",
    )
    for name, told in (("NNodes", "nodes"), ("NTasks", "tasks"), ("Priority", "priority")):
        value, text = pl.col(told), pl.col(name)
        bad = text.is_not_null() & (value.is_null() | (value != value.round()) | ~value.is_between(0, 2**32))
        refuse_lines(numbers, bad, rows.block, f"{name} must be a whole number, 0 or more", name)
    wrong = pl.col("written").str.contains(r"(?:^|,)mem=") & pl.col("memory").is_null()
    wrong |= pl.col("written").str.contains(r"(?:^|,)cpu=") & pl.col("cpu").is_null()
    wrong |= pl.col("written").str.contains(r"(?:^|,)gres/gpu[:=]") & pl.col("gpu").is_null()
    refuse_lines(numbers, wrong | ~pl.col("written").str.contains("="), rows.block,
                 "TRES must be as cpu=4,mem=16G,node=1,gres/gpu=2", "written")
    count = pl.coalesce(*(pl.when(pl.col(name) > 0).then(name) for name in ("nodes", "node", "tasks")), pl.lit(1.0))
    amounts = [(pl.col(name).fill_null(0.0) / count).alias(name) for name in ("cpu", "memory", "gpu")]
    names = _unmodelled(pl.col("written"))
    found = numbers.select("line", *amounts, asks=pl.col("written").is_not_null(), others=names,
                           count=count.cast(pl.Int64), Priority=pl.col("priority").clip(0, 2**31 - 1).cast(pl.Int32))
    refuse_amounts(found, rows.block, RESOURCES)
    return found.drop("line")


def _unmodelled(tres: pl.Expr) -> pl.Expr:
    """Return the names of those that are not modelled, as a list."""
    modelled = r"^(cpu|mem|node|billing|gres/gpu(:.*)?)=$"
    every = tres.str.extract_all(r"[^,=]+=")
    return every.list.eval(pl.element().filter(~pl.element().str.contains(modelled)).str.strip_suffix("="))


def _of(tres: pl.Expr, name: str) -> pl.Expr:
    """Return the number that stands behind a name of TRES."""
    return tres.str.extract(rf"(?:^|,){name}=([0-9.]+)(?:,|$)").cast(pl.Float64, strict=False)


# Rows


def _with_fates(table: pl.DataFrame, options: Options) -> pl.DataFrame:
    step = pl.col("JobID").str.contains(".", literal=True)
    never = pl.col("recorded_start").is_null() | pl.col("outcome").is_null() | pl.col("waited")
    ran = table.select("line", "JobID", "submit", ran=~step & ~never).filter("ran").sort("submit", "line")
    last = pl.col("line").is_in(ran.filter(pl.col("JobID").is_last_distinct())["line"].implode())
    return table.with_columns(fate=fate([
        (step, STEP),
        (never, NEVER_STARTED),
        (~last, "its job was submitted again later, or stands there twice"),
        (~pl.col("asks"), NO_TRES),
        *usual_rules(RESOURCES, options),
    ])).with_columns(early=pl.col("recorded_start") < pl.col("arrival"),
                     recorded_start=pl.max_horizontal("recorded_start", "arrival"))


def _remarks(kept: pl.DataFrame, left: list[str], origin: float) -> dict[str, int | float | str]:
    several = kept.filter(pl.col("count") > 1)
    ignored = sorted(kept["others"].list.explode().drop_nulls().unique().to_list())
    counts = {
        "jobs on several nodes, which start together": len(several),
        "elements of arrays": kept.filter(pl.col("JobID").str.contains("_", literal=True)).height,
        "parts of heterogeneous jobs (each a job of its own)": kept.filter(pl.col("job").str.contains("+", literal=True)
                                                                           ).height,
        "jobs still running": kept.filter(outcome="CENSORED").height,
        "jobs with an estimate": kept["estimate"].count(),
        "jobs that became eligible after they were submitted (they arrive then)": int(
            kept["late"].fill_null(False).sum()),
        "jobs that start before they arrive (they start at once)": int(kept["early"].fill_null(False).sum()),
        "jobs that ask for no memory": kept.filter(memory=0.0).height,
        "jobs with run time 0": kept.filter(run_time=0.0).height,
    }
    said: dict[str, int | float | str] = {name: count for name, count in counts.items() if count}
    said["time 0 is"] = instant_text(origin)
    if ignored:
        said["TRES that are not modelled"] = listed(tuple(ignored))
    if left:
        said["columns that are not read"] = listed(tuple(left))
    return said | {"fleet": "none written: the accounting does not say which machines there are"}
