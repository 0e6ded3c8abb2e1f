"""The HTTP server of a global master: its routes, behind tokens and roles, on 127.0.0.1 by default."""
import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import uvicorn
from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from msgspec import Meta, Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

from subak.errors import RunError
from subak.live.api.guard import DOCUMENT, Guarded, allowed, caller_of
from subak.live.api.host_socket import HostSocket
from subak.live.api.problems import HANDLERS
from subak.live.api.routes import ROUTES
from subak.live.api.service import Service
from subak.live.api.strangers import Strangers, watched
from subak.live.people.access import Need
from subak.live.people.audit import Audit
from subak.live.tokens import TokenHash
from subak.version import VERSION


class ServerSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a master answers people, and how much it lets them send."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 7433  # 0: any that is free
    body_bytes_max: Annotated[int, Meta(ge=1024)] = 4 << 20
    connections_max: Annotated[int, Meta(ge=1)] = 2_000
    strangers_max: Annotated[int, Meta(ge=1)] = 512  # connections of which no request has carried the token yet
    head_s: Annotated[float, Meta(gt=0)] = 10.0  # that a head may take, and a stranger until it shows the token
    keep_alive_s: Annotated[int, Meta(ge=1)] = 75
    stop_s: Annotated[int, Meta(ge=0)] = 2  # that requests under way have to end when the server stops


def make_app(service: Service, settings: ServerSettings, audit: Audit | None = None) -> Litestar:
    """Return the routes over a service; each lets pass who may do what it needs, and `Guarded` says who asks.

    Raises RunError for a route that does not say what it needs.
    """
    for route in ROUTES:
        if not isinstance(route.opt.get("needs"), Need):
            raise RunError(f"route {', '.join(sorted(route.paths))}: must say what it needs, as needs=Need.READ")
    return Litestar(
        route_handlers=ROUTES,
        guards=[allowed],
        state=State({"service": service}),
        dependencies={"service": Provide(lambda: service, sync_to_thread=False),
                      "caller": Provide(caller_of, sync_to_thread=False),
                      "audit": Provide(lambda: audit, sync_to_thread=False)},
        exception_handlers=HANDLERS,
        request_max_body_size=settings.body_bytes_max,
        logging_config=None,
        openapi_config=OpenAPIConfig(
            title="Subak", version=VERSION, path=DOCUMENT, render_plugins=[JsonRenderPlugin()],
            operation_id_creator=lambda handler, *_: str(handler.handler_name),
            components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
            security=[{"token": []}],
        ),
    )


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to the process it is in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class HttpServer:
    """A server in the event loop of a process: `start`, then `address`, and `stop` in the end."""

    def __init__(self, service: Service, token: TokenHash, settings: ServerSettings,
                 tls: ssl.SSLContext | None = None, say: Callable[[str], None] = lambda words: None,
                 audit: Audit | None = None, own: Path | None = None) -> None:
        """*token*: that of the first admin; all others are in `service.people`.

        *tls*: by which it speaks, left out: in clear; *say*: where it says that it waits for its address;
        *own*: a socket for users of this host.
        """
        self.settings, self.say, self.scheme = settings, say, "http" if tls is None else "https"
        service.people.begin_with(token)
        app: Any = Guarded(make_app(service, settings, audit), service.people, audit)
        self._server = _Uvicorn(uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, proxy_headers=False, lifespan="on", ws="none",
            http=watched(_parser(), Strangers(settings.strangers_max, settings.head_s)),
            timeout_keep_alive=settings.keep_alive_s, timeout_graceful_shutdown=settings.stop_s,
            limit_concurrency=settings.connections_max, log_level=logging.WARNING,
            ssl_context_factory=None if tls is None else lambda config, default: tls,
        ))
        self._running: asyncio.Task[None] | None = None
        self._own = HostSocket(own) if own is not None else None
        self.address = ""  # once it was started

    async def start(self) -> str:
        """Begin to answer, and return the address. Raises RunError where it cannot listen there."""
        listener = await self._listener()
        host, port = listener.getsockname()[:2]
        self.address = f"{self.scheme}://[{host}]:{port}" if ":" in host else f"{self.scheme}://{host}:{port}"
        self._running = asyncio.create_task(self._server.serve(sockets=[listener]))
        while not self._server.started:
            if self._running.done():
                self._running.result()
                raise RunError(f"{self.address}: the server ended before it had begun")
            await asyncio.sleep(0.001)
        if self._own is not None:
            server = self._server
            await self._own.start(lambda: server.config.http_protocol_class(  # type: ignore[call-arg]
                config=server.config, server_state=server.server_state, app_state=server.lifespan.state))
        return self.address

    async def _listener(self) -> socket.socket:
        """Return a socket that listens, as soon as this host has the address. Raises RunError where it cannot."""
        place, is_said = f"{self.settings.host}:{self.settings.port}", False
        while True:
            try:
                return _listener(self.settings.host, self.settings.port)
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL and not isinstance(error, socket.gaierror):
                    raise RunError(f"{place}: cannot listen there: {error.strerror}") from None
                if not is_said:
                    self.say(f"{place}: this host does not have the address yet; waits for it")
                is_said = True
            await asyncio.sleep(1.0)

    async def stop(self) -> None:
        """Answer no more; requests under way have `stop_s` to end."""
        if self._own is not None:
            self._own.stop()
        self._server.should_exit = True
        if self._running is not None:
            await self._running


def _parser() -> type:
    """Return what parses requests: httptools where it is installed, else h11; both bound the head of a request."""
    try:
        from subak.live.api.protocol import BoundedProtocol  # noqa: PLC0415  (it may not be installed)
    except ImportError:
        return H11Protocol
    return BoundedProtocol


def _listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises OSError where it cannot."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM,
                                                            flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def document(app: Litestar) -> bytes:
    """Return the OpenAPI document of an application, as JSON."""
    return msgspec.json.encode(app.openapi_schema.to_schema())
