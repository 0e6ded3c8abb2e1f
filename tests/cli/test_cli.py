"""The command line, end to end: what it prints and writes, and how it says what is wrong."""
import filecmp
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from in_process import subak
from subak.cli import app
from subak.cli.listed import RARE, RARE_OF, RARE_PANELS
from subak.cli.main import main

COMPILING = "Compiling the engine"
COMMANDS = sorted(command.name for command in app.COMMANDS if command.name != "reproduce")
TRACE = "".join(f"{second} 3 2.5 2 {second % 7 + 1} 3\n" for second in range(50))
LAST_FIT = '''
from subak.policy import next_fitting, policy


@policy
def last_fit(fleet, tasks, task):
    """The last machine that fits."""
    found = -1
    machine = next_fitting(fleet, tasks, task, 0)
    while machine != -1:
        found = machine
        machine = next_fitting(fleet, tasks, task, machine + 1)
    return found
'''
ANSWERS = "from subak.policy import policy\n\n@policy\ndef answer(fleet, tasks, task):\n    return {}\n"
# What an interrupted run was doing; it would never come back.
ENDLESS = """
from subak.policy import policy


@policy
def answer(fleet, tasks, task):
    total = 0
    while total >= 0:
        total = (total + tasks.shape[task] + fleet.machines) % 1000
    return -1
"""
# Writes where it must not: with luck to memory that is not there.
WILD = """
from subak.policy import claim, hooks


def arrive(fleet, tasks, lanes, memory, arrived, claims):
    memory.whole[arrived[0] + 10**15, 0] = 1


def leave(fleet, tasks, lanes, memory, freed, claims):
    return


answer = hooks(arrive, leave, memory=((1, 1), (0, 0), []))
"""


class Result:
    """What a command did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out = code, out
        self.err = "".join(line for line in err.splitlines(keepends=True) if not line.startswith(COMPILING))


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process."""
    before = signal.getsignal(signal.SIGTERM)

    def _run(*arguments) -> Result:
        monkeypatch.setattr(sys, "argv", ["subak", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Result(ended.value.code or 0, printed.out, printed.err)

    yield _run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def refused(run):
    """Run a command that must fail: exit code 2, nothing printed but one line, which is returned."""

    def _refused(*arguments) -> str:
        result = run(*arguments)
        assert (result.code, result.out) == (2, ""), result.err
        assert result.err.count("\n") == 1, result.err
        assert result.err.startswith("subak: ")
        assert "Traceback" not in result.err
        return result.err

    return _refused


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A workload of 150 tasks, without a fleet."""
    home = tmp_path_factory.mktemp("small")
    (home / "small.tr").write_text(TRACE)
    assert "150" in subak("convert", "tr", home / "small.tr", "--out", home / "W").stdout
    return home / "W"


MACHINES = ("--machines", 20, "--capacity", "slot=1")


def policy_file(folder, text, name="p.py"):
    path = folder / name
    path.write_text(text)
    return path


# What works


def test_version_and_help(run):
    assert run("--version").out.startswith("subak 0.")
    assert run().out == run("--help").out
    assert all(command in run("--help").out for command in COMMANDS)


def test_help_is_one_screen_the_everyday_commands_first(run):
    lines = run("--help").out.rstrip().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) < 80
    everyday = [name for group in app.EVERYDAY.values() for name in group]
    assert everyday[:4] == ["up", "submit", "run", "list"]
    assert [line.split()[0] for line in lines if line.startswith("  ")
            ][:len(everyday)] == everyday
    assert set(everyday) <= {each.name for each in app.COMMANDS}
    more = " ".join(lines).partition("More: ")[2].partition(" subak COMMAND")[0]
    assert set(re.split(", +", more.strip())) == {each.name for each in app.COMMANDS} - set(everyday)
    assert all(each.name in run("--help-all").out for each in app.COMMANDS)


def test_each_rare_option_and_heading_is_of_some_command():
    """A name of none would hide nothing, and nobody would see that."""
    options = [each for listed in app.COMMANDS for each in listed.load().params]
    assert {option for each in options for option in each.opts} >= RARE
    assert {getattr(each, "rich_help_panel", None) for each in options} >= RARE_PANELS
    for name, rare in RARE_OF.items():
        command = next(each for each in app.COMMANDS if each.name == name).load()
        assert {option for each in command.params for option in each.opts} >= rare


@pytest.mark.parametrize(("command", "common", "rare"), [
    ("compare", "--schedulers", "--heartbeat"), ("simulate", "--machines", "--interference"),
    ("convert", "--map", "--resubmissions"), ("size", "--kind", "--scale"), ("tune", "--tune", "--parameter")])
def test_help_shows_what_most_people_need_and_help_all_the_rest(run, command, common, rare):
    short, whole = run(command, "--help"), run(command, "--help-all")
    assert short.code == whole.code == 0
    assert common in short.out
    assert common in whole.out
    assert rare in whole.out
    assert rare not in short.out
    assert f"more options: subak {command} --help-all" in " ".join(short.out.split())
    assert "more options" not in whole.out
    assert len(short.out.splitlines()) < 0.7 * len(whole.out.splitlines())


@pytest.mark.parametrize("command", ["size", "tune"])
def test_help_of_what_asks_about_a_fleet_as_given_is_a_few_screens(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    assert len(run(command, "--help").out.splitlines()) <= 110


@pytest.mark.parametrize("command", [[], *([each] for each in COMMANDS), ["store"], ["store", "check"], ["reproduce"],
                                     ["reproduce", "megha"]], ids=" ".join)
def test_every_command_takes_help_all(run, command):
    """Where nothing is rare it is --help, and it is listed nowhere."""
    whole = run(*command, "--help-all")
    assert whole.code == 0
    assert "--help-all" not in whole.out
    short = run(*command, "--help")
    assert "more options" in short.out or not command or whole.out.strip() == short.out.strip()


def test_what_follows_a_command_of_run_is_its_own(run):
    """Also --help-all: without a federation the command is refused, and no help is shown."""
    assert "Usage: subak run" not in run("run", "--url", "http://127.0.0.1:9", "printf", "--help-all").out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_an_example(run, command):
    result = run(command, "--help")
    assert result.code == 0
    assert command == "schedulers" or f"subak {command}" in result.out.split("Usage:")[1].split("\n", 1)[1]


def test_python_m_subak_and_its_start():
    completed = subprocess.run([sys.executable, "-m", "subak", "--help"], capture_output=True, text=True, check=True)
    assert "Usage: subak" in completed.stdout


def test_simulate_without_arguments_runs_the_sample(run):
    result = run("simulate")
    assert result.code == 0
    assert "145,459 tasks of google2011-sampled on 12,477 machines" in result.out
    assert "Nothing was kept" in result.err


def test_a_run_folder_repeats_itself_to_the_byte(run, small, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert run("simulate", small, *MACHINES, "--scheduler", "random-fit", "--seed", 7, "--out", first).code == 0
    assert run("simulate", "--scenario", first / "scenario.toml", "--out", second).code == 0
    names = ["tasks.parquet", "timeline.parquet", "attempts.parquet", "scenario.toml"]
    assert filecmp.cmpfiles(first, second, names, shallow=False) == (names, [], [])
    assert json.loads((second / "summary.json").read_bytes())["seed"] == 7
    other = tmp_path / "other"
    assert run("simulate", small, *MACHINES, "--scheduler", "random-fit", "--seed", 8, "--out", other).code == 0
    assert not filecmp.cmp(first / "tasks.parquet", other / "tasks.parquet", shallow=False)


def test_compare_two_schedulers_and_two_seeds(run, small, tmp_path):
    out = tmp_path / "R"
    result = run("compare", small, *MACHINES, "--schedulers", "first-fit,random-fit", "--seeds", "1-2",
                 "--resample", "days", "--processes", 2, "--out", out)
    assert result.code == 0, result.err
    assert "first-fit" in result.out
    assert "Values are of the trace itself." in result.out
    assert sorted(path.name for path in (out / "runs").iterdir()) == [
        "first-fit-s1", "first-fit-s2", "random-fit-s1", "random-fit-s2"]
    assert (out / "report.html").stat().st_size > 100_000
    tasks = pl.read_parquet(out / "runs" / "random-fit-s2" / "tasks.parquet")
    assert tasks["status"].unique().to_list() == ["FINISHED"]
    page = tmp_path / "page.html"
    assert run("report", out, "--out", page, "--images", tmp_path / "pictures", "--format", "svg").code == 0
    assert page.is_file()
    assert (tmp_path / "pictures" / "comparison.svg").read_text().startswith("<svg")


def test_a_log_in_the_place_of_a_workload_is_told_from_one(run, tmp_path):
    (tmp_path / "sacct.txt").write_text("JobID|State\n")
    file = tmp_path / "sacct.txt"
    said = run("inspect", file)
    assert (said.code, said.err) == (
        2, f"subak: {file}: is a file, not a workload's folder: subak convert FORMAT {file} --out W makes one\n")


def test_compare_the_sample(run):
    result = run("compare", "--schedulers", "first-fit,greedy")
    assert result.code == 0
    assert "145,459" in result.out


def test_convert_and_inspect(run, small):
    result = run("inspect", small)
    assert result.code == 0
    assert "150" in result.out
    described = json.loads(run("inspect", small, "--json").out)
    assert described["workload"]["counts"]["tasks"] == 150


def test_schedulers_are_listed(run):
    result = run("schedulers")
    assert result.code == 0
    assert all(name in result.out for name in ("first-fit", "tetris", "backfill", "FILE.py:NAME"))
    assert max(map(len, result.out.splitlines())) <= 80
    assert "Without --scheduler it is first-fit" in result.out and "--scheduler easy" in result.out


def test_a_policy_of_ones_own_goes_into_its_run_folder(run, small, tmp_path):
    file = policy_file(tmp_path, LAST_FIT)
    out, again = tmp_path / "R", tmp_path / "R2"
    result = run("simulate", small, *MACHINES, "--scheduler", f"{file}:last_fit+shortest-first", "--out", out)
    assert result.code == 0, result.err
    file.unlink()
    assert run("simulate", "--scenario", out / "scenario.toml", "--out", again).code == 0
    assert filecmp.cmp(out / "tasks.parquet", again / "tasks.parquet", shallow=False)


def test_overwrite_replaces_only_what_is_ours(run, small, tmp_path):
    out = tmp_path / "R"
    arguments = ("simulate", small, *MACHINES, "--out", out)
    assert run(*arguments).code == 0
    assert run(*arguments, "--overwrite").code == 0
    (out / "summary.json").unlink()
    assert run(*arguments, "--overwrite").code == 2


# What is refused: one line and exit code 2


@pytest.mark.parametrize(("arguments", "said"), [
    (("--scheduler", "no-such"), "scheduler must be a name that `subak schedulers` lists"),
    (("--scheduler", "greedy+backfill"), "scheduler greedy: takes no options, not 'backfill'"),
    (("--scheduler", "absent.py:x"), "absent.py: no such policy file"),
    (("--nope",), "No such option: --nope"),
    (("--seed", "x"), "'--seed'"),
    (("--seed", "-1"), "'--seed'"),
    (("no-such-folder",), "no-such-folder/workload.toml: no such file"),
    (("--capacity", "cpu=1"), "capacity: is that of alike machines"),
    (("--machines", "10"), "capacity: must name each of cpu, memory once"),
    (("--machines", "10", "--capacity", "gpu=1"), "unknown gpu; missing cpu, memory, which tasks ask for (cpu=0"),
    (("--machines", "10", "--capacity", "cpu=much"), "--capacity: must be RESOURCE=AMOUNT"),
    (("--machines", "10", "--capacity", "cpu=1", "--capacity", "memory=-1"), "memory"),
    (("--machines", "10", "--fleet", "F"), "fleet and machines: give one of them"),
    (("--fleet", "no-such-fleet"), "no-such-fleet/fleet.toml: no such file"),
    (("--interval", "0"), "interval: must be a positive number"),
    (("--until", "-1"), "until: must be 0 seconds or more"),
    (("--scenario", "absent.toml"), "absent.toml: no such file"),
])
def test_simulate_refuses(refused, arguments, said):
    assert said in refused("simulate", *arguments)


@pytest.mark.parametrize(("arguments", "said"), [
    (("--seeds", "x"), "--seeds: must be whole numbers such as 1,2,5-8, not 'x'"),
    (("--seeds", "3-1"), "--seeds: must be whole numbers"),
    (("--seeds", "1,1"), "seeds: each must be named once"),
    (("--schedulers", ","), "schedulers: must name at least one"),
    (("--schedulers", "first-fit,first-fit"), "schedulers: each must be named once"),
    (("--schedulers", "first-fit,no-such"), "not 'no-such'"),
    (("--processes", "0"), "'--processes'"),
])
def test_compare_refuses(refused, arguments, said):
    assert said in refused("compare", *arguments)


def test_other_commands_refuse(refused, tmp_path):
    assert "Missing argument 'FORMAT'" in refused("convert")
    assert "No such command 'nope'" in refused("nope")
    assert "neither a run" in refused("report", tmp_path)
    assert "no such folder" in refused("inspect", tmp_path / "absent")


def test_a_workload_without_a_fleet_is_told_how_to_get_machines(refused, small):
    assert "has no fleet; give --fleet FOLDER, or alike machines: --machines 1000 --capacity slot=1" in refused(
        "simulate", small)


def test_two_policies_of_the_same_name_are_refused(refused, small, tmp_path):
    names = []
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        names.append(f"{policy_file(tmp_path / place, LAST_FIT)}:last_fit")
    assert "would both be called p.py-last_fit" in refused("compare", small, *MACHINES, "--schedulers", ",".join(names))


def test_broken_workloads_are_refused(refused, small, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(small, broken)
    whole = (broken / "tasks.parquet").read_bytes()
    (broken / "tasks.parquet").write_bytes(whole[: len(whole) // 2])
    assert "tasks.parquet: not a readable Parquet file" in refused("simulate", broken, *MACHINES)
    (broken / "tasks.parquet").unlink()
    assert "tasks.parquet: no such file" in refused("simulate", broken, *MACHINES)
    (broken / "workload.toml").write_text("resources = [")
    assert "workload.toml: " in refused("simulate", broken, *MACHINES)
    (broken / "workload.toml").write_text("resources = 3\n")
    assert "workload.toml: " in refused("compare", broken, *MACHINES)


def test_folders_in_the_way_are_refused(refused, run, small, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert run("simulate", small, *MACHINES, "--out", ours).code == 0
    theirs.mkdir()
    (theirs / "letter.txt").write_text("dear")
    for command in ("simulate", "compare"):
        assert "it is not replaced" in refused(command, small, *MACHINES, "--out", theirs, "--overwrite")
        assert "it is not replaced" in refused(command, small, *MACHINES, "--out", theirs / "letter.txt", "--overwrite")
    assert "pass --overwrite" in refused("simulate", small, *MACHINES, "--out", ours)
    assert "it is not replaced" in refused("compare", small, *MACHINES, "--out", ours, "--overwrite")
    assert "could not be written" in refused("simulate", small, *MACHINES, "--out", theirs / "letter.txt" / "R")
    assert (theirs / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize(("text", "said"), [
    ("workloud = 'google2011'\n", "workloud"),
    ("machines = 'many'\n", "machines"),
    ("seeds = 3\n", "seeds"),
    ("schedulers = []\n", "schedulers: must name at least one"),
    ("machines = [\n", "s.toml"),
])
def test_scenarios_are_checked(refused, tmp_path, text, said):
    (tmp_path / "s.toml").write_text(text)
    assert said in refused("simulate", "--scenario", tmp_path / "s.toml")


def test_a_scenario_holds_everything(refused, run, small, tmp_path):
    (tmp_path / "s.toml").write_text("seeds = [1, 2]\n")
    assert "takes one scheduler and one seed" in refused("simulate", "--scenario", tmp_path / "s.toml")
    for option in (("--seed", 1), ("--scheduler", "first-fit"), ("--machines", 3)):
        assert "--scenario: holds everything" in refused("simulate", "--scenario", tmp_path / "s.toml", *option)


def test_a_run_is_repeated_on_the_same_data_only(refused, run, small, tmp_path):
    workload = tmp_path / "W"
    shutil.copytree(small, workload)
    assert run("simulate", workload, *MACHINES, "--out", tmp_path / "R").code == 0
    jobs = pl.read_parquet(workload / "jobs.parquet").with_columns(user=pl.lit("somebody else"))
    jobs.write_parquet(workload / "jobs.parquet")
    said = refused("simulate", "--scenario", tmp_path / "R" / "scenario.toml")
    assert "must be the one the scenario was run on" in said


@pytest.mark.parametrize(("text", "said"), [
    (ANSWERS.format("no_such_function(task)"), "does not compile: "),
    (ANSWERS.format("'machine'"), "must return a whole number on every path"),
    ("import no_such_module\n", "cannot be imported: ModuleNotFoundError"),
    ("answer = 3\n", "must define answer with @policy or hooks(); it defines none"),
    ("def f(:\n", "cannot be imported: SyntaxError"),
    (ANSWERS.format("10**9"), "that does not exist: machine 1000000000 for task 0; machines are 0 to 19"),
    (ANSWERS.format("-7"), "answered a machine that does not exist: machine -7"),
    (ANSWERS.format("0"), "answered a machine that cannot hold the task: machine 0 for task 1; slot asked 1, free 0"),
])
def test_policies_with_mistakes_are_refused(refused, small, tmp_path, text, said):
    file = policy_file(tmp_path, text)
    assert said in refused("simulate", small, *MACHINES, "--scheduler", f"{file}:answer", "--out", tmp_path / "R")
    assert not (tmp_path / "R").exists()


def test_one_failing_policy_leaves_the_other_runs(run, small, tmp_path):
    file, out = policy_file(tmp_path, ANSWERS.format("10**9")), tmp_path / "R"
    result = run("compare", small, *MACHINES, "--schedulers", f"first-fit,{file}:answer", "--out", out)
    assert result.code == 2
    assert "machine 1000000000" in result.err.splitlines()[-1]
    assert "first-fit" in result.out
    assert [path.name for path in (out / "runs").iterdir()] == ["first-fit"]


# What is cut short before it begins

SLOW_IMPORT = """
import pathlib, time
pathlib.Path({ready!r}).touch()
for _ in range(300):
    try:
        time.sleep(0.1)
    except BaseException:
        raise ImportError("cut short") from None
"""


@pytest.mark.parametrize(("number", "code", "said"), [
    (signal.SIGINT, 130, "subak: interrupted; nothing was written\n"), (signal.SIGTERM, 143, "")])
def test_cut_short_while_it_loads(tmp_path, number, code, said):
    ready = tmp_path / "ready"
    (tmp_path / "numba.py").write_text(SLOW_IMPORT.format(ready=str(ready)))
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen([sys.executable, "-m", "subak", "compare"], env={**os.environ, "PYTHONPATH": paths},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert wait_until(ready.exists, 60)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (code, "", said)


# What happens to the folder when the run is cut short


def leftovers(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "R" in path.name)


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_full_disk_is_one_line_and_no_folder(run, command, tmp_path):
    run("simulate")  # so that nothing is left to compile, which writes too
    limit = 200_000  # bytes a file may have: less than the sample's tasks.parquet
    completed = subprocess.run(
        [sys.executable, "-m", "subak", command, "--out", tmp_path / "R"]
        + (["--schedulers", "first-fit"] if command == "compare" else []),
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    result = Result(completed.returncode, completed.stdout, completed.stderr)
    assert (result.code, result.err.count("\n")) == (2, 1), result.err
    assert "could not be written: " in result.err
    assert "File too large" in result.err
    assert leftovers(tmp_path) == []


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A scenario that would run for minutes."""
    home = tmp_path_factory.mktemp("large")
    lines = [f"{job} 1000 500 " + " ".join(str(100 + (job * 7 + task * 13) % 997 / 7) for task in range(1000))
             for job in range(300)]
    (home / "large.tr").write_text("\n".join(lines))
    assert subak("convert", "tr", home / "large.tr", "--out", home / "W").returncode == 0
    policy_file(home, ENDLESS)
    return home


def in_session(session: int) -> list[int]:
    """Return the processes of a session that are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def wait_until(condition, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize(("command", "number", "code"), [
    ("simulate", signal.SIGINT, 130), ("compare", signal.SIGINT, 130), ("compare", signal.SIGTERM, 143)])
def test_cut_short(large, tmp_path, command, number, code):
    names = ["--scheduler", f"{large / 'p.py'}:answer"]
    if command == "compare":
        names = ["--schedulers", f"first-fit,{large / 'p.py'}:answer", "--processes", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "subak", command, large / "W", "--machines", "50", "--capacity", "slot=1", *names,
         "--out", tmp_path / "R"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )
    try:
        pattern = "**/runs/p.py-answer" if command == "compare" else ".R.partial-*"
        assert wait_until(lambda: any(tmp_path.glob(pattern)), 90)
        time.sleep(1)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does: to every process of the job
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    result = Result(process.returncode, out, err)
    assert result.code == code, result.err
    assert result.err == ("subak: interrupted; nothing was written\n" if number == signal.SIGINT else "")
    assert leftovers(tmp_path) == []
    assert wait_until(lambda: not in_session(process.pid), 10), "worker processes are left"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_cut_short_while_threads_compute(large, tmp_path, number, code):
    """Nothing is left, and Python does not clear away what they use: one is in a call that nobody can stop."""
    script = ("import atexit, sys, time\nfrom pathlib import Path\nfrom subak.cli.main import main\n"
              "from subak.experiment import parallel\nheld = parallel.do_run\n"
              "def never_stops(scenario, name, seed, inputs, hear):\n"
              f"    Path({str(tmp_path)!r}, f'began-{{name}}').touch()\n"
              "    if name == 'best-fit':\n        bytes(sum(range(10**8)))\n        time.sleep(1e6)\n"
              "    return held(scenario, name, seed, inputs, lambda progress: (time.sleep(0.1), hear(progress)))\n"
              "parallel.do_run = never_stops\natexit.register(print, 'cleared away')\nmain()\n")
    process = subprocess.Popen(
        [sys.executable, "-c", script, "compare", large / "W", "--machines", "50", "--capacity", "slot=1",
         "--schedulers", "first-fit,best-fit", "--processes", "2", "--out", tmp_path / "R"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert wait_until(lambda: len(list(tmp_path.glob("began-*"))) == 2, 90)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (code, "")
    assert err == ("subak: interrupted; nothing was written\n" if number == signal.SIGINT else "")
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_policy_that_takes_its_process_down_is_named(run, small, tmp_path, command):
    policy = policy_file(tmp_path, WILD, "wild.py")
    arguments = [command, small, *MACHINES, "--out", tmp_path / "R",
                 f"--scheduler{'s' if command == 'compare' else ''}", f"{policy}:answer"]
    result = run(*arguments)
    assert result.code == 2
    assert result.err == ("subak: run wild.py-answer: its process died of SIGSEGV; a policy that leaves its arrays "
                          "does that, and --check-policy says where\n")
    assert leftovers(tmp_path) == []


def test_a_policy_that_is_checked_says_where_it_leaves_its_arrays(run, small, tmp_path):
    policy = policy_file(tmp_path, WILD, "wild.py")
    checked = run("simulate", small, *MACHINES, "--out", tmp_path / "R", "--scheduler", f"{policy}:answer",
                  "--check-policy")
    assert checked.code == 2
    assert checked.err == "subak: scheduler wild.py:answer raised IndexError: index is out of bounds\n"
    assert leftovers(tmp_path) == []
