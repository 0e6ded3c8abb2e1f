"""Makes the prototype's tasks: a sample, scaled down to this machine, for live and simulated runs.

A worker has an equal part of this machine's cores, since there is one machine for all 120 where the paper had a node
for each, and a fiftieth of the memory of section V-B. Requests are those of section V-A, a 400th of the cores and a
fiftieth of the memory. The paper's run lasts as long as its trace; here tasks of at most a minute are taken, and their
arrivals drawn together until they want a stated share of all workers' cores.
"""
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from subak.fleet.table import Fleet, make_fleet
from subak.reproduce import workloads as made
from subak.tables import Provenance
from subak.threads import usable_cores

CPU_SCALE, MEMORY_SCALE = 400.0, 50.0  # section V-A
UNITS = 1000.0  # a core, and a GB, are so many units: thousandths
LOCALS, WORKERS_EACH, GLOBALS = 3, 40, 3  # V-C: 128 nodes are 3 x 40 workers, 3 LMs, 2 more, and so 3 GMs
RUN_TIME_MAX_S = 60.0
LOADS = {"google_19": 0.8, "alibaba": 0.4}  # of the workers' cores; "the load from google_19 is higher" (VI-F)
QUEUES = made.QUEUES[:GLOBALS]  # one for each global master


class Size(NamedTuple):
    """How large the prototype is."""

    seconds: float = 120.0  # over which tasks arrive
    workers_each: int = WORKERS_EACH


class Work(NamedTuple):
    """Tasks in order of arrival, whose requests are whole units, and the machines."""

    name: str
    arrival: np.ndarray  # float64[task], seconds
    run_time: np.ndarray  # float64[task], seconds
    cpu: np.ndarray  # int64[task], thousandths of a core
    memory: np.ndarray  # int64[task], thousandths of a GB
    constraints: np.ndarray  # bool[task, constraint]
    queue: np.ndarray  # int64[task], of QUEUES
    fleet: Fleet
    load: float  # what all want together, over what the workers have while tasks arrive


def worker_units(workers: int) -> tuple[int, int]:
    """Return what each worker has: thousandths of a core and of a GB."""
    cores = usable_cores()
    return max(1, int(UNITS * cores / workers)), int(UNITS * made.MEMORY_GB / MEMORY_SCALE)


def prototype_fleet(size: Size, seed: int) -> Fleet:
    """Return the workers of all clusters, which meet constraints as the simulated ones do."""
    count = LOCALS * size.workers_each
    cpu, memory = worker_units(count)
    like = made.machines(count, LOCALS, seed)
    table = pl.DataFrame({"machine": [f"w{row}" for row in range(count)], "cluster": like.machines["cluster"],
                          "cpu": np.full(count, cpu / UNITS), "memory": np.full(count, memory / UNITS)})
    return make_fleet(table, made.RESOURCES, like.attributes,
                      provenance=Provenance("prototype", f"{count} workers of {cpu / UNITS:g} cores", "made here"))


def prototype_work(name: str, sample: made.Sample, size: Size, seed: int) -> Work:
    """Return the tasks of a sample that last at most a minute, some worker can hold, and make the load of *name*."""
    fleet = prototype_fleet(size, seed)
    capacity = fleet.capacity[:, 0]
    rows = np.flatnonzero((sample.run_time > 0) & (sample.run_time <= RUN_TIME_MAX_S))
    constraints = made.draw_constraints(len(sample.arrival), seed)[rows]
    cpu, memory = (np.clip(np.rint(amount[rows] * UNITS / scale), 1, most).astype(np.int64) for amount, scale, most in (
        (sample.cpu, CPU_SCALE, capacity[0]), (sample.memory, MEMORY_SCALE, capacity[1])))
    held = placeable(constraints, fleet)
    work = np.where(held, cpu * sample.run_time[rows], 0.0)
    wanted = LOADS[name] * size.seconds * float(fleet.capacity[0].sum())
    order = np.random.default_rng((seed, 12)).permutation(rows.size)  # thinned evenly, not from the beginning
    some = np.sort(order[: int(np.searchsorted(np.cumsum(work[order]), wanted)) + 1])
    some = some[held[some]]
    arrival = sample.arrival[rows][some]
    span = max(float(arrival[-1] - arrival[0]), 1e-9)
    arrival = (arrival - arrival[0]) * size.seconds / span
    load = float((cpu * sample.run_time[rows])[some].sum() / (size.seconds * fleet.capacity[0].sum()))
    return Work(name, arrival, sample.run_time[rows][some], cpu[some], memory[some], constraints[some],
                np.arange(some.size) % GLOBALS, fleet, load)


def placeable(constraints: np.ndarray, fleet: Fleet) -> np.ndarray:
    """Return bool[task]: whether some machine meets all of each task's constraints (bool[task, constraint])."""
    met = met_by(fleet)
    return np.asarray((~constraints[:, None, :] | met[None]).all(axis=2).any(axis=1))


def met_by(fleet: Fleet) -> np.ndarray:
    """Return bool[machine, constraint]: what each machine meets."""
    names = [made.constraint_name(number) for number in range(made.CONSTRAINTS)]
    met = np.zeros((len(fleet.machines), made.CONSTRAINTS), bool)
    for machine, attribute in fleet.attributes.select("machine", "attribute").iter_rows():
        met[machine, names.index(attribute)] = True
    return met


def job_file(work: Work, task: int, command: list[str]) -> bytes:
    """Return the job file of a task, whose command wants its cores for its run time."""
    cores, seconds = work.cpu[task] / UNITS, work.run_time[task]
    job: dict[str, Any] = {
        "apiVersion": "subak/v1", "kind": "Job", "metadata": {"name": f"task{task}"}, "queue": QUEUES[work.queue[task]],
        "command": [*command, repr(float(cores)), repr(float(seconds))],
        "resources": {"cpu": f"{work.cpu[task]}m", "memory": f"{work.memory[task]}Mi"},
        "constraints": [{"attribute": made.constraint_name(int(number)), "operator": "=", "value": "1"}
                        for number in np.flatnonzero(work.constraints[task])],
    }
    return msgspec.json.encode(job)
