"""Sends one request over a kept connection to the right master, and repeats it where that is safe.

A master that does not keep what is asked for says who does, and that one is asked. What may be asked twice (whatever
changes nothing, a submission under its name) is asked again while nobody can answer, until patience ends.
"""
import http.client
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from subak.errors import InputError
from subak.live.api.errors import BY_CODE, BY_STATUS, NotOwnerError, ServiceError, UnavailableError
from subak.live.api.models import FederationView, Problem
from subak.live.client.settings import SOCKET, ClientSettings, checked_address

T = TypeVar("T")
HOPS_MAX = 3  # from a master that is not the owner to another
PAUSE_FIRST_S, PAUSE_MAX_S = 0.05, 1.0
ANSWER_BYTES_MAX = 256 << 20
LOST = (OSError, http.client.HTTPException)  # a connection that failed


class Question(Struct, frozen=True, kw_only=True):
    """What is asked, and whether it may be asked twice."""

    method: str
    path: str
    query: dict[str, str] = {}
    body: bytes | None = None
    headers: dict[str, str] = {}
    may_repeat: bool = True
    wait_s: float = 0.0  # that the answer itself is held back at most

    @property
    def target(self) -> str:
        """The path with its query."""
        path = quote(self.path)
        return f"{path}?{urlencode(self.query)}" if self.query else path


class CutOffError(UnavailableError):
    """The connection broke when the question had been sent, so it may have been carried out."""


class NotListeningError(UnavailableError):
    """Nobody listens at the address of a master, so nothing was sent."""


class Transport:
    """Connections to masters, one each."""

    def __init__(self, settings: ClientSettings, timeout_s: float, patience_s: float,
                 clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self.settings, self.timeout_s, self.patience_s = settings, timeout_s, patience_s
        self.clock, self.sleep = clock, sleep
        self.connections: dict[str, http.client.HTTPConnection] = {}
        self.sockets: dict[str, str] = {}  # by the address of a master on this host
        self.context: Any = None  # ssl.SSLContext, of all of them

    def close(self) -> None:
        """Close all connections."""
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()

    def ask(self, question: Question, type: type[T], address: str = "") -> T:
        """Return the answer of the master at *address*, or of whoever can give it. Raises what the service raises."""
        return _decoded(self._patient(question, (self._own(address),) if address else self.settings.addresses), type)

    def _own(self, address: str) -> str:
        """Return the socket of a master on this host, where there is no token for its address."""
        if self.settings.token or address.startswith(SOCKET):
            return address
        if not self.sockets:
            for place in self.settings.addresses:
                with suppress(ServiceError):
                    view = _decoded(self._once(Question(method="GET", path="/v1/federation"), place), FederationView)
                    self.sockets |= {each.address: place for each in view.masters if each.name == view.master}
        return self.sockets.get(address, address)

    def _patient(self, question: Question, addresses: tuple[str, ...]) -> bytes:
        """Ask again, after pauses, while the federation cannot answer and patience lasts."""
        end, pause = self.clock() + self.patience_s, PAUSE_FIRST_S
        while True:
            try:
                return self._in_turn(question, addresses)
            except UnavailableError as error:
                if isinstance(error, CutOffError) and not question.may_repeat:
                    raise
                if isinstance(error, NotListeningError) and self.settings.is_stopped():
                    raise UnavailableError(f"{self.settings.folder}: the federation of this folder is stopped; subak "
                                           "up starts it with its jobs") from None
                if self.clock() + pause > end:
                    raise
            self.sleep(pause)
            pause = min(PAUSE_MAX_S, 2 * pause)

    def _in_turn(self, question: Question, addresses: tuple[str, ...]) -> bytes:
        """Ask the first master that can be reached; its word counts."""
        failed: UnavailableError | None = None
        for address in addresses:
            try:
                return self._followed(question, address)
            except NotOwnerError:
                raise
            except CutOffError as error:
                if not question.may_repeat:
                    raise
                failed = error
            except UnavailableError as error:
                failed = failed or error
        assert failed is not None
        raise failed

    def _followed(self, question: Question, address: str) -> bytes:
        """Ask a master, and whom it names, and whom that one names."""
        for _ in range(HOPS_MAX):
            try:
                return self._once(question, address)
            except NotOwnerError as error:
                if not error.owner:
                    raise
                address = self._own(_owner(error))
        raise UnavailableError(f"{address}: masters name each other as the owner of {question.path}")

    def _once(self, question: Question, address: str) -> bytes:
        """Ask one master; a kept connection that it has closed meanwhile is made anew."""
        kept = address in self.connections
        try:
            return self._exchange(question, address)
        except CutOffError:
            if not kept or not question.may_repeat:
                raise
        return self._exchange(question, address)

    def _exchange(self, question: Question, address: str) -> bytes:
        connection = self._connected(address, question.wait_s, question.may_repeat)
        token = self.settings.token
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **question.headers}
        try:
            connection.request(question.method, question.target, question.body, headers)
            answer = connection.getresponse()
            body = _whole(answer)
        except LOST as error:
            self.connections.pop(address).close()
            raise CutOffError(f"{address}: the connection broke: {error or error.__class__.__name__}") from None
        if answer.will_close or not answer.isclosed():
            self.connections.pop(address).close()
        if answer.status >= 400:
            raise error_of(answer.status, body, address)
        return body

    def _connected(self, address: str, wait_s: float, may_repeat: bool) -> http.client.HTTPConnection:
        """Return a connection to a master. Raises UnavailableError where none can be had; nothing was sent then."""
        connection = self.connections.get(address)
        if connection is not None and not may_repeat:  # the master may be closing it just now
            self.connections.pop(address).close()
            connection = None
        if connection is None:
            connection = self._made(address)
            try:
                connection.connect()
            except OSError as error:
                if isinstance(error, ConnectionRefusedError):
                    raise NotListeningError(f"{address}: cannot be reached: {error.strerror}; if it was stopped, subak "
                                            "up starts it with its jobs") from None
                raise UnavailableError(f"{address}: cannot be reached: {error.strerror or error}") from None
            self.connections[address] = connection
        connection.sock.settimeout(self.timeout_s + wait_s)
        return connection


    def _made(self, address: str) -> http.client.HTTPConnection:
        """Return a connection that is not made yet. Raises InputError for authorities that can't be read."""
        if address.startswith(SOCKET):
            return _OverSocket(address.removeprefix(SOCKET), self.timeout_s)
        place = urlsplit(address)
        host = place.hostname or ""
        if place.scheme != "https":
            return http.client.HTTPConnection(host, place.port, timeout=self.timeout_s)
        import ssl  # noqa: PLC0415  (most federations are on this machine, and a command starts sooner without)

        if self.context is None:
            try:
                self.context = ssl.create_default_context(cafile=self.settings.ca or None)
                if self.settings.revoked:
                    self.context.load_verify_locations(self.settings.revoked)
                    self.context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
            except OSError as error:
                raise InputError(f"{self.settings.ca} {self.settings.revoked}: no certificates of authorities, or no "
                                 f"list of revoked ones: {error.strerror or error}") from None
        return http.client.HTTPSConnection(host, place.port, timeout=self.timeout_s, context=self.context)


class _OverSocket(http.client.HTTPConnection):
    """A connection over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self.path = path

    def connect(self) -> None:
        """Connect to the socket's file."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self.path)
        except OSError:
            self.sock.close()
            raise


def _whole(answer: http.client.HTTPResponse) -> bytes:
    """Return the body. Raises IncompleteRead where the connection ended before it, which http.client may not say."""
    body, length = answer.read(ANSWER_BYTES_MAX), answer.getheader("Content-Length")
    is_empty = answer.status == http.HTTPStatus.NO_CONTENT
    if not answer.chunked and not is_empty and (length is None or len(body) < min(int(length), ANSWER_BYTES_MAX)):
        raise http.client.IncompleteRead(body)
    return body


def _owner(error: NotOwnerError) -> str:
    try:
        return checked_address(error.owner)
    except InputError:
        raise ServiceError(f"a master names an owner whose address is none: {error.owner!r}") from None


def _decoded(body: bytes, type: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServiceError(f"the answer is not understood, perhaps because of another version: {error}") from None


def error_of(status: int, body: bytes, address: str) -> ServiceError:
    """Return the error that a service raised; of an answer that is not a service's, what its status says."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        kind = BY_STATUS.get(status, UnavailableError if status in (429, 502, 504) else ServiceError)
        return kind(f"{address}: answered with status {status}, and not as a master does")
    kind = BY_CODE[problem.code]
    if issubclass(kind, NotOwnerError):
        return kind(problem.words, owner=problem.owner)
    return kind("\n".join(problem.details) or problem.words, field=problem.field, details=problem.details)
