"""What tests ask of processes of runs: jobs as `subak.experiment.workers` does them."""
import json
import os
import sys
from pathlib import Path

from subak.experiment.workers import news_of


def seen(label, job, say):
    """Return what a process sees of itself and of its parent, as JSON."""
    found = {
        "process": os.getpid(), "parent": os.getppid(), "variables": dict(os.environ), "folder": str(Path.cwd()),
        "path": sys.path, "modules": sorted(sys.modules),
    }
    import polars  # which sets a variable

    return json.dumps(found | {"polars": polars.thread_pool_size()}).encode()


def writes_and_loops(label, folder, say):
    """Write the number of this process and of its parent, and never let the interpreter go."""
    written = Path(folder, f"{label}.partial")
    written.write_text(f"{os.getpid()} {os.getppid()}")
    written.rename(Path(folder, label))
    return bytes(sum(range(10**15)))


def dies(label, how, say):
    """End by a signal, or do nothing where that is 0."""
    os.kill(os.getpid(), how)
    return b"alive"


def two_that_loop(folder):
    """Ask two processes to loop for ever: what a test starts as a program, and kills."""
    for _ in news_of(writes_and_loops, {"one": folder, "two": folder}, 2, kept=False):
        raise AssertionError("a process ended")
