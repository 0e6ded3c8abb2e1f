"""Parses lines of the Standard Workload Format and its extensions."""
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl

from subak.errors import InputError
from subak.resources import AMOUNT_MAX
from subak.workload.readers.files.faults import Faults, Rows
from subak.workload.readers.files.stream import Advance, Block, blocks, fields, single_file
from subak.workload.readers.options import Options
from subak.workload.readers.rows import FAULTY, NEVER_STARTED, OUTSIDE, again
from subak.workload.readers.rulings import Ruling, with_ruling
from subak.workload.readers.started import never_started
from subak.workload.table import OUTCOMES

# Places, from 0, of the fields that are read; the format's own numbers are one higher
FIELDS = {"number": 0, "submit": 1, "wait": 2, "run_time": 3, "allocated": 4, "requested": 7, "estimate": 8,
          "status": 10, "user": 11, "queue": 14}
COUNTED = {"memory": 9, "preceding": 16}  # places of fields of which it is only said how many jobs have them
WHOLE = ("number", "allocated", "requested", "status", "user", "queue")
OUTCOME_NAMES = {0.0: "FAIL", 1.0: "FINISH", 5.0: "KILL"}
NUMBER_MAX = 2.0**53  # beyond it a float does not hold every whole number


class Form(NamedTuple):
    """How many fields a line has at least, and the places of those that the standard does not have."""

    field_count: int = 18
    whole: Mapping[str, int] = {}  # numbers of what is counted
    texts: Mapping[str, int] = {}


class Part(NamedTuple):
    """A block's lines of the header, its job lines, and their faults so far."""

    header: dict[str, str]
    jobs: pl.DataFrame  # line, the numbers of FIELDS, COUNTED and the form's, field_count
    faults: Faults


def read_parts(source: Path, form: Form, advance: Advance) -> list[Part]:
    """Read a file, plain or compressed, block by block. Raises InputError when it has no jobs."""
    single_file(source)
    parts = [_part(block, form) for block in blocks(source, advance)]
    if not sum(len(part.jobs) for part in parts):
        raise InputError(f"{source}: has no jobs")
    return parts


def header_of(parts: list[Part]) -> dict[str, str]:
    """Return the header: what stands first of each name."""
    return {name: value for part in reversed(parts) for name, value in part.header.items()}


def _part(block: Block, form: Form) -> Part:
    header: dict[str, str] = {}
    for key, value in re.findall(rb"^;[ \t]*([A-Za-z]+):[ \t]*(.*)$", block.text, flags=re.MULTILINE):
        header.setdefault(key.decode(), value.decode("utf-8", errors="replace").strip())
    words = fields(block)
    words = words.filter(~pl.col("fields").list.first().str.starts_with(";"))
    words = words.with_columns(field_count=pl.col("fields").list.len())
    faults = Faults(Rows(words, block))
    faults.add(words, pl.col("field_count") < form.field_count, f"must have {form.field_count} fields or more",
               "field_count")
    return Part(header, _numbers(words, form, faults), faults)


def _numbers(words: pl.DataFrame, form: Form, faults: Faults) -> pl.DataFrame:
    """Return the fields of job lines as numbers, and note those that are none."""
    read = {**FIELDS, **form.whole}
    texts = words.with_columns(pl.col("fields").list.get(place, null_on_oob=True).alias(name)
                               for name, place in {**read, **COUNTED, **form.texts}.items())
    numbers = texts.with_columns(pl.col(*read, *COUNTED).cast(pl.Float64, strict=False))
    table = numbers.with_columns(pl.when(pl.col(name).abs() < NUMBER_MAX).then(name).alias(name) for name in read)
    for name in read:
        bad = texts.with_columns(bad=table[name].is_null())
        faults.add(bad, pl.col("bad"), f"{name} must be a finite number", name)
    for name in (*WHOLE, *form.whole):
        faults.add(table, pl.col(name) != pl.col(name).round(), f"{name} must be a whole number", name)
    for name in ("submit", "run_time", "estimate"):
        faults.add(table, (pl.col(name) < 0) & (pl.col(name) != -1),
                   f"{name} must not be negative (only -1, for unknown)", name)
    for name in ("requested", "allocated", *form.whole):
        faults.add(table, pl.col(name) > AMOUNT_MAX, f"{name} must be at most {AMOUNT_MAX}", name)
    return table.drop("fields")


def with_rulings(jobs: pl.DataFrame, sizes: list[Ruling], options: Options) -> pl.DataFrame:
    """Add `outcome` and `ruling`; *sizes* drop jobs of which it is unknown how much they asked for."""
    submit = pl.col("submit")
    piece = pl.col("status").is_in([2.0, 3.0, 4.0])
    never = never_started(None, pl.col("outcome"), pl.col("run_time"), pl.col("allocated") > 0)
    known = jobs.with_columns(
        pl.when(pl.col("run_time") >= 0).then("run_time"),
        outcome=pl.col("status").replace_strict(OUTCOME_NAMES, default=None, return_dtype=OUTCOMES))
    return with_ruling(known, [
        Ruling(piece, "a piece of a job (status 2, 3 or 4)", load=False),
        FAULTY,
        Ruling(submit < 0, "submit time unknown"),
        Ruling(never, NEVER_STARTED, load=False),
        Ruling(pl.col("run_time").is_null(), "run time unknown"),
        *sizes,
        again("job number", "number", piece=piece),
        Ruling((submit < options.arrival_min) | (submit >= options.arrival_end), OUTSIDE, load=False),
    ])


def counts_of(jobs: pl.DataFrame, kept: pl.DataFrame, form: Form) -> dict[str, int]:
    """Return what is remarkable of the fields that all forms have; some counts may be 0."""
    return {
        f"lines with more than {form.field_count} fields (the rest is ignored)":
            jobs.filter(pl.col("field_count") > form.field_count).height,
        "jobs with run time 0": kept.filter(run_time=0.0).height,
        "jobs with an estimate": kept.filter(pl.col("estimate") >= 0).height,
        "jobs whose wait is recorded": kept.filter(pl.col("wait") >= 0).height,
        "jobs whose wait is negative (it counts as unknown)":
            kept.filter((pl.col("wait") < 0) & (pl.col("wait") != -1)).height,
        "jobs that ask for memory (field 10, which is not read)": kept.filter(pl.col("memory") > 0).height,
        "jobs that follow another (fields 17 and 18, which are not read)": kept.filter(pl.col("preceding") > 0).height,
    }


def row_columns() -> dict[str, pl.Expr]:
    """Return those of ROW_COLUMNS that all forms have."""
    queue, user = (_named(name) for name in ("queue", "user"))
    return {
        "run_time": pl.col("run_time"), "outcome": pl.col("outcome"), "job": _whole("number"),
        "queue": queue + "/" + user, "arrival": pl.col("submit"),
        "user": pl.when(pl.col("user") >= 0).then(_whole("user")).otherwise(pl.lit("unknown")),
        "estimate": pl.when(pl.col("estimate") >= 0).then("estimate"),
        "recorded_start": pl.when(pl.col("wait") >= 0).then(pl.col("submit") + pl.col("wait")),
    }


def _named(name: str) -> pl.Expr:
    known = pl.lit(name) + _whole(name)
    return pl.when(pl.col(name) >= 0).then(known).otherwise(pl.lit("unknown"))


def _whole(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64).cast(pl.String)
