"""Connections without a token, over real sockets: they keep nobody out, and do not last."""
import socket
import time
import urllib.parse

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from serving import Serving

HALF = b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX-Half: "
ENOUGH_S = 60.0  # for what must happen, however busy the machine is


@pytest.fixture(params=["httptools", "h11"])
def serve(request, monkeypatch):
    """Start a server with settings, which parses requests by one of the two."""
    if request.param == "h11":
        monkeypatch.setattr("subak.live.api.server._parser", lambda: H11Protocol)
    else:
        pytest.importorskip("httptools")
    started = []

    def _serve(**settings):
        started.append(Serving(stop_s=0, **settings))
        return started[-1]
    yield _serve
    for serving in started:
        serving.stop()


def connected(serving):
    place = urllib.parse.urlsplit(serving.addresses["g0"])
    return socket.create_connection((place.hostname, place.port), timeout=ENOUGH_S)


def asked(wire, token, path="/v1/masters"):
    """Ask over a connection, and return the status line."""
    said = f"Authorization: Bearer {token}\r\n" if token else ""
    wire.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{said}\r\n".encode())
    return answered(wire)


def answered(wire):
    """Receive an answer, and return its status line."""
    received = b""
    while b"\r\n\r\n" not in received:
        byte = wire.recv(1)
        assert byte
        received += byte
    head, _, _ = received.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
    while length:
        length -= len(wire.recv(length))
    return head.split(b"\r\n")[0]


def ends(wire):
    """Whether the other side ends a connection."""
    try:
        while wire.recv(65_536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def test_heads_that_are_never_whole_keep_nobody_out(serve):
    serving = serve(connections_max=60, strangers_max=20, head_s=600.0)
    known = connected(serving)
    assert asked(known, serving.token) == b"HTTP/1.1 200 OK"
    strangers = []
    for _ in range(80):
        strangers.append(connected(serving))
        strangers[-1].sendall(HALF)
    with connected(serving) as late:
        assert asked(late, serving.token) == b"HTTP/1.1 200 OK"
    assert asked(known, serving.token) == b"HTTP/1.1 200 OK"
    assert all(ends(wire) for wire in strangers[:60])
    for wire in [known, *strangers]:
        wire.close()


def test_a_head_has_to_be_whole_in_time_also_with_bytes_that_drip(serve):
    serving = serve(head_s=0.3)
    wire, until = connected(serving), time.monotonic() + ENOUGH_S
    wire.sendall(HALF)
    try:
        while time.monotonic() < until:
            wire.sendall(b"x")
            time.sleep(0.02)
    except ConnectionError:
        pass
    assert time.monotonic() < until
    wire.close()


def test_the_next_head_of_a_connection_with_the_token_has_to_be_whole_in_time_too(serve):
    serving = serve(head_s=0.3)
    with connected(serving) as wire:
        assert asked(wire, serving.token) == b"HTTP/1.1 200 OK"
        time.sleep(0.5)  # between two requests there is no hurry
        assert asked(wire, serving.token) == b"HTTP/1.1 200 OK"
        wire.sendall(HALF)
        assert ends(wire)


def test_a_request_with_the_token_may_be_held_open_for_longer_than_a_head(serve):
    serving = serve(head_s=0.1)
    text = b'{"metadata": {"name": "a"}, "queue": "web", "stages": [{"name": "a", "command": ["sleep"]}]}'
    head = (f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {serving.token}\r\nIdempotency-Key: k\r\n"
            f"Content-Length: {len(text)}\r\n\r\n").encode()
    with connected(serving) as wire:
        wire.sendall(head + text[:20])
        time.sleep(0.3)
        wire.sendall(text[20:])  # a body takes its time
        assert answered(wire) == b"HTTP/1.1 201 Created"
        assert asked(wire, serving.token, "/v1/jobs/g0-0/wait?timeout_s=0.4") == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(("token", "path", "status"), [
    ("", "/v1/health", b"HTTP/1.1 200 OK"), ("wrong", "/v1/masters", b"HTTP/1.1 401 Unauthorized")])
def test_a_stranger_is_answered_and_does_not_stay(serve, token, path, status):
    serving = serve(head_s=0.3)
    with connected(serving) as wire:
        assert asked(wire, token, path) == status
        assert ends(wire)
