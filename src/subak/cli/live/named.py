"""Finds jobs by their names, where commands are given no id."""
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from subak.cli.live.show import standing
from subak.errors import InputError
from subak.live.api.errors import NotFoundError, UnavailableError
from subak.live.api.models import ID_PATTERN, NAME_PATTERN, TASK_PATTERN, JobView, TaskView

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client

T = TypeVar("T")
NAMESAKES_SHOWN = 5  # jobs of one name that are listed


def named(federation: "Client", what: str, ask: Callable[[str], T], also: str = "") -> T:
    """Return what *ask* says of a job or a task: of its id, else of the only job called so, or of its task NAME.INDEX.

    Raises InputError where several jobs have the name, NotFoundError, which says *also* what else was looked for.
    """
    missing = NotFoundError(f"there is no job called {what}{also}")
    if re.fullmatch(ID_PATTERN, what):
        try:
            return ask(what)
        except NotFoundError as error:  # it may be a name that looks like an id, such as train-3
            missing = error
    name, dot, index = what.rpartition(".")
    found = _only_one(federation, what)
    if found:
        return ask(found)
    found = _only_one(federation, name) if index.isdecimal() and re.fullmatch(NAME_PATTERN, name) else ""
    if found:
        return ask(found + dot + index)
    raise missing


def job_or_task(federation: "Client", what: str, also: str = "") -> JobView | TaskView:
    """Return a job or a task, of its id or by its name; see `named`."""
    return named(federation, what, lambda id: federation.task(id) if re.fullmatch(TASK_PATTERN, id)
                 else federation.job(id), also)


def _only_one(federation: "Client", name: str) -> str:
    """Return the id of the only job of a name; empty where there is none. Raises InputError where there are more."""
    found = federation.jobs(name=name, limit=NAMESAKES_SHOWN + 1)
    if len(found.items) > 1:
        of = "several" if len(found.items) > NAMESAKES_SHOWN else str(len(found.items))
        ids = ", ".join(f"{job.id} ({standing(job.state, job.outcome)})" for job in found.items[:NAMESAKES_SHOWN])
        raise InputError(f"{of} jobs are called {name}: {ids}{', ...' if of == 'several' else ''}; give an id")
    if found.unreachable:  # which may keep others of the name
        raise UnavailableError(f"names are unknown while a master cannot be asked: {found.unreachable[0]}")
    return found.items[0].id if found.items else ""
