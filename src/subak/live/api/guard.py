"""Lets requests pass: who asks (a token), and whether its role may do what the route says that it needs.

Every route declares its need (`needs=Need.READ`). `Guarded` finds out who asks; `allowed` then compares, before the
route is called. What is submitted to a queue is known only when the job file was read: `check` is called once more.
"""
import logging
import re
import time
from dataclasses import dataclass
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from subak.live.api.errors import ForbiddenError, ServiceError, UnauthorizedError, UnavailableError
from subak.live.api.host_socket import holder, name_of
from subak.live.api.models import ID_PATTERN
from subak.live.api.problems import TYPE, body_of, headers_of
from subak.live.api.service import Service
from subak.live.api.strangers import CONNECTION
from subak.live.people.access import OF_JOBS, Need, may, refusal
from subak.live.people.audit import NO_OUTCOME, Audit, Line
from subak.live.people.identity import Identity, People

OPEN = ("/v1/health", "/v1/ready")  # all that is answered without a token
DOCUMENT = "/v1/openapi"
AnyConnection = ASGIConnection[Any, Any, Any, Any]
UNCHANGING = ("GET", "HEAD", "OPTIONS")  # methods
PLANS = ("/v1/configuration/plan",)  # what changes nothing, whatever its method
CALLER = "subak.caller"  # the key, in the scope of a request, of who asks


log = logging.getLogger(__name__)


@dataclass(eq=False)
class Caller:
    """Who asks in a request, and what that is about, where its path does not say it."""

    who: Identity
    object: str = ""  # what a change has made: a job, a token


class Guarded:
    """An application of which nothing but OPEN answers without a token: routes, and what is no route, alike."""

    def __init__(self, app: ASGIApp, people: People, audit: Audit | None = None) -> None:
        """*audit*: where changes are written down, before they are made and afterwards."""
        self.app, self.people, self.audit = app, people, audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may pass, and answer all else."""
        kind: str = scope["type"]
        if kind == "lifespan":
            await self.app(scope, receive, send)
        elif kind == "http":
            connection = scope.get("state", {}).get(CONNECTION)
            found = self._holder(scope, None if connection is None else connection.uid)
            if connection is None:
                await self._answer(scope, receive, send, found)
                return
            connection.begin(is_known=isinstance(found, Identity))
            try:
                await self._answer(scope, receive, send, found)
            finally:
                connection.end()
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": ""})

    async def _answer(self, scope: Any, receive: Receive, send: Send, found: Identity | str) -> None:
        if isinstance(found, Identity):
            caller = scope[CALLER] = Caller(found)
            if self.audit is None or scope["method"] in UNCHANGING or scope["path"] in PLANS:
                await self.app(scope, receive, send)
            else:
                await self._write_down(self.audit, caller, scope, receive, send)
        elif scope["path"] in OPEN:
            await self.app(scope, receive, send)
        else:
            await _refuse(send, UnauthorizedError(found))

    async def _write_down(self, audit: Audit, caller: Caller, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request that may change something, and write down who asks and how it ends."""
        who, code = caller.who, NO_OUTCOME
        line = Line("", 0.0, who.name, who.role, who.id, _origin(scope),
                    f"{scope['method']} {scope['path']}", _object_of(scope["path"]))
        try:
            request = audit.begin(line)
        except OSError as error:
            await _refuse(send, UnavailableError(f"nothing was changed: the audit log takes no line: {error.strerror}",
                                                 retry_after_s=5))
            return

        async def noting(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            try:
                audit.end(request, code, caller.object)
            except OSError as error:
                log.error("the audit log lacks the outcome %d of request %s: %s", code, request, error.strerror)

    def _holder(self, scope: Any, uid: int | None) -> Identity | str:
        """Return who holds the token that a request carries, once, or is the user *uid*; or why nobody does."""
        given = _authorizations(scope)
        if not given and uid is not None:
            user = holder(self.people, uid)
            return user if isinstance(user, str) else _in_force(user)
        if not given:
            return "a token is needed, as in Authorization: Bearer TOKEN"
        scheme, _, token = given[0].decode("latin-1").partition(" ")
        found = self.people.holder(token.strip()) if len(given) == 1 and scheme.lower() == "bearer" else None
        if found is None:
            return "a token is needed, as in Authorization: Bearer TOKEN; this one is not that of this federation"
        return _in_force(found)


def _in_force(found: Identity) -> Identity | str:
    """Return who asks, or why it is nobody any more."""
    state = found.state(time.time())
    if state == "valid":
        return found
    ended = "was revoked" if state == "revoked" else "has expired"
    return f"token {found.id} of {found.name} {ended}: an admin makes another with `subak people add`"


def caller_of(scope: Scope) -> Caller:
    """Return who asks. Raises UnauthorizedError where nobody has said who that is."""
    caller = scope.get(CALLER)
    if not isinstance(caller, Caller):
        raise UnauthorizedError("a token is needed, as in Authorization: Bearer TOKEN")
    return caller


async def allowed(connection: AnyConnection, handler: BaseRouteHandler) -> None:
    """Let a request pass to its route. Raises ForbiddenError where whoever asks may not do what that needs."""
    need, scope = handler.opt.get("needs"), connection.scope
    if need is None and scope["path"].startswith(DOCUMENT):
        need = Need.READ
    if need is Need.NOTHING or scope.get("method") == "OPTIONS":  # which the framework answers by itself
        return
    caller, service = caller_of(scope), connection.app.state.service
    id_ = connection.path_params.get("id")
    if need in OF_JOBS and isinstance(id_, str) and re.search(ID_PATTERN, id_):
        await check_job(caller, need, handler, service, id_)
    elif need is not None and need not in OF_JOBS:
        check(caller, need, _words(handler))
    elif need is None:
        raise ForbiddenError("this path says of nobody that it may be asked for")


async def check_job(caller: Caller, need: Need, handler: BaseRouteHandler, service: Service, id: str) -> None:
    """Raise ForbiddenError where somebody may not do this to a job, or a task of it."""
    if may(caller.who, need):
        return
    job = await service.belongs(id)
    if not may(caller.who, need, job.queue, job.user):
        raise ForbiddenError(refusal(caller.who, need, f"{_words(handler)} {id} of {job.user or 'nobody known'}"))


def check(caller: Caller, need: Need, what: str, queue: str | None = None) -> None:
    """Raise ForbiddenError where somebody may not do what needs this."""
    if not may(caller.who, need, queue):
        raise ForbiddenError(refusal(caller.who, need, what))


def _words(handler: BaseRouteHandler) -> str:
    """Return what a route does, as its summary says."""
    summary = str(getattr(handler, "summary", "") or handler.handler_name)
    return f"`{summary[0].lower()}{summary[1:]}`"


def _origin(scope: Any) -> str:
    """Return from where a request comes: an address, or a user of this host."""
    connection = scope.get("state", {}).get(CONNECTION)
    if connection is not None and connection.uid is not None:
        return f"user {name_of(connection.uid)}"
    return str((scope.get("client") or ("",))[0])


def _object_of(path: str) -> str:
    """Return what a path is about, such as the job of /v1/jobs/g0-17/cancel; nothing where it says none."""
    parts = path.split("/")[2:]
    return parts[1] if len(parts) > 2 and parts[0] != "configuration" else parts[0] if parts[1:] else ""


def _authorizations(scope: Any) -> list[bytes]:
    return [value for name, value in scope["headers"] if name.lower() == b"authorization"]


async def _refuse(send: Send, error: ServiceError) -> None:
    body = body_of(error)
    headers = {"content-type": TYPE, "content-length": str(len(body)), **headers_of(error)}
    await send({"type": "http.response.start", "status": error.status,
                "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()]})
    await send({"type": "http.response.body", "body": body, "more_body": False})
