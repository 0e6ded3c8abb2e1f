"""The HTTP side of a federation: who may ask, what is refused and how, and that nothing makes it fail."""
import asyncio
import http.client
import json
import os
import socket
import threading
import time
import urllib.parse
from contextlib import suppress

import hypothesis
import msgspec
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from uvicorn.protocols.http.h11_impl import H11Protocol

from fake_service import FakeService
from serving import Serving
from subak.errors import InputError, RunError
from subak.live.api.guard import Guarded
from subak.live.api.models import JobView, LogChunk, Page, Problem, TaskView
from subak.live.api.routes import ROUTES
from subak.live.api.server import HttpServer, ServerSettings, document, make_app
from subak.live.jobfile.read import read_job
from subak.live.people.identity import People
from subak.live.tokens import JOIN, PEOPLE, TokenHash, hash_of, kept_hash, new_token, read_token

JOB = {"metadata": {"name": "a"}, "queue": "research/ada", "stages": [{"name": "main", "command": ["true"]}]}
FOREIGN = new_token(PEOPLE)
ENDS_S = 45.0  # in which a server has ended; who asks would wait for longer


@pytest.fixture(scope="module")
def serving():
    serving = Serving(body_bytes_max=4096)
    yield serving
    serving.stop()


def ask(serving, method, path, body=None, token=None, **headers):
    """Return status, headers and body of an answer; the right token is given unless another is."""
    place = urllib.parse.urlsplit(serving.addresses["g0"])
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=20)
    given = {"Authorization": f"Bearer {serving.token if token is None else token}"} if token != "" else {}
    connection.request(method, path, body, {**given, **headers})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def submit(serving, key, **changes):
    return ask(serving, "POST", "/v1/jobs", json.dumps({**JOB, **changes}), **{"Idempotency-Key": key})


def problem(found):
    assert found[1]["content-type"] == "application/problem+json"
    return msgspec.json.decode(found[2], type=Problem)


HEAD = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n"
CHUNKED = (b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer %s\r\n"
           b"Idempotency-Key: chunks\r\n\r\n")


@pytest.fixture(scope="module", params=["httptools", "h11"])
def parsing(request):
    """A server that parses requests by one of the two."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "h11":
            patch.setattr("subak.live.api.server._parser", lambda: H11Protocol)
        else:
            pytest.importorskip("httptools")
        serving = Serving()
    yield serving
    serving.stop()


def poured(serving, first, more, times):
    """Send bytes, and then *more* of them many times over; return what comes back until the connection is closed."""
    place = urllib.parse.urlsplit(serving.addresses["g0"])
    found = b""
    with socket.create_connection((place.hostname, place.port), timeout=5) as wire, suppress(ConnectionError):
        wire.sendall(first)
        for _ in range(times):
            wire.sendall(more)
        while chunk := wire.recv(65_536):
            found += chunk
    return found


@pytest.mark.parametrize(("first", "more"), [
    (HEAD, b"X-A: " + b"x" * 1000 + b"\r\n"), (HEAD + b"X: ", b"x" * 1000), (b"GET /", b"x" * 1000),
    (CHUNKED + b"0\r\n", b"X-A: " + b"x" * 1000 + b"\r\n"),
])
def test_a_head_without_end_is_refused(parsing, first, more):
    first = first % parsing.token.encode() if b"%s" in first else first
    found = poured(parsing, first, more, 100)
    assert not found or found.startswith(b"HTTP/1.1 400")  # unread bytes may have taken the answer with them


def test_a_body_may_come_in_many_pieces(parsing):
    command = ["true", *("x" * 100_000 for _ in range(5))]
    text = json.dumps({**JOB, "stages": [{"name": "main", "command": command}]}).encode()
    parts = [text[at : at + 1000] for at in range(0, len(text), 1000)]
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    first = CHUNKED % parsing.token.encode()
    found = poured(parsing, first.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), pieces + b"0\r\n\r\n", 1)
    assert found.startswith(b"HTTP/1.1 201")


# -- who may ask -------------------------------------------------------------------------------------------------------


def table():
    """Every method of every route of the application, what it adds by itself (OpenAPI) too."""
    app = make_app(FakeService(), ServerSettings())
    return sorted({(method, route.path) for route in app.routes for method in route.methods})


def with_values(path):
    return path.replace("{id:str}", "g0-0.0" if "/tasks/{" in path else "g0-0").replace("{name:str}", "m0")


WITHOUT = [("GET", "/v1/nothing"), ("GET", "/"), ("DELETE", "/v1/jobs"), ("GET", "/v1/health/"), ("GET", "//v1/health"),
           ("GET", "/v1/health/../jobs"), ("GET", "/v1/health%2f..%2fjobs"), ("GET", "/v1/healthx")]


@pytest.mark.parametrize(("method", "path"), [*table(), *WITHOUT])
def test_nothing_but_the_health_check_answers_without_the_token(serving, method, path):
    wrong = serving.token[:-1] + ("A" if serving.token[-1] != "A" else "B")
    before = list(serving.services["g0"].calls)
    for token in ("", FOREIGN, wrong, new_token(JOIN), serving.token.upper(), serving.token[:-1], "x" * 5000, "é"):
        status, headers, body = ask(serving, method, with_values(path), token=token)
        if path in ("/v1/health", "/v1/ready"):
            assert status in (200, 204)
            continue
        assert status == 401, (method, path, token)
        assert headers["www-authenticate"] == "Bearer"
        if method != "HEAD":
            assert msgspec.json.decode(body, type=Problem).code == "unauthorized"
        assert serving.token.encode() not in body
    assert serving.services["g0"].calls == before


def test_the_table_of_routes_is_all_there_is(serving):
    declared = {path for route in ROUTES for path in route.paths}
    own = {"/v1/openapi", "/v1/openapi/openapi.json", "/v1/openapi/{path:str}"}
    assert {path for _, path in table()} - declared == own
    for method, path in table():
        if method == "GET" and "{" not in path:
            assert ask(serving, method, path)[0] == 200, path


@pytest.mark.parametrize("header", ["Basic {}", "{}", "Bearer", "Bearer {} {}", "Token {}", "bearerx {}"])
def test_a_token_is_given_as_a_bearer_token(serving, header):
    given = header.format(serving.token, "x")
    assert ask(serving, "GET", "/v1/jobs", token="", Authorization=given)[0] == 401
    assert ask(serving, "GET", "/v1/jobs", token="", Authorization=f"bearer {serving.token}")[0] == 200


def test_two_authorizations_are_none(serving):
    status = exchange(serving, "GET /v1/jobs HTTP/1.1", f"Authorization: Bearer {serving.token}",
                      "Authorization: Bearer x", "Host: a")
    assert b" 401 " in status


def exchange(serving, *lines):
    """Return the first line of an answer to a request as it is written here."""
    place = urllib.parse.urlsplit(serving.addresses["g0"])
    with socket.create_connection((place.hostname, place.port), timeout=20) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return connection.recv(65536).split(b"\r\n", 1)[0]


def test_a_websocket_is_closed():
    sent = []

    async def send(message):
        sent.append(message)

    guarded = Guarded(None, People(hash_of(FOREIGN)))
    asyncio.run(guarded({"type": "websocket", "path": "/v1/health", "headers": []}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008, "reason": ""}]


def test_it_listens_here_unless_told_otherwise(serving):
    assert ServerSettings().host == "127.0.0.1"
    assert serving.addresses["g0"].startswith("http://127.0.0.1:")


# -- what is refused, and how ------------------------------------------------------------------------------------------


def test_a_submission_of_the_same_name_is_the_same_job(serving):
    first, again = submit(serving, "once"), submit(serving, "once")
    assert first[0] == again[0] == 201
    assert msgspec.json.decode(first[2], type=JobView).id == msgspec.json.decode(again[2], type=JobView).id
    other = submit(serving, "once", queue="web")
    assert (other[0], problem(other).code, problem(other).field) == (409, "refused", "Idempotency-Key")


@pytest.mark.parametrize(("method", "path", "field"), [
    ("GET", "/v1/jobs/nope", "id"), ("GET", "/v1/tasks/g0-1", "id"), ("GET", "/v1/jobs?limit=0", "limit"),
    ("GET", "/v1/jobs?limit=1001", "limit"), ("GET", "/v1/jobs?limit=x", "limit"),
    ("GET", "/v1/jobs?state=odd", "state"),
    ("GET", "/v1/jobs?cursor=-1", "cursor"), ("GET", "/v1/jobs/g0-0/wait?timeout_s=61", "timeout_s"),
    ("GET", "/v1/jobs/g0-0/wait?timeout_s=nan", "timeout_s"), ("GET", "/v1/jobs/g0-0/wait?seen=-1", "seen"),
    ("GET", "/v1/tasks/g0-0.0/logs?stream=both", "stream"), ("GET", "/v1/tasks/g0-0.0/logs?limit=0", "limit"),
    ("GET", "/v1/tasks/g0-0.0/logs?offset=99999999999999999999", "offset"),
    ("POST", "/v1/configuration/apply", "version"), ("POST", "/v1/jobs", "Idempotency-Key"),
    ("GET", "/v1/machines/%20", "name"), ("POST", "/v1/configuration/plan", "body"),
])
def test_an_argument_that_breaks_a_rule_is_named(serving, method, path, field):
    submit(serving, "named")
    found = ask(serving, method, path, b"\xff" if method == "POST" else None)
    assert found[0] == 400, found
    assert problem(found).code == "invalid"
    assert problem(found).field == field
    assert field in problem(found).words


@pytest.mark.parametrize(("method", "path", "status", "code"), [
    ("GET", "/v1/jobs/g0-99", 404, "not-found"), ("GET", "/v1/tasks/g0-0.9", 404, "not-found"),
    ("POST", "/v1/jobs/g9-1/cancel", 404, "not-found"), ("GET", "/v1/machines/none", 404, "not-found"),
    ("GET", "/v1/nothing", 404, "not-found"), ("DELETE", "/v1/jobs", 405, "not-allowed"),
    ("POST", "/v1/tasks/g0-0.0/preempt", 409, "refused"), ("POST", "/v1/configuration/apply?version=7", 409, "refused"),
])
def test_every_refusal_has_its_status_and_its_code(serving, method, path, status, code):
    submit(serving, "refusals")
    found = ask(serving, method, path, b"" if method == "POST" else None)
    assert (found[0], problem(found).code) == (status, code)
    assert problem(found).words
    assert not problem(found).owner


def test_a_body_that_is_too_large_is_not_read(serving):
    for body in (b"x" * 6000, iter([b"x" * 3000, b"x" * 3000])):  # the second in chunks, of a length that is not said
        found = ask(serving, "POST", "/v1/jobs", body, **{"Idempotency-Key": "large"})
        assert (found[0], problem(found).code) == (413, "too-large")


def test_every_mistake_of_a_job_file_is_told_with_file_and_line(serving):
    text = "metadata: {name: a}\nqueue: web\ncommand: [x]\nresources:\n  memory: 4gigs\nretries: -1\n"
    found = ask(serving, "POST", "/v1/jobs?file=my.yaml", text, **{"Idempotency-Key": "mistakes"})
    told = problem(found)
    assert (found[0], told.code, told.field) == (400, "invalid", "body")
    assert [line.split(" ")[0] for line in told.details] == ["my.yaml:5:", "my.yaml:6:"]
    assert told.details[0] == told.words
    assert "4gigs" in told.words


def test_a_large_job_file_does_not_hold_up_the_event_loop(serving, monkeypatch):
    readers = []

    def reader(text, file):
        readers.append(threading.current_thread())
        return read_job(text, file)

    monkeypatch.setattr("subak.live.api.routes.read_job", reader)
    service, token = FakeService(), new_token(PEOPLE)
    for words in (["x"], ["x" * 5000]):
        body = json.dumps({**JOB, "stages": [{"name": "main", "command": ["sleep", *words]}]}).encode()
        assert serving.do(one_request(service, token, "POST", "/v1/jobs", body, key=f"k{len(body)}"))[0] == 201
    assert readers[0] is serving.thread
    assert readers[1] is not serving.thread


async def one_request(service, token, method, path, body=b"{}", key="k"):
    """Ask an application without a network; return status and body."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    app = Guarded(make_app(service, ServerSettings()), People(hash_of(token)))
    await app({"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
               "raw_path": path.encode(), "root_path": "", "scheme": "http", "query_string": b"", "client": ("a", 1),
               "server": ("a", 1),
               "headers": [(b"authorization", f"Bearer {token}".encode()), (b"idempotency-key", key.encode())]},
              receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_what_nobody_expected_is_logged_and_not_told(serving, caplog):
    class Broken(FakeService):
        async def job(self, id):
            raise ValueError("a secret of the master")

    status, body = serving.do(one_request(Broken(), FOREIGN, "GET", "/v1/jobs/g0-1"))
    assert status == 500
    assert msgspec.json.decode(body, type=Problem).code == "internal"
    assert b"secret" not in body
    assert "a secret of the master" in caplog.text


def test_a_full_disk_is_said_with_when_to_come_again(serving):
    serving.services["g0"].is_full = True
    try:
        found = submit(serving, "full")
        assert (found[0], problem(found).code, found[1]["retry-after"]) == (503, "unavailable", "1")
        assert "disk is full" in problem(found).words
        assert json.loads(ask(serving, "GET", "/v1/health", token="")[2])["state"] == "refusing"
        assert ask(serving, "GET", "/v1/health", token="")[0] == 200
        assert ask(serving, "GET", "/v1/ready", token="")[0] == 503
    finally:
        serving.services["g0"].is_full = False
    assert ask(serving, "GET", "/v1/ready", token="")[0] == 200
    assert submit(serving, "full")[0] == 201


def test_another_masters_job_is_answered_with_its_address(serving):
    serving.addresses["g7"] = "http://127.0.0.1:1"
    try:
        found = ask(serving, "GET", "/v1/jobs/g7-1")
        assert (found[0], problem(found).code) == (503, "not-owner")
        assert problem(found).owner == "http://127.0.0.1:1"
    finally:
        del serving.addresses["g7"]


# -- what is answered --------------------------------------------------------------------------------------------------


def submitted(serving, key, *command, **stage):
    stages = [{"name": "main", "command": list(command), **stage}]
    return msgspec.json.decode(submit(serving, key, stages=stages)[2], type=JobView).id


def test_waiting_ends_with_the_job_and_with_a_change(serving):
    id = submitted(serving, "wait", "sleep", tasks=2)
    now = msgspec.json.decode(ask(serving, "GET", f"/v1/jobs/{id}")[2], type=JobView)
    assert (now.state, now.counts.running) == ("running", 2)
    began = time.monotonic()
    same = ask(serving, "GET", f"/v1/jobs/{id}/wait?timeout_s=0.2&seen={now.version}")
    assert msgspec.json.decode(same[2], type=JobView).version == now.version
    assert time.monotonic() - began >= 0.2
    serving.do(serving.services["g0"].finish(f"{id}.0"))
    changed = ask(serving, "GET", f"/v1/jobs/{id}/wait?timeout_s=20&seen={now.version}")
    assert msgspec.json.decode(changed[2], type=JobView).counts.finished == 1
    serving.loop.call_soon_threadsafe(serving.loop.call_later, 0.2, lambda: serving.loop.create_task(
        serving.services["g0"].finish(f"{id}.1", 3)))
    ended = msgspec.json.decode(ask(serving, "GET", f"/v1/jobs/{id}/wait?timeout_s=20")[2], type=JobView)
    assert (ended.state, ended.outcome) == ("ended", "failed")


def test_pages_are_a_list_without_gaps(serving):
    id = submitted(serving, "pages", "true", tasks=7)
    seen, cursor = [], ""
    while True:
        found = ask(serving, "GET", f"/v1/jobs/{id}/tasks?limit=3&cursor={cursor}")
        page = msgspec.json.decode(found[2], type=Page[TaskView])
        seen += [task.index for task in page.items]
        cursor = page.cursor
        if not cursor:
            break
    assert seen == list(range(7))


def test_output_is_followed_byte_by_byte(serving):
    id = submitted(serving, "logs", "sleep")
    service, path = serving.services["g0"], f"/v1/tasks/{id}.0/logs"
    serving.do(service.write(f"{id}.0", b"a\x00\xffb"))

    def chunk(arguments):
        return msgspec.json.decode(ask(serving, "GET", f"{path}?{arguments}")[2], type=LogChunk)

    first = chunk("limit=2")
    assert (first.data, first.next, first.is_end) == (b"a\x00", 2, False)
    assert chunk("offset=-1").data == b"b"
    serving.do(service.finish(f"{id}.0"))
    rest = chunk("offset=2&timeout_s=20")
    assert (rest.data, rest.next, rest.is_end) == (b"\xffb", 4, True)
    assert chunk("stream=stderr").data == b""


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_a_token_is_made_once_and_only_its_hash_is_kept(tmp_path):
    hash_file, token_file = tmp_path / "master" / "people.hash", tmp_path / "client" / "token"
    kept = kept_hash(hash_file, token_file, PEOPLE)
    token = read_token(token_file)
    assert token.startswith("subak-people-")
    assert kept.matches(token)
    assert not kept.matches(token + "x")
    assert not kept.matches("")
    assert token not in hash_file.read_text()
    assert [oct(file.stat().st_mode & 0o777) for file in (hash_file, token_file)] == ["0o600", "0o600"]
    token_file.unlink()
    assert kept_hash(hash_file, token_file, PEOPLE) == kept
    assert not token_file.exists()
    hash_file.unlink()
    assert kept_hash(hash_file, token_file, PEOPLE) != kept


def test_files_are_private_whatever_the_umask_is(tmp_path):
    before = os.umask(0)
    try:
        kept_hash(tmp_path / "hash", tmp_path / "token", JOIN)
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_a_second_master_takes_the_token_of_the_first(tmp_path):
    first = kept_hash(tmp_path / "g0.hash", tmp_path / "token", PEOPLE)
    assert kept_hash(tmp_path / "g1.hash", tmp_path / "token", PEOPLE) == first


@pytest.mark.parametrize(("text", "mode", "words"), [
    ("subak-people-short", 0o600, "holds no token"), ("", 0o600, "holds no token"),
    (f"subak-people-{64 * 'a'}", 0o640, "others may read it"),
    (f"subak-people-{64 * 'b'}", 0o604, "others may read it"),
    (f"subak-join-{64 * 'c'}", 0o600, "is a token for join"), ("ü", 0o600, "must be a text file"),
])
def test_a_file_that_is_no_private_token_is_refused(tmp_path, text, mode, words):
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(InputError, match=words) as caught:
        kept_hash(tmp_path / "hash", file, PEOPLE)
    assert not text or text not in str(caught.value)
    assert not (tmp_path / "hash").exists()


def test_a_hash_that_is_none_opens_nothing(tmp_path):
    file = tmp_path / "hash"
    file.write_text("sha256:\n")
    file.chmod(0o600)
    with pytest.raises(InputError, match="must hold a line such as"):
        kept_hash(file, tmp_path / "token", PEOPLE)
    assert not TokenHash("").matches("")


def test_tokens_differ():
    assert len({new_token(PEOPLE) for _ in range(100)}) == 100


# -- the server --------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_said(serving):
    port = int(serving.addresses["g0"].rpartition(":")[2])
    server = HttpServer(FakeService(), hash_of(FOREIGN), ServerSettings(port=port))
    with pytest.raises(RunError, match=f"127.0.0.1:{port}: cannot listen there"):
        serving.do(server.start())


def test_a_server_ends_while_somebody_waits():
    serving = Serving(stop_s=1)
    id = submitted(serving, "ends", "sleep")
    place = urllib.parse.urlsplit(serving.addresses["g0"])
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=20)
    connection.request("GET", f"/v1/jobs/{id}/wait?timeout_s=60", headers={"Authorization": f"Bearer {serving.token}"})
    time.sleep(0.3)
    end = threading.Thread(target=serving.stop, daemon=True)
    end.start()
    end.join(ENDS_S)
    assert not end.is_alive()
    connection.close()


# -- anything ----------------------------------------------------------------------------------------------------------

APP = make_app(FakeService(), ServerSettings())
SCHEMA = schemathesis.openapi.from_dict({**json.loads(document(APP)), "security": []})
EXAMPLES = 12  # of each route


@SCHEMA.parametrize()
@hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True,
                     suppress_health_check=list(hypothesis.HealthCheck))
def test_nothing_that_the_document_allows_makes_it_fail(serving, case):
    headers = {**(case.headers or {}), "Authorization": f"Bearer {serving.token}"}
    if "timeout_s" in (case.query or {}):
        case.query["timeout_s"] = 0
    response = case.call(base_url=serving.addresses["g0"], headers=headers)
    case.validate_response(response, checks=[not_a_server_error])
    assert response.status_code in {200, 201, 204, 400, 404, 405, 409, 413}, response.text
