"""Kernels that are compiled side by side: the same as one by one, shared out, and never in the way of a fault."""
import subprocess

import pytest
from numba import types

from subak.kernels import files as kernel_files
from subak.kernels import together as kernel_together
from subak.kernels.kernel import SETTINGS
from subak.kernels.numba_internals.cache import is_kept
from subak.kernels.together import kernels_of
from subak.marks import inlined

pytestmark = pytest.mark.skipif(bool(SETTINGS.DISABLE_JIT), reason="nothing is compiled")


@inlined
def common(x):
    """Is part of both."""
    return x + 1


def twice(x):
    """Is the longer one."""
    return common(x) * 2 + common(x + 1) * 3 - common(x + 2)


def thrice(x):
    """Is the shorter one."""
    return common(x) * 3


JOBS = [(types.int64(types.int64), twice), (types.int64(types.int64), thrice)]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel_files.kernel_folder.cache_clear()
    yield tmp_path
    kernel_files.kernel_folder.cache_clear()


def answers():
    return [kernel(4) for kernel in kernels_of(JOBS)]


def test_two_are_compiled_by_two_processes_and_kept(home, monkeypatch):
    told = []
    started = kernel_together._started
    monkeypatch.setattr(kernel_together, "_started", lambda share: told.append(share) or started(share))
    monkeypatch.setattr(kernel_together, "usable_cores", lambda: 2)
    monkeypatch.setattr(kernel_together, "_length", lambda job: 2 if job[1] is twice else 1)
    assert answers() == [2 * 5 + 3 * 6 - 7, 15]
    assert [[function.__name__ for _, function in share] for share in told] == [["thrice"]]
    assert is_kept("twice")
    assert is_kept("thrice")
    assert answers() == [21, 15]
    assert len(told) == 1, "what is kept is not compiled again"


def test_a_process_that_fails_costs_time_and_nothing_else(home, monkeypatch):
    monkeypatch.setattr(kernel_together, "CHILD", "raise SystemExit(1)")
    monkeypatch.setattr(kernel_together, "usable_cores", lambda: 2)
    assert answers() == [21, 15]


def test_what_is_raised_here_ends_the_other_processes(home, monkeypatch):
    children = []
    popen = subprocess.Popen
    monkeypatch.setattr(kernel_together, "CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(kernel_together.subprocess, "Popen",
                        lambda *given, **named: children.append(popen(*given, **named)) or children[-1])
    monkeypatch.setattr(kernel_together, "usable_cores", lambda: 2)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel_together, "kernel_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernels_of(JOBS)
    assert [child.returncode for child in children] == [-9]


def test_the_longest_goes_to_whoever_has_least_to_do(monkeypatch):
    monkeypatch.setattr(kernel_together, "_length", lambda job: job[0])
    shares = kernel_together._shared_out([(1, None), (5, None), (3, None), (3, None)], 2)
    assert [[length for length, _ in share] for share in shares] == [[5, 1], [3, 3]]
