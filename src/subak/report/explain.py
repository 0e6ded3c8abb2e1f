"""Explains in words why a task of a run is in its state, and what it still lacks."""
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from subak.errors import InputError
from subak.experiment.inputs import load_inputs
from subak.experiment.scenario import read_scenario
from subak.fleet.locality import LEVELS
from subak.measures.run_folders import load_runs
from subak.measures.runs import Run
from subak.report.number_text import count_text, counted, seconds_text
from subak.resources import Resource, amount_words
from subak.simulator.endings import STAGE_GIVEN_UP
from subak.tables import read_table
from subak.workload.table import Workload

PARTS = {"framework_queueing": "in queues of masters", "processing": "in service at masters",
         "worker_queueing": "at workers", "communication": "on the network"}
NEAR = dict(zip(LEVELS, ("on the machine where it ran", "in the rack of the machine where it ran",
                         "in another rack than the machine where it ran"), strict=True))
TOO_LITTLE = "too little free"
TASK = re.compile(r"\d{1,18}(/\d{1,18})?", re.ASCII)
JOB_IS = "job="
LISTED_MAX = 6  # clusters or stages named in one line


@dataclass(frozen=True)
class Explanation:
    """What is said of a task: a title, what it is, how it stands, and why."""

    title: str
    facts: list[tuple[str, str]]
    why: list[str]


def explain(folder: Path, task: str) -> Explanation:
    """Explain *task*, ``JOB/INDEX`` by rows or by the job's id, or a row number, of the run in *folder*.

    Raises InputError for a folder that is no run, or a task that it does not have.
    """
    run = _one_run(folder)
    workload = _workload(folder)
    row, values = _find(run, task if TASK.fullmatch(task) and not _is_id(run, workload, task) else _by_name(
        workload, task))
    facts = [*_asked(workload, row, values), *_stood(values)]
    status = values["status"].replace("_", " ").lower()
    title = f"{run.label}: task {values['job']}/{values['index']} (row {row}) is {status}"
    return Explanation(title, facts, list(_why(run, row, values, workload)))


def _is_id(run: Run, workload: Workload | None, task: str) -> bool:
    """Whether a number is the id of a job, and of no row: logs count their jobs from far above."""
    job, separator, _ = task.partition("/")
    rows = pl.col("job").max() + 1 if separator else pl.len()
    beyond = int(job) >= (run.tasks().select(rows).collect().item() or 0)
    return beyond and workload is not None and job in workload.jobs["job"]


def _one_run(folder: Path) -> Run:
    runs = load_runs(folder)
    if len(runs) == 1 and runs[0].folder == folder:
        return runs[0]
    names = ", ".join(str(run.folder) for run in runs[:LISTED_MAX]) + (" ..." if len(runs) > LISTED_MAX else "")
    raise InputError(f"{folder}: holds several runs; name one of them: {names}")


def _find(run: Run, task: str) -> tuple[int, dict[str, Any]]:
    """Return a task's row number and its columns."""
    job, separator, index = task.partition("/")
    table = run.tasks().with_row_index("row")
    wanted = (pl.col("job") == int(job)) & (pl.col("index") == int(index)) if separator else pl.col("row") == int(job)
    found = table.filter(wanted).collect()
    if not found.is_empty():
        values = found.row(0, named=True)
        return int(values.pop("row")), values
    if separator:
        indices = table.filter(pl.col("job") == int(job)).select("index").collect()["index"].sort().to_list()
        if indices:
            raise InputError(f"task: job {job} has no task {index}; its indices are {indices[0]} to {indices[-1]}")
        last = table.select(pl.col("job").max()).collect().item()
        raise InputError(f"task: there is no job {job}; jobs are 0 to {last}, rows of jobs.parquet")
    count = table.select(pl.len()).collect().item()
    raise InputError(f"task: there is no row {job}; rows are 0 to {count - 1}")


def _by_name(workload: Workload | None, task: str) -> str:
    """Return ``JOB/INDEX`` by rows for a task that is named by its job's id, as in the trace: NAME or NAME/INDEX.

    An id that is the number of a row, too, follows ``job=``, since it would be read as a row.
    """
    if workload is None:
        raise InputError(f"task: must be JOB/INDEX, such as 17/0, or a row number, such as 1234; not {task!r}, since "
                         "the workload, which has the jobs' names, has gone or changed")
    named = task.removeprefix(JOB_IS)
    name, separator, index = named.rpartition("/")
    ids = workload.jobs["job"]
    for wanted, number in ((named, None), *([(name, index)] if separator and index.isdecimal() else [])):
        rows = (ids == wanted).arg_true()
        if len(rows):
            return f"{rows[0]}/{_only_task(workload, int(rows[0]), wanted) if number is None else number}"
    raise InputError(f"task: must be a row number, such as 1234, JOB/INDEX, such as 17/0, or a job's name, with its "
                     f"index or alone; there is no job {named!r}")


def _only_task(workload: Workload, job: int, name: str) -> int:
    """Return the index of a job's task. Raises InputError where it has several."""
    stages = (workload.stages["job"] == job).arg_true()
    indices = workload.tasks.filter(pl.col("stage").is_in(stages.implode()))["index"].sort()
    if len(indices) > 1:
        raise InputError(f"task: job {name} has {len(indices):,} tasks: name one, from {name}/{indices[0]} to "
                         f"{name}/{indices[-1]}")
    return int(indices[0])


def _workload(folder: Path) -> Workload | None:
    """Return the workload that the run was made of, None where it has gone or changed since."""
    try:
        return load_inputs(read_scenario(folder / "scenario.toml"))[0]
    except InputError:
        return None


def _asked(workload: Workload | None, row: int, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Say what a task asked."""
    yield "Queue", str(values["queue"])
    if workload is None:
        yield "Asked", "not known: the workload of the run is not there any more, or has changed"
        return
    stage = _stage(workload, row)
    yield "Asked", ", ".join(f"{resource.name} {amount_words(resource, stage[resource.name])}"
                             for resource in workload.resources if stage[resource.name])
    if stage["constraints"]:
        yield "Constraints", " and ".join(f"{each['attribute']} {each['operator']} {each['value'] or '(none)'}"
                                          for each in stage["constraints"])
    if stage.get("gang") and _stage_size(workload, row) > 1:
        yield "Gang", f"one of {count_text(_stage_size(workload, row))} tasks that start together, under a scheduler " \
                      "that supports it (megha, central, an order with a placement such as first-fit)"


def _stage(workload: Workload, row: int) -> dict[str, Any]:
    return workload.stages.row(int(workload.tasks["stage"][row]), named=True)


def _stage_size(workload: Workload, row: int) -> int:
    return int((workload.tasks["stage"] == workload.tasks["stage"][row]).sum())


def _stood(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Say when and where a task was what."""
    yield "Arrived", _instant(values["arrival"])
    if values["ready"] is not None and values["ready"] != values["arrival"]:
        yield "Ready", _instant(values["ready"])
    if values["start"] is not None:
        where = "a machine that the log does not name" if values["machine"] is None else f"machine {values['machine']}"
        yield "Started", f"{_instant(values['start'])} on {where}" + (
            f" of cluster {values['local_master']}" if values.get("local_master") is not None else "")
    if values["finish"] is not None:
        yield "Finished", _instant(values["finish"])
    if values.get("outcome") is not None:
        code = "" if values["exit_code"] is None else f", exit code {values['exit_code']}"
        yield "Outcome", f"{values['outcome'].replace('_', ' ').lower()}{code}"
    yield "Run time", seconds_text(values["run_time"]) if values["run_time"] < float("inf") else "until it is stopped"
    if values.get("execution_delay"):
        yield "Execution delay", f"{seconds_text(values['execution_delay'])}, for sharing its machine's CPU with others"
    if values.get("locality"):
        yield "Input", NEAR[values["locality"]]
    if "global_master" in values:
        yield "Global master", str(values["global_master"])
    yield "Attempts", _attempts(values)


def _instant(seconds: float) -> str:
    return f"at {seconds:,.6g} s"


def _attempts(values: dict[str, Any]) -> str:
    """Return how often a task was started, refused, placed elsewhere, preempted, and failed."""
    counted = {"refused": values.get("refusals"), "on another master's partition": values.get("repartitions"),
               "preempted": values.get("preemptions"), "failed or ran too long": values.get("attempts_failed")}
    more = [f"{count} {what}" for what, count in counted.items() if count]
    return "; ".join([f"{values['attempts'] or 'none'} started", *more])


def _why(run: Run, row: int, values: dict[str, Any], workload: Workload | None) -> Iterator[str]:
    """Say why a task stands as it does."""
    if values["status"] in ("RUNNING", "FINISHED"):
        yield from _allocation(values)
    else:
        reason = values["reason"] or "no reason is written down"
        yield f"{reason[0].upper()}{reason[1:]}."
    if workload is not None and (values["status"] == "BLOCKED" or values["reason"] == STAGE_GIVEN_UP):
        yield from _blocked(run, row, workload)
    if values["status"] == "WAITING":
        yield from _partitions(run, row)


def _allocation(values: dict[str, Any]) -> Iterator[str]:
    """Say what the wait before the last start was spent on."""
    whole = values["start"] - values["ready"]
    if whole <= 0:
        yield "It started at once."
        return
    parts = [f"{seconds_text(values[name])} {where}" for name, where in PARTS.items() if values.get(name)]
    yield f"It started {seconds_text(whole)} after it was ready: {', '.join(parts)}."
    if values["attempts"] > 1:
        yield (f"It was started {values['attempts']} times; attempts.parquet says when the others were lost, and the "
               "time they ran counts as waiting in queues here.")


def _blocked(run: Run, row: int, workload: Workload) -> Iterator[str]:
    """Say which stages a task still waits for, and what became of their tasks."""
    table = run.tasks().select(pl.col("status").cast(pl.String)).collect()["status"]
    waits = "It waits for" if table[row] == "BLOCKED" else "It waited for"
    for stage in _stage(workload, row)["depends_on"][:LISTED_MAX]:
        standing = table.filter(workload.tasks["stage"] == stage).value_counts(sort=True)
        counts = ", ".join(f"{count_text(count)} {str(status).lower()}" for status, count in standing.iter_rows())
        yield f"{waits} stage {workload.stages['name'][stage]}: {counts}."


def _partitions(run: Run, row: int) -> Iterator[str]:
    """Say what each partition lacked for a waiting task, partitions that lack the same together."""
    if not (run.folder / "waiting.parquet").is_file():
        return
    waiting = read_table(run.folder / "waiting.parquet").filter(pl.col("task") == row)
    if waiting.is_empty():
        return
    task = waiting.row(0, named=True)
    if task["last_refused"] is not None:
        yield f"Its last request failed: {task['last_refused']}."
    if task["share_used"] is not None:
        yield f"Its queue holds {100 * task['share_used']:.3g} % and is entitled to {100 * task['share']:.3g} %."
    views = read_table(run.folder / "views.parquet").filter(
        (pl.col("global_master") == task["global_master"]) & (pl.col("shape") == task["shape"]))
    if views.is_empty():
        yield "What its global master saw was not written down: only that of the most frequent shapes is."
        return
    yield (f"With it, {counted(views['tasks'][0], 'task')} of its kind at global master {task['global_master']} "
           "waited. What each partition lacked, and how old that master's view of it was:")
    yield from _lacks(views, run.summary.resources, task)


def _lacks(views: pl.DataFrame, resources: tuple[Resource, ...], task: dict[str, Any]) -> Iterator[str]:
    """Return a line for each thing that partitions lack, those of most partitions first."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in views.iter_rows(named=True):
        groups.setdefault(_lack(row, resources, task), []).append(row)
    for lack, rows in sorted(groups.items(), key=lambda each: -len(each[1])):
        own = [row["local_master"] for row in rows if row["own"]]
        others = [row["local_master"] for row in rows if not row["own"]]
        where = [f"own in {_listed(own)}"] if own else []
        if others:
            where.append(f"{count_text(len(others))} of other masters in {_listed(list(dict.fromkeys(others)))}")
        most = _most_free(rows, resources, task) if lack.startswith(TOO_LITTLE) else ""
        yield f"- {lack}{most}: {counted(len(rows), 'partition')} ({'; '.join([*where, _age(rows)])})"


def _lack(row: dict[str, Any], resources: tuple[Resource, ...], task: dict[str, Any]) -> str:
    """Say what one partition lacks."""
    if row["machines"] == 0:
        return "no machine that meets its constraints is there"
    if row["fit_in_truth"] > 0:
        shown = ", and the view shows one" if row["fit_in_view"] > 0 else ", which the view does not show yet"
        return "a machine could take it" + shown
    short = _short(row, resources, task)
    behind = "; the view still shows room" if row["fit_in_view"] > 0 else ""
    return (f"{TOO_LITTLE} {' and '.join(short)}" if short else "no machine has all it asks free together") + behind


def _short(row: dict[str, Any], resources: tuple[Resource, ...], task: dict[str, Any]) -> list[str]:
    """Return the resources of which no machine of a partition has enough free."""
    return [resource.name for resource in resources if row[f"free_{resource.name}"] < task[f"asked_{resource.name}"]]


def _most_free(rows: list[dict[str, Any]], resources: tuple[Resource, ...], task: dict[str, Any]) -> str:
    """Return the most that is free on one machine of several partitions that lack the same."""
    texts = [f"{name} {task[f'asked_{name}']:g} asked, at most {max(row[f'free_{name}'] for row in rows):g} free"
             for name in _short(rows[0], resources, task)]
    return f" ({'; '.join(texts)})"


def _age(rows: list[dict[str, Any]]) -> str:
    """Say how old the views of some partitions are."""
    ages = [row["view_age"] for row in rows if row["view_age"] is not None]
    if not ages:
        return "never seen"
    least, most = seconds_text(min(ages)), seconds_text(max(ages))
    return f"view {least} old" if least == most else f"views {least} to {most} old"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED_MAX} more" if len(names) > LISTED_MAX else ""
    return f"cluster{'s' if len(names) > 1 else ''} {', '.join(names[:LISTED_MAX])}{more}"

