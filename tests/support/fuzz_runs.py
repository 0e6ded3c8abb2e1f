"""Bad run folders, as `report` and `explain` read them, and bad policy files."""
import io
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polars as pl

from fake_runs import write_run
from fuzz_cases import NO_TEXT, Case, drawn, short
from fuzz_tables import OTHER_TYPES, folders, parquet

COMMANDS = (("report", "R"), ("explain", "R", "0"), ("report", "R", "--images", "P"), ("explain", "R", "0/0"))
TASK_COLUMNS = ("start", "wait_time", "run_time", "ready", "finish")
TIMELINE_COLUMNS = ("time", "span", "waiting", "waiting_max", "used_cpu", "capacity_memory")
NUMBER = ('"x"', "[1]", "{}", "true")
SUMMARY: dict[str, tuple[str, ...]] = {
    "scheduler": ("1", "null", "[]"), "label": ("1", "[]"), "seed": ('"x"', "1.5", "null"), "options": ("1", "[]"),
    "workload": ("1", '"w"', '{"tasks": "x"}', '{"name": 1}'), "fleet": ("1", '{"machines": []}'),
    "resources": ("1", '["cpu"]', '[{"name": "a b"}]', '[{"name": "cpu", "unit": 0}]', '[{"name": "job"}]', '[{"unit": 1}]',
                  '[{"name": "gpu"}]'),
    "status": ("1", '{"FINISHED": "x"}', "[]"), "reasons": ("1", '["x"]', '[{"status": 1}]'),
    "wait_time": ("1", '{"mean": "x"}'), "slowdown": ('"x"', '{"max": []}'), "makespan": NUMBER, "makespan_bound": NUMBER,
    "gap": NUMBER, "utilisation": ("1", '{"cpu": "x"}'), "waiting": ("1", '{"mean": "x"}'), "stranded": ('{"cpu": []}',),
    "attempts_lost": ('"x"', "1.5"), "run_time_lost": NUMBER[:3], "federation": ("1", '{"settings": 1}', '{"messages": "x"}'),
    "fairness": ("1", '{"levels": 1}', "{}"), "plan": ("1", '{"classes": "x"}'), "speed": ("1", '{"events": "x"}'),
    "versions": ("1", '{"subak": 1}'),
}
NO_JSON = {"nothing": "", "cut": '{"scheduler": "x", ', "list": "[]", "number": "7", "words": "first-fit was fine", "null": "null",
           "nan": '{"scheduler": "x", "makespan": NaN}', "digits": '{"scheduler": "x", "seed": ' + "9" * 5000 + "}",
           "deep": "[" * 100_000, "surrogate": '{"scheduler": "\\ud800"}'}


@cache
def run() -> dict[str, bytes]:
    """A run folder in order."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = write_run(Path(scratch) / "R", tasks=200, days=0.2)
        return {f"R/{path.name}": path.read_bytes() for path in folder.iterdir()}


def _case(name: str, changes: dict[str, bytes | str | None], gone: tuple[str, ...] = (), unreadable: tuple[str, ...] = (),
          ) -> Case:
    files = {file: content for file, content in run().items() if file not in gone}
    return Case(name, drawn(name).choice(COMMANDS), files | changes, unreadable)


def summary_cases() -> Iterator[Case]:
    """Summaries that are none."""
    whole = json.loads(run()["R/summary.json"])
    for field, values in SUMMARY.items():
        for value in values:
            text = json.dumps(whole | {field: "PLACE"}).replace('"PLACE"', value)
            yield _case(f"run/summary/{field}/{short(value)}", {"R/summary.json": text})
    for what, text in NO_JSON.items():
        yield _case(f"run/summary/{what}", {"R/summary.json": text})
    yield _case("run/summary/no-scheduler", {"R/summary.json": "{}"})


def table_cases() -> Iterator[Case]:
    """Tables that lack columns, or hold them in another type."""
    for name, columns in (("tasks", TASK_COLUMNS), ("timeline", TIMELINE_COLUMNS)):
        table = pl.read_parquet(io.BytesIO(run()[f"R/{name}.parquet"]))
        for column in columns:
            yield _case(f"run/{name}/without-{column}", {f"R/{name}.parquet": parquet(table.drop(column))})
            for what, value in {**OTHER_TYPES, "text": pl.Series(["x"])}.items():
                if what != "boolean":
                    other = table.with_columns(value.gather([0] * len(table)).alias(column))
                    yield _case(f"run/{name}/{column}/{what}", {f"R/{name}.parquet": parquet(other)})
        for what in ("nothing", "junk", "zip", "html", "parquet", "utf-16"):
            yield _case(f"run/{name}/file/{what}", {f"R/{name}.parquet": NO_TEXT[what](b"some text", drawn(what))})
        whole = run()[f"R/{name}.parquet"]
        for share in (0.1, 0.5, 0.95):
            yield _case(f"run/{name}/file/cut-{share}", {f"R/{name}.parquet": whole[: int(len(whole) * share)]})
        yield _case(f"run/{name}/file/gone", {}, (f"R/{name}.parquet",))
        yield _case(f"run/{name}/file/folder", {f"R/{name}.parquet": None})
        yield _case(f"run/{name}/file/unreadable", {}, unreadable=(f"R/{name}.parquet",))
    yield _case("run/summary/gone", {}, ("R/summary.json",))
    yield _case("run/summary/unreadable", {}, unreadable=("R/summary.json",))
    for number, arguments in enumerate(COMMANDS):
        yield Case(f"run/folder/unreadable-{number}", arguments, run(), ("R",))
        yield Case(f"run/folder/empty-{number}", arguments, {"R": None})
        yield Case(f"run/folder/file-{number}", arguments, {"R": "text"})
        yield Case(f"run/folder/no-runs-{number}", arguments, {"R/runs": None})
        yield Case(f"run/folder/bad-run-{number}", arguments, {"R/runs/a/summary.json": "{}", "R/runs/b": None})
        yield Case(f"run/folder/unreadable-runs-{number}", arguments, {"R/runs/a/summary.json": "{}"}, ("R/runs",))
        twice = {f"R/runs/{name}/{file[2:]}": content for name in "ab" for file, content in run().items()}
        yield Case(f"run/folder/twice-{number}", arguments, twice)


TASKS = ("x", "", "-1", "0/", "/0", "0/x", "1.5", "99999999", "0/99999", "99999/0", "1e3", "0/0/0", "\u0663", "\u00b2", " ",
         "99999999999999999999999", "0/99999999999999999999999", "99999999999999999999999/0", "4294967296", "4294967296/0")


def task_cases() -> Iterator[Case]:
    """Tasks that a run does not have; pages and pictures that cannot be written."""
    for task in TASKS:
        yield Case(f"run/task/{short(task)}", ("explain", "R", "--", task), run())
    for what, arguments in {
        "format": ("--images", "P", "--format", "gif"), "no-format": ("--images", "P", "--format", ""), "out-folder": ("--out", "R"),
        "out-below-a-file": ("--out", "t.txt/x.html"), "images-file": ("--images", "t.txt"),
        "images-below-a-file": ("--images", "t.txt/P"), "out-long": ("--out", "n" * 300), "images-long": ("--images", "n" * 300),
        "images-nothing": ("--images", ""), "images-out": ("--images", "P.html", "--out", "P.html"),
        "images-above-out": ("--images", "P.html/Q", "--out", "P.html"), "images-taken": ("--images", "O"),
    }.items():
        yield Case(f"run/report/{what}", ("report", "R", *arguments),
                   {**run(), "t.txt": "text", "O/queue-length.png": None})
    yield Case("run/report/out-absent", ("report", "R", "--out", "absent/x.html"), run(), odd=True)  # it is made
    yield Case("run/report/out-unwritable", ("report", "R", "--out", "O/x.html"), {**run(), "O": None}, ("O",))
    yield Case("run/report/images-unwritable", ("report", "R", "--images", "O/P"), {**run(), "O": None}, ("O",))


HEAD = "from subak.policy import *\n\n"
ARRIVAL = "def arrive(fleet, tasks, lanes, memory, arrived, claims):\n    pass\n\n"
MEMORIES = ("None", "3", "'x'", "()", "((0, 0), (0, 0))", "((0, 0), (0, 0), [], [])", "((0, 0), (0, 0), None)", "((0,), (0, 0), [])",
            "((-1, 0), (0, 0), [])", "((0, 0), (0, -1), [])", "((0.5, 0), (0, 0), [])", "(('a', 0), (0, 0), [])",
            "((0, 0), (0, 0), ['x'])", "((0, 0), (0, 0), 'text')", "((0, 0), (0, 0), [[1]])", "((10**9, 10**9), (0, 0), [])",
            "((2**40, 2), (0, 0), [])", "((0, 0), (10**20, 1), [])", "((True, 0), (0, 0), [])", "((0, 0), (0, 0), [None])",
            "lambda _: None", "[[0, 0], [0, 0]]", "((0, 0), (0, 0), [1j])", "((float('nan'), 0), (0, 0), [])", "{'a': 1}")
POLICIES: dict[str, str | bytes | None] = {
    "nothing": "", "words": "this is no Python", "syntax": "def f(:\n", "indent": "def f():\nreturn 1\n", "tabs": "if 1:\n\tx=1\n        y=2\n",
    "nul": b"x = 1\0\n", "latin": b"x = '\xe9'\n", "utf-16": "x = 1\n".encode("utf-16"), "binary": bytes(range(256)), "no-name": "y = 1\n",
    "number": "x = 3\n", "function": "def x(fleet, tasks, task):\n    return 0\n", "class": "class x:\n    pass\n", "text": "x = 'first-fit'\n",
    "raises": "raise ValueError('no')\n", "raises-long": "raise ValueError('no ' * 5)\n", "exits": "import sys\nsys.exit(0)\n",
    "exits-one": "raise SystemExit(1)\n", "stops": "raise KeyboardInterrupt\n", "recursion": "def f():\n    f()\nf()\n",
    "base": "raise BaseException('no')\n", "generator": "raise GeneratorExit\n", "memory": "raise MemoryError\n",
    "os": "open('/absent/file')\n", "assertion": "assert False\n", "import": "import no_such_module\n", "folder": None,
    "from": "from subak.policy import no_such_name\n", "hooks-nothing": HEAD + "x = hooks()\n", "policy-number": HEAD + "x = policy(3)\n",
    "policy-none": HEAD + "x = policy(None)\n", "policy-class": HEAD + "@policy\nclass x:\n    pass\n",
    "hooks-numbers": HEAD + "x = hooks(1, 2)\n", "hooks-none": HEAD + "x = hooks(None, None)\n",
    "lanes": HEAD + ARRIVAL + "x = hooks(arrive, arrive, lanes='two')\n", "lanes-list": HEAD + ARRIVAL + "x = hooks(arrive, arrive, lanes=['one'])\n",
    "order": HEAD + ARRIVAL + "x = hooks(arrive, arrive, order='random')\n", "order-none": HEAD + ARRIVAL + "x = hooks(arrive, arrive, order=None)\n",
    "order-list": HEAD + ARRIVAL + "x = hooks(arrive, arrive, order=[])\n", "unknown-word": HEAD + ARRIVAL + "x = hooks(arrive, arrive, colour=1)\n",
    "one-argument": HEAD + "@policy\ndef x(fleet):\n    return 0\n", "four-arguments": HEAD + "@policy\ndef x(fleet, tasks, task, more):\n    return 0\n",
    "no-arguments": HEAD + "@policy\ndef x():\n    return 0\n", "returns-text": HEAD + "@policy\ndef x(fleet, tasks, task):\n    return 'a'\n",
    "returns-nothing": HEAD + "@policy\ndef x(fleet, tasks, task):\n    pass\n", "unknown-field": HEAD + "@policy\ndef x(fleet, tasks, task):\n    return fleet.no\n",
    "async": HEAD + "@policy\nasync def x(fleet, tasks, task):\n    return 0\n", "yields": HEAD + "@policy\ndef x(fleet, tasks, task):\n    yield 0\n",
    "built-in": HEAD + "x = policy(len)\n", "lambda-one": HEAD + "x = policy(lambda task: 0)\n", "twice": HEAD + "@policy\n@policy\ndef x(fleet, tasks, task):\n    return 0\n",
    "dictionary": HEAD + "@policy\ndef x(fleet, tasks, task):\n    return {}[task]\n", "prints-a-list": HEAD + "@policy\ndef x(fleet, tasks, task):\n    return sorted(task)\n",
}
NAMED = ("x", "y", "", "x+no-such", "x+fifo+mch", "x+", "x.y", "x:y", "__name__", "policy", "1")
GOOD = HEAD + "@policy\ndef x(fleet, tasks, task):\n    return -1\n\ny = 3\n"


def policy_cases() -> Iterator[Case]:
    """Files that are no policies, names that they do not have, memories that cannot be."""
    for what, text in POLICIES.items():
        for number, arguments in enumerate((("simulate", "W", "--scheduler", "p.py:x", "--out", "R"),
                                            ("compare", "W", "--schedulers", "first-fit,p.py:x", "--out", "R"))):
            if number == 0 or drawn(what).random() < 0.3:
                yield Case(f"policy/{what}/{number}", arguments, {**folders(), "p.py": text})
    for text in MEMORIES:
        source = HEAD + ARRIVAL + f"x = hooks(arrive, arrive, memory={text})\n"
        yield Case(f"policy/memory/{short(text)}", ("simulate", "W", "--scheduler", "p.py:x", "--out", "R"),
                   {**folders(), "p.py": source})
    for name in NAMED[1:]:
        yield Case(f"policy/name/{short(name)}", ("simulate", "W", "--scheduler", f"p.py:{name}", "--out", "R"),
                   {**folders(), "p.py": GOOD})
    for what, file in {"absent": "absent.py", "folder": "W", "text": "p.txt", "below-a-file": "p.py/q.py", "long": "n" * 300 + ".py"}.items():
        yield Case(f"policy/file/{what}", ("simulate", "W", "--scheduler", f"{file}:x", "--out", "R"), {**folders(), "p.py": GOOD})
    yield Case("policy/file/unreadable", ("simulate", "W", "--scheduler", "p.py:x", "--out", "R"), {**folders(), "p.py": GOOD}, ("p.py",))
    yield Case("policy/file/unreadable-folder", ("simulate", "W", "--scheduler", "P/p.py:x", "--out", "R"),
               {**folders(), "P/p.py": GOOD}, ("P",))


def run_cases() -> list[Case]:
    """All of them."""
    return [*summary_cases(), *table_cases(), *task_cases(), *policy_cases()]
