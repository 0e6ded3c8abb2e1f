"""Options and fixtures of the tests."""
import contextlib
import ctypes
import gc
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from subak.cli.main import main

# Tests take what they share from tests/support, and now and then from each other.
sys.path[:0] = [str(path) for path in Path(__file__).parent.iterdir() if path.is_dir()]

# How long a case takes says how busy the machine is, and nothing of what is tested.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
# The same cases each time, and no smaller one sought for a failure: for tests/support/mutants.py.
settings.register_profile("mutants", derandomize=True, database=None, deadline=None,
                          phases=[Phase.explicit, Phase.generate])


# A shell lets what it starts in the background ignore Ctrl-C, and so would every command that tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # what is loaded and collected is no garbage; see pytest_collection_finish


def pytest_collection_finish():
    """Look for garbage from here on, and not among the tests themselves: that took a third of the time."""
    gc.freeze()
    gc.set_threshold(50_000)  # Numba makes hundreds of objects a millisecond, and keeps them: 700 cost a twelfth of it
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Give the memory of a file's tests back before the next: arrays that garbage holds are large, and seldom found."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()  # what is left is not looked at again
        with contextlib.suppress(AttributeError):  # another C library than glibc
            ctypes.CDLL(None).malloc_trim(0)


def pytest_addoption(parser):
    parser.addoption("--rewrite-golden", action="store_true", help="write tests/golden/*.txt again from what happens")


# Files that take a while: they begin first, so that no process is left alone with one of them at the end.
# All processes would wait for the same kernel if they began with those that compile the same, so these alternate.
# A file belongs here from some 10 processor seconds on, in an empty cache of kernels; --durations=0 says which do.
LONG = ("torture", "quirks", "kernel_arrays", "fuzz_input", "page_layout_in_chromium", "docs", "without_compiler",
        "backfill", "kernel_switch", "cli", "clusters", "policy", "chunks_federated", "lotes_dispatch", "chaos",
        "engine_against_twin", "chunks", "lotes_open", "up", "fair_orders", "layouts", "pages_of_hostile_strings",
        "fit", "gangs", "live_torture", "sampled", "live_cli", "recorded", "study", "page_in_chromium", "kill_nine",
        "exhaustive", "roles_apart", "bound", "live_processes", "sizing", "reproduce_google_like", "queue_order",
        "delay_scheduling", "walks", "plan", "generate", "kernel_cache", "site", "start", "api", "tune", "cli_out",
        "names", "readers_google2011", "golden", "reproduce_mch", "reproduce_lotes")


def pytest_collection_modifyitems(items):
    """Order the files, the long ones first; xdist keeps that with `--no-loadscope-reorder`."""
    place = {f"test_{name}": number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONG)))


@pytest.fixture
def run(monkeypatch, capsys, request):
    """Run the command line, COLUMNS of the test's module wide; return its exit code, output and standard error."""
    def call(*arguments) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["subak", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", str(getattr(request.module, "COLUMNS", 160)))
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err
    return call
