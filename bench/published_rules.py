"""What three rules of the published simulators change, which federations here do not have (docs/decisions/0015).

Megha's simulator (github.com/meghanat/megha_simulator: gm_least_num_tasks.py, events.py) sends a job of n tasks to
master n modulo the masters, and its masters serve the job with the fewest remaining tasks. The simulator of Hawk's and
Eagle's authors, which runs Sparrow too (eagle_simulation.py: find_workers_random), draws workers to probe with
replacement; Sparrow's own (github.com/radlab/sparrow, simulation.py) does not. Each rule is put on alone: the first by
queues and `masters_of`, the second by the order `fewest-tasks`, the third in place of `draw_distinct`. Mean job
completion times, of a trace in the format of these simulators:

    python bench/published_rules.py TRACE.tr WORKERS

Each run is a process of its own, since what is drawn is compiled in.
"""
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from _published_traces import published_trace
from subak.federation.batches.membership import Membership, is_able
from subak.federation.sampling import sparrow
from subak.federation.settings import Federation
from subak.fleet.table import uniform_fleet
from subak.marks import inlined
from subak.placement.fits.random_fit import random_below
from subak.placement.schedulers import SCHEDULERS
from subak.simulator.simulate import simulate
from subak.workload.table import Workload

MASTERS, HEARTBEAT_S, SEEDS = 10, 30.0, (1, 2, 3)
BY_SIZE, FEWEST, REPLACED = "a job to master n mod masters", "fewest tasks first", "probes with replacement"
CASES = {"megha": ((), (BY_SIZE,), (FEWEST,), (BY_SIZE, FEWEST)), "sparrow": ((), (REPLACED,))}


@inlined
def draw_with_replacement(members: Membership, shape: int, wanted: int) -> int:
    """Draw workers evenly into `drawn`, some more than once; return how many."""
    if members.able_count[shape] == 0:
        return 0
    found = 0
    while found < min(wanted, members.drawn.size):
        worker = random_below(members.random, members.workers)
        if is_able(members, shape, worker):
            members.drawn[found] = worker
            found += 1
    return found


def by_size(workload: Workload) -> tuple[Workload, dict[str, int]]:
    """Return the workload with a queue for each remainder of the number of tasks, and the masters of these queues."""
    job = workload.stages["job"].to_numpy()[workload.tasks["stage"].to_numpy()]
    master = np.bincount(job, minlength=len(workload.jobs)) % MASTERS
    jobs = workload.jobs.with_columns(queue=pl.Series([f"master {number}" for number in master]))
    return replace(workload, jobs=jobs), {f"master {number}": int(number) for number in np.unique(master)}


def mean_completions(path: Path, workers: int, name: str, rules: list[str]) -> list[float]:
    """Return the mean job completion time, seconds, of each seed."""
    workload = published_trace(path)
    settings = Federation(service_scale=0.0, heartbeat=HEARTBEAT_S, global_masters=MASTERS, local_masters=MASTERS,
                          order="fewest-tasks" if FEWEST in rules else "fifo")
    if BY_SIZE in rules:
        workload, settings.masters_of = by_size(workload)
    if REPLACED in rules:
        sparrow.draw_distinct = draw_with_replacement
    fleet = uniform_fleet(workers, {"slot": 1}, workload.resources)
    job = workload.stages["job"].to_numpy()[workload.tasks["stage"].to_numpy()]
    means = []
    for seed in SEEDS if name == "sparrow" else SEEDS[:1]:  # megha draws nothing
        simulation = simulate(workload, fleet, SCHEDULERS[name], seed, federation=settings).simulation
        finish, arrival = np.full(len(workload.jobs), -np.inf), np.full(len(workload.jobs), np.inf)
        np.maximum.at(finish, job, simulation.progress.start + simulation.tasks.run_time)
        np.minimum.at(arrival, job, simulation.tasks.arrival)
        means.append(float((finish - arrival).mean()))
    return means


def main() -> None:
    if len(sys.argv) > 3:  # one run
        path, workers, name, *rules = sys.argv[1:]
        print(json.dumps(mean_completions(Path(path), int(workers), name, rules)))
        return
    if len(sys.argv) < 3:
        print("published_rules.py: no trace was given, which cannot be shipped: published_rules.py TRACE.tr WORKERS")
        return
    path, workers = sys.argv[1:]
    for name, cases in CASES.items():
        plain = 0.0
        for rules in cases:
            means = json.loads(subprocess.run([sys.executable, __file__, path, workers, name, *rules], check=True,
                                              capture_output=True, text=True).stdout)
            mean = sum(means) / len(means)
            plain = plain or mean
            print(f"{name:<8} {' and '.join(rules) or 'as here':<52} {mean:9.1f} s "
                  f"({min(means):.1f} to {max(means):.1f})   {100 * (mean / plain - 1):+6.1f} %", flush=True)


if __name__ == "__main__":
    main()
