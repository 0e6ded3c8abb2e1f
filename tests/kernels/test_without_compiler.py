"""The same source runs without the compiler: slower, with the same results and without a warning."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from documented import example_file
from small import TWO, fleet_of, staged
from subak.errors import PolicyError
from subak.policy import find_scheduler
from subak.simulator.simulate import simulate

NAMES = [
    "first-fit", "first-fit+backfill+shortest-first", "best-fit+priority", "worst-fit+backfill", "random-fit",
    "random-fit+backfill", "greedy", "tetris", "tetris+normalised", "examples.py:last_fit", "examples.py:impatient",
]


def case(seed):
    """60 tasks in three stages a job on 70 machines, of which the first 60 are nearly useless; some come and go."""
    random = np.random.default_rng(seed)
    stages = [
        {"job": job, "request": (int(random.integers(1, 4)), int(random.integers(0, 3))),
         "priority": int(random.integers(0, 3)), "depends_on": [3 * job] if number == 2 else [],
         "constraints": [("rack", "=", "a")] if number == 1 else []}
        for job in range(2) for number in range(3)
    ]
    tasks = [(row % 6, float(random.integers(0, 8)), float(random.integers(0, 5)) / 2) for row in range(60)]
    machines = [(0, 1)] * 60 + [tuple(random.integers(1, 5, 2)) for _ in range(9)] + [(4, 4)]
    changes = [(float(time), 60 + int(random.integers(0, 9)), bool(random.integers(0, 2)), 3, 3) for time in range(8)]
    attributes = [(machine, "rack", "a") for machine in range(0, 70, 3)]
    return staged(stages, tasks, TWO), fleet_of(*machines, resources=TWO, attributes=attributes, changes=changes)


def results(folder):
    """Per scheduler and case: status, start and machine of every task, and the timeline, exactly."""
    found = {}
    for name in NAMES:
        scheduler = find_scheduler(str(folder / name) if ".py:" in name else name)
        for seed in (1, 2):
            workload, fleet = case(seed)
            outcome = simulate(workload, fleet, scheduler, seed=seed, interval=1.0)
            progress, status = outcome.simulation.progress, outcome.simulation.claims.status
            found[f"{name} on case {seed}"] = [
                status.tolist(), [float(start).hex() for start in progress.start], progress.machine.tolist(),
                [float(number).hex() for number in outcome.loop_result.timeline.ravel()],
            ]
    return found


def refusal(folder):
    """What is said of a policy that writes to what it may only read."""
    file = folder / "tampers.py"
    file.write_text("from subak.policy import policy\n@policy\ndef mine(fleet, tasks, task):\n"
                    "    fleet.free[0, 0] = 99\n    return 0\n")
    try:
        simulate(*case(1), find_scheduler(f"{file}:mine"))
    except PolicyError as error:
        return str(error)
    return "nothing"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return example_file(tmp_path_factory.mktemp("documented")).parent


@pytest.fixture(scope="module")
def plain_run(folder):
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-W", "always", __file__, str(folder)], env=environment,
                          capture_output=True, text=True, timeout=600, check=False)


def test_the_results_are_the_same_with_and_without_the_compiler(plain_run, folder):
    assert plain_run.returncode == 0, plain_run.stderr
    without, compiled = json.loads(plain_run.stdout)["results"], results(folder)
    assert len(compiled) == 2 * len(NAMES)
    for name, rows in compiled.items():
        assert without[name] == rows, name


def test_no_warning_is_printed_without_the_compiler(plain_run):
    assert plain_run.stderr == ""


def test_a_policy_can_only_read_without_the_compiler_too(plain_run):
    said = json.loads(plain_run.stdout)["refusal"]
    assert said == "scheduler tampers.py:mine raised ValueError: assignment destination is read-only"


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"results": results(Path(sys.argv[1])), "refusal": refusal(Path(sys.argv[1]))}))
