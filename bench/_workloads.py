"""Workloads of the benchmarks: drawn with a fixed seed, so that every run of a benchmark does the same work."""
import numpy as np
import polars as pl

from subak.fleet.table import Fleet, make_fleet, uniform_fleet
from subak.resources import Resource
from subak.workload.table import Workload, make_workload

# LoTES (Tran et al., 2016), Table 2: share of the jobs, cores, memory (of the largest machine), hours.
CLASSES = {"share": (0.23, 0.46, 0.30, 0.01), "cpu": (0.02, 0.02, 0.07, 0.20), "memory": (0.01, 0.03, 0.03, 0.06),
           "hours": (0.03, 0.04, 0.04, 0.03)}
# LoTES, Table 1: machines, cores, memory.
CONFIGURATIONS = ((6732, 0.50, 0.50), (3863, 0.50, 0.25), (1001, 0.50, 0.75), (795, 1.00, 1.00), (126, 0.25, 0.25),
                  (52, 0.50, 0.12), (5, 0.50, 0.03), (5, 0.50, 0.97), (3, 1.00, 0.50), (1, 1.00, 0.06))
SHARES = (Resource("cpu", 1e-4, "of the largest machine"), Resource("memory", 1e-4, "of the largest machine"))
SLOT = (Resource("slot", 1, "slots"),)


def workload_of(requests: dict[str, tuple[float, ...]], kind: np.ndarray, arrival: np.ndarray, run_time: np.ndarray,
                resources: tuple[Resource, ...]) -> Workload:
    """Return a workload whose tasks ask what their *kind* (a row of *requests*) asks; one job a kind."""
    count = len(next(iter(requests.values())))
    names = [f"class {number}" for number in range(count)]
    stages = pl.DataFrame({"job": range(count), "name": names, "depends_on": [[]] * count, "kind": ["TASK"] * count,
                           "priority": [0] * count, "constraints": [[]] * count, **requests}, strict=False)
    tasks = pl.DataFrame({"stage": kind.astype(np.uint32), "index": np.arange(len(kind), dtype=np.uint32),
                          "arrival": arrival, "run_time": run_time})
    jobs = pl.DataFrame({"job": names, "queue": names, "user": names})
    return make_workload(jobs, stages, tasks, resources)


def google_fleet(machines: int | None = None) -> Fleet:
    """Return Table 1's fleet in a shuffled order, or *machines* drawn from its configurations."""
    random = np.random.default_rng(1)
    count, cpu, memory = (np.array(column) for column in zip(*CONFIGURATIONS, strict=True))
    rows = np.repeat(np.arange(len(count)), count)
    rows = random.permutation(rows) if machines is None else random.choice(rows, machines)
    table = pl.DataFrame({"machine": [str(row) for row in range(len(rows))], "cluster": ["0"] * len(rows),
                          "cpu": cpu[rows], "memory": memory[rows]})
    return make_fleet(table, SHARES)


def google_tasks(tasks: int, fleet: Fleet, load: float = 0.8) -> Workload:
    """Return Poisson arrivals of Table 2's classes, exponential run times, at *load* of the scarcer resource."""
    random = np.random.default_rng(2)
    share, hours = np.array(CLASSES["share"]), np.array(CLASSES["hours"])
    kind = random.choice(4, tasks, p=share)
    run_time = random.exponential(3600 * hours[kind])
    asked = [3600 * (share * hours * CLASSES[resource.name]).sum() / resource.unit for resource in SHARES]
    rate = load * min(fleet.capacity.sum(axis=1) / asked)
    arrival = np.cumsum(random.exponential(1 / rate, tasks))
    requests = {"cpu": CLASSES["cpu"], "memory": CLASSES["memory"]}
    return workload_of(requests, kind, arrival, run_time, SHARES)


def one_slot_tasks(tasks: int, machines: int, load: float = 0.9) -> Workload:
    """Return tasks for one-slot machines: 90 % of about 20 s, 10 % of about 200 s, Poisson arrivals."""
    random = np.random.default_rng(3)
    mean = np.where(random.random(tasks) < 0.9, 20.0, 200.0)
    run_time = mean * random.uniform(0.9, 1.1, tasks)
    arrival = np.cumsum(random.exponential(38.0 / (load * machines), tasks))
    return workload_of({"slot": (1.0,)}, np.zeros(tasks), arrival, run_time, SLOT)


def one_slot_fleet(machines: int) -> Fleet:
    """Return machines that hold one task each."""
    return uniform_fleet(machines, {"slot": 1.0}, SLOT)
