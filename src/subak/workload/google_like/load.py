"""Computes means of the model, and the dynamism that loads a fleet as wanted."""
import math
from pathlib import Path

import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.errors import InputError
from subak.fleet.table import Fleet
from subak.resources import same_resources
from subak.tables import scan_table
from subak.workload.google_like.parameters import Jobs, Parameters


def mean_tasks_per_job(jobs: Jobs | None) -> float:
    """Return the mean of the law of job sizes, exactly: the sum of P(size > k) over k from 0 to most - 1."""
    if jobs is None:
        return 1.0
    steps = np.arange(1, jobs.most, dtype=np.float64)
    law = jobs.law
    beyond = scipy.special.ndtr((law.mu - np.log(steps)) / law.sigma)  # P(log-normal >= k), that is P(size > k)
    return jobs.single + (1.0 - jobs.single) * (1.0 + math.fsum(beyond))


def mean_run_time(parameters: Parameters) -> float:
    """Return seconds: the mean makespan, less what failing and killed tasks leave undone (half, on average)."""
    makespan = parameters.type * parameters.tasks.mass + (1.0 - parameters.type) * parameters.services.mass
    ended = parameters.failures.fail + parameters.failures.kill if parameters.failures else 0.0
    return makespan * (1.0 - ended / 2.0)


def mean_request(parameters: Parameters) -> np.ndarray:
    """Return float64[resource], in ``resource.of``."""
    shares = np.array([request.share for request in parameters.requests])
    amounts = np.array([[request.amounts[resource.name] for request in parameters.requests]
                        for resource in parameters.resources])
    return amounts @ shares / shares.sum()


def loads(parameters: Parameters, fleet: Fleet) -> dict[str, float]:
    """Return {resource: load}: what runs in the long run, if nothing waits, over the capacity at time 0.

    Infinite for a resource that is asked for and that the fleet has none of. Raises InputError for other resources.
    """
    same_resources(parameters.resources, fleet.resources, "parameters and fleet")
    units = np.array([resource.unit for resource in fleet.resources])
    present = fleet.machines["present"].to_numpy()
    capacity = fleet.capacity[:, present].sum(axis=1, dtype=np.float64) * units
    demand = mean_request(parameters) * mean_run_time(parameters) / parameters.dynamism  # Little's law
    return {
        resource.name: 0.0 if wanted == 0 else wanted / has if has else math.inf
        for resource, wanted, has in zip(fleet.resources, demand.tolist(), capacity.tolist(), strict=True)
    }


def dynamism_for(parameters: Parameters, fleet: Fleet, load: float) -> float:
    """Return the mean gap, seconds, at which the scarcer resource of *fleet* has this *load*.

    Raises InputError for a load that is not positive, or a fleet that lacks what is asked for.
    """
    if not (math.isfinite(load) and load > 0):
        raise InputError(f"load must be a positive share of the fleet, such as 0.8, not {load!r}")
    scarcer = max(loads(parameters, fleet).values())
    if math.isinf(scarcer):
        raise InputError("load: the fleet has none of a resource that the workload asks for")
    return parameters.dynamism * scarcer / load


def loads_until(folder: Path, fleet: Fleet, end: float) -> dict[str, float]:
    """Return {resource: load}: what the tasks of a workload *folder* ask for between 0 and *end* if none waits.

    Averaged over that time, over the capacity at time 0. Below `loads` while long tasks are still gathering.
    """
    stages = scan_table(folder / "stages.parquet").with_row_index("stage")
    seconds = pl.min_horizontal("run_time", end - pl.col("arrival")).clip(lower_bound=0.0)
    asked = (
        scan_table(folder / "tasks.parquet")
        .join(stages.select("stage", *(resource.name for resource in fleet.resources)), on="stage")
        .select((seconds * pl.col(resource.name)).sum().alias(resource.name) for resource in fleet.resources)
        .collect(engine="streaming")
    )
    capacity = fleet.capacity[:, fleet.machines["present"].to_numpy()].sum(axis=1, dtype=np.float64)
    return {
        resource.name: 0.0 if not total else total / end / has if has else math.inf
        for resource, total, has in zip(fleet.resources, asked.row(0), capacity.tolist(), strict=True)
    }
