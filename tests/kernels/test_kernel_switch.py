"""Kernels without private parts of Numba: by request, where one has moved, or in a version that nobody tested."""
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from subak.errors import InputError
from subak.kernels import switch
from subak.kernels.switch import VARIABLE, is_fast

ROOT = Path(__file__).parents[2]
HEAD = f"import sys\nsys.path.insert(0, {str(ROOT / 'tests' / 'support')!r})\n"
# A loop over tuples of arrays, with inner functions, in the width of each integer, and a division by zero as in NumPy.
COMPUTES = """
from typing import NamedTuple
import numpy as np
from subak.kernels.kernel import kernel
from subak.kernels.switch import is_fast
from subak.marks import inlined, noinline

class Table(NamedTuple):
    amount: np.ndarray
    share: np.ndarray

@inlined
def added(table, place, more):
    return table.amount[place] + more

@noinline
def divided(table, place, by):
    return table.share[place] / by

@kernel
def swept(table, by):
    total = 0.0
    for place in range(table.amount.size):
        total += added(table, place, place) + divided(table, place, by)
    return total

table = Table(np.arange(5, dtype=np.int32), np.full(5, 2.5))
print(is_fast(), swept(table, 2.0), swept(table, 0.0), "subak.kernels.numba_internals.dispatch" in sys.modules)
"""
RESULT = "26.25 inf"


def ran(script, **variables):
    """Return what a program printed and said, which begins with no variable but those."""
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE} | variables
    done = subprocess.run([sys.executable, "-c", HEAD + script], capture_output=True, text=True, check=False,
                          timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize(("word", "printed"), [("plain", f"False {RESULT} False"), ("fast", f"True {RESULT} True")])
def test_the_variable_chooses_and_results_are_alike(word, printed):
    assert ran(COMPUTES, **{VARIABLE: word}) == (printed, "")


@pytest.mark.parametrize(("moved", "said"), [
    ("import numba.core.codegen as m\ndel m.JITCodeLibrary\n", "cannot import name 'JITCodeLibrary'"),
    ("import numba.core.registry as m\ndel m.CPUDispatcher\n", "cannot import name 'CPUDispatcher'"),
    ("import functools\nfrom llvmlite.binding import ExecutionEngine as m\n"
     "m._raw_object_cache_notify = functools.partial(m._raw_object_cache_notify)\n", "has no attribute '__code__'"),
])
def test_where_a_private_part_has_moved_kernels_are_plain_and_one_line_says_so(moved, said):
    printed, line = ran(moved + COMPUTES)
    assert printed.split()[:3] == ["False", *RESULT.split()]
    assert re.fullmatch(r"Numba \S+ lacks what was expected \(.*" + re.escape(said) + r".*\): kernels are compiled by "
                        r"numba\.njit alone, and are not kept; federations run as plain Python, slowly \(tested: 0\.62 "
                        r"to before 0\.69\)", line), line


@pytest.mark.parametrize(("version", "variables", "fast"), [
    ("0.99.0", {}, "False"), ("1.0rc1", {}, "False"), ("0.61.2", {}, "False"), ("0.62.0dev0+3", {}, "True"),
    ("0.99.0", {VARIABLE: "fast"}, "True")])
def test_a_version_that_nobody_tested_is_plain_unless_it_is_asked_for(version, variables, fast):
    printed, line = ran(f"import numba\nnumba.__version__ = {version!r}\n{COMPUTES}", **variables)
    assert printed.split()[:3] == [fast, *RESULT.split()]
    assert line.startswith(f"Numba {version} was not tested: ") == (fast == "False")
    assert len(line.splitlines()) == (fast == "False")


def test_the_version_here_is_tested():
    assert switch._is_tested(), numba.__version__


def test_another_word_is_a_line(monkeypatch):
    monkeypatch.setenv(VARIABLE, "quick")
    with pytest.raises(InputError, match=r"^SUBAK_KERNELS: must be fast or plain, not 'quick'$"):
        is_fast.__wrapped__()
    done = subprocess.run([sys.executable, "-m", "subak", "simulate", "google2011"], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (2, "subak: SUBAK_KERNELS: must be fast or plain, not 'quick'\n")


@pytest.mark.parametrize("name", [
    "megha", pytest.param("first-fit+backfill", marks=pytest.mark.skipif(
        not os.environ.get("PLAIN_ENGINES"), reason="compiles for two minutes: make plain"))])
def test_a_run_has_the_same_bytes(name):
    """A central scheduler is compiled plainly; a federation runs as plain Python then."""
    script = ("from small import fleet_of, plain\nfrom subak.policy import find_scheduler\n"
              "from subak.simulator.results import attempt_table, task_table, timeline_table\n"
              "from subak.simulator.simulate import simulate\n"
              "work = plain(*[(0.37 * n, 20.0 + n % 7, 1 + n % 3) for n in range(60)]), fleet_of(*[(4,)] * 8)\n"
              f"outcome = simulate(*work, find_scheduler({name!r}))\n"
              "print(task_table(outcome, *work).write_json(), attempt_table(outcome, *work).write_json(),\n"
              "      timeline_table(outcome, work[0]).write_json())\n")
    one, other = (ran(script, **{VARIABLE: word})[0] for word in ("plain", "fast"))
    assert len(one) > 5_000
    assert one == other


def test_private_parts_of_numba_are_touched_in_one_room():
    """Of Numba and llvmlite, all else imports what they document: their top, `extending` and `experimental`."""
    private = re.compile(r"^\s*(from|import) (numba\.(?!extending|experimental)|llvmlite)", re.MULTILINE)
    source = ROOT / "src" / "subak"
    found = {path for path in source.rglob("*.py") if private.search(path.read_text())}
    assert found
    assert {path.parent for path in found} == {source / "kernels" / "numba_internals"}


def test_kernels_tests_hold_without_private_parts():
    """Those of single kernels: amounts, lanes, heaps, searches."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/queues/test_line.py",
         "tests/placement/test_kernels.py"], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, VARIABLE: "plain"})
    assert done.returncode == 0, done.stdout[-2000:]
