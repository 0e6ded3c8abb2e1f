"""Names from outside (folders, files, queues, policies) are taken as they are, by Polars and by the terminal."""
import ast
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from rich.progress import SpinnerColumn
from rich.table import Table

import subak
from fake_runs import write_comparison, write_run
from small import staged
from subak import policy
from subak.fleet.table import uniform_fleet
from subak.measures.run_folders import load_runs
from subak.report import console, pictures
from subak.report.console import Console, Text, TextColumn, bars, echo
from subak.report.console import plain as as_shown
from subak.report.page import write_report
from subak.report.terminal import comparison_table, run_panel
from subak.resources import Resource
from subak.tables import Provenance, read_table, scan_table, write_table
from subak.workload.google_like.generate import Length, write_generated
from subak.workload.google_like.load import loads_until
from subak.workload.google_like.parameters import SHARES, Parameters
from subak.workload.table import read_workload

COLUMNS = 120
NAMES = ["W[1]", "W?", "W*", "W[!2]", "{W1,W2}", "W1 ", "**", "~", "~root", "-W1", "new\nline", "ünï😀", "a=1",
         "x [bold]red.py", "[red]", "\x1b[31m", "%57%31", "file:", "\\W1", "'\"", "$HOME", "#W1"]
MARKUP = ["[/]", "[/red]", "[bold]x", "[link=x]", "a[/b]c", ":cat:", "[", "\\[x]", "\x1b[2J\x07", "\x9b31m",
          "\u202egpj"]
MINE = '''
from subak.policy import next_fitting, policy


@policy
def mine(fleet, tasks, task):
    """The first machine that fits."""
    return next_fitting(fleet, tasks, task, 0)
'''


def workload(jobs):
    return staged([{"job": job, "request": (1,)} for job in range(jobs)], [(job, job, 1.0) for job in range(jobs)])


@pytest.fixture(params=["relative", "absolute"])
def place(request, tmp_path, monkeypatch):
    """Return where folders are made, beside decoys that their names would match as patterns."""
    for decoy in ("W1", "W2"):
        (tmp_path / decoy).mkdir()
        workload(5).write(tmp_path / decoy)
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))  # as before
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Path() if request.param == "relative" else tmp_path


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_read_from_the_folder_of_that_very_name(place, name):
    folder = place / name
    folder.mkdir()
    workload(3).write(folder)
    assert len(read_workload(folder).tasks) == 3
    write_table(pl.DataFrame({"other": [1]}), folder / "tasks.parquet")
    assert read_table(folder / "tasks.parquet").columns == ["other"]
    assert scan_table(folder / "tasks.parquet").collect_schema().names() == ["other"]


@pytest.mark.parametrize("name", ["W[1]", "~", "x [bold]red.py"])
def test_runs_are_read_from_the_folder_of_that_very_name(place, name):
    write_run(place / "Wide" / "W1", tasks=700)
    shutil.copytree(place / "Wide" / "W1", place / "W1", dirs_exist_ok=True)
    shutil.move(write_run(place / "other", tasks=500), place / name)
    run, = load_runs(place / name)
    assert run.tasks().collect().height == 500
    assert run.timeline().collect_schema()


@pytest.mark.parametrize("name", ["W[1]", "~", "*"])
def test_what_is_generated_is_written_and_read_under_that_very_name(place, name):
    folder = place / name
    folder.mkdir()
    written = write_generated(folder, Parameters(), 1, Length(tasks=50))
    assert len(read_workload(folder).tasks) == written.tasks == 50
    assert sorted(path.name for path in folder.iterdir()) == [
        "jobs.parquet", "stages.parquet", "tasks.parquet", "workload.toml"]
    fleet = uniform_fleet(2, {"cpu": 1, "memory": 1}, SHARES)
    assert loads_until(folder, fleet, written.arrival_last)["cpu"] > 0


def test_simulate_takes_the_folder_that_was_named(run, place):
    (place / "W[1]").mkdir()
    workload(3).write(place / "W[1]")
    code, _, said = run("simulate", place / "W[1]", "--machines", 2, "--capacity", "cpu=1", "--out", place / "R[1]")
    assert code == 0, said
    assert load_runs(place / "R[1]")[0].summary.workload.tasks == 3
    assert run("explain", place / "R[1]", "0/0")[0] == 0


@pytest.mark.parametrize("name", ["p.py", "./p.py", "-p.py", "~.py", "a//p.py", "./a/../p.py", "x [bold]red.py"])
def test_a_policy_is_found_under_any_name(place, name):
    (place / "a").mkdir()
    (place / name).write_text(MINE)
    found = policy.named_scheduler(f"{place / name if place != Path() else name}:mine+shortest-first")
    assert (found.name, found.order) == (f"{Path(name).name}:mine+shortest-first", "shortest-first")


def test_a_policy_of_any_name_is_repeated(run, place):
    name = Path("./-x [bold]red.py")
    name.write_text(MINE)
    code, _, said = run("simulate", place / "W1", "--machines", 2, "--capacity", "cpu=1", "--out", place / "R",
                        "--scheduler", f"./{name}:mine+shortest-first")
    assert code == 0, said
    name.unlink()
    assert run("simulate", "--scenario", place / "R" / "scenario.toml", "--out", place / "again")[0] == 0
    assert (place / "again" / "tasks.parquet").read_bytes() == (place / "R" / "tasks.parquet").read_bytes()


def test_every_reader_comes_by_one_function():
    """Polars' own readers of files take names for patterns; what these files hand them is no name."""
    found = {}
    for path in Path(subak.__file__).parent.rglob("*.py"):
        calls = re.findall(r"pl\.((?:read|scan)_\w+)\(", path.read_text())
        if calls:
            found[path.name] = sorted(set(calls))
    assert found == {"tables.py": ["scan_parquet"], "stream.py": ["read_csv"], "delimited.py": ["read_csv"]}


# -- the terminal ------------------------------------------------------------------------------------------------------


@pytest.fixture
def watched(monkeypatch):
    """Let the terminal be one, and record what it is told."""
    monkeypatch.setattr(console.Console, "is_terminal", property(lambda self: True))
    monkeypatch.setenv("TERM", "xterm")


def without_commands(text):
    """Return *text* without the escape sequences that Rich itself writes, and fail for any other."""
    plain = re.sub(r"\x1b\[[0-9;?]*[mKAlhG]", "", text).replace("\r", "")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", plain)
    return plain


def shown(name):
    """Return what of a name is to be seen."""
    return as_shown(name)


@pytest.mark.parametrize("name", MARKUP)
def test_text_is_shown_as_it_is(capsys, watched, name):
    table = Table(name, title=name)
    table.add_row(name)
    table.add_row(Text(name))
    Console().print(table)
    Console().print(name, highlight=False)
    echo(f"said {name}")
    plain = without_commands(capsys.readouterr().out)
    assert plain.count(shown(name)) == 6
    assert f"said {shown(name)}" in plain


@pytest.mark.parametrize("name", MARKUP)
def test_a_bar_shows_text_as_it_is(capsys, watched, name):
    with bars(SpinnerColumn(), TextColumn("{task.fields[state]}")) as progress:
        progress.add_task(f"<{name}>", state=f"({name})")
        progress.refresh()
    plain = without_commands(capsys.readouterr().err)
    assert f"<{shown(name)}>" in plain
    assert f"({shown(name)})" in plain


@pytest.mark.parametrize("name", MARKUP)
def test_runs_of_any_name_are_shown(capsys, watched, tmp_path, name):
    folder = write_run(tmp_path / "run", label=name, tasks=500, workload={"name": name, "tasks": 500, "jobs": 50},
                       reasons=[{"status": "WAITING", "reason": name, "tasks": 1}])
    run, = load_runs(folder)
    Console().print(run_panel(run))
    assert without_commands(capsys.readouterr().out).count(shown(name)) >= 3


def test_a_comparison_of_any_names_is_shown_and_drawn(capsys, watched, tmp_path):
    labels = ["x [bold]red.py-mine", "W[1]", "{a,b}", "[red]"]
    runs = load_runs(write_comparison(tmp_path, labels, tasks=500))
    Console().print(comparison_table(runs))
    plain = without_commands(capsys.readouterr().out)
    assert all(word in plain for label in labels for word in label.split(" "))  # a name breaks at its blanks only
    assert write_report(tmp_path).is_file()


def test_pictures_have_names_that_files_may_have():
    names = ["queue-length", "gantt-../../x", "gantt-" + "x" * 300, "gantt-" + "x" * 301, "a b", "a_b"]
    found = list(pictures.file_names(names).values())
    assert found[0] == "queue-length"
    assert len(set(found)) == len(names)
    assert all("/" not in name and len(name) < 120 for name in found)


@pytest.mark.parametrize("name", ["[/]", "a[/b]c", "[bold]x", ":cat:"])
def test_commands_show_names_as_they_are(run, tmp_path, name):
    found = staged([{"request": (1,)}], [(0, each, 1.0 + each) for each in range(5)],
                   resources=(Resource("cpu", 1.0, name),))
    jobs = found.jobs.with_columns(job=pl.lit(name), user=pl.lit(name), queue=pl.lit(name))
    folder = tmp_path / "W"
    folder.mkdir()
    replace(found, jobs=jobs, provenance=Provenance(name, name, name, {name: name})).write(folder)
    code, out, said = run("inspect", folder)
    assert (code, out.count(name) >= 6) == (0, True), said
    for command in ("queues", "fit"):
        code, out, said = run(command, folder)
        assert code == 0, said
    queue = f'[[queue]]\nname = "{name}"\ndemand = {{ cpu = 1 }}\n'
    (tmp_path / "tree.toml").write_text("capacity = { cpu = 3 }\n" + queue)
    code, out, said = run("fair", tmp_path / "tree.toml")
    assert (code, name.split("/")[-1] in out) == (0, True), said


def test_every_console_and_bar_is_made_in_one_place():
    """So that no text comes to the terminal another way."""
    makers = {"rich.console.Console", "rich.progress.Progress", "rich.progress.TextColumn", "rich.text.Text"}
    for path in Path(subak.__file__).parent.rglob("*.py"):
        imported = {f"{node.module}.{name.name}" for node in ast.walk(ast.parse(path.read_text()))
                    if isinstance(node, ast.ImportFrom) for name in node.names}
        assert path.name == "console.py" or not imported & makers, path
