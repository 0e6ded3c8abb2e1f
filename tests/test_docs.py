"""The documentation cannot drift: its commands run, its outputs are compared, its reference is the program's."""
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest
from typer.main import get_command

from batches import batch, machines
from in_process import subak
from small_inputs import placed
from subak.cli.app import app
from subak.policy import find_scheduler
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate
from subak.workload.readers import READERS

COLUMNS = 200  # of the terminal of `run`
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TERMINAL = {"COLUMNS": "80"}
SHELLS = re.compile(r"[|<>&;$*?`\\~]")  # what means something to a shell, outside quotes
CHANGING = re.compile(r"tasks a second|peak memory")  # lines that differ from run to run

sys.path.insert(0, str(DOCS))
make_reference = pytest.importorskip("make_reference")
rows = pytest.importorskip("reference_pages.rows")


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in BLOCK.findall(page.read_text())]


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Return each command of a console block with the lines shown below it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].extend(lines_of(line) or [""])
    return found


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines shown are those printed; ``...`` stands for any number of lines."""
    parts = [r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in shown]
    return re.fullmatch("".join(parts), "".join(line + "\n" for line in printed)) is not None


def lines_of(text: str) -> list[str]:
    """Return the lines whose content is the same in every run; widths of columns are not."""
    kept = [line for line in text.rstrip("\n").splitlines() if not CHANGING.search(line)]
    return [re.sub("─+", "─", re.sub(" +", " ", line)).rstrip() for line in kept]


@pytest.fixture
def shell(tmp_path):
    """Run commands in a folder that has docs/ alone, in which `subak` and `python` are those under test.

    A process of its own has only what the shell does something to, and `subak run`, which writes bytes.
    """
    tools, here = tmp_path / "bin", Path(tempfile.mkdtemp())  # a federation's sockets want a short name
    tools.mkdir()
    (here / "docs").symlink_to(DOCS)
    for name, call in (("subak", f'"{sys.executable}" -m subak "$@"'), ("python", f'"{sys.executable}" "$@"')):
        (tools / name).write_text(f"#!/bin/sh\nexec {call}\n")
        (tools / name).chmod((tools / name).stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", **TERMINAL, "LC_ALL": "C.UTF-8"}

    def _run(command: str) -> subprocess.CompletedProcess[str]:
        if re.match(r"subak (?!run )", command) and not SHELLS.search(re.sub("'[^']*'", "", command)):
            return subak(*shlex.split(command)[1:], cwd=here, environment=TERMINAL)
        return subprocess.run(["bash", "-c", command], cwd=here, env=environment, capture_output=True, text=True,
                              check=False)

    _run.here = here
    yield _run
    if (here / "subak-federation").is_dir():  # of a page whose commands did not come to its end
        _run("subak down --now 2>&1")
    shutil.rmtree(here)


RUN = [page for page in PAGES if "```console" in page.read_text()]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_commands_do_what_the_page_shows(page, shell):
    for kind, text in blocks(page):
        if kind == "python" and text.startswith("# "):
            (shell.here / text.split("\n", 1)[0].removeprefix("# ")).write_text(text)
            continue
        for command, shown in commands(text) if kind == "console" else []:
            done = shell(command)
            printed = lines_of(done.stdout)
            assert done.returncode == 0 or "2>&1" in command, f"{command}\n{done.stderr}"
            assert not shown or matches(shown, printed), "\n".join([command, "shown:", *shown, "printed:", *printed])


def test_matching_notices_a_difference():
    assert matches(["a", "...", "c"], ["a", "b", "b", "c"])
    assert matches(["...", "c"], ["c"])
    assert not matches(["a", "c"], ["a", "b", "c"])
    assert not matches(["a", "..."], ["b", "a"])


def test_the_reference_is_current():
    assert make_reference.faults(make_reference.made()) == []


def test_a_page_that_is_stale_missing_or_left_over_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(make_reference, "HERE", tmp_path)
    monkeypatch.setattr(make_reference, "FOLDER", tmp_path / "reference")
    (tmp_path / "reference" / "commands").mkdir(parents=True)
    pages = {tmp_path / "reference" / f"{name}.md": name for name in ("stale", "missing", "current")}
    for name, text in (("stale", "old"), ("current", "current"), ("commands/gone", "x")):
        (tmp_path / "reference" / f"{name}.md").write_text(text)
    assert make_reference.faults(pages) == [
        "reference/stale.md: not current; run make docs", "reference/missing.md: not current; run make docs",
        "reference/commands/gone.md: is no page any more; run make docs"]


def test_every_command_and_format_has_a_page_of_the_reference_and_the_index_leads_to_all():
    pages = make_reference.reference()
    group = get_command(app)
    assert {f"commands/{name}.md" for name in ("subak", *group.commands)} <= pages.keys()
    assert {f"formats/{name}.md" for name in READERS} <= pages.keys()
    for path in pages.keys() - {"index.md"}:
        assert f"]({path})" in pages["index.md"], path
    assert max(len(text.split()) for text in pages.values()) < 5000


def test_the_reference_has_every_command_and_option(run):
    for command in ("", "simulate", "compare", "report", "explain", "convert", "inspect", "schedulers",
                    "reproduce google-like", "reproduce megha", "reproduce mch"):
        code, said, _ = run(*command.split(), "--help")
        assert code == 0
        page = (DOCS / "reference" / "commands" / f"{(command or 'subak').split()[0]}.md").read_text()
        section = page.split(f"# `{f'subak {command}'.strip()}`\n")[1].split("\n## `")[0]
        options = set(re.findall(r"^│ +(--[a-z-]+)", said, re.MULTILINE))
        assert "--help" in options
        for option in options:
            assert f"| `{option}" in section, f"{command} {option}"


@pytest.fixture
def one_task(run, tmp_path):
    """A workload folder with a task."""
    (tmp_path / "one.tr").write_text("0 1 1 1\n")
    assert run("convert", "tr", tmp_path / "one.tr", "--out", tmp_path / "W")[0] == 0
    return tmp_path / "W"


def test_the_reference_has_the_columns_of_a_run(run, one_task, tmp_path):
    assert run("simulate", one_task, "--machines", 1, "--capacity", "slot=1", "--out", tmp_path / "R")[0] == 0
    for name, words in (("tasks", rows.TASK_ROWS), ("timeline", rows.TIMELINE_ROWS),
                        ("attempts", rows.ATTEMPT_ROWS), ("groups", rows.GROUP_ROWS)):
        assert columns_of(tmp_path / "R" / f"{name}.parquet") == list(words)


def test_the_reference_has_the_column_of_a_workload_that_says_where_inputs_lie():
    workload, fleet = placed(batch((1, 1, 0, 0)), [["m0"]]), machines((1, 0))
    tasks = task_table(simulate(workload, fleet, find_scheduler("first-fit")), workload, fleet)
    assert set(tasks.columns) - set(rows.TASK_ROWS) == set(rows.LOCALITY_ROWS)


def columns_of(path: Path) -> list[str]:
    return [column.replace("_slot", "_*resource*") for column in pl.read_parquet_schema(path)]


def test_the_reference_has_the_columns_of_a_federated_run(shell, one_task, tmp_path):
    done = shell(f"NUMBA_DISABLE_JIT=1 subak simulate {one_task} --machines 1 --capacity slot=1 --scheduler megha "
                 "--local-masters 1 --out R")
    assert done.returncode == 0, done.stderr
    for name, words in (("tasks", rows.TASK_ROWS | rows.FEDERATED_TASK_ROWS),
                        ("timeline", rows.TIMELINE_ROWS | rows.FEDERATED_TIMELINE_ROWS),
                        ("waiting", rows.WAITING_ROWS), ("views", rows.VIEW_ROWS)):
        assert columns_of(shell.here / "R" / f"{name}.parquet") == list(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", text):
        assert not target or target.startswith("https://") or (page.parent / target).exists(), target
    for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]*)\)", text):
        headings = re.findall(r"^#+ (.*)$", ((page.parent / target) if target else page).read_text(), re.MULTILINE)
        anchors = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
        assert anchor in anchors, f"{target}#{anchor}"


# Rooms whose files are alike, one a command or a format, and named for it: the map says so instead of naming them.
ALIKE = ("src/subak/cli/commands", "src/subak/cli/commands/workloads", "src/subak/cli/usage",
         "src/subak/workload/readers")


def rooms(page: str) -> dict[str, set[str]]:
    """Return the files that the map names in each folder; a line further in than eight continues one."""
    drawn = page.split("## The map\n")[1].split("```")[1]
    path: list[str] = []
    found: dict[str, set[str]] = {}
    for line in drawn.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        if depth <= 4:
            del path[depth:]
            path += re.findall(r"^ *([\w/]+)/(?: |$)", line)
        found.setdefault("/".join(path), set()).update(re.findall(r"(?<![\w/])\w+\.py\b", line))
    return found


def test_the_map_has_every_file_in_its_room():
    named = rooms((ROOT / "ARCHITECTURE.md").read_text())
    there: dict[str, set[str]] = {}
    for path in sorted((ROOT / "src" / "subak").rglob("*.py")):
        if not path.name.startswith("__"):
            there.setdefault(path.parent.relative_to(ROOT).as_posix(), set()).add(path.name)
    assert there.keys() <= named.keys(), "folders that the map lacks"
    missing = {room: files - named[room] for room, files in there.items() if room not in ALIKE}
    gone = {room: named[room] - files for room, files in there.items()}
    assert {room: files for room, files in missing.items() if files} == {}
    assert {room: files for room, files in gone.items() if files} == {}


def test_the_map_is_read_by_whole_names_and_rooms():
    page = """## The map
```
src/subak/
  tables.py         what ends in it is another
  report/           what happened
    fair_shares.py, my_tables.py   two
                    with fairness.py in a second line
    lotes/          inside: plan.py,
                    bins.py
    page.py         outside again
  cli/              the command line
tests/              naive.py
```
"""
    assert rooms(page) == {
        "": set(), "src/subak": {"tables.py"}, "src/subak/report": {"fair_shares.py", "my_tables.py", "fairness.py",
                                                                    "page.py"},
        "src/subak/report/lotes": {"plan.py", "bins.py"}, "src/subak/cli": set(), "tests": {"naive.py"},
    }
