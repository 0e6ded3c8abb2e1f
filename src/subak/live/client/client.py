"""The calls of a client: each asks one master, or all of them."""
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from subak.json_type import Json
from subak.live.api.errors import ForbiddenError, ServiceError, UnauthorizedError
from subak.live.api.models import (
    AuditEntry,
    Event,
    Explanation,
    FederationView,
    Health,
    JobView,
    LogChunk,
    MachineView,
    MadeToken,
    MasterView,
    NewPerson,
    Page,
    Plan,
    QueueView,
    TaskView,
    TokenView,
)
from subak.live.client.settings import ClientSettings, read_settings
from subak.live.client.transport import Question, Transport
from subak.live.people.identity import Role

T = TypeVar("T")
ITEMS_ASKED = 1_000  # items that are asked for at once
AUDITED = 40  # changes that are asked for where nothing else is said
IDS_ASKED = 200  # ids in one question, which is a line
WAIT_S = 30.0  # that one question of a wait is held open
TIMEOUT_S, PATIENCE_S = 20.0, 5.0


class Found(Struct, Generic[T], frozen=True):
    """What all masters together know, but for those that could not be asked: a line each, with why."""

    items: tuple[T, ...]
    unreachable: tuple[str, ...] = ()


class Client:
    """A federation, through any of its masters.

    Raises the errors of `subak.live.api.errors`: those of the service, and UnavailableError where no master could be
    reached for *patience_s* seconds (5 unless given). Not to be shared between threads.
    """

    def __init__(self, settings: ClientSettings | None = None, *, timeout_s: float = TIMEOUT_S,
                 patience_s: float | None = None) -> None:
        self.settings = read_settings() if settings is None else settings
        self._transport = Transport(self.settings, timeout_s,
                                    PATIENCE_S if patience_s is None else patience_s)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def submit(self, text: bytes | str, *, key: str = "", file: str = "job", strict: bool = False) -> JobView:
        """Submit a job file, and return the job when it is on disk.

        It is sent again, under the same *key*, until there is an answer, and becomes one job. Give a key of your own to
        be safe against the death of this process too. Mistakes are named by the lines of *file*. What no machine is
        large enough for is among the job's warnings; *strict*: InvalidError, and there is no job.
        """
        body = text.encode() if isinstance(text, str) else text
        headers = {"Idempotency-Key": key or os.urandom(16).hex(), "Content-Type": "application/yaml"}
        query = {"file": file, **_said(strict="true" if strict else "")}
        return self._ask("POST", "/v1/jobs", JobView, query, body=body, headers=headers)

    def job(self, id: str) -> JobView:
        """Return a job."""
        return self._get(f"/v1/jobs/{id}", JobView)

    def file(self, id: str) -> dict[str, Json]:
        """Return what a job file says that submits the same job again."""
        return self._get(f"/v1/jobs/{id}/file", dict[str, Json])

    def wait(self, id: str, *, seen: int | None = None, timeout_s: float = WAIT_S) -> JobView:
        """Return a job when it has ended or, with *seen*, has another version; or as it is after the time."""
        query = {"timeout_s": f"{timeout_s:g}", **({} if seen is None else {"seen": str(seen)})}
        return self._ask("GET", f"/v1/jobs/{id}/wait", JobView, query, wait_s=timeout_s)

    def jobs(self, *, queue: str = "", name: str = "", state: str = "",
             limit: int | None = ITEMS_ASKED, outcome: str = "", ended_since: float = 0.0, user: str = "",
             ) -> Found[JobView]:
        """Return the latest *limit* jobs of all masters, the latest first; all of them without a limit.

        *outcome*: only those that ended so, such as failed; they are picked here, out of all that have ended.
        *ended_since*: only those that have ended since this Unix time. *user*: only those that this person submitted.
        """
        query = _said(queue=queue, name=name, user=user, state="ended" if outcome else state,
                      ended_since=f"{ended_since!r}" if ended_since else "")

        def of(address: str) -> list[JobView]:
            every = self._pages("/v1/jobs", JobView, query, None if outcome else limit, address)
            return list(islice((job for job in every if outcome in ("", job.outcome)), limit))

        found = self._of_all(of)
        return Found(tuple(sorted(found.items, key=lambda job: -job.submitted)[:limit]), found.unreachable)

    def jobs_of(self, ids: Sequence[str]) -> Found[JobView]:
        """Return those of the jobs that the masters know, IDS_ASKED of them with one question to each master."""
        parts = [",".join(ids[first:first + IDS_ASKED]) for first in range(0, len(ids), IDS_ASKED)]
        return self._of_all(lambda address: [job for part in parts for job in self._pages(
            "/v1/jobs", JobView, {"ids": part}, None, address)])

    def tasks(self, id: str, *, state: str = "", outcome: str = "", limit: int = ITEMS_ASKED) -> list[TaskView]:
        """Return the first *limit* tasks of a job, or of those that are in a state, or ended with an outcome."""
        return list(self._pages(f"/v1/jobs/{id}/tasks", TaskView, _said(state=state, outcome=outcome), limit))

    def each_task(self, id: str, begun: bool = False) -> Iterator[TaskView]:
        """Return all tasks of a job, or those that have begun, in their order; they are asked for as they are taken."""
        return self._pages(f"/v1/jobs/{id}/tasks", TaskView, _said(begun="true" if begun else ""), None)

    def task(self, id: str) -> TaskView:
        """Return a task."""
        return self._get(f"/v1/tasks/{id}", TaskView)

    def logs(
        self, id: str, stream: str = "stdout", offset: int = 0, timeout_s: float = 0.0, attempt: int = 0,
        tail: int = 0,
    ) -> LogChunk:
        """Return what an attempt has written from byte *offset* on; below zero, that is counted from the end.

        *attempt*: the how manieth of the task, 0 for the last; behind its end the next one follows. *tail*: the last so
        many lines of it, whatever the offset.
        """
        query = {"stream": stream, "attempt": str(attempt), "offset": str(offset), "timeout_s": f"{timeout_s:g}",
                 "tail": str(tail)}
        return self._ask("GET", f"/v1/tasks/{id}/logs", LogChunk, query, wait_s=timeout_s)

    def follow(
        self, id: str, stream: str = "stdout", offset: int = 0, timeout_s: float = WAIT_S, attempt: int = 0,
        tail: int = 0,
    ) -> Iterator[LogChunk]:
        """Return what a task writes from an attempt on, piece by piece, until it has ended; see `logs`."""
        while True:
            chunk = self.logs(id, stream, offset, timeout_s, attempt, tail)
            if chunk.data:
                yield chunk
            if chunk.is_end:
                return
            attempt, offset, tail = chunk.attempt, chunk.next, 0

    def cancel(self, id: str) -> JobView:
        """Cancel a job or a task, and return the job."""
        return self._ask("POST", f"/v1/{_kind(id)}/{id}/cancel", JobView)

    def preempt(self, id: str) -> TaskView:
        """End the attempt of a task that runs; the task waits again."""
        return self._ask("POST", f"/v1/tasks/{id}/preempt", TaskView, may_repeat=False)

    def explain(self, id: str) -> Explanation:
        """Say why a task stands as it stands."""
        return self._get(f"/v1/tasks/{id}/explain", Explanation)

    def history(self, id: str, limit: int = ITEMS_ASKED, since: float = 0.0) -> list[Event]:
        """Return the first *limit* things that happened to a job or a task since a Unix time."""
        every = self._pages(f"/v1/{_kind(id)}/{id}/history", Event, {}, None if since else limit)
        return list(islice((event for event in every if event.at >= since), limit))

    # -- the federation ------------------------------------------------------------------------------------------------

    def queues(self) -> Found[QueueView]:
        """Return the tree of queues; jobs and tasks of each are added up over all masters."""
        found = self._of_all(lambda address: list(self._pages("/v1/queues", QueueView, {}, None, address)))
        merged: dict[str, QueueView] = {}
        for queue in found.items:
            merged[queue.path] = _added(merged[queue.path], queue) if queue.path in merged else queue
        return Found(tuple(merged[path] for path in sorted(merged, key=lambda path: path.split("/"))),
                     found.unreachable)

    def machines(self, cluster: str = "") -> list[MachineView]:
        """Return all machines, or those of a cluster, as the first master that answers knows them."""
        return list(self._pages("/v1/machines", MachineView, _said(cluster=cluster), None))

    def machine(self, name: str) -> MachineView:
        """Return a machine."""
        return self._get(f"/v1/machines/{name}", MachineView)

    def cordon(self, name: str, on: bool = True) -> MachineView:
        """Let nothing new start on a machine, or let it again."""
        return self._ask("POST", f"/v1/machines/{name}/{'cordon' if on else 'uncordon'}", MachineView)

    def drain(self, name: str) -> MachineView:
        """Cordon a machine, and move what runs there elsewhere."""
        return self._ask("POST", f"/v1/machines/{name}/drain", MachineView)

    def remove(self, name: str) -> MachineView:
        """Take a machine out for good that was silent for a lease."""
        return self._ask("POST", f"/v1/machines/{name}/remove", MachineView)

    def plan(self, config: bytes) -> Plan:
        """Return what a configuration would change."""
        return self._ask("POST", "/v1/configuration/plan", Plan, body=config)

    def apply(self, config: bytes, version: int) -> Plan:
        """Apply a configuration where *version* is still in force."""
        return self._ask("POST", "/v1/configuration/apply", Plan, {"version": str(version)}, body=config,
                         may_repeat=False)

    def whoami(self) -> TokenView:
        """Return who holds the token of this client, and what it may do."""
        return self._get("/v1/whoami", TokenView)

    def people(self, limit: int = ITEMS_ASKED) -> list[TokenView]:
        """Return the first *limit* tokens that were made, with their holders."""
        return list(self._pages("/v1/people", TokenView, {}, limit))

    def add_person(self, name: str, role: Role, *, queues: tuple[str, ...] = (), all_jobs: bool = False,
                   valid_s: float = 0.0, on_host: bool = False) -> MadeToken:
        """Make a token for a person, valid for ever or so many seconds; this is the only time that it is told.

        *queues*: those to which it may submit, each with all below it; *all_jobs*: it may change and read all jobs of
        these, not only its own. *on_host*: no token; it is the user of this name on the hosts of global masters.
        """
        asked = NewPerson(name=name, role=role, queues=queues, all_jobs=all_jobs, valid_s=valid_s, on_host=on_host)
        return self._ask("POST", "/v1/people", MadeToken, body=msgspec.json.encode(asked),
                         headers={"Content-Type": "application/json"}, may_repeat=False)

    def revoke(self, name: str) -> tuple[TokenView, ...]:
        """Revoke a token by its id, or all tokens of a person, and return them."""
        return self._ask("POST", f"/v1/people/{name}/revoke", Page[TokenView]).items

    def audit(self, *, since: float = 0.0, who: str = "", object: str = "", limit: int = AUDITED,
              ) -> Found[AuditEntry]:
        """Return the latest *limit* changes that any master was asked for, the earliest first.

        *since*: a Unix time; *who*: a person; *object*: a job (with its tasks), a machine, a person or a token.
        """
        query = {**_said(since=f"{since!r}" if since else "", who=who, object=object), "limit": f"{limit}"}
        found = self._of_all(lambda address: [*self._get("/v1/audit", Page[AuditEntry], query, address).items])
        return Found(tuple(sorted(found.items, key=lambda entry: entry.at)[-limit:]), found.unreachable)

    def masters(self) -> tuple[MasterView, ...]:
        """Return all masters, as the first one that answers knows them."""
        return self._get("/v1/masters", tuple[MasterView, ...])

    def federation(self) -> FederationView:
        """Return the federation as a whole."""
        return self._get("/v1/federation", FederationView)

    def health(self) -> Health:
        """Say whether the first master that answers serves."""
        return self._get("/v1/health", Health)

    # -- questions -----------------------------------------------------------------------------------------------------

    def _ask(self, method: str, path: str, type: type[T], query: dict[str, str] | None = None, address: str = "",
             **more: Any) -> T:
        return self._transport.ask(Question(method=method, path=path, query=query or {}, **more), type, address)

    def _get(self, path: str, type: type[T], query: dict[str, str] | None = None, address: str = "") -> T:
        return self._ask("GET", path, type, query, address)

    def _pages(self, path: str, type: type[T], query: dict[str, str], limit: int | None, address: str = "",
               ) -> Iterator[T]:
        """Return the items of a list, *limit* at most, page by page."""
        cursor = ""
        while limit is None or limit > 0:
            most = ITEMS_ASKED if limit is None else min(ITEMS_ASKED, limit)
            wanted = {**query, **_said(cursor=cursor), "limit": str(most)}
            page = self._get(path, Page[type], wanted, address)  # type: ignore[valid-type]
            yield from page.items
            limit = None if limit is None else limit - len(page.items)
            cursor = page.cursor
            if not cursor:
                return

    def _of_all(self, ask: Callable[[str], list[T]]) -> Found[T]:
        """Ask every global master; one that does not answer is named, and does not hold up the others for long."""
        items: list[T] = []
        unreachable = []
        patience, self._transport.patience_s = self._transport.patience_s, 0.0
        try:
            for master in self._global_masters(patience):
                try:
                    items += ask(master.address)
                except (UnauthorizedError, ForbiddenError):
                    raise
                except ServiceError as error:
                    unreachable.append(f"{master.name}: {error}")
        finally:
            self._transport.patience_s = patience
        return Found(tuple(items), tuple(unreachable))

    def _global_masters(self, patience_s: float) -> list[MasterView]:
        self._transport.patience_s = patience_s
        masters = [each for each in self.masters() if each.role == "global" and each.address]
        self._transport.patience_s = 0.0
        return masters


def _kind(id: str) -> str:
    return "tasks" if "." in id else "jobs"


def _said(**query: str) -> dict[str, str]:
    """Return those arguments that say something."""
    return {name: value for name, value in query.items() if value}


def _added(one: QueueView, other: QueueView) -> QueueView:
    """Return a queue as two masters see it: what each keeps is added, all else is as the first says."""
    values = {field: getattr(one, field) for field in QueueView.__struct_fields__}
    sums = {field: getattr(one, field) + getattr(other, field) for field in ("jobs", "waiting", "running")}
    return QueueView(**{**values, **sums})
