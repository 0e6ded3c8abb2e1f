"""Workloads of the benchmarks: drawn with a fixed seed, so that every run of a benchmark does the same work."""
import numpy as np
import polars as pl

from subak.fleet.table import Fleet, make_fleet, uniform_fleet
from subak.resources import Resource
from subak.workload.samples import sample_folder
from subak.workload.table import STAGE_COLUMNS, Workload, make_workload, read_workload

# LoTES (Tran et al., 2016), Table 2: share of the jobs, cores, memory (of the largest machine), hours.
CLASSES = {"share": (0.23, 0.46, 0.30, 0.01), "cpu": (0.02, 0.02, 0.07, 0.20), "memory": (0.01, 0.03, 0.03, 0.06),
           "hours": (0.03, 0.04, 0.04, 0.03)}
# LoTES, Table 1: machines, cores, memory.
CONFIGURATIONS = ((6732, 0.50, 0.50), (3863, 0.50, 0.25), (1001, 0.50, 0.75), (795, 1.00, 1.00), (126, 0.25, 0.25),
                  (52, 0.50, 0.12), (5, 0.50, 0.03), (5, 0.50, 0.97), (3, 1.00, 0.50), (1, 1.00, 0.06))
SHARES = (Resource("cpu", 1e-4, "of the largest machine"), Resource("memory", 1e-4, "of the largest machine"))
SAMPLE_SHARES = tuple(Resource(each.name, 1e-8, each.of) for each in SHARES)
DAY_S = 86_400.0
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


def google_fleet(machines: int | None = None, resources: tuple[Resource, ...] = SHARES) -> Fleet:
    """Return Table 1's fleet in a shuffled order, or *machines* drawn from its configurations."""
    random = np.random.default_rng(1)
    count, cpu, memory = (np.array(column) for column in zip(*CONFIGURATIONS, strict=True))
    rows = np.repeat(np.arange(len(count)), count)
    rows = random.permutation(rows) if machines is None else random.choice(rows, machines)
    table = pl.DataFrame({"machine": [str(row) for row in range(len(rows))], "cluster": ["0"] * len(rows),
                          "cpu": cpu[rows], "memory": memory[rows]})
    return make_fleet(table, resources)


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


def sample_shapes(tasks: int, fleet: Fleet, load: float = 0.8, evenly: bool = False) -> Workload:
    """Return `google_tasks` that ask for what the shipped sample's tasks do, as often as there or all *evenly*."""
    random, sample = np.random.default_rng(5), _sample()
    requests = sample.stages.select("cpu", "memory").gather(sample.tasks["stage"])
    kinds = requests.group_by("cpu", "memory", maintain_order=True).len()
    kind = random.choice(len(kinds), tasks, p=None if evenly else kinds["len"].to_numpy() / len(requests))
    asked = {name: tuple((kinds[name] * 1e-8).to_list()) for name in ("cpu", "memory")}
    run_time = random.exponential(3600 * 0.035, tasks)
    rate = load * min(amount.sum() * scale.unit / (np.array(asked[scale.name])[kind] * run_time).mean()
                      for amount, scale in zip(fleet.capacity, fleet.resources, strict=True))
    return workload_of(asked, kind, np.cumsum(random.exponential(1 / rate, tasks)), run_time, SAMPLE_SHARES)


def sample_jobs(tasks: int, fleet: Fleet, days: float, load: float) -> Workload:
    """Return jobs drawn whole from the shipped sample over some *days*, each with its own arrivals; busier by day.

    Run times are as there, times what gives the *load* of the scarcer resource: above 1 at noon, for queues to form.
    """
    random, sample = np.random.default_rng(6), _sample()
    of_task = sample.stages["job"].gather(sample.tasks["stage"]).to_numpy()
    order = np.argsort(of_task, kind="stable")
    first = np.searchsorted(of_task[order], np.arange(len(sample.jobs) + 1))
    drawn = random.integers(0, len(sample.jobs), int(1.2 * tasks * len(sample.jobs) / len(sample.tasks)))
    size = np.diff(first)[drawn]
    drawn = drawn[: np.searchsorted(np.cumsum(size), tasks) + 1]
    size = np.diff(first)[drawn]
    job = np.repeat(np.arange(drawn.size, dtype=np.uint32), size)[:tasks]
    row = order[(np.arange(size.sum()) - np.repeat(np.cumsum(size) - size - first[drawn], size))[:tasks]]
    begin = _by_day(random, drawn.size, days)
    came = sample.tasks["arrival"].to_numpy()
    since = came[row] - np.minimum.reduceat(came[order], first[:-1])[drawn][job]
    return _of_sample(sample, drawn, job, row, begin[job] + since, load / _load(sample, row, days, fleet))


def _sample() -> Workload:
    return read_workload(sample_folder("google2011"))


def _by_day(random: np.random.Generator, count: int, days: float) -> np.ndarray:
    """Return sorted seconds at which jobs come: a third more at noon than in the mean, a third less at midnight."""
    found = random.uniform(0, days * DAY_S, 2 * count)
    kept = random.uniform(0, 4 / 3, found.size) < 1 - np.cos(2 * np.pi * found / DAY_S) / 3
    return np.sort(found[kept][:count])


def _load(sample: Workload, row: np.ndarray, days: float, fleet: Fleet) -> float:
    """Return the load of the scarcer resource with the sample's run times."""
    stage, run_time = sample.tasks["stage"].to_numpy()[row], sample.tasks["run_time"].to_numpy()[row]
    return max(float((request[stage] * run_time).sum()) * resource.unit / (days * DAY_S * amount.sum() * scale.unit)
               for request, resource, amount, scale in zip(sample.requests, sample.resources, fleet.capacity,
                                                           fleet.resources, strict=True))


def _of_sample(sample: Workload, drawn: np.ndarray, job: np.ndarray, row: np.ndarray, arrival: np.ndarray,
               faster: float) -> Workload:
    """Return the tasks in *row* of the sample as tasks of jobs that were *drawn*, a stage each of the job's."""
    stages = sample.stages.with_row_index("before").select("before", "cpu", "memory", "priority", pl.col("job"))
    jobs = pl.DataFrame({"number": np.arange(drawn.size, dtype=np.uint32), "job": drawn.astype(np.uint32)})
    of_jobs = jobs.join(stages, on="job", maintain_order="left_right").with_row_index("stage")
    tasks = pl.DataFrame({
        "number": job, "before": sample.tasks["stage"].to_numpy()[row].astype(np.uint32), "arrival": arrival,
        "run_time": sample.tasks["run_time"].to_numpy()[row] * faster,
        "index": np.arange(job.size) - np.searchsorted(job, np.arange(drawn.size))[job]})
    tasks = tasks.join(of_jobs.select("number", "before", "stage"), on=["number", "before"], maintain_order="left")
    return make_workload(
        pl.DataFrame({"job": np.arange(drawn.size).astype(str), "queue": sample.jobs["queue"].gather(drawn),
                      "user": sample.jobs["user"].gather(drawn)}),
        of_jobs.select(pl.col("number").alias("job"), pl.col("before").cast(pl.String).alias("name"),
                       pl.lit([], pl.List(pl.UInt32)).alias("depends_on"), pl.lit("TASK").alias("kind"), "priority",
                       pl.lit([], STAGE_COLUMNS["constraints"]).alias("constraints"),
                       pl.col("cpu") * 1e-8, pl.col("memory") * 1e-8),
        tasks.select("stage", "index", "arrival", "run_time"), SAMPLE_SHARES)


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
