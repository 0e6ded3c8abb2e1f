"""The job table of Slurm's accounting database as CSV, such as MIT Supercloud's slurm-log.csv: one job a line.

It is what sacct reads, before it is put in words, and is read as the format sacct reads that: see there for what a job
becomes.

- States are Slurm's numbers, times seconds since 1970, limits minutes; 0, 4294967294 and 4294967295 say nothing.
- TRES are numbers: 1 CPUs, 2 memory in MB, 4 nodes, and Supercloud's two models of GPUs, 1001 and 1002, whose sum
  counts. Without TRES, gres_used has the GPUs of each node.
- A state with the flag of a requeue (1024) is REQUEUED; other flags are left out.
- The published log is a sample: it has no job that ran for less than five minutes, and several weeks are missing.
- id_array_job and id_array_task name the element of an array. The run time is from time_start to time_end without
  time_suspended.
- Users have numbers. The queue is partition/user.

Source: the README and the notebook of https://github.com/MIT-AI-Accelerator/MIT-Supercloud-Dataset (Samsi et al., HPEC
2021), slurm.h for the numbers of states. Made from that schema; the log itself was not at hand.
"""
from pathlib import Path

import polars as pl

from subak.workload.readers.conversion import Conversion, Reader
from subak.workload.readers.files.delimited import Dialect, column_names, text_rows
from subak.workload.readers.files.faults import Rows
from subak.workload.readers.files.stream import Advance, single_file
from subak.workload.readers.files.times import number
from subak.workload.readers.options import DATED, Options
from subak.workload.readers.slurm.sacct import Origin, accounting, jobs_of
from subak.workload.readers.started import NO_VALUES, limit

CSV = Dialect(quoted=True)
NEEDED = ("id_job", "state", "time_submit", "time_start", "time_end")
OPTIONAL = ("id_array_job", "id_array_task", "id_user", "partition", "priority", "nodes_alloc", "cpus_req", "gres_used",
            "timelimit", "time_eligible", "time_suspended", "tres_alloc", "tres_req")
# enum job_states of slurm.h
STATES = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
          "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY")
TRES = {"1": "cpu", "2": "mem", "4": "node", "5": "billing", "1001": "gres/gpu:tesla",
        "1002": "gres/gpu:volta"}
SAME = {"Partition": "partition", "User": "id_user", "Priority": "priority", "Submit": "time_submit",
        "Eligible": "time_eligible", "Start": "time_start", "NNodes": "nodes_alloc", "NCPUS": "cpus_req",
        "AllocGRES": "gres_used"}
REQUEUED = 0x400  # a flag above the 8 bits of the state
ORIGIN = Origin("supercloud", "MIT Supercloud's slurm-log.csv, or the like; Samsi et al., HPEC 2021",
                "see the trace's LICENSE")


def read(source: Path, options: Options, advance: Advance) -> Conversion:
    """Read the table. Raises InputError when too much of it cannot be read, naming line and column."""
    single_file(source)
    there = column_names(source, CSV)
    wanted = (*NEEDED, *(name for name in OPTIONAL if name in there))
    tables = [jobs_of(_as_sacct(rows), options) for rows in text_rows(source, CSV, wanted, advance)]
    return accounting(source, tables, tuple(name for name in there if name and name not in wanted), options, ORIGIN)


READER = Reader("slurm-log.csv of MIT Supercloud, or another job table of Slurm's database", single_file, read,
                frozenset({*DATED, "amounts", "max_lost"}))


def _as_sacct(rows: Rows) -> Rows:
    """Return the rows with sacct's columns, in sacct's words."""
    table = rows.table.with_columns(pl.lit(None, pl.String).alias(name) for name in OPTIONAL
                                    if name not in rows.table.columns)
    code = pl.col("state").cast(pl.Int64, strict=False)
    word = (code & 0xFF).replace_strict(dict(enumerate(STATES)), default=None, return_dtype=pl.String)
    state = pl.when(code & REQUEUED != 0).then(pl.lit("REQUEUED")).otherwise(word)
    array = number(pl.col("id_array_job"))
    element = pl.concat_str("id_array_job", pl.lit("_"), "id_array_task")
    of_array = (array > 0) & ~number(pl.col("id_array_task")).is_in(NO_VALUES)
    start, end = (pl.when(number(pl.col(name)) > 0).then(number(pl.col(name))) for name in ("time_start", "time_end"))
    ran = (end - start - number(pl.col("time_suspended")).fill_null(0.0)).cast(pl.String)
    minutes = limit(number(pl.col("timelimit"))) * 60
    return rows._replace(table=table.select(
        "line", **SAME, JobID=pl.when(of_array.fill_null(False)).then(element).otherwise("id_job"),
        State=pl.coalesce(state, "state"), Elapsed=ran, Timelimit=minutes.cast(pl.String),
        **{word: _in_words(name) for word, name in (("AllocTRES", "tres_alloc"), ("ReqTRES", "tres_req"))}))


def _in_words(name: str) -> pl.Expr:
    """Return TRES by name: 1=40,2=1000 becomes cpu=40,mem=1000."""
    text = pl.col(name)
    for code, word in TRES.items():
        text = text.str.replace_all(rf"(^|,){code}=", f"${{1}}{word}=")
    return text
