"""Every command refuses a place where it could not write before it computes anything, and writes before it prints."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from fake_runs import write_run
from small import staged
from subak.errors import InputError, RunError
from subak.output import writing
from subak.report import document
from subak.workload.google_like.fit import fit
from subak.workload.google_like.generate import Length, write_generated
from subak.workload.google_like.parameters import Parameters, read_parameters

MACHINES = ("--machines", 2, "--capacity", "cpu=1")
# The commands that write a folder, and what each computes it with.
FOLDERS = {
    "convert": (("convert", "tr", "a.tr"), "subak.cli.commands.workloads.convert._read"),
    "generate": (("generate", "--tasks", 5), "subak.cli.commands.workloads.generate.google_machines"),
    "generate-mapreduce": (("generate-mapreduce",), "subak.cli.commands.workloads.generate_mapreduce.draw_batch"),
    "simulate": (("simulate", "W", *MACHINES), "subak.cli.commands.simulate.load_inputs"),
    "compare": (("compare", "W", *MACHINES, "--schedulers", "first-fit"), "subak.cli.commands.compare.load_inputs"),
    "size": (("size", "W", "--kind", "cpu=1", "--objective", "wait.max < 1s"), "subak.cli.commands.size.load_question"),
    "fair": (("fair", "tree.toml"), "subak.cli.commands.fair._found"),
    "google-like": (("reproduce", "google-like"), "subak.cli.reproduce.google_like._measured"),
    "mch": (("reproduce", "mch", "--quick"), "subak.cli.reproduce.reproduction._reproduced"),
}
NAME = "NAME"  # stands for the name of what is read
WORKLOADS = ("convert", "generate", "generate-mapreduce")  # what these write
# The same of files; the name of the file ends the arguments.
FILES = {
    "fit --out": (("fit", "W", "--out"), ".toml", "subak.cli.commands.workloads.fit.fit_model"),
    "fit --chart": (("fit", "W", "--chart"), ".svg", "subak.cli.commands.workloads.fit.fit_model"),
    "inspect --chart": (("inspect", "W", "--chart"), ".svg", "subak.cli.commands.workloads.inspect._inspection"),
    "report --out": (("report", "R", "--out"), ".html", "subak.report.page.load_runs"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the commands read."""
    home = tmp_path_factory.mktemp("made")
    (home / "W").mkdir()
    staged([{"request": (1,)}], [(0, each, 1.0 + each) for each in range(5)]).write(home / "W")
    write_run(home / "R", tasks=500)
    (home / "a.tr").write_text("0 1 1 1\n")
    (home / "tree.toml").write_text('capacity = { cpu = 3 }\n[[queue]]\nname = "q"\ndemand = { cpu = 1 }\n')
    return home


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """Work in a copy of it, with places where nothing may be written."""
    here = tmp_path / "above" / "here"
    shutil.copytree(made, here)
    (here / "empty").mkdir()
    (here / "file").write_text("text")
    for name in ("empty", "R", "file", "nothing"):
        (here / f"to-{name}").symlink_to(name)
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def refused(run, here, monkeypatch):
    """Run a command that must be refused in one line, before *computing* is called, and leaves all as it was."""

    def _refused(computing, *arguments):
        def too_late(*_arguments, **_options):
            raise AssertionError("computed first")

        monkeypatch.setattr(computing, too_late)
        before = sorted(path for path in here.parent.rglob("*"))
        code, out, said = run(*arguments)
        assert (code, out, said.count("\n")) == (2, "", 1), said
        assert said.startswith("subak: ")
        assert len(said) <= 300
        assert sorted(path for path in here.parent.rglob("*")) == before
        return said

    return _refused


@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)], ids=["", "overwrite"])
@pytest.mark.parametrize("command", FOLDERS)
def test_folders_are_refused_before_anything_is_computed(refused, command, overwrite):
    arguments, computing = FOLDERS[command]
    for name, said in ((".", "working directory"), ("..", "working directory"), ("/", "working directory"),
                       ("to-empty", "is a link"), ("to-R", "is a link"), ("to-nothing", "is a link"),
                       ("x" * 300, "too long"), ("file/R", "file is not a folder"), ("file", "it is not replaced"),
                       ("/proc", "mount point"), ("W", "it is not replaced")):
        if name == "W" and command in WORKLOADS:  # which they may replace, since they do not read it
            continue
        assert said in refused(computing, *arguments, "--out", name, *overwrite), name


@pytest.mark.parametrize("command", FILES)
def test_files_are_refused_before_anything_is_computed(refused, here, command):
    arguments, suffix, computing = FILES[command]
    (here / f"folder{suffix}").mkdir()
    (here / f"link{suffix}").symlink_to("nothing")
    for name, said in ((f"folder{suffix}", "is a folder"), (f"link{suffix}", "is a link"), ("x" * 300 + suffix, "long"),
                       ("x" * 300 + f"/F{suffix}", "long"), (f"nothing/../W/jobs.parquet/F{suffix}", "folder"),
                       (f"file/F{suffix}", "folder"), ("F.txt", "end in"), (".", ""), ("/", "")):
        assert said in refused(computing, *arguments, name), name


def test_pictures_are_refused_before_anything_is_drawn(refused):
    for name in ("file", "to-nothing/../file/I", "x" * 300):
        refused("subak.report.page.load_runs", "report", "R", "--images", name)


def test_what_is_read_is_not_replaced(refused, run, here):
    read = (("simulate", ("W", *MACHINES, "--out", "W"), "load_inputs"),
            ("compare", ("W", "--fleet", "R/fleet", "--schedulers", "first-fit", "--out", "R"), "load_inputs"),
            ("convert", ("tr", "W/a.tr", "--out", "W"), "_read"),
            ("generate", ("--tasks", 5, "--fleet", "W/fleet", "--out", "W"), "read_fleet"),
            ("generate", ("--tasks", 5, "--parameters", "W/p.toml", "--out", "W"), "read_parameters"),
            ("fair", ("W/tree.toml", "--out", "W"), "_found"),
            ("simulate", ("--scenario", "R/scenario.toml", "--out", "R"), "load_inputs"),
            ("simulate", ("W", *MACHINES, "--scheduler", "R/policy.py:x", "--out", "R"), "load_inputs"))
    (here / "R" / "scenario.toml").write_text('schedulers = ["first-fit"]\n')
    for command, arguments, computing in read:
        room = "commands.workloads" if command in {"convert", "generate"} else "commands"
        module = f"subak.cli.{room}.{command}.{computing}"
        assert "which is read; it is not replaced" in refused(module, command, *arguments, "--overwrite"), arguments


def test_names_of_runs_that_are_too_long_are_refused(refused, here):
    (here / f"{'x' * 220}.py").write_text("")
    names = f"first-fit,{'x' * 220}.py:mine"
    assert "is too long for a folder" in refused(
        "subak.cli.commands.compare.run_all", "compare", "W", *MACHINES, "--out", "C", "--schedulers", names)


@pytest.mark.parametrize("arguments", [
    ("inspect", NAME), ("report", NAME), ("fit", NAME), ("queues", NAME), ("fair", NAME), ("simulate", NAME),
    ("compare", NAME), ("explain", NAME, 0), ("explain", "lotes", NAME), ("convert", "tr", NAME, "--out", "O"),
    ("convert", "google2011", NAME, "--out", "O")])
def test_names_of_what_is_read_that_no_file_can_have_are_refused(run, here, arguments):
    for name in ("x" * 300, "x" * 300 + ".toml", "/".join(["x" * 200] * 30), "file/x"):
        code, out, said = run(*(name if word == NAME else word for word in arguments))
        assert (code, out, said.count("\n")) == (2, "", 1), said
    assert not (here / "O").exists()


def test_fit_replaces_parameters_only(run, here):
    for name in ("F.toml", "empty.toml"):
        (here / "empty.toml").write_text("")
        assert run("fit", "W", "--out", name, "--overwrite")[0] == 0
        assert run("fit", "W", "--out", name, "--overwrite")[0] == 0
        assert "pass --overwrite" in run("fit", "W", "--out", name)[2]
    before = (here / "W" / "workload.toml").read_bytes()
    code, _, said = run("fit", "W", "--out", "W/workload.toml", "--overwrite")
    assert (code, "holds no parameters; it is not replaced" in said) == (2, True)
    assert (here / "W" / "workload.toml").read_bytes() == before


def test_fit_writes_its_file_though_nobody_reads_what_it_prints(here):
    """As `subak fit W --out F.toml | head -1`, whose reader is gone by then."""
    reading, writing = os.pipe()
    os.close(reading)
    subprocess.run([sys.executable, "-m", "subak", "fit", "W", "--out", "F.toml"], stdout=writing,
                   stderr=subprocess.DEVNULL, check=False)
    os.close(writing)
    assert read_parameters(here / "F.toml").name == "unnamed-like"


@pytest.mark.parametrize("command", ["fit", "inspect"])
def test_charts_are_written_before_anything_is_printed(run, here, monkeypatch, command):
    def nobody_reads(*_arguments):
        sys.exit(1)

    monkeypatch.setattr(f"subak.cli.commands.workloads.{command}.show", nobody_reads)
    assert run(command, "W", "--chart", "F.svg")[0] == 141  # as shells count SIGPIPE
    assert (here / "F.svg").read_text().endswith("</svg>")


def test_an_interrupt_says_what_was_written(run, here, monkeypatch):
    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("subak.cli.commands.workloads.fit.fit_model", interrupted)
    writing.written.clear()
    assert run("fit", "W", "--out", "F.toml") == (130, "", "subak: interrupted; nothing was written\n")
    monkeypatch.setattr("subak.cli.commands.workloads.fit.fit_model", fit)
    monkeypatch.setattr("subak.cli.commands.workloads.fit.show", interrupted)
    code, _, said = run("fit", "W", "--out", "F.toml")
    assert (code, said) == (130, "Wrote F.toml\nsubak: interrupted; F.toml was written\n")
    writing.written.clear()


INTERRUPTED_IN_A_TEXT = """
from subak.cli import app, main

def interrupted(**_):
    exec("raise KeyboardInterrupt")

app.app = interrupted
main.main()
"""


def test_ctrl_c_in_a_text_that_is_executed_has_the_same_exit_code(tmp_path):
    """As those by which named tuples and scipy's laws make their functions; Python notes it, and ends by the signal."""
    (tmp_path / "cut.py").write_text(INTERRUPTED_IN_A_TEXT)
    done = subprocess.run([sys.executable, "-m", "cut"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "subak: interrupted; nothing was written\n")


@pytest.fixture(scope="module")
def million(tmp_path_factory):
    """A workload of a million tasks, which a fit works on for some seconds."""
    home = tmp_path_factory.mktemp("million")
    write_generated(home, Parameters(), 1, Length(tasks=1_000_000))
    return home


@pytest.mark.parametrize("seconds", [0.5, 1.5, 2.5, 3.5])
def test_a_fit_of_a_million_hears_ctrl_c(million, tmp_path, seconds):
    """Loading, reading, fitting, drawing: it ends soon, in a line, and what it wrote is whole."""
    process = subprocess.Popen([sys.executable, "-m", "subak", "fit", million, "--out", "F.toml", "--chart", "F.html"],
                               cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)
    if process.poll() is not None:
        pytest.skip("this machine is done before")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    written = [name for name in ("F.toml", "F.html") if (tmp_path / name).exists()]
    assert {path.name for path in tmp_path.iterdir()} == set(written)
    if "F.toml" in written:
        assert read_parameters(tmp_path / "F.toml").type == pytest.approx(0.7, abs=0.01)
    said = [f"Wrote {name}\n" for name in written]
    if (process.returncode, err) == (0, "".join(said)):
        pytest.skip("this machine was done before")  # Python itself was ending
    assert process.returncode == 130, err
    assert err.endswith(f"subak: interrupted; {(written or ['nothing'])[-1]} was written\n")
    assert err.splitlines(keepends=True)[:-1] in (said, said[:-1])  # it may come before that line is said
    assert "F.html" in written or not out


def test_ctrl_c_is_heard_while_the_script_of_a_page_is_made(monkeypatch):
    monkeypatch.setattr(document, "BUNDLE", "import time; time.sleep(600)")  # else the test would last as long
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        document._bundle("window.vegaEmbed = vegaEmbed;")


def test_a_script_of_a_page_that_cannot_be_made_is_a_line(monkeypatch):
    assert "vegaEmbed" in document._bundle("window.vegaEmbed = vegaEmbed;")
    monkeypatch.setattr(document, "VEGA_LITE", "v0.1")
    with pytest.raises(RunError, match=r"^page: the script that draws charts could not be made: "):
        document._bundle("window.vegaEmbed = vegaEmbed;")


def test_a_page_that_fails_does_not_lose_the_runs(run, here, monkeypatch):
    def in_this_process(scenario, inputs, folder, at_once, on_news):
        write_run(folder / "first-fit", tasks=500)
        return {}

    def no_page(folder):
        raise InputError("no page today")

    monkeypatch.setattr("subak.cli.commands.compare.run_all", in_this_process)
    monkeypatch.setattr("subak.report.page.write_report", no_page)
    code, _, said = run("compare", "W", *MACHINES, "--schedulers", "first-fit", "--out", "C")
    assert (code, "no page today" in said) == (2, True)
    assert (here / "C" / "runs" / "first-fit" / "summary.json").is_file()


def test_a_process_of_a_run_never_hears_ctrl_c():
    """Also the first, with which Python starts its tracker of resources, and lets signals through again."""
    script = ("import os, pathlib, signal\nfrom subak.experiment import workers\n"
              "started = workers._started(os.getpid, {})\n"
              "status = pathlib.Path(f'/proc/{started.process.pid}/status').read_text()\n"
              "blocked = int(status.split('SigBlk:')[1].split()[0], 16)\n"
              "started.end()\n"
              "print(bool(blocked & 1 << signal.SIGINT - 1))\n")
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (told.stdout, told.stderr) == ("True\n", "")


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()
