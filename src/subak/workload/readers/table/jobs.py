"""Any table of jobs, as CSV or Parquet; `--map` says which column is what.

The fields of CSV are separated by comma, semicolon, tab or |; the file is plain, gz or xz.
`--map arrival=Submit,run_time=Elapsed` names columns; it may be given more than once. What can be mapped:

- `arrival`, and `start` and `end` of the run, which are instants. `start` is kept as the recorded start.
- `run_time`, unless `start` and `end` are given, and `estimate`, the user's guess of it, which are durations.
- `job`, `queue` (a path such as org/department), `user`, `priority` (larger is more important), `outcome`, and `tasks`,
  how many alike tasks a row stands for; with `--gang` they start together. Rows that name the same job are tasks of it.
- Any other name is a resource, and the column says how much of it each task asks for; with `/tasks` behind the unit,
  all tasks of the row together. Without any, each task asks for one `slot`.

`NAME==VALUE` gives all rows the same. A unit stands in brackets behind the column: `memory=ReqMem[MiB]`,
`run_time=duration[ms]`, `cpu=ReqCPUS[cores/tasks]`. Instants are numbers on a clock of the table's own (`ns`, `us`,
`ms`, `s`, `min`, `h`, `d`), numbers since 1970 (`epoch`, `epoch-ms`, `epoch-us`, `epoch-ns`), ISO 8601 (`iso`), or of a
form as strftime has it, `arrival=Submit[%d/%m/%Y %H:%M]`; what says no zone is UTC, or that of the zone behind an @:
`[iso@Europe/Paris]`. Durations are numbers in one of the first, or `hms`: MM:SS, HH:MM:SS, D-HH:MM:SS. Without a unit,
the first fields decide: numbers from 1e8 on are since 1970, in s, ms, us or ns by their size, and a later one of
another size is a mistake. Times since 1970 are counted from the first arrival. Amounts: `units` (if none is given),
`%`, `cores`, `millicores`, `GPUs`, `B`, `KiB`, `MiB`, `GiB`, `TiB`, `kB`, `MB`, `GB`, `TB`. A field may name its own
unit, as 500m (of a core) or 16G (1024-fold) does.

A field that is empty, or says Unknown, None, NULL, NaN, NA or -, is unknown; so are the 0 and 4294967295 of Slurm's
database where an instant or a limit stands. An amount that is unknown counts as 0 where the row has another one
(`--blanks unknown` drops the row). A row without a start, where starts are mapped, never started, unless its outcome
says that it ended. A row with a field that says something else is dropped, like one without an arrival or a run time:
dropped.csv names line, column and value, and with too many of them (--max-lost) nothing is converted. A table without a
line of names gets them by `--columns job,start,...`. `--preview` shows what was understood of the first rows, and
writes nothing.
"""
from pathlib import Path
from typing import Any

import polars as pl

from subak.errors import InputError
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.readers.conversion import (
    Account,
    Conversion,
    Reader,
    Shown,
    account_of,
    dropped_of,
    kept_load,
    notes,
)
from subak.workload.readers.files.delimited import (
    SEPARATORS,
    Dialect,
    column_names,
    guessed_separator,
    is_parquet,
    listed,
    text_rows,
)
from subak.workload.readers.files.faults import Faults, Rows
from subak.workload.readers.files.stream import Advance, refuse_lines, single_file
from subak.workload.readers.files.times import (
    DURATION_UNITS,
    Clocks,
    calendar_of,
    clock_remarks,
    clock_seconds,
    format_seconds,
    instant_text,
    known,
    limited,
    names_zone,
    number,
    refuse_zone,
    stamp_seconds,
)
from subak.workload.readers.options import DATED, Options
from subak.workload.readers.rows import (
    FAULTY,
    NEVER_STARTED,
    add_amounts,
    last_of,
    since_first,
    usual_rules,
    workload_of_rows,
)
from subak.workload.readers.rulings import Ruling, with_ruling
from subak.workload.readers.started import given, never_started, since_1970
from subak.workload.readers.table.mapping import (
    AT,
    CLOCK,
    DURATIONS,
    EPOCHS,
    EXAMPLE,
    INSTANTS,
    TARGETS,
    Column,
    parsed,
    zoned,
)
from subak.workload.readers.table.submissions import Submissions
from subak.workload.readers.table.units import amount, resource
from subak.workload.table import OUTCOMES, OWN_NODES, QUEUES_ARE, TIME_MAX_S

SHOWN_ROWS = 3
# What a number is taken for by its size; 1e8 s since 1970 is in 1973
SIZES = {"s": (0.0, 1e8), "epoch": (1e8, 1e11), "epoch-ms": (1e11, 1e14), "epoch-us": (1e14, 1e17),
         "epoch-ns": (1e17, float("inf"))}
SLOT = Resource("slot", 1.0, "slots")
NUMBER_WORDS = {"priority": "a whole number from -2147483648 to 2147483647", "tasks": "a whole number, 0 or more"}
NUMBER_BOUNDS = {"priority": (-(2**31), 2**31 - 1), "tasks": (0, 2**53)}
QUEUE = r"^[^/[:cntrl:]]+(/[^/[:cntrl:]]+)*$"
# Words for how a job ended, in small letters, of the schedulers that people have
OUTCOME_WORDS = {
    **dict.fromkeys(("completed", "complete", "finished", "finish", "success", "succeeded", "successful", "pass",
                     "passed", "done", "terminated", "ok"), "FINISH"),
    **dict.fromkeys(("failed", "fail", "failure", "error", "out_of_memory", "oom"), "FAIL"),
    **dict.fromkeys(("killed", "kill", "cancelled", "canceled", "aborted", "timeout", "deadline"), "KILL"),
    **dict.fromkeys(("evicted", "evict", "preempted"), "EVICT"),
    **dict.fromkeys(("lost", "node_fail"), "LOST"),
    **dict.fromkeys(("running", "censored"), "CENSORED"),
}


def read(source: Path, options: Options, advance: Advance, submissions: Submissions | None = None) -> Conversion:
    """Read a table, and join what another says of its jobs.

    Raises InputError naming the line and the column of the first mistake.
    """
    refuse_zone(options.zone)
    single_file(source)
    dialect = _dialect(source, options)
    there = column_names(source, dialect)
    if not options.columns:
        raise InputError(f"--map: must say which column is what, {EXAMPLE}; {source} has {listed(there)}")
    columns = parsed(options.columns)
    wanted = tuple(dict.fromkeys(column.source for column in columns.values() if not column.constant))
    units: dict[str, str] = {}
    tables, understood = [], None
    for rows in text_rows(source, dialect, wanted, advance):
        texts = _texts(rows, columns)
        units = units or _units(texts, columns, rows)
        tables.append(_values(texts, columns, units, rows, options))
        understood = understood or _understood(texts, tables[0], columns, units, options)
    if not tables:
        raise InputError(f"{source}: has no rows")
    resources = _resources(columns)
    read_rows = pl.concat(tables)
    table, origin = _counted(read_rows if submissions is None else submissions.onto(read_rows), units)
    zone = zoned(units["arrival"])[1] or options.zone
    options = options.placed(None if origin is None else calendar_of(table, origin, zone), last_of(table))
    ruled = _with_rulings(table, columns, resources, options)
    word = "row" if is_parquet(source) else "line"
    kept, loads = kept_load(ruled, source, "rows", resources, options, word)
    dropped = dropped_of("rows", ruled, source)
    accounts: tuple[Account, ...] = (account_of("rows", ruled),)
    left = [name for name in there if name and name not in wanted]
    remarks = _remarks(kept, columns, left, origin)
    if submissions is not None:
        accounts += (submissions.account,)
        dropped, remarks = pl.concat([dropped, submissions.dropped]), submissions.remarks(ruled) | remarks
        understood = submissions.shown(understood)
    del tables, read_rows, table, ruled  # as large as the workload
    chosen = {"from": options.arrival_min, "until": options.arrival_end, "gang": options.gang,
              "blanks": options.blanks, "zone": options.zone,
              "map": [_said(column, units) for column in columns.values()]}
    provenance = Provenance(source.name.split(".")[0], f"file {source.name}", "not stated",
                            notes(accounts, remarks, chosen),
                            None if origin is None else calendar_of(kept, origin, zone))
    workload = workload_of_rows(kept, resources, provenance)
    return Conversion(workload, None, accounts, remarks, dropped, understood, loads=loads)


READER = Reader("a file of any table of jobs, CSV or Parquet; --map says which column is what", single_file, read,
                frozenset({"columns", "separator", "gang", "blanks", "names", "zone", "max_lost", *DATED}))


def _dialect(source: Path, options: Options) -> Dialect:
    if options.separator not in ("", *SEPARATORS):
        raise InputError(f"--separator: must be a comma, a semicolon, a tab or |, not {options.separator[:20]!r}")
    if is_parquet(source):
        return Dialect()
    return Dialect(options.separator or guessed_separator(source), quoted=True, names=options.names)


def _resources(columns: dict[str, Column]) -> tuple[Resource, ...]:
    named = tuple(resource(name, column.unit) for name, column in columns.items() if name not in TARGETS)
    return named or (SLOT,)


# Fields


def _texts(rows: Rows, columns: dict[str, Column]) -> pl.DataFrame:
    """Return `line` and a column of text for each target; null where nothing is known."""
    found = {name: known(pl.lit(column.source) if column.constant else pl.col(column.source))
             for name, column in columns.items()}
    if "estimate" in found:
        found["estimate"] = limited(found["estimate"])
    found |= {name: given(found[name]) for name in (*INSTANTS, *DURATIONS) if name in found}
    return rows.table.select("line", **found)


def _units(texts: pl.DataFrame, columns: dict[str, Column], rows: Rows) -> dict[str, str]:
    """Return the unit of each instant and duration: as it was given, or as the first field tells."""
    found = {}
    for name, column in columns.items():
        if name in INSTANTS or name in DURATIONS:
            found[name] = column.unit or _told(name, texts, column, rows)
    absolute = {name: _is_absolute(unit) for name, unit in found.items() if name in INSTANTS}
    if len(set(absolute.values())) > 1:
        since, own = (next(name for name, is_absolute in absolute.items() if is_absolute == wanted)
                      for wanted in (True, False))
        raise InputError(f"--map: {since} is an instant since 1970 ([{found[since]}]), {own} is a number on another "
                         f"clock ([{found[own]}])")
    return found


def _is_absolute(unit: str) -> bool:
    """Return whether instants of a unit are since 1970."""
    return unit not in DURATION_UNITS


def _told(name: str, texts: pl.DataFrame, column: Column, rows: Rows) -> str:
    """Return the unit that the first known field has."""
    first = texts.filter(pl.col(name) != "0").head(1)
    if first.is_empty():
        return "s"
    field = pl.col(name)
    value, is_stamp, is_clock = first.select(
        number=number(field), stamp=stamp_seconds(field).is_not_null(), clock=clock_seconds(field).is_not_null()).row(0)
    if value is not None:
        return next(unit for unit, (_, most) in SIZES.items() if abs(value) < most) if name in INSTANTS else "s"
    if (is_stamp and name in INSTANTS) or (is_clock and name in DURATIONS):
        return "iso" if name in INSTANTS else CLOCK
    forms = "a number or an instant of ISO 8601" if name in INSTANTS else "a number or a duration as D-HH:MM:SS"
    refuse_lines(first, pl.lit(True), rows.block, f"{column.source} must be {forms}", name)
    return "s"


def _values(texts: pl.DataFrame, columns: dict[str, Column], units: dict[str, str], rows: Rows,
            options: Options) -> pl.DataFrame:
    """Return `line`, the value of each target, and the faults of fields that are none."""
    faults, clocks = Faults(rows), Clocks()
    for name in INSTANTS:
        if name in columns:
            clocks.add(name, *_instant(pl.col(name), units[name], options))
    found = {name: _value(pl.col(name), name, column, units) for name, column in columns.items()
             if name not in INSTANTS}
    values = texts.select("line", **clocks.columns, **found)
    for name, column in columns.items():
        wrong = texts[name].is_not_null() & values[name].is_null()
        faults.add(texts.with_columns(wrong=wrong), pl.col("wrong"),
                   f"{column.source} must be {_kind(name, column, units)}", name, column.source)
    _note_other_sizes(texts, columns, units, faults)
    for name in (*INSTANTS, *DURATIONS):
        if name in columns:
            faults.add(values, pl.col(name).abs() > TIME_MAX_S, f"{name} must be at most {TIME_MAX_S:g} s", name,
                       columns[name].source)
            faults.add(values, pl.col(name) < 0, f"{name} must not be negative", name, columns[name].source)
    since = [(pl.when(pl.col(name) != 0).then(name) if units[name] in EPOCHS else since_1970(pl.col(name))).alias(name)
             for name in INSTANTS if name in columns and _is_absolute(units[name])]
    divided = [pl.col(name) / pl.col("tasks").clip(1) for name, column in columns.items() if column.divided]
    values = values.with_columns(*since, *divided)
    add_amounts(faults, values, [each for each in _resources(columns) if each.name in values.columns])
    return faults.onto(values)


def _note_other_sizes(texts: pl.DataFrame, columns: dict[str, Column], units: dict[str, str], faults: Faults) -> None:
    """Note instants that are not of the size of the first, by which their unit was told; 0 says that there is none."""
    for name, unit in units.items():
        if name in INSTANTS and unit in SIZES and not columns[name].unit:
            (least, most), source = SIZES[unit], columns[name].source
            size = number(pl.col(name)).abs()
            faults.add(texts, (size != 0) & ((size < least) | (size >= most)),
                       f"{source} was taken for [{unit}] by its first field, which this is not; give the unit, as in "
                       f"{name}={source}[{unit}]", name, source)


def _value(text: pl.Expr, name: str, column: Column, units: dict[str, str]) -> pl.Expr:
    if name in DURATIONS:
        unit = units[name]
        return clock_seconds(text) if unit == CLOCK else number(text) * DURATION_UNITS[unit]
    if name in NUMBER_BOUNDS:
        value, (low, high) = number(text), NUMBER_BOUNDS[name]
        return pl.when((value == value.round()) & value.is_between(low, high)).then(value.cast(pl.Int64, strict=False))
    if name == "queue":
        return pl.when(text.str.contains(QUEUE)).then(text)
    return text if name in TARGETS else amount(text, column.unit)


def _instant(text: pl.Expr, unit: str, options: Options) -> tuple[pl.Expr, pl.Expr, str]:
    """Return instants in a unit, whether clocks of a zone showed them, and the zone: the unit's, else the table's."""
    if not (unit == "iso" or "%" in unit or AT in unit):
        return number(text) * {**DURATION_UNITS, **EPOCHS}[unit], pl.lit(False), ""
    form, zone = zoned(unit)
    seconds = stamp_seconds(text) if form == "iso" else format_seconds(text, form)
    shown = ~names_zone(text) if form == "iso" else pl.lit("%z" not in form)
    return seconds, shown, zone or options.zone


def _kind(name: str, column: Column, units: dict[str, str]) -> str:
    """Return what a field must be, in words."""
    unit = units.get(name)
    if unit is None:
        named = {**NUMBER_WORDS, "queue": "a path of names such as org/department/user"}
        return named.get(name, f"a number of {column.unit or 'units'}")
    if "%" in unit or AT in unit:
        return f"an instant as {unit}"
    words = {"iso": "an instant of ISO 8601", CLOCK: "a duration as HH:MM:SS or D-HH:MM:SS"}
    return words.get(unit, f"a number of {unit}" if unit in DURATION_UNITS else f"a number since 1970 ({unit})")


# Rows


def _counted(table: pl.DataFrame, units: dict[str, str]) -> tuple[pl.DataFrame, float | None]:
    """Return the table with instants since 1970 counted from the first arrival, and when that was."""
    if not _is_absolute(units["arrival"]):
        return table, None
    return since_first(table, *(name for name in INSTANTS if name in units))


def _with_rulings(table: pl.DataFrame, columns: dict[str, Column], resources: tuple[Resource, ...],
                options: Options) -> pl.DataFrame:
    """Return ROW_COLUMNS with `line` and `ruling`."""
    has = columns.keys()
    start = pl.col("start") if "start" in has else pl.lit(None, pl.Float64)
    asked = [each.name for each in resources if each.name in has]
    word = pl.col("outcome").str.to_lowercase().str.replace(r" by \d+$", "")  # Slurm says who cancelled a job
    outcome = word.replace_strict(OUTCOME_WORDS, default=None, return_dtype=OUTCOMES)
    amounts = [pl.col(name).fill_null(0.0) if options.blanks == "zero" else pl.col(name) for name in asked]
    rows = table.select(
        "line", "arrival", "skipped", "twice", "zoneless", "fault", "fault_column", "fault_value",
        *(name for name in ("estimate", "submitted") if name in table.columns), *amounts,
        *(pl.lit(1.0).alias(each.name) for each in resources if each.name not in has),
        job=pl.col("job") if "job" in has else pl.col("line").cast(pl.String),
        queue=pl.col("queue").fill_null("unknown") if "queue" in has else pl.lit("all"),
        user=pl.col("user").fill_null("unknown") if "user" in table.columns else pl.lit("unknown"),
        run_time=pl.col("run_time") if "run_time" in has else pl.col("end") - start,
        priority=pl.col("priority").fill_null(0) if "priority" in has else pl.lit(0),
        count=pl.col("tasks") if "tasks" in has else pl.lit(1, pl.Int64),
        gang=pl.lit(options.gang),
        recorded_start=pl.max_horizontal("arrival", start) if "start" in has else pl.lit(None, pl.Float64),
        early=start < pl.col("arrival"), started=start.is_not_null(),
        outcome=outcome if "outcome" in has else pl.lit(None, OUTCOMES),
        said=pl.col("outcome").is_not_null() if "outcome" in has else pl.lit(False),
        blank=pl.any_horizontal(pl.col(*asked).is_null()) if asked else pl.lit(False),
        unknown=pl.all_horizontal(pl.col(*asked).is_null()) if asked else pl.lit(False),
    ).with_columns(recorded_start=pl.when("started").then("recorded_start"))
    told = pl.when("started").then("recorded_start")
    never = never_started(told if "start" in has else None, pl.col("outcome"), pl.col("run_time"))
    return with_ruling(rows, [
        FAULTY,
        Ruling(never, NEVER_STARTED, load=False),
        Ruling(pl.col("unknown") if options.blanks == "zero" else pl.col("blank"), "how much it asks for is unknown"),
        Ruling(pl.col("job").is_null(), "which job it is of is unknown"),
        *usual_rules(resources, options),
    ])


def _remarks(kept: pl.DataFrame, columns: dict[str, Column], left: list[str],
             origin: float | None) -> dict[str, int | float | str]:
    counts = {
        "jobs": kept["job"].n_unique(),
        "tasks with run time 0": int(kept.filter(run_time=0.0)["count"].sum()),
        "rows that start before they arrive (they start at once)": int(kept["early"].fill_null(False).sum()),
        "rows with an empty amount, which counts as 0 (--blanks unknown drops them)": kept.filter("blank").height,
        "rows whose outcome is no word that is known": kept.filter(pl.col("said") & pl.col("outcome").is_null()).height,
    }
    said: dict[str, int | float | str] = {name: count for name, count in counts.items() if count}
    if origin is not None:
        said |= clock_remarks(kept, origin)
    if left:
        said["columns that are not read"] = listed(tuple(left))
    if not set(columns) - set(TARGETS):
        said["resources"] = "none mapped: each task asks for one slot"
    queue = columns.get("queue")
    if queue is not None and not queue.constant and queue.source.lower() in OWN_NODES:
        said[QUEUES_ARE] = queue.source.lower()
    return said | {"fleet": "none written: a table of jobs names no machines"}


# What was understood


def _said(column: Column, units: dict[str, str]) -> str:
    unit = units.get(column.target, column.said)
    return f"{column.target}={'=' if column.constant else ''}{column.source}" + (f"[{unit}]" if unit else "")


def _understood(texts: pl.DataFrame, values: pl.DataFrame, columns: dict[str, Column], units: dict[str, str],
                options: Options) -> Shown:
    """Return the first rows, each field as it stands and as it was read."""
    rows = []
    for name, column in columns.items():
        fields = [_pair(text, _shown(name, value, column, units))
                  for text, value in zip(texts[name].head(SHOWN_ROWS), values[name].head(SHOWN_ROWS), strict=True)]
        rows.append((name, f"== {column.source}" if column.constant else column.source,
                     _unit_shown(name, column, units, options), *fields))
    lines = [f"line {line}" for line in texts["line"].head(SHOWN_ROWS)]
    return Shown("What was understood", ("what", "column", "unit", *lines), tuple(rows))


def _unit_shown(name: str, column: Column, units: dict[str, str], options: Options) -> str:
    unit = units.get(name, column.said) or "as it stands"
    has_zone = name in INSTANTS and (unit in EPOCHS or AT in unit or bool(options.zone))
    return f"{unit}, shown in UTC" if has_zone else unit


def _pair(text: str | None, shown: str) -> str:
    if text is None:
        return "unknown"
    return text if text == shown else f"{text} → {shown}"


def _shown(name: str, value: Any, column: Column, units: dict[str, str]) -> str:
    if value is None:
        return "unknown"
    if name in INSTANTS and _is_absolute(units[name]):
        return instant_text(value).removesuffix("+00:00")
    if name in INSTANTS or name in DURATIONS:
        return f"{value:.10g} s"
    return str(value) if name in TARGETS else f"{value:.10g} {resource(name, column.unit).of}"
