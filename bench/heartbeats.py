"""Heartbeats that change nothing: a federation costs its tasks and the messages that change something, not its time.

Generated tasks, some of which run for days, under megha, with all heartbeats and without those that change nothing. The
floor is a federation without any, which is another one: no master learns what it is not told with an answer. The best
of several runs, in turns, by the process's own clock. Required: 100,000 tasks a second on 500 machines.
"""
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from subak.federation.settings import Federation
from subak.fleet.table import read_fleet
from subak.simulator.engine.run_loop import Course, Held
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated
from subak.simulator.simulate import default_interval
from subak.workload.table import read_workload

CASES = (  # tasks, machines, global masters, local masters, rounds, required tasks a second
    (2_000, 500, 10, 10, 5, 100_000), (20_000, 5_000, 10, 10, 3, None),
)
EVERY_MAX = 2_000  # tasks above which not every heartbeat is made: it takes minutes


def measure(tasks: int, machines: int, masters: int, local_masters: int, rounds: int) -> None:
    """Print tasks a second with all heartbeats, without those that change nothing, and without any."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "W"
        subprocess.run([sys.executable, "-m", "subak", "generate", "--tasks", str(tasks), "--machines", str(machines),
                        "--capacity", "cpu=0.5", "--capacity", "memory=0.5", "--out", str(folder)],
                       check=True, capture_output=True)
        workload, fleet = read_workload(folder), read_fleet(folder / "fleet")
    usual = Federation(global_masters=masters, local_masters=local_masters)
    alone = Federation(global_masters=masters, local_masters=local_masters, heartbeat=math.inf)
    ways = {"passed over": (usual, False), "no heartbeats": (alone, False)}
    if tasks <= EVERY_MAX:
        ways["every heartbeat"] = (usual, True)
    best: dict[str, float] = dict.fromkeys(ways, math.inf)
    for number in range(rounds):
        for name, (settings, every) in ways.items():
            if number > 0 and name == "every heartbeat":
                continue
            opened = open_federated(workload, fleet, MEGHA, settings, 1, default_interval(workload), math.inf,
                                    in_full=every)
            began = time.process_time()
            Course(Held(opened.simulation, opened.step, lambda: RuntimeError("a rule is broken")), False).drive()
            best[name] = min(best[name], time.process_time() - began)
            if name == "passed over":
                beats, handled = opened.network.beats, int(np.sum(opened.network.handled))
                made = handled - int(beats.counts.passed * (2 * beats.counts.masters + 1))
    print(f"{tasks:>9,} tasks, {machines:>6,} machines, {masters} x {local_masters} masters, {handled:,} messages, "
          f"{made:,} of them made")
    for name, seconds in best.items():
        print(f"  {name:<16}{tasks / seconds:>10,.0f} tasks a second of CPU")


def main() -> None:
    for *case, required in CASES:
        measure(*case)
        if required:
            print(f"  {'(required:':<16}{required:>10,})")


if __name__ == "__main__":
    main()
