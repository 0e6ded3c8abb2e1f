"""Describes a workload in plain values for tables, pages and JSON."""
import msgspec
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.demand import span_end
from subak.workload.table import SLURM_JOBS, Workload, slurm_jobs

OF_JOB = "tasks of the job"  # a column's name that no resource can have
LEVELS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


class Quantiles(msgspec.Struct, frozen=True):
    """A distribution in a few numbers."""

    count: int
    mean: float
    values: list[float]  # at LEVELS


class LargeJob(msgspec.Struct, frozen=True):
    """A job among those with the most tasks."""

    job: str
    queue: str
    tasks: int
    arrival: float  # seconds, of its first task
    requested: dict[str, float]  # by all its tasks at once, in ``resource.of``
    run_time_mean: float | None  # seconds; None when a task has no end


class WorkloadDescription(msgspec.Struct, frozen=True):
    """What a workload holds. Times are seconds, amounts in ``resource.of``."""

    name: str
    provenance: Provenance
    resources: tuple[Resource, ...]
    counts: dict[str, int]
    parts: dict[str, dict[str, int]]  # tasks by kind, priority and outcome
    first_arrival: float
    last_arrival: float
    last_end: float  # if every task started on arrival, endless ones aside
    quantiles: dict[str, Quantiles]
    constraints: dict[str, int]  # tasks that ask for each constraint, the most frequent first
    largest_jobs: list[LargeJob]


def describe(workload: Workload, largest: int = 10) -> WorkloadDescription:
    """Return the description of a workload with *largest* of its largest jobs. Raises InputError if it has no task."""
    if workload.tasks.is_empty():
        raise InputError(f"workload {workload.provenance.name}: has no tasks")
    tasks = workload.tasks.with_columns(workload.stages.select(
        pl.col("job", "kind", "priority", *_names(workload)).gather(workload.tasks["stage"])))
    by_job = _by_job(tasks, workload)
    return WorkloadDescription(
        name=workload.provenance.name,
        provenance=workload.provenance,
        resources=workload.resources,
        counts=_counts(workload, tasks),
        parts={name: _parts(tasks, name) for name in ("kind", "priority", "outcome") if name in tasks.columns},
        first_arrival=float(tasks["arrival"][0]),
        last_arrival=float(tasks["arrival"][-1]),
        last_end=span_end(workload),
        quantiles=_quantiles(workload, tasks, by_job),
        constraints=_constraints(workload, tasks),
        largest_jobs=_largest(workload, by_job, largest),
    )


def _names(workload: Workload) -> list[str]:
    return [resource.name for resource in workload.resources]


def _counts(workload: Workload, tasks: pl.DataFrame) -> dict[str, int]:
    jobs = workload.jobs
    constrained = workload.stages["constraints"].list.len().fill_null(0).gather(tasks["stage"]) > 0
    of_slurm = slurm_jobs(workload.gang_sizes(), len(tasks))
    together = {SLURM_JOBS: of_slurm} if of_slurm != len(tasks) else {}
    return {
        "jobs": len(jobs), **together, "stages": len(workload.stages), "tasks": len(tasks),
        "queues": jobs["queue"].n_unique(), "users": jobs["user"].n_unique(),
        "tasks with constraints": int(constrained.sum()),
        "stages that wait for others": int((workload.stages["depends_on"].list.len().fill_null(0) > 0).sum()),
        "tasks without an end": int(tasks["run_time"].is_infinite().sum()),
    }


def _parts(tasks: pl.DataFrame, name: str) -> dict[str, int]:
    counts = tasks.group_by(name).len().sort(name, descending=name == "priority", nulls_last=True)
    return {"unknown" if value is None else str(value): count for value, count in counts.rows()}


def _by_job(tasks: pl.DataFrame, workload: Workload) -> pl.DataFrame:
    """Return job, tasks, arrival, run_time and summed amounts (units), in order of arrival."""
    amounts = [pl.col(name).cast(pl.Int64).sum() for name in _names(workload)]
    return tasks.group_by("job", maintain_order=True).agg(
        pl.len().alias(OF_JOB), pl.col("arrival").first(), pl.col("run_time").mean(), *amounts)


def _quantiles(workload: Workload, tasks: pl.DataFrame, by_job: pl.DataFrame) -> dict[str, Quantiles]:
    found = {
        "time between jobs (s)": np.diff(by_job["arrival"].to_numpy()),
        "time between tasks (s)": np.diff(tasks["arrival"].to_numpy()),
        "run time (s)": tasks.filter(pl.col("run_time").is_finite())["run_time"].to_numpy(),
        "tasks per job": by_job[OF_JOB].to_numpy(),
    }
    for resource in workload.resources:
        found[f"{resource.name} per task ({resource.of})"] = tasks[resource.name].to_numpy() * resource.unit
    if "estimate" in tasks.columns:
        found["estimate (s)"] = tasks["estimate"].filter(tasks["estimate"].is_finite()).to_numpy()
    return {name: _distribution(values) for name, values in found.items() if len(values)}


def _distribution(values: np.ndarray) -> Quantiles:
    return Quantiles(len(values), float(values.mean()), np.quantile(values, LEVELS).tolist())


def _constraints(workload: Workload, tasks: pl.DataFrame) -> dict[str, int]:
    per_stage = tasks.group_by("stage").len()
    used = (
        workload.stages.select("constraints").with_row_index("stage")
        .explode("constraints").drop_nulls("constraints")
        .join(per_stage, on="stage")
        .group_by("constraints").agg(pl.col("len").sum())
        .with_columns(pl.col("constraints").struct.unnest())
        .sort("len", "attribute", "operator", "value", descending=[True, False, False, False])
    )
    return {f"{attribute} {operator} {value or '(none)'}": count for attribute, operator, value, count
            in used.select("attribute", "operator", "value", "len").rows()}


def _largest(workload: Workload, by_job: pl.DataFrame, largest: int) -> list[LargeJob]:
    rows = by_job.sort(OF_JOB, descending=True, maintain_order=True).head(largest)
    return [
        LargeJob(
            job=workload.jobs["job"][row["job"]],
            queue=workload.jobs["queue"][row["job"]],
            tasks=row[OF_JOB],
            arrival=row["arrival"],
            requested={resource.name: row[resource.name] * resource.unit for resource in workload.resources},
            run_time_mean=row["run_time"] if np.isfinite(row["run_time"]) else None,
        )
        for row in rows.iter_rows(named=True)
    ]
