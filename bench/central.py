"""Central schedulers on LoTES's 12,583 machines at 80 % load, two resources: tasks a second of the event loop.

First with the 4 requests of LoTES's Table 2, then with those of the shipped sample, as often as there and all evenly.
The floor is what a scheduler in NumPy would do at least: one pass over all machines a task, and nothing else.

Required: 1,000,000 for first-fit and greedy, 300,000 for tetris, also with the sample's requests, 500,000 for best-fit
and worst-fit.
"""
import statistics
import time

import numpy as np

from _workloads import SAMPLE_SHARES, google_fleet, google_tasks, sample_shapes
from subak.fleet.table import Fleet
from subak.policy import find_scheduler
from subak.simulator.simulate import simulate
from subak.workload.table import Workload

TASKS, ROUNDS, PASSES = 1_000_000, 3, 2_000
REQUIRED = {"first-fit": 1_000_000, "greedy": 1_000_000, "tetris": 300_000, "best-fit": 500_000, "worst-fit": 500_000}
OTHERS = ("first-fit+backfill", "easy", "conservative", "aligned-fit", "random-fit")
OF_THE_SAMPLE = ("first-fit", "tetris", "best-fit", "worst-fit", "aligned-fit")


def main() -> None:
    fleet = google_fleet()
    measured("4 requests", google_tasks(TASKS, fleet), fleet, (*REQUIRED, *OTHERS))
    fleet = google_fleet(resources=SAMPLE_SHARES)
    for title, evenly in (("the sample's requests, as often as there", False), ("the same, evenly", True)):
        measured(title, sample_shapes(TASKS, fleet, evenly=evenly), fleet, OF_THE_SAMPLE)


def measured(title: str, workload: Workload, fleet: Fleet, names: tuple[str, ...]) -> None:
    """Print the tasks a second of schedulers, and the floor."""
    print(f"{title}: {len(workload.stages.unique(['cpu', 'memory'])):,} distinct; "
          f"NumPy, one pass a task: {passes(workload, fleet):,.0f} tasks/s")
    for name in names:
        simulate(workload, fleet, find_scheduler(name), until=1.0)  # compile, or load, the engine
        rates = [len(workload.tasks) / simulate(workload, fleet, find_scheduler(name)).loop_result.seconds
                 for _ in range(ROUNDS)]
        wanted = f"   (required: {REQUIRED[name]:,})" if name in REQUIRED else ""
        print(f"  {name:<20} {statistics.median(rates):>12,.0f} tasks/s   {min(rates):,.0f} to {max(rates):,.0f}"
              f"{wanted}")


def passes(workload: Workload, fleet: Fleet) -> float:
    """Return how many tasks a second NumPy finds the best aligned machine for, of all that fit, by looking at all."""
    free, requests = fleet.capacity.astype(np.float64), workload.requests.astype(np.float64)
    stage = workload.tasks["stage"].to_numpy()[:PASSES]
    began = time.perf_counter()
    for request in requests.T[stage]:
        fits = (free >= request[:, None]).all(axis=0)
        np.where(fits, request @ free, -1.0).argmax()
    return PASSES / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
