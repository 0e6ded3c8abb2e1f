"""Prints answers of a federation as tables, JSON or YAML, with control characters escaped."""
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import rich.text
from rich.table import Table

from subak.cli.live.hints import hint
from subak.cli.live.options import Output
from subak.live.api.models import (
    CANCELLED,
    FAILED,
    LOST,
    NEVER_FITS,
    TASK_BACKOFF,
    TASK_BLOCKED,
    TASK_ENDING,
    TASK_RUNNING,
    TASK_STARTING,
    TASK_WAITING,
    TIMED_OUT,
    WAITS_FOR_MACHINES,
    JobView,
    TaskCounts,
    TaskView,
)
from subak.live.jobfile.quantities import print_amount
from subak.live.jobfile.spec import CPU, RESOURCES, TASKS
from subak.report.console import Console, Text, echo, echo_json
from subak.report.number_text import NOTHING, count_text, counted, seconds_text

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

ENDED_BADLY = (FAILED, TIMED_OUT, LOST, CANCELLED)
PENDING = (TASK_BACKOFF, TASK_WAITING, TASK_BLOCKED)
UNFINISHED = (*ENDED_BADLY, TASK_RUNNING, TASK_STARTING, TASK_ENDING, *PENDING)
IDS_NAMED = 5  # in a line
REASON_LEAST = 11  # characters of the last column of a narrow table: "exit code 1"
SHARING = "with --cpu 0.25 four tasks share a core (docs/jobs.md, \"Sharing a core\")"
HOW_LARGER = ("ask for less (subak cancel, then again with a smaller --cpu or --memory); or make a machine larger: "
              "change [capacity] in its worker-*.toml, beside client.toml, then subak down and subak up")
STYLES = {"finished": "green", "failed": "red", "lost": "red", "timed out": "red", "cancelled": "yellow",
          "running": "cyan", "unknown": "yellow", "absent": "dim"}


def show(value: object, output: Output) -> bool:
    """Print a value where it is wanted as JSON or YAML; return whether it was."""
    if output == Output.JSON:
        echo_json(value)
    elif output == Output.YAML:
        import yaml  # noqa: PLC0415  (only who asks for it waits for it)

        text = yaml.safe_dump(msgspec.to_builtins(value, builtin_types=()), sort_keys=False, width=120)
        Console().print(rich.text.Text(text.rstrip("\n")), soft_wrap=True)
    return output != Output.TABLE


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = (),
               is_cut: bool = False) -> bool:
    """Print rows below the names of their columns; those named in *right* are numbers.

    *is_cut*: in a narrow terminal columns move together, and the last one is cut, so that a row is a line. Return
    whether any was cut.
    """
    console, lines = Console(), [*rows]
    gap, room = 2, None
    if is_cut and _width(columns, lines, gap) > console.width:
        columns, gap = [name.replace(" ", "\n") for name in columns], 1
        room = max(REASON_LEAST, console.width - _width(columns[:-1], [row[:-1] for row in lines], gap) - gap)
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for name in columns:
        head = rich.text.Text("\n").join(map(Text, name.split("\n")))
        table.add_column(head, justify="right" if name in right else "left", header_style="bold",
                         no_wrap=name in ("job", "task", "machine", "queue", "arguments"), overflow="fold")
    for row in lines:
        last = row[-1] if room is None or len(row[-1]) <= room else f"{row[-1][:room - 1]}…"
        table.add_row(*(Text(text, STYLES.get(text, "")) for text in (*row[:-1], last)))
    console.print(table)
    return room is not None and any(len(row[-1]) > room for row in lines)


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]], gap: int) -> int:
    """Return how wide a table is in which no cell is wrapped."""
    cells = zip(*([max(name.split("\n"), key=len) for name in columns], *rows), strict=True)
    return sum(max(map(len, column)) for column in cells) + gap * (len(columns) - 1)


def show_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Print a title, and below it what has a value, a line each."""
    console = Console()
    console.print(Text(title, "bold"))
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")  # so that of a long path nothing is left out
    for name, value in facts:
        if value:
            table.add_row(Text(name, "dim"), Text(value))
    console.print(table)


def of_counts(federation: "Client", job: JobView, words: Sequence[str], limit: int) -> list[TaskView]:
    """Return the first *limit* tasks of a job that stand as the *words* say, in their order; only of those it has."""
    found: list[TaskView] = []
    for word in words:
        if getattr(job.counts, word.replace(" ", "_")) and len(found) < limit:
            asked = {"outcome": word} if word in ENDED_BADLY else {"state": word}
            found += federation.tasks(job.id, **asked, limit=limit - len(found))
    return found


def agreed(question: str, may_ask: bool = True) -> bool:
    """Whether somebody at a terminal says yes."""
    if not may_ask or not sys.stdin.isatty():
        return False
    echo(f"{question} [y/N] ", err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def remark(lines: Iterable[str]) -> None:
    """Print lines on standard error, such as which masters could not be asked."""
    for line in lines:
        echo(f"subak: {line}", err=True)


def names_text(jobs: Iterable[JobView]) -> str:
    """Return the names of jobs, the latest first, and how many more there are."""
    latest = sorted(jobs, key=lambda job: -job.submitted)
    left = len(latest) - IDS_NAMED
    return ", ".join(job.name for job in latest[:IDS_NAMED]) + (f" and {count_text(left)} more" if left > 0 else "")


def going_on(ids: Sequence[str]) -> str:
    """Say that jobs or tasks run on which are no longer waited for, and how they are ended; *ids*: as `called` says."""
    if len(ids) == 1:
        return f"{ids[0]} goes on; {hint('cancel', ids[0])} ends it"
    how = "subak list shows them"
    if len(ids) <= IDS_NAMED:
        how = f"{hint('cancel', ids[0])} {' '.join(ids[1:])} ends them"
    return f"{counted(len(ids), 'task' if all('.' in id for id in ids) else 'job')} go on; {how}"


def ending_text(ended: JobView | TaskView, name: str, typed: str = "", is_shown: bool = False) -> str:
    """Return how a job or a task ended, by its name, and where the output of one that failed is, unless *is_shown*.

    *typed*: what the user has called it.
    """
    counts = counts_text(ended.counts) if isinstance(ended, JobView) and ended.tasks > 1 else ""
    how = outcome_text(ended.outcome, "" if counts else ended.reason)
    where = "" if is_shown or ended.outcome not in (FAILED, TIMED_OUT) else (
        f"; {hint('logs', ended.id, typed)} shows its output")
    return f"{name} {how}{f': {counts}' if counts else ''}{where}"


def outcome_text(outcome: str, reason: str) -> str:
    """Return how something ended, and why, nothing twice: ``failed: exit code 1``, ``cancelled by a user``."""
    why = reason.removeprefix("it failed with ")
    if why.startswith(outcome):
        return why
    return f"{outcome}{f': {why}' if why else ''}"


def how_larger(reasons: Iterable[str]) -> list[str]:
    """Return what to do where one of the reasons is that no machine is large enough: a line, or none."""
    return [HOW_LARGER] if any(NEVER_FITS in reason for reason in reasons) else []


def why_full(jobs: Iterable[JobView]) -> list[str]:
    """Return what to do about jobs that wait as all machines are full: a line, or none."""
    full = [job for job in jobs if job.state == TASK_WAITING and job.reason.startswith(WAITS_FOR_MACHINES)]
    if not full:
        return []
    who = f"{full[0].id} waits" if len(full) == 1 else f"{count_text(len(full))} jobs wait"
    about = {cores_text(stage.request) for job in full for stage in job.stages}
    more = about.pop() if len(about) == 1 else SHARING  # which holds for some of them
    return [f"{who} for machines: {hint('explain', full[0].id)} says what is lacking{more and '; '}{more}"]


def cores_text(request: Mapping[str, int]) -> str:
    """Return how more tasks that ask for so much run at once by asking for fewer cores.

    Empty where they ask for more than cores: perhaps something else is lacking.
    """
    core, asked = RESOURCES[CPU], request.get(CPU, 0)
    if not asked or any(amount for name, amount in request.items() if name not in (CPU, TASKS)):
        return ""
    if asked == core:
        return SHARING
    each = print_amount(CPU, asked)
    if asked > core:
        return f"each task keeps {each} cores, however many threads it starts; with a smaller --cpu more run at once"
    if core // asked == 1:
        return f"one task of --cpu {each} keeps a core to itself; with --cpu 0.5 two share one"
    return f"{core // asked} tasks of --cpu {each} share a core already; with a smaller --cpu more do"


def amounts_text(amounts: dict[str, int]) -> str:
    """Return amounts as a job file says them: ``cpu 500m, memory 4Gi``."""
    return ", ".join(f"{name} {print_amount(name, amount)}" for name, amount in amounts.items())


def used_text(used: dict[str, int], capacity: dict[str, int]) -> str:
    """Return what is used of what is there: ``cpu 500m/4, memory 0/8Gi``."""
    return ", ".join(f"{name} {print_amount(name, used.get(name, 0))}/{print_amount(name, amount)}"
                     for name, amount in capacity.items())


def counts_text(counts: TaskCounts) -> str:
    """Return how many tasks are in each state that any is in: ``3 running, 5 waiting``."""
    found = [(name.replace("_", " "), getattr(counts, name)) for name in TaskCounts.__struct_fields__]
    return ", ".join(f"{count_text(count)} {name}" for name, count in found if count)


def time_text(at: float | None) -> str:
    """Return a time as a local date and time of day."""
    if at is None:
        return NOTHING
    try:
        return datetime.fromtimestamp(at).astimezone().isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return f"{at:g}"


def short_time_text(at: float, now: float) -> str:
    """Return a time as a local time of day, of another day than today with its date; *now* gives day and zone."""
    today = datetime.fromtimestamp(now).astimezone()
    try:
        time = datetime.fromtimestamp(at, today.tzinfo)
    except (OverflowError, ValueError, OSError):
        return f"{at:g}"
    return time.strftime("%H:%M:%S" if time.date() == today.date() else "%Y-%m-%d %H:%M")


def zone_text(now: float) -> str:
    """Return the name of the local time zone."""
    return datetime.fromtimestamp(now).astimezone().tzname() or ""


def took_text(begin: float | None, end: float | None) -> str:
    """Return the time between two times, or until now where the second is yet to come."""
    return NOTHING if begin is None else seconds_text(max(0.0, (time.time() if end is None else end) - begin))


def standing(state: str, outcome: str) -> str:
    """Return how a job or a task stands, in a word."""
    return outcome or state
