"""The golden scripts cause the messages that stand below them; `pytest --rewrite-golden` writes them again."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE / "golden").glob("*.txt"))
DASHES = "----\n"


def parts(path):
    """A script, and the trace below it."""
    script, _, trace = path.read_text(encoding="utf-8").partition(DASHES)
    return script, trace


def traces(paths):
    """What the scripts cause, in a process without the compiler, which would take minutes for a few messages."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(HERE.parent / "src")}
    done = subprocess.run([sys.executable, __file__, *map(str, paths)], env=environment, capture_output=True, text=True,
                          check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return dict(zip(paths, done.stdout.split("\0"), strict=False))


@pytest.fixture(scope="module")
def caused():
    return traces(SCRIPTS)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_causes_the_messages_below_it(path, caused, request):
    script, expected = parts(path)
    if request.config.getoption("--rewrite-golden"):
        path.write_text(script + DASHES + caused[path], encoding="utf-8")
        return
    assert caused[path] == expected


def test_there_is_a_script_for_everything_that_was_asked():
    assert {path.stem for path in SCRIPTS} >= {
        "duplicated_message", "gang", "global_master_restart", "local_master_failover", "lost_race", "preemption",
        "repartition", "worker_loss",
    }


if __name__ == "__main__":
    from golden_script import trace

    for name in sys.argv[1:]:
        sys.stdout.write(trace(parts(Path(name))[0]) + "\0")
