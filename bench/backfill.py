"""EASY and conservative on whole logs against the tests' twin (tests/support/one_pool.py): how many starts differ.

Logs: NASA iPSC with arrivals at 0.6 and 0.8 of their times, LCG, and two logs of parallel jobs that are drawn here,
with estimates of 0 s, exact, and tenfold. Required: no start differs. The twin counts nodes in plain Python.
"""
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from one_pool import Job, OnePool
from subak.fleet.table import make_fleet
from subak.policy import find_scheduler
from subak.resources import Resource
from subak.simulator.simulate import simulate
from subak.workload.readers import swf
from subak.workload.readers.files.stream import ignore_progress
from subak.workload.readers.options import Options
from subak.workload.table import STAGE_COLUMNS, make_workload

TRACES = Path(__file__).parents[2] / "shared" / "traces" / "swf"
LOGS = (("NASA iPSC", "NASA-iPSC-1993-3.1-cln.swf.gz", 0.6), ("NASA iPSC", "NASA-iPSC-1993-3.1-cln.swf.gz", 0.8),
        ("LCG", "LCG.swf.gz", 1.0))
DRAWN, NODES, LOAD = 4000, 256, 0.9
RULES = ("easy", "conservative")


def imported(path):
    conversion = swf.read(path, Options(), ignore_progress)
    return conversion.workload, conversion.fleet


def drawn(seed, times):
    """Jobs of 1 to 256 nodes, powers of two most of them, for minutes to hours; estimates are so many *times* it."""
    random = np.random.default_rng(seed)
    nodes = np.where(random.random(DRAWN) < 0.75, 2 ** random.integers(0, 9, DRAWN), random.integers(1, 257, DRAWN))
    run = np.round(random.lognormal(6.0, 1.6, DRAWN))
    run[random.random(DRAWN) < 0.02] = 0.0
    span = (nodes * run).sum() / (NODES * LOAD)
    arrival = np.round(np.sort(random.uniform(0.0, span, DRAWN)))
    estimate = run * times
    if times == 1.0:  # of the exact ones a tenth is 0, and a tenth half of what it takes
        which = random.random(DRAWN)
        estimate = np.where(which < 0.1, 0.0, np.where(which < 0.2, run / 2, run))
    return [Job(*map(float, (at, 0, took, said)))._replace(nodes=int(count))
            for at, count, took, said in zip(arrival, nodes, run, estimate, strict=True)]


def as_workload(jobs):
    cores = (Resource("cores", 1.0),)
    stage = np.repeat(np.arange(len(jobs)), [job.nodes for job in jobs])
    table = pl.DataFrame({"job": [str(row) for row in range(len(jobs))], "queue": ["q"] * len(jobs),
                          "user": ["u"] * len(jobs)})
    stages = pl.DataFrame({
        "job": range(len(jobs)), "name": ["s"] * len(jobs), "depends_on": [[]] * len(jobs),
        "kind": ["TASK"] * len(jobs), "priority": [0] * len(jobs), "constraints": [[]] * len(jobs),
        "gang": [job.nodes > 1 for job in jobs],
        "cores": [1.0] * len(jobs)}, schema={**STAGE_COLUMNS, "gang": pl.Boolean, "cores": pl.Float64})
    first = np.concatenate([[0], np.cumsum([job.nodes for job in jobs])])[stage]
    column = {name: np.array([getattr(job, name) for job in jobs])[stage] for name in ("arrival", "run", "estimate")}
    tasks = pl.DataFrame({"stage": stage.astype(np.uint32), "index": (np.arange(stage.size) - first).astype(np.uint32),
                          "arrival": column["arrival"], "run_time": column["run"], "estimate": column["estimate"]})
    machines = pl.DataFrame({"machine": [str(row) for row in range(NODES)]}).with_columns(
        cluster=pl.lit("0"), cores=pl.lit(1.0))
    return make_workload(table, stages, tasks, cores), make_fleet(machines, cores)


def jobs_of(workload):
    """Return the jobs of a log in the order of their tasks, and the stage of each."""
    tasks = workload.tasks
    if "estimate" not in tasks.columns:
        tasks = tasks.with_columns(estimate=pl.lit(None, pl.Float64))
    each = tasks.with_row_index("row").group_by("stage").agg(
        pl.col("row").min(), pl.len().alias("nodes"), pl.col("arrival").max(), pl.col("run_time").max(),
        pl.col("estimate").fill_null(pl.col("run_time")).max()).sort("row")
    return [Job(at, nodes, took, said) for at, nodes, took, said in each.select(
        "arrival", "nodes", "run_time", "estimate").iter_rows()], each["row"].to_numpy()


def compare(name, workload, fleet):
    jobs, first = jobs_of(workload)
    nodes = round(sum(fleet.machines[workload.resources[0].name]) * workload.resources[0].unit)
    for rule in RULES:
        began = time.perf_counter()
        found = simulate(workload, fleet, find_scheduler(rule)).simulation.progress.start[first]
        engine, began = time.perf_counter() - began, time.perf_counter()
        wanted = np.array(OnePool(jobs, nodes, rule).run())
        twin = time.perf_counter() - began
        differ = int(np.count_nonzero(~((found == wanted) | (np.isnan(found) & np.isnan(wanted)))))
        waits = wanted - np.array([job.arrival for job in jobs])
        print(f"{name:<28} {rule:<13} {len(jobs):>7,} jobs, {nodes:>6,} nodes, mean wait {np.nanmean(waits):>9,.0f} s, "
              f"{differ:,} starts differ; engine {engine:.1f} s, twin {twin:.0f} s", flush=True)


def main():
    for seed in (1, 2):
        for times, name in ((0.0, "estimates of 0 s"), (1.0, "exact, some too short"), (10.0, "tenfold")):
            compare(f"drawn {seed}, {name}", *as_workload(drawn(seed, times)))
    for name, file, factor in LOGS:
        workload, fleet = imported(TRACES / file)
        tasks = workload.tasks.with_columns(pl.col("arrival") * factor)
        compare(f"{name} x {factor}", make_workload(workload.jobs, workload.stages, tasks, workload.resources), fleet)


if __name__ == "__main__":
    main()
