"""What tests ask of processes of runs: jobs as `subak.experiment.processes` does them."""
import gc
import json
import os
import signal
import sys
from pathlib import Path

from numba.core import config

from subak.experiment import processes


def seen(label, job, say):
    """Return what a process sees of itself and of its parent, as JSON."""
    parent = Path("/proc", str(os.getppid()))
    found = {
        "process": os.getpid(), "parent": os.getppid(), "program": (parent / "cmdline").read_text(),
        "threads": len(list((parent / "task").iterdir())), "variables": dict(os.environ), "folder": str(Path.cwd()),
        "path": sys.path, "modules": sorted(sys.modules), "checked": config.BOUNDSCHECK, "collects": gc.isenabled(),
    }
    import polars  # which a process has to load for itself, and which sets a variable

    return json.dumps(found | {"polars": polars.thread_pool_size()}).encode()


def writes_and_loops(label, folder, say):
    """Write the number of this process and of its parent, and never let the interpreter go."""
    written = Path(folder, f"{label}.partial")
    written.write_text(f"{os.getpid()} {os.getppid()}")
    written.rename(Path(folder, label))
    return bytes(sum(range(10**15)))


def kills_the_server(label, job, say):
    """Kill this process's parent, if that is a fork server."""
    assert "forkserver" in Path(f"/proc/{os.getppid()}/cmdline").read_text()
    os.kill(os.getppid(), signal.SIGKILL)
    return b"killed"


def dies(label, how, say):
    """End by a signal."""
    os.kill(os.getpid(), how)
    return b"not reached"


def two_that_loop(folder):
    """Ask two processes to loop for ever: what a test starts as a program, and kills."""
    for _ in processes.news_of(writes_and_loops, {"one": folder, "two": folder}, 2, kept=False):
        raise AssertionError("a process ended")
