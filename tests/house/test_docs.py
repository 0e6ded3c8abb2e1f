"""The documentation cannot drift: its commands run, its outputs are compared, its reference is the program's."""
import inspect
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
from subak.cli.usage.convert import convert
from subak.policy import find_scheduler
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate
from subak.workload.readers import READERS

COLUMNS = 200  # of the terminal of `run`
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TERMINAL = {"COLUMNS": "80"}
SHELLS = re.compile(r"[|<>&;$*?`\\~]")  # what means something to a shell, outside quotes
CHANGING = re.compile(r"tasks a second|peak memory")  # lines that differ from run to run

sys.path.insert(0, str(DOCS))
make_reference = pytest.importorskip("make_reference")
rooms = pytest.importorskip("reference_pages.rooms")
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


def test_every_format_is_in_the_help_of_convert_and_on_the_page_of_traces():
    help_text = inspect.signature(convert).parameters["source"].annotation.__metadata__[0].help
    traces = (DOCS / "traces.md").read_text()
    assert [name for name in READERS if not re.search(rf"\b{name}\b", help_text)] == []
    assert [name for name in READERS if f"`{name}`" not in traces] == []


def test_the_help_of_an_option_of_convert_names_the_formats_that_take_it():
    """Where not nearly all of them do: `--from`, `--until` and `--max-lost` name none."""
    field_of = {"from_": "arrival_min", "until": "arrival_end", "map_": "columns", "columns": "names"}
    taken = {field for reader in READERS.values() for field in reader.options}
    for name, parameter in inspect.signature(convert).parameters.items():
        field = field_of.get(name, name)
        takers = {format for format, reader in READERS.items() if field in reader.options}
        if field in taken and field not in {"arrival_min", "arrival_end", "max_lost"}:
            said = parameter.annotation.__metadata__[0].help.partition(":")[0]
            assert set(said.split(", ")) == takers, name


def test_the_page_of_a_published_table_says_what_that_table_is():
    pages = make_reference.reference()
    texts = {name: pages[f"formats/{name}.md"].partition("Read from")[2].partition("\n")[2] for name in READERS}
    assert "pai_job_table.csv" in texts["pai2020"]
    assert len(set(texts.values())) == len(texts)


def test_the_reference_has_every_command_and_option(run):
    for command in ("", "simulate", "compare", "report", "explain", "convert", "inspect", "schedulers",
                    "reproduce google-like", "reproduce megha", "reproduce mch"):
        code, said, _ = run(*command.split(), "--help" if command else "--help-all")
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


def test_the_changelog_sorts_each_version_as_keep_a_changelog_does():
    headings = re.findall(r"^##+ .*$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "## Unreleased"
    for heading in headings[1:]:
        assert re.fullmatch(r"## \[[\d.]+\] - \d{4}-\d\d-\d\d|### (Added|Changed|Deprecated|Removed|Fixed|Security)",
                            heading), heading


PATH = re.compile(r"`((?:[\w.]+/)*[\w.]+\.(?:py|toml|md))`")  # as pages for developers name files
PLACES = (ROOT, ROOT / "src" / "subak", DOCS, ROOT / "tests")
NAMED = re.compile(r"`(\w+)` (?:of|in) `([\w/]+\.py)`")
FOR_DEVELOPERS = (ROOT / "ARCHITECTURE.md", *(DOCS / f"{name}.md" for name in (
    "recipes", "protocol", "testing", "glossary", "walkthroughs")))


def misnamed(text: str) -> list[str]:
    """Return the files that a page names and that are not there, and the names that are not in their files."""
    def found(path: str) -> Path | None:
        alone = (ROOT / "tests").rglob(path) if "/" not in path else ()  # tests are known by their names
        return next((each for each in (*(place / path for place in PLACES), *alone) if each.is_file()), None)

    gone = [path for path in PATH.findall(text) if "/" in path and found(path) is None]
    return gone + [f"{name} of {path}" for name, path in NAMED.findall(text)
                   if (there := found(path)) is None or not re.search(rf"\b{name}\b", there.read_text())]


@pytest.mark.parametrize("page", FOR_DEVELOPERS, ids=lambda page: page.name)
def test_pages_for_developers_name_what_is_there(page):
    assert misnamed(page.read_text()) == []


def test_a_file_or_a_name_that_is_gone_is_noticed():
    assert misnamed("`fleet/feasible.py`, `KINDS` of `federation/messages.py`, `make_reference.py`") == []
    assert misnamed("`fleet/gone.py`") == ["fleet/gone.py"]
    assert misnamed("`GONE` of `federation/messages.py`") == ["GONE of federation/messages.py"]


def test_the_architecture_names_every_room_at_the_top():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for path in sorted((ROOT / "src" / "subak").iterdir()):
        if (path / "__init__.py").exists():
            assert f"`{path.name}`" in text, path.name


def test_every_file_of_the_package_begins_with_a_plain_line():
    assert rooms.unreadable(ROOT / "src" / "subak") == []


def test_the_map_has_every_file_by_its_first_line(tmp_path):
    package = tmp_path / "house"
    for path, text in (("__init__.py", '"""A house."""\n'), ("door.py", '"""Opens.\n\nAnd shuts."""\n'),
                       ("attic/__init__.py", '"""Up."""\n'), ("attic/roof.py", '"""Keeps\nthe rain out."""\n'),
                       ("attic/bare.py", "x = 1\n"), ("attic/long.py", f'"""{"x" * 117}."""\n'),
                       ("cellar/wine.py", '"""Ages."""\n')):
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(text)
    assert rooms.map_page(package).removeprefix(rooms.HEAD).split("\n") == [
        "", "## house", "", "A house.", "", "- `door.py`: Opens.", "", "## house/attic", "", "Up.", "", "- `bare.py`: ",
        f"- `long.py`: {'x' * 117}.", "- `roof.py`: Keeps", "", "## house/cellar", "", "", "", "- `wine.py`: Ages.", ""]
    assert [line.split(":")[0] for line in rooms.unreadable(package)] == [
        "house/attic/bare.py", "house/attic/long.py", "house/attic/roof.py", "house/cellar/__init__.py"]
