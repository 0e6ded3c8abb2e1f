"""MapReduce batches: the seconds of planning and of simulating HMHS, as jobs and machines grow.

Required: the paper's largest size (some hundred jobs, 100 + 100 machines) in milliseconds; 10,000 hybrid jobs on
1,000 + 1,000 machines under 60 s and 4 GB.
"""
import argparse
import time

from subak.experiment.summary import peak_memory_bytes
from subak.fleet.table import Fleet
from subak.measures.of_run import makespan
from subak.placement.mapreduce.batch import find_batch
from subak.placement.mapreduce.bound import makespan_bound
from subak.placement.mapreduce.plan import make_plan
from subak.policy import find_scheduler
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate
from subak.workload.mapreduce import WORKLOADS, MapReduce, draw_batch
from subak.workload.table import Workload

SIZES = ((100, 100), (300, 100), (500, 100), (1_000, 100), (1_000, 300), (3_000, 300), (3_000, 1_000))
LARGEST = (10_000, 1_000)
REPORTED = ("first-fit+backfill", "fifo-pri", "hmhs", "r-hmhs")


def hybrid(jobs: int, machines: int, seed: int = 1) -> tuple[Workload, Fleet]:
    """Return hybrid jobs (hmhs 4.1) and machines of each kind, each job its own speed group."""
    return draw_batch(MapReduce(classes=WORKLOADS["hybrid"], jobs=jobs, map_machines=machines,
                                reduce_machines=machines), seed)


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
