"""The routes under /v1: each unpacks its arguments and calls the service once.

What is waited for, a change of a job or output of a task, is waited for by long polling: a request is held open until
there is something to tell, and answered for good. Any client can do that, an answer that is lost is asked for again at
the same place, also from another master, and nothing is kept between two requests.
"""
import asyncio
import time
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import FromQuery, HeaderParameter, JSONBody, PathParameter, QueryParameter, RawBody, SkipValidation
from litestar.status_codes import HTTP_200_OK, HTTP_503_SERVICE_UNAVAILABLE
from msgspec import structs

from subak.json_type import Json
from subak.live.api.errors import InvalidError, NotFoundError
from subak.live.api.guard import Caller, check
from subak.live.api.models import (
    JOB_PATTERN,
    KEY_PATTERN,
    MACHINE_PATTERN,
    TASK_PATTERN,
    AuditEntry,
    Event,
    Explanation,
    FederationView,
    Health,
    JobState,
    JobView,
    LogChunk,
    MachineView,
    MadeToken,
    MasterView,
    NewPerson,
    Outcome,
    Page,
    Plan,
    Problem,
    QueueView,
    Stream,
    TaskState,
    TaskView,
    TokenView,
)
from subak.live.api.people import token_view
from subak.live.api.problems import TYPE
from subak.live.api.service import (
    LOG_BYTES_MAX,
    LOG_LINES_MAX,
    PAGE_ITEMS,
    PAGE_ITEMS_MAX,
    WAIT_S_MAX,
    JobFilter,
    Service,
)
from subak.live.jobfile.read import read_job
from subak.live.jobfile.write import as_file
from subak.live.people.access import Need
from subak.live.people.audit import Audit
from subak.live.people.identity import PERSON_PATTERN

INT64_MAX = (1 << 63) - 1
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
READ_AT_ONCE_BYTES = 4096  # of a job file, which takes a millisecond; a larger one does not hold up the event loop
IDS_TEXT_MAX = 1 << 14  # characters of ids of jobs that are listed
TEXT_MAX = 1024  # characters of what is filtered by
Asked = SkipValidation[NamedDependency[Service]]
By = SkipValidation[NamedDependency[Caller]]
Log = SkipValidation[NamedDependency[Audit | None]]
JobId = Annotated[str, PathParameter(pattern=JOB_PATTERN, description="A job, such as g0-17.")]
TaskId = Annotated[str, PathParameter(pattern=TASK_PATTERN, description="A task, such as g0-17.3.")]
Person = Annotated[str, PathParameter(pattern=PERSON_PATTERN, description="A person, or the id of a token.")]
Machine = Annotated[str, PathParameter(pattern=MACHINE_PATTERN, description="A machine.")]
Key = Annotated[str, HeaderParameter(
    name="Idempotency-Key", pattern=KEY_PATTERN,
    description="What the client calls this submission; a second one of the same name is the same job.")]
Cursor = Annotated[str, QueryParameter(max_length=TEXT_MAX, description="Where the last page ended.")]
Limit = Annotated[int, QueryParameter(ge=1, le=PAGE_ITEMS_MAX, description="Items of a page at most.")]
Wait = Annotated[float, QueryParameter(ge=0, le=WAIT_S_MAX, description="Seconds to wait for news at most.")]
Ids = Annotated[str, QueryParameter(max_length=IDS_TEXT_MAX, description="Only these jobs: g0-17,g0-18.")]
Word = Annotated[str, QueryParameter(max_length=TEXT_MAX)]


def _refusals(*statuses: int) -> dict[int, ResponseSpec]:
    """Return what the OpenAPI document says of errors."""
    return {status: ResponseSpec(Problem, generate_examples=False, media_type=TYPE, description="A problem.")
            for status in (400, 401, 403, 503, *statuses)}


READ, NAMED, CHANGE = _refusals(), _refusals(404), _refusals(404, 409)


@dataclass
class TextOperation(Operation):
    """An operation whose body is a text, which is read whole."""

    kinds: ClassVar[tuple[str, ...]] = ("application/yaml", "application/json")

    def __post_init__(self) -> None:
        text = Schema(type=OpenAPIType.STRING)
        anything = Schema(type=OpenAPIType.OBJECT)
        self.request_body = RequestBody(required=True, content={
            kind: OpenAPIMediaType(schema=anything if kind.endswith("json") else text) for kind in self.kinds})


@dataclass
class ConfigurationOperation(TextOperation):
    """An operation whose body is a configuration."""

    kinds: ClassVar[tuple[str, ...]] = ("text/plain", "application/toml")


# -- jobs --------------------------------------------------------------------------------------------------------------


@post("/v1/jobs", needs=Need.SUBMIT, operation_class=TextOperation, responses=_refusals(409, 413, 429),
      summary="Submit a job")
async def submit(service: Asked, caller: By, body: RawBody, key: Key, file: Word = "job",
                 strict: FromQuery[bool] = False) -> JobView:
    """Admit the job that a YAML or JSON text describes; it is on disk when this is answered.

    Mistakes are named by line, of *file*. What no machine is large enough for is a warning, or with *strict* a mistake.
    """
    service.gate.pass_person(caller.who.name, len(body), time.monotonic())
    text = _text(body)
    spec = read_job(text, file) if len(body) <= READ_AT_ONCE_BYTES else await asyncio.to_thread(read_job, text, file)
    queue = service.queue_of(spec.queue)
    check(caller, Need.SUBMIT, f"submitting to queue {queue}", queue)
    service.gate.pass_queue(queue, len(body), time.monotonic())
    view = await service.submit(spec, key, strict, caller.who.name)
    caller.object = view.id
    return view


@get("/v1/jobs", needs=Need.READ, responses=READ, summary="List jobs")
async def jobs(service: Asked, queue: Word = "", name: Word = "", user: Word = "",  # noqa: PLR0913, PLR0917  (its query)
               state_: Annotated[JobState | None, QueryParameter(name="state")] = None, cursor: Cursor = "",
               limit: Limit = PAGE_ITEMS, ended_since: FromQuery[float] = 0.0, ids: Ids = "") -> Page[JobView]:
    """List jobs, the latest first; with *ended_since* only those that have ended since that Unix time."""
    wanted = JobFilter(queue=queue, name=name, user=user, state=state_, ended_since=ended_since,
                       ids=tuple(ids.split(",")) if ids else ())
    return await service.jobs(wanted, cursor, limit)


@get("/v1/jobs/{id:str}", needs=Need.READ, responses=NAMED, summary="Describe a job")
async def job(service: Asked, id: JobId) -> JobView:
    """Return a job."""
    return await service.job(id)


@get("/v1/jobs/{id:str}/file", needs=Need.READ_JOB, responses=NAMED, summary="Job file of a job")
async def job_file(service: Asked, id: JobId) -> dict[str, Json]:
    """Return a job file, as JSON, that submits the same job again."""
    return as_file(await service.specification(id))


@get("/v1/jobs/{id:str}/wait", needs=Need.READ, responses=NAMED, summary="Wait for a job")
async def wait(service: Asked, id: JobId, timeout_s: Wait = 30.0,
               seen: Annotated[int | None, QueryParameter(ge=0, le=INT64_MAX, description="A version of it.")] = None,
               ) -> JobView:
    """Return a job when it has ended or, with *seen*, when it has another version; else after the time."""
    return await service.wait(id, seen, timeout_s)


@get("/v1/jobs/{id:str}/tasks", needs=Need.READ, responses=NAMED, summary="List tasks of a job")
async def tasks(service: Asked, id: JobId, state_: Annotated[TaskState | None, QueryParameter(name="state")] = None,
                outcome: Annotated[Outcome, QueryParameter(description="Only tasks that ended so.")] = "",
                begun: Annotated[bool, QueryParameter(description="Only tasks of which an attempt has begun.")] = False,
                cursor: Cursor = "",
                limit: Limit = PAGE_ITEMS) -> Page[TaskView]:
    """List the tasks of a job by index."""
    return await service.tasks(id, state_, outcome, begun, cursor, limit)


@get("/v1/jobs/{id:str}/history", needs=Need.READ, responses=NAMED, summary="History of a job")
async def job_history(service: Asked, id: JobId, cursor: Cursor = "", limit: Limit = PAGE_ITEMS) -> Page[Event]:
    """List what happened to a job and its tasks."""
    return await service.history(id, cursor, limit)


@post("/v1/jobs/{id:str}/cancel", needs=Need.CHANGE_JOB, status_code=HTTP_200_OK, responses=CHANGE,
      summary="Cancel a job")
async def cancel_job(service: Asked, id: JobId) -> JobView:
    """Cancel all tasks of a job that have not ended."""
    return await service.cancel(id)


# -- tasks -------------------------------------------------------------------------------------------------------------


@get("/v1/tasks/{id:str}", needs=Need.READ, responses=NAMED, summary="Describe a task")
async def task(service: Asked, id: TaskId) -> TaskView:
    """Return a task."""
    return await service.task(id)


@get("/v1/tasks/{id:str}/logs", needs=Need.READ_JOB, responses=NAMED, summary="Output of a task")
async def logs(service: Asked, id: TaskId, stream: FromQuery[Stream] = "stdout",  # noqa: PLR0913, PLR0917  (its query)
               attempt: Annotated[int, QueryParameter(ge=0, le=INT64_MAX)] = 0,
               offset: Annotated[int, QueryParameter(ge=-INT64_MAX, le=INT64_MAX)] = 0,
               limit: Annotated[int, QueryParameter(ge=1, le=LOG_BYTES_MAX)] = LOG_BYTES_MAX,
               timeout_s: Wait = 0.0,
               tail: Annotated[int, QueryParameter(ge=0, le=LOG_LINES_MAX)] = 0) -> LogChunk:
    """Return part of what an attempt has written, the last if none is named.

    Offsets below zero count from the end; *tail* asks for the last so many lines instead.
    """
    return await service.logs(id, stream, attempt, offset, limit, timeout_s, tail)


@get("/v1/tasks/{id:str}/explain", needs=Need.READ, responses=NAMED, summary="Why a task waits")
async def explain(service: Asked, id: TaskId) -> Explanation:
    """Say why a task stands as it stands."""
    return await service.explain(id)


@get("/v1/tasks/{id:str}/history", needs=Need.READ, responses=NAMED, summary="History of a task")
async def task_history(service: Asked, id: TaskId, cursor: Cursor = "", limit: Limit = PAGE_ITEMS) -> Page[Event]:
    """List what happened to a task."""
    return await service.history(id, cursor, limit)


@post("/v1/tasks/{id:str}/cancel", needs=Need.CHANGE_JOB, status_code=HTTP_200_OK, responses=CHANGE,
      summary="Cancel a task")
async def cancel_task(service: Asked, id: TaskId) -> JobView:
    """Cancel a task; its job is returned."""
    return await service.cancel(id)


@post("/v1/tasks/{id:str}/preempt", needs=Need.CHANGE_JOB, status_code=HTTP_200_OK, responses=CHANGE,
      summary="Preempt a task")
async def preempt(service: Asked, id: TaskId) -> TaskView:
    """End the attempt of a task that runs; the task waits again."""
    return await service.preempt(id)


# -- the federation ----------------------------------------------------------------------------------------------------


@get("/v1/health", needs=Need.NOTHING, summary="Whether this master serves", security=[])
async def health(service: Asked) -> Health:
    """Say whether this master serves; needs no token."""
    return await service.health()


@get("/v1/ready", needs=Need.NOTHING, responses=_refusals(), summary="Whether this master takes jobs", security=[])
async def ready(service: Asked) -> Response[Health]:
    """Answer 200 if this master takes jobs, and else 503, so that it is left out for a while; needs no token."""
    health = await service.health()
    return Response(health, status_code=HTTP_200_OK if health.state == "ready" else HTTP_503_SERVICE_UNAVAILABLE)


@get("/metrics", needs=Need.READ, media_type=OPENMETRICS, summary="Metrics for Prometheus")
async def metrics(service: Asked) -> bytes:
    """Return metrics of this master in the text format of OpenMetrics."""
    return await service.metrics()


@get("/v1/federation", needs=Need.READ, responses=READ, summary="The federation as a whole")
async def federation(service: Asked) -> FederationView:
    """Return what this master knows of the federation."""
    return await service.federation()


@get("/v1/masters", needs=Need.READ, responses=READ, summary="List masters")
async def masters(service: Asked) -> tuple[MasterView, ...]:
    """List all masters, as they seem from here."""
    return await service.masters()


@get("/v1/queues", needs=Need.READ, responses=READ, summary="List queues")
async def queues(service: Asked, cursor: Cursor = "", limit: Limit = PAGE_ITEMS) -> Page[QueueView]:
    """List the tree of queues, parents before children."""
    return await service.queues(cursor, limit)


@get("/v1/machines", needs=Need.READ, responses=READ, summary="List machines")
async def machines(service: Asked, cluster: Word = "", cursor: Cursor = "",
                   limit: Limit = PAGE_ITEMS) -> Page[MachineView]:
    """List machines by name."""
    return await service.machines(cluster, cursor, limit)


@get("/v1/machines/{name:str}", needs=Need.READ, responses=NAMED, summary="Describe a machine")
async def machine(service: Asked, name: Machine) -> MachineView:
    """Return a machine."""
    return await service.machine(name)


@post("/v1/machines/{name:str}/cordon", needs=Need.OPERATE, status_code=HTTP_200_OK, responses=CHANGE,
      summary="Cordon a machine")
async def cordon(service: Asked, name: Machine) -> MachineView:
    """Let nothing new start on a machine."""
    return await service.cordon(name, True)


@post("/v1/machines/{name:str}/uncordon", needs=Need.OPERATE, status_code=HTTP_200_OK, responses=CHANGE,
      summary="Uncordon a machine")
async def uncordon(service: Asked, name: Machine) -> MachineView:
    """Let tasks start on a machine again."""
    return await service.cordon(name, False)


@post("/v1/machines/{name:str}/drain", needs=Need.OPERATE, status_code=HTTP_200_OK, responses=CHANGE,
      summary="Drain a machine")
async def drain(service: Asked, name: Machine) -> MachineView:
    """Cordon a machine, and move what runs there elsewhere."""
    return await service.drain(name)


@post("/v1/machines/{name:str}/remove", needs=Need.OPERATE, status_code=HTTP_200_OK, responses=CHANGE,
      summary="Remove a machine")
async def remove(service: Asked, name: Machine) -> MachineView:
    """Take a machine out for good that was silent for a lease."""
    return await service.remove(name)


@post("/v1/configuration/plan", needs=Need.OPERATE, status_code=HTTP_200_OK,
      operation_class=ConfigurationOperation, responses=_refusals(413), summary="What a configuration would change")
async def plan(service: Asked, body: RawBody) -> Plan:
    """Return what a configuration would change, and change nothing."""
    return await service.plan(_text(body).encode())


@post("/v1/configuration/apply", needs=Need.OPERATE, status_code=HTTP_200_OK,
      operation_class=ConfigurationOperation, responses=_refusals(409, 413), summary="Apply a configuration")
async def apply(service: Asked, body: RawBody, version: Annotated[int, QueryParameter(ge=0, le=INT64_MAX)]) -> Plan:
    """Apply a configuration, if *version* is still in force."""
    return await service.apply(_text(body).encode(), version)


# -- people ------------------------------------------------------------------------------------------------------------


@get("/v1/whoami", needs=Need.READ, responses=READ, summary="Who asks")
async def whoami(caller: By) -> TokenView:
    """Return who holds the token of this request, and what it may do."""
    return token_view(caller.who, time.time())


@get("/v1/people", needs=Need.ADMINISTER, responses=READ, summary="List tokens")
async def people(service: Asked, cursor: Cursor = "", limit: Limit = PAGE_ITEMS) -> Page[TokenView]:
    """List tokens with their holders, by name; the one of the first start is not among them."""
    return await service.tokens(cursor, limit)


@post("/v1/people", needs=Need.ADMINISTER, responses=_refusals(409), summary="Make a token")
async def add_person(service: Asked, caller: By, data: JSONBody[NewPerson]) -> MadeToken:
    """Make a token for somebody; it is shown in this answer only."""
    made = await service.add_person(data, caller.who.name)
    caller.object = made.holder.id
    return made


@post("/v1/people/{name:str}/revoke", needs=Need.ADMINISTER, status_code=HTTP_200_OK, responses=CHANGE,
      summary="Revoke tokens")
async def revoke(service: Asked, name: Person) -> Page[TokenView]:
    """Revoke a token by its id, or all tokens of a person."""
    return await service.revoke(name)


@get("/v1/audit", needs=Need.ADMINISTER, responses=NAMED, summary="List changes")
async def audit_log(audit: Log, since: FromQuery[float] = 0.0, who: Word = "",
                    about: Annotated[str, QueryParameter(name="object", max_length=TEXT_MAX)] = "",
                    limit: Limit = PAGE_ITEMS) -> Page[AuditEntry]:
    """List the latest changes that this master was asked for, the earliest first, with who asked, and how they ended.

    *since*: a Unix time; *who*: a person; *object*: a job (with its tasks), a machine, a person or a token.
    """
    if audit is None:
        raise NotFoundError("this master keeps no audit log")
    lines = await asyncio.to_thread(audit.read, since, who, about, limit)
    return Page(items=tuple(AuditEntry(**structs.asdict(line)) for line in lines))


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidError("body: must be text in UTF-8", field="body") from None


ROUTES: list[Any] = [
    submit, jobs, job, job_file, wait, tasks, job_history, cancel_job, task, logs, explain, task_history, cancel_task,
    preempt, health, ready, metrics, federation, masters, queues, machines, machine, cordon, uncordon, drain, remove,
    plan, apply, whoami, people, add_person, revoke, audit_log,
]
