"""`subak list`, `subak describe`, `subak history`: show the state and history of jobs and tasks."""
import builtins
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer
from msgspec import structs

from subak.cli.live.commands import arguments_by_id, facts_of
from subak.cli.live.named import job_or_task, named
from subak.cli.live.options import (
    ANY,
    JOB,
    MACHINE,
    ClientOption,
    LimitOption,
    Output,
    OutputOption,
    checked,
    opened,
    time_of,
)
from subak.cli.live.scripts import is_script
from subak.cli.live.show import (
    UNFINISHED,
    amounts_text,
    counts_text,
    how_larger,
    of_counts,
    remark,
    short_time_text,
    show,
    show_facts,
    show_table,
    standing,
    time_text,
    took_text,
    used_text,
    why_full,
    zone_text,
)
from subak.errors import InputError
from subak.live.api.errors import NotFoundError
from subak.live.api.models import ID_PATTERN, JOB_PATTERN, NAME_PATTERN, Event, JobState, JobView, MachineView, TaskView
from subak.report.console import Console, echo
from subak.report.number_text import NOTHING, count_text, counted

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client
    from subak.live.client.client import Found

TASKS_SHOWN = 20
ARGUMENTS = "arguments"
ARGUMENTS_SIZE, NARROW, NARROW_SIZE = 40, 120, 20  # characters of arguments in a list; in a terminal of fewer columns
BEGAN, ATTEMPT_STOPPED = "began", "attempt stopped"  # words of events
Standing = Literal[JobState, "finished", "failed", "cancelled", "timed-out", "lost"]
STATES = get_args(JobState)


def list(  # the name of the command
    names: Annotated[builtins.list[str] | None, typer.Argument(
        metavar="[JOB...]", show_default=False, help="Only jobs of these names, or ids such as g0-17.")] = None,
    queue: Annotated[str, typer.Option("--queue", metavar="PATH", show_default=False,
                                       help="Only jobs of this queue, and of those below it.")] = "",
    state: Annotated[Standing | None, typer.Option(
        "--state", metavar="STATE", show_default=False, case_sensitive=False,
        help="Only jobs that are waiting, running or ended, or that ended as finished, failed, cancelled, timed-out or "
             "lost.")] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", show_default=False,
                                      help="Only jobs of this name.")] = "",
    user: Annotated[str, typer.Option("--user", metavar="NAME", show_default=False,
                                      help="Only jobs that this person submitted.")] = "",
    mine: Annotated[bool, typer.Option("--mine", help="Only jobs that you submitted; subak whoami says who you "
                                                      "are.")] = False,
    limit: LimitOption = 40,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """List jobs of all masters, the latest first.

    The last column says why a job waits or did not finish. Where jobs share a name, a column shows their arguments, of
    those that you may look into; subak describe shows the whole command.

    - `subak list` lists the latest 40.
    - `subak list --queue research --state running` lists running jobs of the queue research.
    - `subak list train_1` lists all runs of the job train_1.
    - `subak list --mine` lists your own.
    - `subak list --state failed` lists jobs of which a task failed.
    - `subak list -o json | jq -r '.items[].id'` prints ids only.
    """
    for each in names or ():
        checked(each, JOB, "JOB")
    if names and name:
        raise InputError("--name: goes without JOB")
    if mine and user:
        raise InputError("--mine: goes without --user")
    with opened(client) as federation:
        user = federation.whoami().name if mine else user
        outcome = "" if state is None or state in STATES else state.replace("-", " ")
        found = _named(federation, names or [name], limit + 1, queue=queue, state="" if outcome else state or "",
                       outcome=outcome, user=user)
        is_cut, found = len(found.items) > limit, structs.replace(found, items=found.items[:limit])
        size = NARROW_SIZE if Console().width < NARROW else ARGUMENTS_SIZE
        arguments = arguments_by_id(federation, found.items, size) if output == Output.TABLE else {}
    cut = not show(found, output) and _show_list(found.items, arguments, time.time())
    items = found.items if output == Output.TABLE else ()
    remark([*([f"only the latest {limit:,}: --limit {10 * limit} lists more"] if is_cut else []), *found.unreachable,
            *why_full(items), *how_larger(job.reason for job in items),
            *(["reasons are cut to the width of the terminal: subak describe JOB has all"] if cut else [])])


def _named(federation: "Client", names: Sequence[str], limit: int, **wanted: Any) -> "Found[JobView]":
    """Return the latest jobs of any of the names or ids, the latest first; ids only where nothing else is *wanted*."""
    found = [federation.jobs(name=PurePath(name).stem if is_script(name) else name, limit=limit, **wanted)
             for name in names]
    ids = [name for name in names if re.fullmatch(JOB_PATTERN, name)]  # which a name may look like, too
    found += [federation.jobs_of(ids)] if ids and not any(wanted.values()) else []
    jobs = {job.id: job for each in found for job in each.items}
    return structs.replace(found[0], items=tuple(sorted(jobs.values(), key=lambda job: -job.submitted)[:limit]),
                           unreachable=tuple(dict.fromkeys(line for each in found for line in each.unreachable)))


def _show_list(jobs: Sequence[JobView], arguments: Mapping[str, str], now: float) -> bool:
    """Print a line for each job; return whether a reason was cut.

    Arguments, if any, take the place of columns that say the same of all jobs.
    """
    rows = [_row(job, now, arguments.get(job.id, "")) for job in jobs]
    left_out = {"queue": len({job.queue for job in jobs}) == 1, "open": all(job.tasks == 1 for job in jobs)}
    has_arguments = any(arguments.values())
    head = ("job", "name", "queue", "state", "tasks", "open", f"submitted {zone_text(now)}", "took", ARGUMENTS,
            "reason")
    kept = [place for place, name in enumerate(head) if (has_arguments and not left_out.get(name)) or (
        not has_arguments and name != ARGUMENTS)]
    return show_table([head[place] for place in kept], [[row[place] for place in kept] for row in rows],
                      ("tasks", "open", "took"), is_cut=True)


def _row(job: JobView, now: float, arguments: str) -> tuple[str, ...]:
    over = sum(getattr(job.counts, name) for name in ("finished", "failed", "cancelled", "timed_out", "lost"))
    return (job.id, job.name, job.queue, standing(job.state, job.outcome), count_text(job.tasks),
            count_text(job.tasks - over), short_time_text(job.submitted, now), took_text(job.started, job.ended),
            arguments, job.reason)


def describe(
    id: Annotated[str, typer.Argument(metavar="JOB|TASK|MACHINE", show_default=False,
                                      help="Such as g0-17, g0-17.3, or the name of a job or a machine.")],
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Show everything about a job, a task or a machine.

    - `subak describe g0-17` shows the job's command, its stages, its failed tasks, then others that have not finished.
    - `subak describe g0-17.3 -o yaml` shows task 3 of it, as YAML.
    """
    with opened(client) as federation:
        found = _found(federation, id)
        if show(found, output):
            return
        if isinstance(found, MachineView):
            _show_machine(found)
        elif isinstance(found, TaskView):
            _show_task(found, _stopped(federation, found), facts_of(federation, found.job, found.stage))
        else:
            _show_job(federation, found)


def _found(federation: "Client", id: str) -> JobView | TaskView | MachineView:
    """Return a job, a task or a machine; of a machine and a job of one name the machine. Raises NotFoundError."""
    if re.fullmatch(ID_PATTERN, id):
        return job_or_task(federation, id)
    try:
        return federation.machine(checked(id, MACHINE, "JOB|TASK|MACHINE"))
    except NotFoundError:
        if not re.fullmatch(NAME_PATTERN, id):
            raise
    return job_or_task(federation, id, ", and no machine")


def _show_job(federation: "Client", job: JobView) -> None:
    show_facts(f"{job.id} {job.name}: {standing(job.state, job.outcome)}", [
        ("queue", job.queue), ("why", job.reason), ("user", job.user), ("priority", str(job.priority or "")),
        ("tasks", counts_text(job.counts)), ("labels", ", ".join(f"{key}={text}" for key, text in job.labels.items())),
        *facts_of(federation, job.id),
        ("submitted", time_text(job.submitted)), ("started", time_text(job.started)), ("ended", time_text(job.ended)),
    ])
    remark(how_larger([job.reason]))
    show_table(("stage", "tasks", "each asks for", "after", "stand"), [
        (stage.name + (" (gang)" if stage.gang else ""), count_text(stage.tasks), amounts_text(stage.request),
         ", ".join(stage.depends_on) or NOTHING, counts_text(stage.counts)) for stage in job.stages], right=("tasks",))
    unfinished = of_counts(federation, job, UNFINISHED, TASKS_SHOWN)
    if unfinished:
        show_table(("task", "state", "machine", "attempts", "exit code", "why"),
                   [_task_row(task) for task in unfinished], right=("attempts", "exit code"))
    left = job.tasks - job.counts.finished - len(unfinished)
    if unfinished and left > 0:
        remark([f"{left:,} more tasks have not finished; the table above counts them"])


def _task_row(task: TaskView) -> tuple[str, ...]:
    return (task.id, standing(task.state, task.outcome), task.machine or NOTHING, count_text(task.attempts),
            _ending(task) or NOTHING, task.reason)


def _ending(task: TaskView) -> str:
    return task.signal or ("" if task.exit_code is None else str(task.exit_code))


def _stopped(federation: "Client", task: TaskView) -> int:
    """Return how many attempts of a task were stopped with their machine, as `subak down` does; they count as lost."""
    return sum(event.what == ATTEMPT_STOPPED for event in federation.history(task.id)) if task.lost else 0


def _show_task(task: TaskView, stopped: int, runs: Sequence[tuple[str, str]]) -> None:
    show_facts(f"{task.id}: {standing(task.state, task.outcome)}", [
        ("why", task.reason), ("queue", task.queue), ("stage", task.stage), *runs, ("machine", task.machine),
        ("attempts", count_text(task.attempts)), ("signal" if task.signal else "exit code", _ending(task)),
        ("preempted", counted(task.preempted, "time") if task.preempted else ""),
        ("stopped", f"{counted(stopped, 'time')}, with its machine" if stopped else ""),
        ("lost", counted(task.lost - stopped, "time") if task.lost > stopped else ""),
        ("submitted", time_text(task.submitted)), ("started", time_text(task.started)),
        ("ended", time_text(task.ended)), ("took", took_text(task.started, task.ended)),
    ])


def _show_machine(machine: MachineView) -> None:
    show_facts(f"{machine.name}: {machine.state}", [
        ("why", machine.reason), ("cluster", machine.cluster), ("in use", used_text(machine.used, machine.capacity)),
        ("tasks", count_text(machine.tasks)),
        ("cordoned", "draining" if machine.draining else "yes" if machine.cordoned else ""),
        ("attributes", ", ".join(f"{key}={text}" for key, text in machine.attributes.items())),
        ("heard of", "" if machine.heard is None else time_text(machine.heard)),
    ])


def history(
    id: Annotated[str | None, typer.Argument(
        metavar="[JOB|TASK]", show_default=False,
        help="Such as g0-17 or g0-17.3, or the job's name; without one, goes with --since.")] = None,
    since: Annotated[str | None, typer.Option(
        "--since", metavar="TIME", show_default=False,
        help="Only what happened since then: a duration such as 2h or 7d before now, or a time such as "
             "2026-11-27T10:00.")] = None,
    limit: LimitOption = 1000,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Show the events of a job or a task, with times and reasons.

    - `subak history g0-17.3` shows where each attempt of the task ran, and how it ended.
    - `subak history g0-17 --since 2h` shows what happened to the job in the last two hours.
    - `subak history --since 1d` lists the jobs that have ended since yesterday at this time.
    """
    begin = 0.0 if since is None else time_of(since, time.time())
    if id is None:
        if since is None:
            raise InputError("JOB|TASK: must be given, or --since")
        _show_ended(begin, limit, output, client)
        return
    with opened(client) as federation:
        checked(id, ANY, "JOB|TASK")
        id, found = named(federation, id, lambda id: (id, federation.history(id, limit, begin)))
        job = federation.job(id.partition(".")[0]) if output == Output.TABLE else None
    if not show(found, output):
        assert job is not None
        echo(f"{id}{f' of {job.name}' if '.' in id else f' {job.name}'}: {standing(job.state, job.outcome)}")
        show_table(("when", "what of", "what", "machine", "attempt", "took", "why"), [
            (time_text(event.at), event.id, event.what, event.machine or NOTHING, count_text(event.attempt), took,
             event.why) for event, took in zip(found, _took(found), strict=True)], right=("attempt", "took"))


def _took(events: Sequence[Event]) -> Iterator[str]:
    """Return for each event that ends an attempt how long that ran, as far as its beginning is among them."""
    began: dict[tuple[str, int], float] = {}
    for event in events:
        attempt = event.id, event.attempt
        if event.what == BEGAN:
            began[attempt] = event.at
        yield NOTHING if event.what == BEGAN or attempt not in began else took_text(began.pop(attempt), event.at)


def _show_ended(begin: float, limit: int, output: Output, client: Path | None) -> None:
    """Show the jobs that have ended since a Unix time, the latest to be submitted first."""
    with opened(client) as federation:
        found = federation.jobs(state="ended", limit=limit, ended_since=begin)
    jobs = found.items
    if not show(jobs, output):
        show_table(("job", "name", "queue", "ended", "how", "tasks", "took", "why"), [
            (job.id, job.name, job.queue, time_text(job.ended), job.outcome, count_text(job.tasks),
             took_text(job.started, job.ended), job.reason) for job in jobs], right=("tasks", "took"))
    remark(found.unreachable)
