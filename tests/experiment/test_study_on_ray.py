"""A study on a Ray cluster of this machine is the study of this machine, to the byte."""
import importlib.util
import os
import subprocess
import sys

import pytest

from small import staged

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray (pip install 'subak[ray]')")

STUDY = """workload = "W"
machines = [1, 2]
capacity = { cpu = 1 }
schedulers = ["first-fit", "wild.py:wild"]
"""
WILD = '''import os
from subak.policy import next_fitting, policy


@policy
def wild(fleet, tasks, task):
    """The first that fits, where it can be imported."""
    return next_fitting(fleet, tasks, task, 0)


if os.environ.get("POLARS_MAX_THREADS") == "1":
    raise ValueError("here")
'''


def test_a_study_on_ray_has_the_bytes_of_one_on_this_machine(tmp_path):
    (tmp_path / "W").mkdir()
    staged([{"request": (1,)}], [(0, float(each), 2.0) for each in range(6)]).write(tmp_path / "W")
    (tmp_path / "S.toml").write_text(STUDY)
    (tmp_path / "wild.py").write_text(WILD)  # runs of it fail where they are done, and leave the others
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), "NUMBA_DISABLE_JIT": "1",
                   "RAY_USAGE_STATS_ENABLED": "0"}
    environment.pop("RAY_ADDRESS", None)
    ended = []
    for out, where in (("here", ("--processes", "1")), ("there", ("--on", "ray"))):
        done = subprocess.run([sys.executable, "-m", "subak", "experiment", "S.toml", "--out", out, *where],
                              cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        ended.append((done.returncode, " ".join(done.stderr.split()).partition("subak: ")[2]))
    assert ended[0] == ended[1]
    assert ended[0][0] == 2
    assert ended[0][1].startswith("2 of 4 runs have no result: machines 1, wild.py-wild, seed 1: wild.py: cannot be "
                                  "imported")
    here, there = ({str(path.relative_to(tmp_path / folder)): path.read_bytes() for path in sorted(
        (tmp_path / folder).rglob("*")) if path.is_file()} for folder in ("here", "there"))
    assert len(here) == 3 + 4
    assert here == there
