"""MapReduce batches: the seconds of planning and of simulating HMHS, as jobs and machines grow.

Required: the paper's largest size (some hundred jobs, 100 + 100 machines) in milliseconds; 10,000 hybrid jobs on
1,000 + 1,000 machines under 60 s and 4 GB.
"""
import argparse
import time

import numpy as np
import polars as pl

from subak.fleet.table import Fleet, make_fleet
from subak.placement.mapreduce.batch import find_batch
from subak.placement.mapreduce.bound import makespan_bound
from subak.placement.mapreduce.plan import make_plan
from subak.policy import find_scheduler
from subak.report.experiment import peak_memory_bytes
from subak.report.measures import makespan
from subak.resources import Resource
from subak.simulator.results import task_table
from subak.simulator.run import simulate
from subak.workload.table import STAGE_COLUMNS, Workload, make_workload

SLOTS = (Resource("map_slot", 1.0, "slots"), Resource("reduce_slot", 1.0, "slots"))
SIZES = ((100, 100), (300, 100), (500, 100), (1_000, 100), (1_000, 300), (3_000, 300), (3_000, 1_000))
LARGEST = (10_000, 1_000)
REPORTED = ("first-fit+backfill", "fifo-pri", "hmhs", "r-hmhs")


def hybrid(jobs: int, machines: int, seed: int = 1) -> tuple[Workload, Fleet]:
    """Return hybrid jobs (hmhs 4.1) and machines of each kind, each job its own speed group."""
    random = np.random.default_rng(seed)
    kind = random.choice(3, jobs, p=(0.8, 0.15, 0.05))  # normal, long, large
    seconds = np.stack([np.where(kind == 1, random.uniform(*long, jobs), random.uniform(*usual, jobs))
                        for long, usual in (((100, 2000), (5, 45)), ((300, 6000), (15, 135)))], axis=1).ravel()
    tasks = np.stack([np.where(kind == 2, random.integers(*large, jobs), random.integers(*usual, jobs))
                      for large, usual in (((2000, 5001), (1, 301)), ((100, 401), (1, 41)))], axis=1).ravel()
    stage = np.repeat(np.arange(2 * jobs), tasks)
    of_job = tasks.reshape(jobs, 2).sum(axis=1)
    names = [f"j{job}" for job in range(jobs)]
    stages = pl.DataFrame(
        {"job": np.repeat(np.arange(jobs), 2), "name": ["map", "reduce"] * jobs,
         "depends_on": [each for job in range(jobs) for each in ([], [2 * job])], "kind": ["TASK"] * 2 * jobs,
         "priority": [0] * 2 * jobs, "constraints": [[]] * 2 * jobs, "speed_group": np.repeat(np.arange(jobs), 2),
         "map_slot": [1.0, 0.0] * jobs, "reduce_slot": [0.0, 1.0] * jobs},
        schema_overrides={"depends_on": pl.List(pl.UInt32), "constraints": STAGE_COLUMNS["constraints"]}, strict=False)
    workload = make_workload(
        pl.DataFrame({"job": names, "queue": ["batch"] * jobs, "user": ["batch"] * jobs}), stages,
        pl.DataFrame({"stage": stage, "index": np.arange(stage.size) - np.repeat(np.cumsum(of_job) - of_job, of_job),
                      "arrival": np.zeros(stage.size), "run_time": seconds[stage]}), SLOTS)
    both = pl.DataFrame({"machine": [f"m{row}" for row in range(2 * machines)], "cluster": ["0"] * 2 * machines,
                         "map_slot": [1.0] * machines + [0.0] * machines,
                         "reduce_slot": [0.0] * machines + [1.0] * machines})
    return workload, make_fleet(both, SLOTS, speeds=random.uniform(0.1, 1.0, (jobs, 2 * machines)))


def measured(jobs: int, machines: int) -> None:
    workload, fleet = hybrid(jobs, machines)
    began = time.perf_counter()
    planned = make_plan(workload, fleet, "hmhs").makespan
    plan_seconds = time.perf_counter() - began
    began = time.perf_counter()
    table = task_table(simulate(workload, fleet, find_scheduler("hmhs")), workload, fleet)
    seconds = time.perf_counter() - began
    if makespan(table) != planned:
        raise SystemExit(f"the run took {makespan(table)!r} s, the plan said {planned!r}")
    print(f"{jobs:>7,} {machines:>8,} {len(workload.tasks):>11,} {plan_seconds:>10.3f} {seconds:>12.3f} "
          f"{peak_memory_bytes() / 1e9:>9.2f}", flush=True)


def quality(jobs: int, machines: int) -> None:
    workload, fleet = hybrid(jobs, machines)
    began = time.perf_counter()
    bound = makespan_bound(find_batch(workload, fleet), workload).seconds
    seconds = time.perf_counter() - began
    print(f"\n{jobs} jobs, {machines} + {machines} machines: bound {bound:,.0f} s, found in {seconds:.2f} s")
    for name in REPORTED:
        table = task_table(simulate(workload, fleet, find_scheduler(name)), workload, fleet)
        print(f"  {name:<20} {makespan(table):>10,.0f} s   {makespan(table) / bound - 1:>6.1%} above the bound")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", action="store_true", help="only 10,000 jobs on 1,000 + 1,000 machines")
    sizes = (LARGEST,) if parser.parse_args().largest else SIZES
    small = hybrid(10, 10)
    simulate(*small, find_scheduler("hmhs"))  # compile, or load, the kernels
    print("   jobs machines       tasks   plan (s)  whole run (s)  peak GB")
    for size in sizes:
        measured(*size)
    if sizes is SIZES:
        quality(500, 100)


if __name__ == "__main__":
    main()
