"""Finds jobs by their names, where commands are given no id."""
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, TypeVar

from subak.cli.live.options import JOB, TASK
from subak.cli.live.scripts import is_script
from subak.cli.live.show import remark, standing
from subak.errors import InputError
from subak.live.api.errors import NotFoundError, RefusedError, UnavailableError
from subak.live.api.models import ID_PATTERN, NAME_PATTERN, TASK_PATTERN, TASK_RUNNING, TASK_WAITING, JobView, TaskView
from subak.nearest import did_you_mean

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

T = TypeVar("T")
NAMESAKES_SHOWN = 5  # jobs of one name that are listed
NEAR_OF = 200  # jobs whose names a mistyped one is compared with: the latest
INDEX = re.compile("[0-9]{1,9}")
Taken = Literal["open or latest", "open", "latest"]  # of several jobs of one name


def named(federation: "Client", what: str, ask: Callable[[str], T], also: str = "", *, only: str = "",
          take: Taken = "open or latest") -> T:
    """Return what *ask* says of a job or a task: of its id, else of the job called so, or of its task NAME.INDEX.

    Of several jobs of the name, *take* says which: the only open one, else the latest; or only an open one; or the
    latest. *only*: JOB or TASK, where nothing else will do. A script's name stands for that of its job.

    Raises InputError where several open jobs have the name, RefusedError where one must be open, and NotFoundError,
    which says *also* what else was looked for.
    """
    missing = None
    if re.fullmatch(ID_PATTERN, what):
        try:
            return ask(what)
        except NotFoundError as error:  # it may be a name that looks like an id, such as train-3
            missing = error
    found = _job_called(federation, what, take)
    if found and only == TASK:
        raise InputError(f"TASK: takes tasks, and {what} is a job; {what}.0 is its first task")
    if found:
        return ask(found)
    name, dot, index = what.rpartition(".")
    found = _job_called(federation, name, take) if INDEX.fullmatch(index) else ""
    if found and only == JOB:
        raise InputError(f"JOB: takes whole jobs, and {what} is a task of {name}")
    if found:
        return ask(found + dot + index)
    found = _job_called(federation, PurePath(what).stem, take) if only != TASK and is_script(what) else ""
    if found:
        return ask(found)
    near = did_you_mean(what, {job.name for job in federation.jobs(limit=NEAR_OF).items})
    raise NotFoundError(f"{missing or f'there is no job called {what}'}{also}{near}")


def job_or_task(federation: "Client", what: str, also: str = "", take: Taken = "open or latest") -> JobView | TaskView:
    """Return a job or a task, of its id or by its name; see `named`."""
    return named(federation, what, lambda id: federation.task(id) if re.fullmatch(TASK_PATTERN, id)
                 else federation.job(id), also, take=take)


def _job_called(federation: "Client", name: str, take: Taken) -> str:
    """Return the id of the job of a name, of several the one to *take*; empty where there is none."""
    if not re.fullmatch(NAME_PATTERN, name):
        return ""
    found = federation.jobs(name=name, limit=2)
    if found.unreachable:  # which may keep others of the name
        raise UnavailableError(f"names are unknown while a master cannot be asked: {found.unreachable[0]}")
    if len(found.items) < 2 or take == "latest":
        return found.items[0].id if found.items else ""
    # in this order: what begins in between is in both
    each = [federation.jobs(name=name, state=state, limit=NAMESAKES_SHOWN + 1).items
            for state in (TASK_WAITING, TASK_RUNNING)]
    going = sorted({job.id: job for jobs in each for job in jobs}.values(), key=lambda job: -job.submitted)
    if len(going) > 1:
        of = "several" if len(going) > NAMESAKES_SHOWN else str(len(going))
        ids = ", ".join(f"{job.id} ({standing(job.state, job.outcome)})" for job in going[:NAMESAKES_SHOWN])
        raise InputError(f"{of} open jobs are called {name}: {ids}{', ...' if of == 'several' else ''}; give an id")
    if going:
        return going[0].id
    latest = found.items[0]
    if take == "open":
        raise RefusedError(f"all jobs called {name} have ended, {latest.id} the latest")
    remark([f"all jobs called {name} have ended; this is {latest.id}, the latest"])
    return latest.id
