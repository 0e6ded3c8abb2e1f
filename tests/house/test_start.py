"""What a command loads before it computes anything: help, completion, lists and mistakes come at once."""
import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from subak.cli import app, completion
from subak.errors import InputError
from subak.placement.schedulers import SCHEDULERS, loaded, with_options
from subak.workload import samples
from subak.workload.readers import FORMATS, READERS

# What takes a quarter of a second and more on a busy machine; NumPy, too, is nothing that a name or a default needs.
HEAVY = {"numba", "llvmlite", "numpy", "polars", "pyarrow", "scipy", "highspy", "altair", "vl_convert", "litestar"}
# Forks start each command from what is not ours: of the package nothing is loaded before, as in a process of its own.
FORKING = """import contextlib, io, json, os, sys, traceback
import typer
nobodys = typer.Typer()
nobodys.command()(lambda: None)
with contextlib.redirect_stdout(io.StringIO()):
    nobodys(["--help"], standalone_mode=False)
assert not [name for name in sys.modules if name.partition(".")[0] == "subak"]
for line in sys.stdin:
    arguments, environment, files = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    code = 1
    try:
        for number, name in enumerate(files):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        os.environ.update(environment)
        sys.argv = ["subak", *arguments]
        from subak.cli.main import main
        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        print(json.dumps(sorted(sys.modules)), file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(code)
"""
WORDS = sorted(command.name for command in app.COMMANDS)


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """Run `subak` in a fork; return its exit code, what it prints, and which packages it has loaded."""
    files = [str(tmp_path_factory.mktemp("started") / name) for name in ("in", "out", "error")]

    def call(*arguments, **environment):
        server.stdin.write(json.dumps([arguments, environment, files]) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, error = (Path(file).read_text() for file in files[1:])
        modules = json.loads(error.splitlines()[-1])
        return code, out, error, {name.partition(".")[0] for name in modules}

    with subprocess.Popen([sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": ":".join(sys.path)}) as server:
        yield call
        server.stdin.close()


@pytest.fixture(scope="module")
def completed(started):
    """Return what bash is offered at the end of a line, and which packages were loaded for it."""
    def call(line):
        words = line.split(" ")
        code, out, _, packages = started(_SUBAK_COMPLETE="complete_bash", COMP_WORDS=line,
                                         COMP_CWORD=str(len(words) - 1))
        assert code == 0
        return out.split(), packages

    return call


LISTING = ("import json, sys\nfrom subak.cli.main import main\n"
           "try:\n    main()\nfinally:\n    print('\\n' + json.dumps(sorted(sys.modules)), file=sys.stderr)\n")


def test_a_process_of_its_own_does_what_a_fork_does(started):
    done = subprocess.run([sys.executable, "-c", LISTING, "--help"], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    code, out, _, packages = started("--help")
    assert (code, out) == (0, done.stdout)
    assert {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])} <= packages


def test_a_heavy_package_is_seen_where_it_is_loaded(started):
    assert {"numba", "numpy", "polars"} <= started("compare", "no-such-folder")[3]


@pytest.mark.parametrize("word", [None, *WORDS])
def test_help_loads_nothing_heavy(started, word):
    code, out, _, packages = started(*[word] * (word is not None), "--help")
    assert (code, "Usage: subak" in out) == (0, True)
    assert not packages & HEAVY


@pytest.mark.parametrize("paper", ["google-like", "megha", "mch", "lotes", "hmhs", "dodoor"])
def test_the_help_of_a_paper_loads_nothing_heavy(started, paper):
    code, out, _, packages = started("reproduce", paper, "--help")
    assert (code, f"subak reproduce {paper}" in out) == (0, True)
    assert not packages & HEAVY


@pytest.mark.parametrize(("arguments", "expected"), [
    ((), "Usage: subak"), (("--version",), "subak 0."), (("schedulers",), "hdrf-fast"),
    (("reproduce",), "google-like")])
def test_what_is_only_listed_loads_nothing_heavy(started, arguments, expected):
    code, out, _, packages = started(*arguments)
    assert (code, expected in out) == (0, True)
    assert not packages & HEAVY


@pytest.mark.parametrize(("arguments", "said"), [
    (("comprae",), "Did you mean 'compare'"),
    (("compare", "--shedulers", "first-fit"), "--schedulers"),
    (("compare", "--schedulers", "fist-fit"), "not 'fist-fit'; did you mean 'first-fit'?"),
    (("compare", "--schedulers", "mega", "--delay", "1"), "not 'mega'; did you mean 'megha'?"),
    (("simulate", "--scheduler", "first-fit+backfil"), "not 'backfil'; did you mean 'backfill'?"),
    (("simulate", "--scheduler", "megha", "--updates", "all"), "updates: must be one of changes, full"),
    (("convert", "swff", "x", "--out", "W"), "not 'swff'; did you mean 'swf'?"),
    (("torture", "--seed", "1", "--first", "2"), "--seed: replays one federation"),
    (("inspect", "W", "--largest", "many"), "--largest"),
])
def test_a_mistake_is_found_before_anything_is_loaded(started, arguments, said):
    code, _, err, packages = started(*arguments)
    assert code == 2
    assert said in err.splitlines()[0]
    assert not packages & HEAVY


@pytest.mark.parametrize("line", ["subak ", "subak com", "subak compare --s", "subak reproduce ", "subak submit --"])
def test_completion_loads_nothing_heavy(completed, line):
    offered, packages = completed(line)
    assert offered
    assert not packages & HEAVY


IMPORTING = """import sys
import subak
assert {"load", "run", "compare", "policy"} <= set(dir(subak))
before = {name.partition(".")[0] for name in sys.modules}
subak.load
print(sorted(before), "numba" in sys.modules)
"""


def test_importing_the_package_loads_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    packages, used = done.stdout.strip().rsplit(" ", 1)
    assert not set(ast.literal_eval(packages)) & {*HEAVY, "typer", "rich", "msgspec"}
    assert used == "True"  # a name of the interface loads what it needs


def test_every_command_says_of_itself_what_is_listed():
    group = typer.main.get_command(app.app)
    assert list(group.commands) == [each.name for each in app.COMMANDS]
    for listed in app.COMMANDS:
        command = group.commands[listed.name]
        assert " ".join(command.help.split("\n\n")[0].split()) == listed.summary
        assert (command.name, command.rich_help_panel) == (listed.name, listed.panel)


def test_what_is_known_by_its_place_is_there():
    for scheduler in SCHEDULERS.values():
        for option in ["", *scheduler.accepts]:
            chosen = with_options(scheduler, [option]) if option else scheduler
            for name in ("select_machine", "on_arrival", "on_departure", "memory"):
                place = getattr(chosen, name)
                assert place is None or (isinstance(place, str) and callable(loaded(place)))
    assert [READERS[name].summary for name in FORMATS] == [reader.summary for reader in READERS.values()]
    with pytest.raises(KeyError):
        READERS["csv"]


# What Tab offers


@pytest.mark.parametrize(("line", "offered"), [
    ("subak simulate --scheduler best", ["best-fit"]),
    ("subak simulate --scheduler best-fit+backfill+jo", ["best-fit+backfill+johnson",
                                                         "best-fit+backfill+johnson-reversed"]),
    ("subak compare --schedulers first-fit,fi", ["first-fit,fifo", "first-fit,fifo-pri"]),
    ("subak compare --schedulers tetris,tetris+", ["tetris,tetris+normalised"]),
    ("subak compare --schedulers no-such+", []),
    ("subak compare goo", ["google2011", "google2011-sampled"]),
    ("subak inspect goo", ["google2011", "google2011-sampled"]),
    ("subak fit goo", ["google2011", "google2011-sampled"]),
    ("subak queues goo", ["google2011", "google2011-sampled"]),
    ("subak convert sw", ["swim", "swf"]),
    ("subak report R --format svg,", ["svg,png", "svg,pdf", "svg,csv", "svg,json", "svg,latex"]),
    ("subak compare --updates ", ["changes", "full"]),
    ("subak list --output ", ["table", "json", "yaml"]),
    ("subak generate-mapreduce --sharing ", ["none", "machines", "slots"]),
])
def test_names_formats_and_words_complete(completed, line, offered):
    found, packages = completed(line)
    assert found == offered
    assert not packages & HEAVY


def test_folders_complete_beside_the_samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("goods/W1", "goods/W2", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "goods" / "W.tr").write_text("")
    assert completion.workload("") == ["google2011", "google2011-sampled", "goods"]
    assert completion.workload("go") == ["google2011", "google2011-sampled", "goods"]
    assert completion.workload("goods/W") == ["goods/W1", "goods/W2"]
    assert completion.workload("./goods/W1") == ["./goods/W1"]
    assert completion.workload(".h") == [".hidden"]
    assert completion.workload("none/W") == []


# Samples by name


def test_a_sample_is_meant_by_its_name_and_a_folder_by_its_path():
    assert samples.workload_folder("google2011") == samples.sample_folder("google2011")
    assert samples.workload_folder("./google2011") == Path("google2011")


@pytest.mark.parametrize("command", ["inspect", "fit"])
def test_inspect_and_fit_read_a_sample_by_its_name(command, monkeypatch):
    module, asked = importlib.import_module(f"subak.cli.commands.workloads.{command}"), []

    def read(folder):
        asked.append(folder)
        raise InputError("asked")

    monkeypatch.setattr(module, "read_workload", read)
    with pytest.raises(InputError, match="asked"):
        typer.main.get_command(app.app)([command, "google2011"], standalone_mode=False)
    assert asked == [samples.sample_folder("google2011")]
