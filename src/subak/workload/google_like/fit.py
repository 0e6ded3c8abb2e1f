"""Fits every parameter of the Google-like model to a workload, with intervals and assumptions.

The rules:
- Tasks that were there when the trace began (at its first instant, with a silence of 100 mean gaps after it) are no
  arrivals: their gaps and run times are left out.
- Gaps of 0 (tasks submitted together) count in the mean gap, so that the rate is kept, and not in the shape.
- A job whose tasks do not come together, one after the other (the generator's own groups of alike tasks are such), is
  no submission: then each task is an arrival of its own, and there is no model of jobs.
- With jobs of several tasks the shape is that of the gaps between jobs, which are what the generator then draws.
- A task that was still running is right-censored. A reader cannot know its kind and calls it a service: where all
  such tasks are services, each is taken as of either kind (estimates.fit_two_log_normals).
- Attempts that failed, were evicted or lost do not tell how long they would have run: they are left out.
"""
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import polars as pl
import scipy  # its parts load when they are first used

from subak.errors import InputError
from subak.workload.google_like import small_models
from subak.workload.google_like.estimates import (
    Ended,
    Estimate,
    LogNormal,
    Weighted,
    ended,
    fit_gap_shape,
    fit_log_normal,
    fit_two_log_normals,
    last_seen,
    mean_of,
    ratio_of,
    share_of,
)
from subak.workload.google_like.goodness import VALUES_SEEN_MAX, Comparison, Numbers, compare
from subak.workload.google_like.parameters import Makespans, Parameters
from subak.workload.table import Workload

SILENCE = 100  # mean gaps
TELLING_MIN = 100  # tasks after the silence, fewer do not tell a mean gap
CUT_SHORT = ("FAIL", "EVICT", "LOST")
Censored = Literal["account", "ignore"]
KINDS = ("TASK", "SERVICE")
GAPS, JOB_GAPS = "gaps between tasks", "gaps between jobs"
MAKESPANS = {"TASK": "makespans of tasks", "SERVICE": "makespans of services"}
WRITTEN = "written to the file"  # the law the generator will draw, beside the five


class Fit(msgspec.Struct, frozen=True):
    """What was estimated, how well it fits, and what was assumed."""

    parameters: Parameters
    estimates: dict[str, Estimate]
    comparisons: tuple[Comparison, ...]
    job_sizes: tuple[Numbers, Numbers | None]  # tasks per job: data, model
    notes: tuple[str, ...]


class Samples(NamedTuple):
    """The numbers that the laws are fitted to."""

    gaps: np.ndarray  # seconds, between tasks, zeros included
    job_gaps: np.ndarray  # seconds, between the first tasks of jobs, zeros included
    sizes: np.ndarray  # tasks of each job
    submissions: pl.DataFrame  # job, arrival, size, proper
    ended: dict[str, np.ndarray]  # seconds, positive run times by kind
    running: dict[str, np.ndarray]  # seconds so far, positive, by kind


class Lengths(NamedTuple):
    """The laws of makespans; None for a kind that has too few."""

    type: Estimate
    laws: dict[str, LogNormal | None]


def fit(workload: Workload, request_classes: int = 64, censored: Censored = "account") -> Fit:
    """Fit the Google-like model to *workload*, with at most *request_classes* joint requests.

    With *censored* "ignore" what was still running is left out, as the paper does, instead of accounted for.
    Raises InputError when there are too few tasks, all arrive at once, or their run times are 0 or all the same.
    """
    notes: list[str] = []
    tasks = _arrivals(_described(workload), notes)
    samples = _samples(tasks, notes)
    if censored == "ignore":
        samples = _without_running(samples, notes)
    jobs = small_models.fit_jobs(samples.sizes)
    drawn = samples.gaps if jobs.jobs is None else samples.job_gaps
    shape = _shape(drawn, notes)
    lengths = _lengths(tasks, samples, notes)
    parameters, estimates = _parameters(workload, tasks, samples, jobs, request_classes)
    estimates |= {"gap_shape": shape, "type": lengths.type} | _law_estimates(lengths)
    parameters = msgspec.structs.replace(
        parameters, gap_shape=shape.value, type=lengths.type.value, **_makespans(lengths))
    if parameters.diurnal is not None:
        notes.append(_day_note(estimates["diurnal.amplitude"].value))
    return Fit(parameters, estimates, _comparisons(samples, parameters, lengths), (jobs.data, jobs.model),
               tuple(notes))


def _day_note(amplitude: float) -> str:
    least = small_models.AMPLITUDE_MAX
    strong = f"; the daily wave is stronger than a sine with a rate above 0 can be, so {least} is written"
    return ("the gaps' shape is that of all gaps, by day and by night, so that part of the daily wave is in it"
            + (strong if amplitude > least else ""))


def _described(workload: Workload) -> pl.DataFrame:
    """Return the tasks with job, kind, priority, class and amounts (units) of their stage."""
    if len(workload.tasks) < 3:
        raise InputError(f"workload {workload.provenance.name}: a fit needs 3 tasks or more, not {len(workload.tasks)}")
    names = [resource.name for resource in workload.resources]
    names += ["scheduling_class"] if "scheduling_class" in workload.stages.columns else []
    return workload.tasks.with_columns(
        workload.stages.select(pl.col("job", "kind", "priority", *names).gather(workload.tasks["stage"])))


def leave_standing_out(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks without those that were there when the trace began; all of them where there is no silence."""
    first = tasks["arrival"][0]
    rest = tasks.filter(pl.col("arrival") > first)
    if len(rest) < TELLING_MIN:
        return tasks
    mean = (rest["arrival"][-1] - rest["arrival"][0]) / len(rest)
    return rest if rest["arrival"][0] - first > SILENCE * mean else tasks


def _arrivals(tasks: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    first, last = tasks["arrival"][0], tasks["arrival"][-1]
    if first == last:
        raise InputError(f"all {len(tasks)} tasks arrive at once, at {first:g} s: there are no gaps to fit")
    rest = leave_standing_out(tasks)
    if len(rest) < len(tasks):
        silence = rest["arrival"][0] - first
        notes.append(f"{len(tasks) - len(rest):,} tasks come at once, {silence:,.0f} s before all others, as those do "
                     "that were there when a trace began: left out of gaps, kinds and makespans, since when they began "
                     "is not known")
    return rest


def _submissions(tasks: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Return what is submitted at once, in order of arrival: job, arrival, size, proper (how many are of kind TASK)."""
    proper = (pl.col("kind") == "TASK").cast(pl.Int64).alias("proper")
    if come_together(tasks):
        return tasks.group_by("job", maintain_order=True).agg(
            pl.col("arrival").first(), pl.len().cast(pl.Int64).alias("size"), proper.sum())
    notes.append("the tasks of a job do not come together: each is an arrival of its own, and jobs are not modelled")
    return tasks.select("job", "arrival", pl.lit(1, pl.Int64).alias("size"), proper)


def come_together(tasks: pl.DataFrame) -> bool:
    """Return whether jobs are submissions: most of their tasks follow one of the same job, and much sooner than others.

    *tasks* are in order of arrival. One task a job is a submission too.
    """
    job, gaps = tasks["job"].to_numpy(), np.diff(tasks["arrival"].to_numpy())
    same, others = job[1:] == job[:-1], len(tasks) - tasks["job"].n_unique()
    soon = float(gaps[same].sum()) <= 0.5 * float(gaps.sum()) * float(same.mean())
    return others == 0 or (float(same.sum()) >= 0.5 * others and soon)


def _samples(tasks: pl.DataFrame, notes: list[str]) -> Samples:
    by_job = _submissions(tasks, notes)
    useful = _useful(tasks, notes)
    censored = pl.col("outcome").eq("CENSORED").fill_null(False) if "outcome" in tasks.columns else pl.lit(False)
    parts = {kind: useful.filter(kind=kind) for kind in KINDS}
    return Samples(
        np.diff(tasks["arrival"].to_numpy()), np.diff(by_job["arrival"].to_numpy()), by_job["size"].to_numpy(),
        by_job,
        {kind: part.filter(~censored)["run_time"].to_numpy() for kind, part in parts.items()},
        {kind: part.filter(censored)["run_time"].to_numpy() for kind, part in parts.items()},
    )


def _without_running(samples: Samples, notes: list[str]) -> Samples:
    count = sum(map(len, samples.running.values()))
    if count:
        notes.append(f"{count:,} were still running: left out of the makespans, as asked, which shortens them")
    return samples._replace(running={kind: np.empty(0) for kind in KINDS})


def _useful(tasks: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Leave out run times that say nothing of the makespan, and count them."""
    run_time = pl.col("run_time")
    rules = {"have run time 0, which a log-normal law cannot hold": run_time == 0,
             "never end, and were seen running for no stated time": run_time.is_infinite()}
    if "outcome" in tasks.columns:
        rules["failed, were evicted or were lost"] = pl.col("outcome").is_in(CUT_SHORT).fill_null(False)
        killed = pl.col("outcome").eq("KILL") & pl.col("kind").eq("TASK")
        rules["are tasks that were killed"] = killed.fill_null(False)
    else:
        notes.append("the workload does not say how tasks ended: none is known to be censored")
    for reason, rule in rules.items():
        left = tasks.filter(~rule)
        if len(left) < len(tasks):
            notes.append(f"{len(tasks) - len(left):,} {reason}: left out of the makespans")
        tasks = left
    return tasks


def _shape(gaps: np.ndarray, notes: list[str]) -> Estimate:
    positive = gaps[gaps > 0]
    if len(positive) < len(gaps):
        notes.append(f"{len(gaps) - len(positive):,} of {len(gaps):,} gaps are 0 (submitted together): they count in "
                     "the mean and not in the shape")
    if len(positive) < 2:
        raise InputError(f"a Pareto law of gaps needs 2 gaps above 0, there are {len(positive)}")
    shape = fit_gap_shape(positive)
    if shape.low is None:
        notes.append(f"the gaps' shape is at the end of its range ({shape.value:g}): "
                     + ("their tail is heavier than any Pareto law with a mean" if shape.value < 2 else
                        "they are exponential, or lighter still"))
    return shape


def _lengths(tasks: pl.DataFrame, samples: Samples, notes: list[str]) -> Lengths:
    """Fit makespans and the share of tasks; kinds of what still runs are told apart where the data allow."""
    sums = {kind: _sums(samples.ended[kind], kind, notes) for kind in KINDS}
    if not any(sums.values()):
        raise InputError("makespans: no kind has 2 tasks that ended with a run time above 0")
    running = {kind: last_seen(samples.running[kind]) for kind in KINDS}
    counted = tasks if any(map(len, samples.running.values())) else _ended_only(tasks)
    known = share_of(int((counted["kind"] == "TASK").sum()), len(counted))
    by_job = samples.submissions
    if len(counted) == len(tasks) and len(by_job) < len(tasks):  # the tasks of a job are of one kind
        known = ratio_of(by_job["proper"].to_numpy(), by_job["size"].to_numpy())
    first, second = sums["TASK"], sums["SERVICE"]
    if first and second and len(samples.running["SERVICE"]) and not len(samples.running["TASK"]):
        return _either_kind(tasks, first, second, running["SERVICE"], notes)
    return Lengths(known, {kind: None if (each := sums[kind]) is None else fit_log_normal(each, running[kind])
                           for kind in KINDS})


def _ended_only(tasks: pl.DataFrame) -> pl.DataFrame:
    """Leave out what was still running: a reader calls it a service."""
    if "outcome" not in tasks.columns:
        return tasks
    kept = tasks.filter(pl.col("outcome").ne_missing("CENSORED"))
    return tasks if kept.is_empty() else kept


def _either_kind(tasks: pl.DataFrame, first: Ended, second: Ended, running: Weighted, notes: list[str]) -> Lengths:
    share, tasks_law, services_law = fit_two_log_normals(first, second, running)
    count = float(running.weights.sum())
    notes.append(f"{count:,.0f} were still running, all called services: right-censored, of either kind")
    failed = tasks.filter(outcome="FAIL")
    weight = len(failed) / (len(failed) + first.size + second.size + count)
    own = float((failed["kind"] == "TASK").sum()) / max(len(failed), 1)  # failures say their kind
    low, high = share.low or 0.0, share.high or 1.0
    moved = [(1 - weight) * each + weight * own for each in (share.value, low, high)]
    return Lengths(Estimate(*moved), {"TASK": tasks_law, "SERVICE": services_law})


def _sums(run_times: np.ndarray, kind: str, notes: list[str]) -> Ended | None:
    if len(run_times) < 2:
        notes.append(f"{MAKESPANS[kind]}: {len(run_times)} ended, too few to fit; the paper's values stand in the file")
        return None
    return ended(run_times, MAKESPANS[kind])


def _parameters(workload: Workload, tasks: pl.DataFrame, samples: Samples, jobs: small_models.JobFit,
                request_classes: int) -> tuple[Parameters, dict[str, Estimate]]:
    submitted = samples.submissions
    constraints, rate = small_models.fit_constraints(workload, grouped=len(submitted) > tasks["job"].n_unique())
    queues, exponent = small_models.fit_queues(workload.jobs, submitted["job"])
    diurnal, amplitude = small_models.fit_diurnal(submitted["arrival"].to_numpy())
    stages, staged = small_models.fit_stages(workload)
    together = jobs.jobs is not None  # the generator makes stages and gangs of jobs only
    failures, shares = small_models.fit_failures(tasks)
    rates = {kind: small_models.fit_priority_rate(tasks, kind) for kind in KINDS
             if small_models.is_continuous(tasks)}
    found = {"task_priority_rate": rates.get("TASK"), "service_priority_rate": rates.get("SERVICE")}
    rates_known = {name: rate for name, rate in found.items() if rate is not None}
    dynamism = _dynamism(samples)
    estimates = {"dynamism": dynamism, "jobs.single": jobs.single, "constraints.rate": rate,
                 "queues.exponent": exponent, "stages.share": staged} | rates_known
    estimates |= {f"failures.{name}": share for name, share in shares.items()}
    estimates |= {} if amplitude is None else {"diurnal.amplitude": amplitude}
    return Parameters(
        name=f"{workload.provenance.name}-like", dynamism=dynamism.value, resources=workload.resources,
        requests=small_models.fit_requests(tasks, workload.resources, request_classes), jobs=jobs.jobs,
        priorities=small_models.fit_priorities(tasks), constraints=constraints, queues=queues, diurnal=diurnal,
        stages=stages if together else None,
        gangs=small_models.fit_gangs(workload) if together else 0.0, failures=failures,
        task_priority_rate=_rate(found["task_priority_rate"], 6.0),
        service_priority_rate=_rate(found["service_priority_rate"], 3.0),
    ), estimates


def _dynamism(samples: Samples) -> Estimate:
    """Return the mean gap between tasks; with jobs its interval is that of a ratio over the jobs."""
    mean = mean_of(samples.gaps)
    if len(samples.sizes) == len(samples.gaps) + 1:
        return mean
    over = ratio_of(samples.job_gaps, samples.sizes[:-1])
    spread = (over.high or 0.0) - over.value
    return Estimate(mean.value, mean.value - spread, mean.value + spread)


def _rate(found: Estimate | None, otherwise: float) -> float:
    return otherwise if found is None else found.value


def _law_estimates(lengths: Lengths) -> dict[str, Estimate]:
    found: dict[str, Estimate] = {}
    for part, kind in (("tasks", "TASK"), ("services", "SERVICE")):
        law = lengths.laws[kind]
        if law is not None:
            found |= {f"{part}.{name}": getattr(law, name) for name in ("mass", "disparity", "mu", "sigma")}
    return found


def _makespans(lengths: Lengths) -> dict[str, Makespans]:
    found: dict[str, Makespans] = {}
    for part, kind in (("tasks", "TASK"), ("services", "SERVICE")):
        law = lengths.laws[kind]
        if law is not None:
            found[part] = law.makespans
    return found


def _comparisons(samples: Samples, parameters: Parameters, lengths: Lengths) -> tuple[Comparison, ...]:
    """Compare positive gaps and the makespans that ended with the laws, each fitted to just these."""
    gap_law = _gap_law(parameters, float(samples.gaps.mean()))
    job_law = _gap_law(parameters, float(samples.job_gaps.mean())) if len(samples.job_gaps) else None
    written: dict[str, tuple[np.ndarray, Any]] = {GAPS: (samples.gaps, None if parameters.jobs else gap_law)}
    if parameters.jobs is not None:
        written[JOB_GAPS] = (samples.job_gaps, job_law)
    for kind, name in MAKESPANS.items():
        law = lengths.laws[kind]
        if law is not None:
            frozen = scipy.stats.lognorm(s=law.sigma.value, loc=0.0, scale=float(np.exp(law.mu.value)))
            written[name] = (samples.ended[kind], frozen)
    return tuple(compare(name, values[values > 0], {} if law is None else {WRITTEN: law})
                 for name, (values, law) in written.items() if len(np.unique(values[values > 0])) > 1)


def _gap_law(parameters: Parameters, mean: float) -> Any:
    return scipy.stats.lomax(c=parameters.gap_shape, loc=0.0, scale=(parameters.gap_shape - 1) * mean)


SUBSAMPLE_NOTE = (f"Weibull, gamma and Pareto from 0 are fitted to {VALUES_SEEN_MAX:,} values evenly spaced by rank "
                  "where there are more; every distance is over all values")
