"""Bad input to every command: exit code 2, one line of at most 300 characters, nothing left behind, no traceback.

A case that fails is run alone by its name: ``pytest "tests/cli/test_fuzz_input.py::test_bad_input[tr/...]"``.
"""
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import typer.main

from checkout import skip_where_closed
from fuzz_cases import Case, numbered
from fuzz_options import CALLS, option_cases, parameters, values_of
from fuzz_runs import run_cases
from fuzz_settings import setting_cases
from fuzz_tables import table_cases
from fuzz_traces import FORMATS, JSON_READERS, trace_cases
from subak.cli import app as commands
from subak.cli.main import main
from subak.workload.readers import READERS

NOBODY = 65534
CHARACTERS_MAX, SECONDS_MAX = 300, 10.0
UNREAD = ("option/reproduce ",)  # what is refused before anything is read, by commands that would run for minutes
# What turned out to be in order: rows that are accounted for, optional parts without rows, bytes that nobody reads.
IN_ORDER = re.compile(
    r"trace/(google-machine_attributes/field-1/-1|alibaba/field-5/1e13|alibaba-spar/field-0/1e13|rumen/queue/nothing"
    r"|(alibaba-instances|openb-nodes)/line/quoted-line"
    r"|(google-task_constraints|google-machine_attributes|alibaba-instances)/file/nothing)$|head-flipped$")
# Cases that once failed are always run; of the others one in THIN, for all would take some minutes.
THIN = 3
MENDED = re.compile(r"machine_events/file/nothing|task_constraints/field-2|xz-junk-behind|swf/field|/seeds/|largest"
                    r"|torture|policy/|run/task|run/report|toml/.*deep|unreadable|capacity|gap_shape|rule/"
                    r"|reproduce .*/seed/|conflict/")
CASES = numbered([*trace_cases(), *table_cases(), *setting_cases(), *option_cases(), *run_cases()])
CASES = [case for number, case in enumerate(CASES) if number % THIN == 0 or MENDED.search(case.name)]
ODD = [case for case in CASES if case.odd or IN_ORDER.search(case.name)]
ODD_NAMES = {case.name for case in ODD}
KNOWN_WHEN_PLANNED = "toml/lotes/window_start/1e30"
BAD = [case for case in CASES if case.name not in ODD_NAMES and case.name != KNOWN_WHEN_PLANNED]


def name_of(case: Case) -> str:
    return case.name


@pytest.fixture(scope="module", autouse=True)
def one_command():
    """Build the tree of commands once, which takes longer than most cases."""
    before = commands.app
    commands.app = typer.main.get_command(before)
    yield
    commands.app = before


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder that another user may enter."""
    home = tmp_path_factory.mktemp("fuzz")
    for folder in (home, home.parent, home.parent.parent):
        folder.chmod(0o755)
    return home


@pytest.fixture
def ended(home, monkeypatch, capfd, request):
    """Run a case in a folder of its own; return its exit code, output, standard error and what changed there."""
    def call(case: Case) -> tuple[int, str, str, list]:
        folder = home / str(abs(hash(case.name)))
        (folder / "tmp").mkdir(parents=True)
        case.build(folder)
        monkeypatch.chdir(folder)
        monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
        monkeypatch.setattr(sys, "argv", ["subak", *case.arguments])
        monkeypatch.setenv("COLUMNS", "160")
        before, began = snapshot(folder), time.process_time()
        with unprivileged(folder, case), pytest.raises(SystemExit) as caught:
            main()
        seconds, printed = time.process_time() - began, capfd.readouterr()
        assert seconds < SECONDS_MAX, f"took {seconds:.1f} s"
        after = snapshot(folder)
        return int(caught.value.code or 0), printed.out, printed.err, [each for each in after if each not in before]

    handler = signal.getsignal(signal.SIGTERM)
    yield call
    signal.signal(signal.SIGTERM, handler)


def snapshot(folder):
    """What is in a folder, but for what Python keeps of a policy's file where it may."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [(f"{place}/{name}", 0) for name in folders]
        found += [(f"{place}/{name}", os.lstat(f"{place}/{name}").st_mtime_ns) for name in files]
    return sorted(found)


class unprivileged:  # noqa: N801  (reads as what it is)
    """Take the permissions of a case's files, and root's with them, for a while."""

    def __init__(self, folder, case):
        self.paths, self.root = [folder / name for name in case.unreadable], os.geteuid() == 0

    def __enter__(self):
        if self.paths and self.root:
            skip_where_closed()
        for path in self.paths:
            path.chmod(0)
        if self.paths and self.root:
            os.seteuid(NOBODY)

    def __exit__(self, *_):
        if self.paths and self.root:
            os.seteuid(0)
        for path in self.paths:
            path.chmod(0o755)


def check_refused(code, out, err, changed):
    assert (code, out, changed) == (2, "", []), err[:500]
    assert err.startswith("subak: "), err[:500]
    assert err.count("\n") == 1, err[:500]
    assert len(err.rstrip("\n")) <= CHARACTERS_MAX, f"{len(err)} characters"


@pytest.mark.parametrize("case", BAD, ids=name_of)
def test_bad_input(case, ended):
    check_refused(*ended(case))


@pytest.mark.parametrize("case", ODD, ids=name_of)
def test_odd_input(case, ended):
    """What may be in order: it is refused like any other, or it works."""
    code, out, err, changed = ended(case)
    if code:
        check_refused(code, out, err, changed)


def test_there_are_enough():
    assert len(BAD) >= 1000
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_format_has_bad_traces():
    assert {form.reader for form in FORMATS.values()} | set(JSON_READERS) == READERS.keys()


def test_every_option_of_every_command_is_tried():
    assert sorted(CALLS) == sorted(parameters())
    missing = [f"{command} {each.name}" for command, listed in parameters().items() for each in listed
               if not values_of(command, each) and each.name not in ("out", "overwrite")
               and not getattr(each, "is_bool_flag", False)]
    assert missing == []


def one_of_each_command() -> list[Case]:
    """The middle one of the cases of each command that may be run apart."""
    found: dict[str, list[Case]] = {command.split()[0]: [] for command in CALLS}
    for case in BAD:
        if case.arguments and case.arguments[0] in found and not (case.unreadable or case.name.startswith(UNREAD)):
            found[case.arguments[0]].append(case)
    return [cases[len(cases) // 2] for cases in found.values()]


def test_one_of_each_through_the_real_command(home):
    chosen = one_of_each_command()
    assert {case.arguments[0] for case in chosen} == set(commands.app.commands)
    with ThreadPoolExecutor(2) as pool:
        for case, problem in zip(chosen, pool.map(lambda case: run_apart(home, case), chosen), strict=True):
            assert problem is None, f"{case.name}: {problem}"


def run_apart(home, case: Case) -> str | None:
    folder = home / f"process-{abs(hash(case.name))}"
    folder.mkdir()
    case.build(folder)
    before = snapshot(folder)
    done = subprocess.run([sys.executable, "-m", "subak", *case.arguments], cwd=folder, capture_output=True, text=True,
                          check=False, timeout=120)
    changed = [each for each in snapshot(folder) if each not in before]
    if (done.returncode, done.stdout, done.stderr.count("\n"), changed) == (2, "", 1, []):
        return None
    return f"{done.returncode} {done.stdout[:200]} {done.stderr[:300]} {changed}"
