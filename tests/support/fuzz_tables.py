"""Bad workloads and fleets: every column of every table, rules between rows, headers, and the files themselves."""
import io
import math
import random
from collections.abc import Callable, Iterator
from functools import cache, partial

import polars as pl

from fuzz_cases import NO_TEXT, Case, Content, drawn, short
from subak.tables import Provenance
from subak.workload.constraints import CONSTRAINT_TYPE

Tables = dict[str, pl.DataFrame]
HEADER = '''[[resources]]
name = "cpu"
unit = 0.5
of = "cores"

[[resources]]
name = "memory"
unit = 1.0
of = "GB"

[provenance]
name = "made"
origin = "by hand"
licence = "none"
'''
# Commands that read a workload and its fleet; each case has one of them. None of them gets as far as a run.
WORKLOAD_COMMANDS = (("simulate", "W"), ("inspect", "W"), ("inspect", "W", "--json"), ("fit", "W"), ("queues", "W"),
                     ("explain", "lotes", "W"), ("compare", "W", "--out", "R"), ("simulate", "W", "--out", "R"),
                     ("fit", "W", "--out", "f.toml"), ("reproduce", "hmhs", "--jobs", "W", "--out", "R"))
FLEET_COMMANDS = (("simulate", "W"), ("inspect", "W"), ("inspect", "W/fleet"), ("explain", "lotes", "W"),
                  ("simulate", "W", "--fleet", "W/fleet"), ("generate", "--tasks", "5", "--fleet", "W/fleet", "--out", "R"),
                  ("compare", "W", "--schedulers", "best-fit", "--out", "R"), ("explain", "lotes", "W", "W/fleet"))


@cache
def workload() -> Tables:
    """Three jobs, four stages of which one waits, eight tasks, with every optional column."""
    constraint = [{"attribute": "rack", "operator": "=", "value": "a"}]
    return {
        "jobs": pl.DataFrame({"job": ["a", "b", "c"], "queue": ["o/d/u", "o/d/v", "o/e"], "user": ["u", "v", None]}),
        "stages": pl.DataFrame({
            "job": [0, 0, 1, 2], "name": ["m", "r", "m", "m"], "depends_on": [[], [0], [], []],
            "kind": ["TASK", "TASK", "SERVICE", "TASK"], "priority": [0, 0, 3, 1],
            "constraints": [constraint, [], [], []], "scheduling_class": [0, 0, 1, 2],
            "gang": [False, False, True, False], "speed_group": [0, 1, 0, 1], "shuffle": [0.0, 1.0, 0.0, 0.0],
            "cpu": [1, 2, 1, 4], "memory": [1, 1, 0, 2],
        }, schema={"job": pl.UInt32, "name": pl.String, "depends_on": pl.List(pl.UInt32),
                   "kind": pl.Enum(["TASK", "SERVICE"]), "priority": pl.Int32, "constraints": pl.List(CONSTRAINT_TYPE),
                   "scheduling_class": pl.Int32, "gang": pl.Boolean, "speed_group": pl.UInt32, "shuffle": pl.Float64,
                   "cpu": pl.Int32, "memory": pl.Int32}),
        "tasks": pl.DataFrame({
            "stage": [0, 0, 1, 2, 2, 3, 3, 3], "index": [0, 1, 2, 0, 1, 0, 1, 2],
            "arrival": [0.0, 0.0, 0.0, 1.5, 1.5, 4.0, 4.0, 9.0],
            "run_time": [3.0, 4.0, 5.0, math.inf, 2.0, 1.0, 1.0, 0.0],
            "estimate": [3.0, None, 5.0, None, 2.0, 1.0, 2.0, 1.0],
            "outcome": ["FINISH", "FAIL", "KILL", None, "FINISH", "FINISH", "LOST", "FINISH"],
        }, schema={"stage": pl.UInt32, "index": pl.UInt32, "arrival": pl.Float64, "run_time": pl.Float64,
                   "estimate": pl.Float64, "outcome": pl.String}),
    }


@cache
def fleet() -> Tables:
    """Three machines with attributes, changes, and the speeds of two groups."""
    return {
        "machines": pl.DataFrame({"machine": ["x", "y", "z"], "cluster": ["0", "0", "1"], "present": [True, True, False],
                                  "cpu": [8, 8, 16], "memory": [8, 8, 32]},
                                 schema_overrides={"cpu": pl.Int32, "memory": pl.Int32}),
        "attributes": pl.DataFrame({"machine": [0, 1, 2], "attribute": ["rack"] * 3, "value": ["a", "b", None]},
                                   schema_overrides={"machine": pl.UInt32}),
        "changes": pl.DataFrame({"time": [2.0, 3.0], "machine": [2, 0], "present": [True, False], "cpu": [16, 8],
                                 "memory": [32, 8]},
                                schema_overrides={"machine": pl.UInt32, "cpu": pl.Int32, "memory": pl.Int32}),
        "speeds": pl.DataFrame({"factors": [[1.0, 1.0, 0.5], [0.5, 1.0, 1.0]]}),
    }


def parquet(table: pl.DataFrame) -> bytes:
    """Return a table as the bytes of a file."""
    target = io.BytesIO()
    table.write_parquet(target)
    return target.getvalue()


def written(table: pl.DataFrame) -> Callable[[], bytes]:
    """Return what makes these bytes when a case is built: all processes of the tests have it, and one runs it."""
    return partial(parquet, table)


@cache
def folders() -> dict[str, bytes]:
    """The files of both in order."""
    files = {f"W/{name}.parquet": parquet(table) for name, table in workload().items()}
    files |= {f"W/fleet/{name}.parquet": parquet(table) for name, table in fleet().items()}
    return files | {"W/workload.toml": HEADER.encode(), "W/fleet/fleet.toml": HEADER.encode()}


def _case(name: str, changes: dict[str, Content], gone: tuple[str, ...] = (), **options: object) -> Case:
    """Return a case: *changes* of the folders, read by a command that is drawn."""
    of_fleet = any("fleet" in file for file in (*changes, *gone))
    arguments = drawn(name).choice(FLEET_COMMANDS if of_fleet else WORKLOAD_COMMANDS)
    files = {file: content for file, content in folders().items() if file not in gone and (
        content is not None) and not any(each.startswith(f"{file}/") for each in changes)}
    return Case(name, arguments, files | changes, **options)  # type: ignore[arg-type]


# Columns

NO_INTEGER = ("x", 1.5, -1, 2**33, math.nan, math.inf, None, [1], {"a": 1})
SECONDS = ("x", -1.0, -1e-9, math.nan, 2e12, [1.0], {"a": 1.0})
BAD: dict[str, dict[str, dict[str, tuple[object, ...]]]] = {
    "": {
        "jobs": {"job": (None, "", [1], {"a": 1}), "queue": (None, "", "/", "a/", "/a", "a//b", "a\nb", "\t", "\x7f", [1]),
                 "user": ([1], {"a": 1})},
        "stages": {"job": (*NO_INTEGER, 3, 2**32 - 1), "kind": (None, "task", "JOB", "", 7, [1]),
                   "priority": ("x", None, 1.5, 2**31, -(2**31) - 1, math.nan, [1]),
                   "depends_on": (7, "x", [9], [2], [3], [0, 2], [[0]], [1.5], [-1]),
                   "constraints": (7, "x", ["rack = a"], [None], [{"attribute": "a"}],
                                   [{"attribute": "", "operator": "=", "value": "1"}],
                                   [{"attribute": None, "operator": "=", "value": "1"}],
                                   [{"attribute": "a", "operator": "~", "value": "1"}],
                                   [{"attribute": "a", "operator": None, "value": "1"}],
                                   [{"attribute": "a", "operator": "<", "value": "x"}],
                                   [{"attribute": "a", "operator": ">=", "value": None}],
                                   [{"attribute": "a", "operator": ">", "value": "nan"}]),
                   "scheduling_class": ("x", 1.5, 2**31, [1]), "gang": ("x", [True], {"a": 1}),
                   "speed_group": (*NO_INTEGER,), "shuffle": (*SECONDS, None, math.inf),
                   "cpu": ("x", -1, 1.5, 2**31, 2**40, None, math.nan, math.inf, [1]),
                   "memory": ("x", -1, 0.1, 2**31, None, math.nan, [1])},
        "tasks": {"stage": (*NO_INTEGER, 4, 2**32 - 1), "index": NO_INTEGER, "arrival": (*SECONDS, None, math.inf, 1e300),
                  "run_time": (*SECONDS, None, 1e13), "estimate": SECONDS, "outcome": ("finish", "DONE", "", 7, [1])},
    },
    "fleet/": {
        "machines": {"machine": (None, "", [1]), "cluster": (None, [1]), "present": (None, "x", [True]),
                     "cpu": ("x", -1, 1.5, 2**31, None, math.nan, [1]), "memory": (-1, None, 2**31)},
        "attributes": {"machine": (*NO_INTEGER, 3), "attribute": (None, "", [1]), "value": ([1], {"a": 1})},
        "changes": {"time": ("x", -1.0, math.nan, math.inf, None, [1.0]), "machine": (*NO_INTEGER, 3),
                    "present": (None, "x", [True]), "cpu": ("x", -1, 1.5, 2**31, None), "memory": (-1, None)},
        "speeds": {"factors": (None, [], [1.0], [1.0] * 4, [1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, math.nan, 1.0],
                               [1.0, math.inf, 1.0], [1.0, None, 1.0], ["x"] * 3, 1.0, "x")},
    },
}


def value_cases() -> Iterator[Case]:
    """One value of one column that its rule refuses, or its type cannot hold."""
    for folder, tables in BAD.items():
        for name, columns in tables.items():
            for column, values in columns.items():
                for value in values:
                    case = f"table/{folder}{name}/{column}/{short(value)}"
                    table = _with_value((fleet() if folder else workload())[name], column, value, drawn(case))
                    yield _case(case, {f"W/{folder}{name}.parquet": written(table)})


def _with_value(table: pl.DataFrame, column: str, value: object, draws: random.Random) -> pl.DataFrame:
    """Return the table with one value replaced; a column that cannot hold it becomes one of such values alone."""
    rows = table[column].to_list()
    rows[draws.randrange(len(rows))] = value
    try:
        changed = pl.Series(column, rows, strict=True)
        if value is None:
            changed = pl.Series(column, rows, dtype=table[column].dtype)
    except (TypeError, pl.exceptions.PolarsError):
        changed = pl.Series(column, [value] * len(rows), strict=False)
    return table.with_columns(changed)


def column_cases() -> Iterator[Case]:
    """Columns that are missing, twice there, unknown, or of a type that means something else."""
    required = {"": ("job", "queue", "user", "name", "depends_on", "kind", "priority", "constraints", "stage", "index",
                     "arrival", "run_time", "cpu", "memory"),
                "fleet/": ("machine", "cluster", "present", "attribute", "value", "time", "cpu", "memory", "factors")}
    for folder in ("", "fleet/"):
        for name, table in (fleet() if folder else workload()).items():
            path = f"W/{folder}{name}.parquet"
            for column in table.columns:
                if column in required[folder]:
                    yield _case(f"column/{folder}{name}/without-{column}", {path: written(table.drop(column))})
                    yield _case(f"column/{folder}{name}/renamed-{column}",
                                {path: written(table.rename({column: column.upper()}))})
            for what, extra in {"unknown": "colour", "row": "row", "empty": "", "spaces": "  ", "odd": "a\u2028b"}.items():
                yield _case(f"column/{folder}{name}/more-{what}",
                            {path: written(table.with_columns(pl.lit(1).alias(extra)))})
            many = table.with_columns(pl.lit(0).alias(f"c{number}") for number in range(3000))
            yield _case(f"column/{folder}{name}/many", {path: written(many)})
            yield _case(f"column/{folder}{name}/none", {path: written(pl.DataFrame())})
            if name != "changes":
                times = table.with_columns(pl.lit(None).cast(pl.Datetime).alias(table.columns[0]))
                yield _case(f"column/{folder}{name}/no-values", {path: written(times)})


OTHER_TYPES = {"binary": pl.Series([b"\xff"]), "date": pl.Series([1]).cast(pl.Date),
               "datetime": pl.Series([1]).cast(pl.Datetime), "duration": pl.Series([1]).cast(pl.Duration),
               "time": pl.Series([1]).cast(pl.Time), "struct": pl.Series([{"a": 1, "b": 2}]),
               "array": pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2)), "lists": pl.Series([[[1]]]),
               "boolean": pl.Series([True])}


def type_cases() -> Iterator[Case]:
    """Columns of numbers that are of another type, also of one that a number could be made of."""
    for folder, tables in (("", workload()), ("fleet/", fleet())):
        for name, table in tables.items():
            for column in (each for each in table.columns if table[each].dtype.is_numeric()):
                for what, value in OTHER_TYPES.items():
                    other = table.with_columns(value.gather([0] * len(table)).alias(column))
                    yield _case(f"type/{folder}{name}/{column}/{what}", {f"W/{folder}{name}.parquet": written(other)})


# Rules between rows

STAGES: dict[str, Callable[[Tables], Tables]] = {
    "itself": lambda t: _depends(t, [[0], [0], [], []]), "circle": lambda t: _depends(t, [[1], [0], [], []]),
    "another-job": lambda t: _depends(t, [[], [0], [0], []]), "no-such-stage": lambda t: _depends(t, [[], [4], [], []]),
    "awaited-without-tasks": lambda t: {**t, "tasks": t["tasks"].filter(pl.col("stage") != 0)},
    "nothing-asked": lambda t: {**t, "stages": t["stages"].with_columns(cpu=pl.lit(0, pl.Int32), memory=pl.lit(0, pl.Int32))},
    "jobs-twice": lambda t: {**t, "jobs": t["jobs"].with_columns(job=pl.lit("a"))},
    "index-twice": lambda t: {**t, "tasks": t["tasks"].with_columns(index=pl.lit(0, pl.UInt32))},
    "no-jobs": lambda t: {**t, "jobs": t["jobs"].clear()}, "no-stages": lambda t: {**t, "stages": t["stages"].clear()},
    "first-job-only": lambda t: {**t, "jobs": t["jobs"].head(1)},
    "first-stage-only": lambda t: {**t, "stages": t["stages"].head(1)},
}
FLEETS: dict[str, Callable[[Tables], Tables]] = {
    "no-machines": lambda t: {**t, "machines": t["machines"].clear()},
    "machines-twice": lambda t: {**t, "machines": t["machines"].with_columns(machine=pl.lit("x"))},
    "one-machine-only": lambda t: {**t, "machines": t["machines"].head(1)},
    "attributes-twice": lambda t: {**t, "attributes": pl.concat([t["attributes"], t["attributes"]])},
    "speeds-of-none": lambda t: {**t, "speeds": t["speeds"].clear()},
}


def _depends(tables: Tables, lists: list[list[int]]) -> Tables:
    return {**tables, "stages": tables["stages"].with_columns(depends_on=pl.Series(lists, dtype=pl.List(pl.UInt32)))}


def rule_cases() -> Iterator[Case]:
    """Rows that contradict each other; each rule is met with every command that reads the tables."""
    for folder, changes, tables in (("", STAGES, workload()), ("fleet/", FLEETS, fleet())):
        for what, change in changes.items():
            changed = {f"W/{folder}{name}.parquet": written(table) for name, table in change(tables).items()}
            for number, arguments in enumerate(FLEET_COMMANDS if folder else WORKLOAD_COMMANDS):
                yield Case(f"rule/{folder}{what}/{number}", arguments, {**folders(), **changed})
    deep = [[], *([row] for row in range(400))]
    ring = [[400], *([row] for row in range(400))]
    for what, lists, odd in (("long-chain", deep, True), ("long-circle", ring, False)):
        stages = pl.concat([workload()["stages"].head(1)] * 401).with_columns(
            depends_on=pl.Series(lists, dtype=pl.List(pl.UInt32)), constraints=pl.lit([], pl.List(CONSTRAINT_TYPE)))
        tasks = pl.concat([workload()["tasks"].head(1)] * 401).with_columns(
            stage=pl.int_range(401, dtype=pl.UInt32), index=pl.int_range(401, dtype=pl.UInt32))
        yield Case(f"rule/{what}", ("inspect", "W"),
                   {**folders(), "W/stages.parquet": parquet(stages), "W/tasks.parquet": parquet(tasks)}, odd=odd)


# Headers

RESOURCE_NAMES = ("job", "stage", "queue", "user", "name", "kind", "priority", "constraints", "arrival", "run_time",
                  "estimate", "outcome", "machine", "cluster", "present", "time", "attribute", "value", "gang", "shuffle",
                  "depends_on", "index", "scheduling_class", "speed_group", "c p u", "", "1cpu", "cpu-1", "a.b", "cpu\\n",
                  "start", "finish", "wait_time", "ready", "attempts", "status", "reason", "span", "waiting", "running",
                  "row", "used_cpu", "factors", "number", "count", "tasks", "stage_row", "len")
COLLIDING = ("start", "finish", "wait_time", "ready", "attempts", "status", "reason", "span", "waiting", "running", "row",
             "used_cpu", "factors", "number", "count", "tasks", "stage_row", "len")  # with columns that are computed
HEADERS = {
    "no-resources": "[provenance]\n", "resources-empty": "resources = []\n[provenance]\n", "resources-number":
    "resources = 3\n[provenance]\n", "resources-names": 'resources = ["cpu", "memory"]\n[provenance]\n',
    "no-provenance": HEADER.split("[provenance]", maxsplit=1)[0], "provenance-text": 'provenance = "mine"\n' + HEADER.split("[prov", maxsplit=1)[0],
    "name-number": HEADER.replace('name = "made"', "name = 7"), "notes-text": HEADER + 'notes = "none"\n',
    "cut": HEADER[:50], "twice": HEADER + HEADER, "nothing": "", "bytes": b"\xff\xfe[resources]", "nul": "\0",
    "json": '{"resources": []}', "one-resource": HEADER.split("[[resources]]", maxsplit=1)[0] + "[[resources]]" + HEADER.split(
        "[[resources]]")[1] + "[provenance]\n", "resource-twice": HEADER.replace('"memory"', '"cpu"'),
    "deep": "a = " + "[" * 5000 + "]" * 5000 + "\n", "utf-16": HEADER.encode("utf-16"),
}
UNITS = ("0", "-1", "0.0", "nan", "inf", "-inf", '"one"', "[1]", "true", "1e400", "1979-05-27", "-0.0")


def header_cases() -> Iterator[Case]:
    """Headers that say nothing, too much, or what no resource could be."""
    for file in ("W/workload.toml", "W/fleet/fleet.toml"):
        part = file.rpartition("/")[2]
        for what, text in HEADERS.items():
            yield _case(f"header/{part}/{what}", {file: text})
        for unit in UNITS:
            yield _case(f"header/{part}/unit-{short(unit)}", {file: HEADER.replace("unit = 0.5", f"unit = {unit}")})
        for name in RESOURCE_NAMES:
            if name not in COLLIDING:
                yield _case(f"header/{part}/named-{short(name)}", {file: HEADER.replace('"cpu"', f'"{name}"')})
    for name in COLLIDING:
        yield from _colliding(name)
    other = HEADER.replace("unit = 0.5", "unit = 0.25")
    yield _case("header/other-units", {"W/fleet/fleet.toml": other})
    for number, arguments in enumerate((("simulate", "W"), ("compare", "W", "--out", "R"), ("inspect", "W"),
                                        ("explain", "lotes", "W"), ("simulate", "W", "--scheduler", "megha"))):
        yield Case(f"header/units-differ/{number}", arguments, {**folders(), "W/fleet/fleet.toml": other})


def _colliding(name: str) -> Iterator[Case]:
    """A resource that is named as a column is that a command adds; not wrong by itself."""
    header = HEADER.replace('"cpu"', f'"{name}"')
    tables = {f"W/{key}.parquet": parquet(table.rename({"cpu": name}, strict=False)) for key, table in workload().items()}
    tables |= {f"W/fleet/{key}.parquet": parquet(table.rename({"cpu": name}, strict=False))
               for key, table in fleet().items() if key != "speeds"}
    for number, arguments in enumerate((("inspect", "W"), ("fit", "W"), ("queues", "W"), ("explain", "lotes", "W"),
                                        ("inspect", "W", "--chart", "c.html"))):
        yield Case(f"odd/resource/{name}/{number}", arguments,
                   {**tables, "W/workload.toml": header, "W/fleet/fleet.toml": header}, odd=True)


# Files


def file_cases() -> Iterator[Case]:
    """Files that are gone, cut, something else, or folders."""
    for file, content in folders().items():
        if file != "W/fleet/speeds.parquet":
            yield _case(f"file/{file}/gone", {}, gone=(file,))
        yield _case(f"file/{file}/folder", {file: None})
        yield _case(f"file/{file}/unreadable", {file: content}, unreadable=(file,))
        if file.endswith(".parquet"):
            for share in (0.0, 0.05, 0.5, 0.9, 0.99):
                yield _case(f"file/{file}/cut-{share}", {file: content[: int(len(content) * share)]})
            for what in ("junk", "utf-16", "zip", "html", "nuls", "parquet"):
                damage = NO_TEXT[what]
                yield _case(f"file/{file}/{what}", {file: damage(b"some text", drawn(what + file))})
            yield _case(f"file/{file}/head-flipped", {file: b"X" + content[1:]})
            yield _case(f"file/{file}/tail-flipped", {file: content[:-1] + b"X"})
            yield _case(f"file/{file}/csv", {file: "job,queue,user\na,b,c\n"})
            for number in range(6):
                yield _flipped(file, content, number)
    for folder in ("W", "W/fleet"):
        yield _case(f"file/{folder}/file-in-place", {folder: "text"}, gone=tuple(f for f in folders() if f.startswith(folder)))
        yield _case(f"file/{folder}/unreadable", {f"{folder}/x": "x"}, unreadable=(folder,))
        yield Case(f"file/{folder}/empty", ("inspect", folder), {folder: None})


def _flipped(file: str, content: bytes, number: int) -> Case:
    """One bit of a Parquet file differs: it may be one that nobody reads."""
    name = f"odd/file/{file}/bit-{number}"
    draws = drawn(name)
    place = draws.randrange(4, len(content))
    changed = content[:place] + bytes([content[place] ^ (1 << draws.randrange(8))]) + content[place + 1:]
    return Case(name, ("inspect", "W"), {**folders(), file: changed}, odd=True)


def table_cases() -> list[Case]:
    """All of them."""
    assert Provenance  # the header's names are those of the struct
    return [*value_cases(), *column_cases(), *type_cases(), *rule_cases(), *header_cases(), *file_cases()]
