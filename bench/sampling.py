"""Hawk and Eagle on a trace of the published simulators: tasks a second of processor time, and messages a task.

    python bench/sampling.py TRACE.tr WORKERS

Others on the machine lengthen the time that passes, much less that of the processor. Messages take 0.5 ms, masters cost
nothing, workers have one slot. Required: 300,000 tasks a second.
"""
import math
import sys
import time
from pathlib import Path

from _published_traces import published_trace
from subak.federation.settings import Federation
from subak.fleet.table import uniform_fleet
from subak.placement.schedulers import SCHEDULERS
from subak.simulator.simulate import simulate
from subak.workload.table import Workload

ROUNDS, CUTOFF_S = 4, 90.5811
SETTINGS = {"hawk": {}, "eagle": {"probes_min": 20}}  # the least number for a job of Eagle's authors


def seconds(name: str, workload: Workload, workers: int, until: float) -> tuple[float, int]:
    """Simulate up to a time; return seconds of processor time, and messages."""
    settings = Federation(service_scale=0.0, cutoff=CUTOFF_S, **SETTINGS[name])
    fleet = uniform_fleet(workers, {"slot": 1}, workload.resources)
    began = time.thread_time()
    outcome = simulate(workload, fleet, SCHEDULERS[name], until=until, federation=settings)
    return time.thread_time() - began, int(outcome.federated.network.handled.sum())


def main() -> None:
    if len(sys.argv) < 3:
        print("sampling.py: no trace was given, which cannot be shipped: sampling.py TRACE.tr WORKERS")
        return
    workload, workers = published_trace(Path(sys.argv[1])), int(sys.argv[2])
    tasks = len(workload.tasks)
    for name in SETTINGS:
        seconds(name, workload, workers, 0.0)  # compiles, or loads, the engine
        before = min(seconds(name, workload, workers, 0.0)[0] for _ in range(2))  # what comes before the loop
        found = [seconds(name, workload, workers, math.inf) for _ in range(ROUNDS)]
        print(f"{name:<6} {tasks / (min(each for each, _ in found) - before):>9,.0f} tasks/s   "
              f"{found[0][1] / tasks:.1f} messages a task   (required: 300,000 tasks/s)", flush=True)


if __name__ == "__main__":
    main()
