"""The client of a federation: whom it asks, what it asks twice, and what it makes of answers."""
import http.client
import http.server
import io
import json
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from serving import Serving
from subak.errors import InputError
from subak.live.api.errors import (
    InvalidError,
    NotFoundError,
    NotOwnerError,
    RefusedError,
    ServiceError,
    UnauthorizedError,
    UnavailableError,
)
from subak.live.client import Client, ClientSettings, read_settings, transport
from subak.live.client.transport import error_of
from subak.live.tokens import PEOPLE, new_token

JOB = "metadata: {{name: {name}}}\nqueue: {queue}\ncommand: {command}\n"
TOKEN = new_token(PEOPLE)


def job(command="['true']", queue="research/ada", name="a"):
    return JOB.format(command=command, queue=queue, name=name)


@pytest.fixture
def serving():
    serving = Serving(("g0", "g1"), stop_s=0)
    yield serving
    serving.stop()


def client_of(serving, *names, token=None, **options):
    addresses = tuple(serving.addresses[name] for name in names or ("g0",))
    return Client(ClientSettings(addresses, token or serving.token), **{"patience_s": 5.0, **options})


# -- whom it asks ------------------------------------------------------------------------------------------------------


def test_the_owner_of_a_queue_or_a_job_is_asked_wherever_it_begins(serving):
    serving.queues["web"] = "g1"
    with client_of(serving) as client:
        there = client.submit(job(queue="web"))
        here = client.submit(job())
        assert (there.id, here.id) == ("g1-0", "g0-0")
        assert client.job("g1-0").queue == "web"
        assert client.cancel("g1-0").state == "ended"
        assert client.history("g1-0", limit=1)[0].what == "submitted"


def test_lists_are_of_all_masters_and_those_that_are_silent_are_named(serving):
    serving.queues["web"] = "g1"
    with client_of(serving) as client:
        ids = [client.submit(job(queue=queue, name=f"j{number}")).id
               for number, queue in enumerate(["web", "research/ada", "web", "research/ada"])]
        found = client.jobs()
        assert [each.id for each in found.items] == ids[::-1]
        assert found.unreachable == ()
        assert [each.id for each in client.jobs(limit=2).items] == ids[:1:-1]
        assert [each.id for each in client.jobs(name="j2").items] == ["g1-1"]
        web = next(queue for queue in client.queues().items if queue.path == "web")
        assert web.jobs == 2
        serving.stop("g1")
        found = client.jobs()
        assert [each.id for each in found.items] == [ids[3], ids[1]]
        assert len(found.unreachable) == 1
        assert found.unreachable[0].startswith("g1: http://127.0.0.1:")


def test_another_master_is_asked_where_the_first_is_down(serving):
    with client_of(serving, "g1", "g0", patience_s=0.0) as client:
        serving.stop("g1")
        assert client.submit(job()).id == "g0-0"
        assert client.job("g0-0").id == "g0-0"


def test_masters_that_name_each_other_end_in_an_error(serving):
    serving.queues["web"] = "g1"
    serving.services["g1"].queue_owner = {"web": "g0"}
    with client_of(serving, patience_s=0.0) as client, pytest.raises(UnavailableError, match="name each other"):
        client.submit(job(queue="web"))
    assert sum(service.calls.count("submit") for service in serving.services.values()) == 3


def test_an_owner_that_is_no_address_is_not_asked(serving):
    serving.addresses["g7"] = "file:///etc/passwd"
    with client_of(serving) as client, pytest.raises(ServiceError, match="whose address is none") as caught:
        client.job("g7-0")
    assert not isinstance(caught.value, UnavailableError)


# -- what it asks twice ------------------------------------------------------------------------------------------------


class Cutting(http.server.BaseHTTPRequestHandler):
    """Passes requests on to a master, and cuts the connection in place of some of the answers."""

    protocol_version = "HTTP/1.1"
    seen: list

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append((self.command, self.path, self.headers.get("idempotency-key")))
        import http.client as plain
        place = plain.HTTPConnection(*self.server.behind, timeout=20)
        place.request(self.command, self.path, body, dict(self.headers))
        found = place.getresponse()
        said = found.read()
        if self.server.cuts > 0:
            self.server.cuts -= 1
            self.close_connection = True
            return
        self.send_response(found.status)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = answer  # noqa: N815


@pytest.fixture
def cutting(serving):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cutting)
    server.behind = ("127.0.0.1", int(serving.addresses["g0"].rpartition(":")[2]))
    server.seen, server.cuts = [], 0
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    server.settings = ClientSettings((f"http://127.0.0.1:{server.server_port}",), serving.token)
    yield server
    server.shutdown()
    server.server_close()


def test_a_submission_whose_answer_was_lost_is_one_job(serving, cutting):
    cutting.cuts = 2
    with Client(cutting.settings, patience_s=10) as client:
        assert client.submit(job()).id == "g0-0"
        assert client.submit(job()).id == "g0-1"
    first, second, third, other = (key for _, path, key in cutting.seen if path.startswith("/v1/jobs"))
    assert first == second == third != other
    assert serving.services["g0"].calls.count("submit") == 4
    assert len(serving.services["g0"].jobs_by_id) == 2


def test_a_key_of_the_callers_own_is_one_job_over_processes(serving):
    for _ in range(2):
        with client_of(serving) as client:
            assert client.submit(job(), key="nightly").id == "g0-0"
    with client_of(serving) as client, pytest.raises(RefusedError, match="nightly was used"):
        client.submit(job(queue="web"), key="nightly")


def test_what_may_have_been_done_is_not_done_twice(serving, cutting):
    with Client(cutting.settings, patience_s=10) as client:
        task = f"{client.submit(job('[sleep]')).id}.0"
        cutting.cuts = 1
        with pytest.raises(UnavailableError, match="connection broke"):
            client.preempt(task)
        assert client.task(task).preempted == 1
        plan = client.plan(b"[queues]\nweb = 5.0\n")
        cutting.cuts = 1
        with pytest.raises(UnavailableError, match="connection broke"):
            client.apply(b"[queues]\nweb = 5.0\n", plan.version)
    assert sum("/apply" in path for _, path, _ in cutting.seen) == 1


def test_a_full_disk_is_waited_for_and_then_said(serving):
    service = serving.services["g0"]
    service.is_full = True
    with client_of(serving, patience_s=0.4) as client:
        with pytest.raises(UnavailableError, match="disk is full"):
            client.submit(job())
        assert service.calls.count("submit") > 2
    with client_of(serving, patience_s=10) as client:
        threading.Timer(0.3, lambda: setattr(service, "is_full", False)).start()
        assert client.submit(job()).id == "g0-0"


def test_a_master_that_begins_later_is_waited_for():
    with Client(ClientSettings(("http://127.0.0.1:1",), TOKEN), patience_s=0.3) as client:
        began = time.monotonic()
        with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1: cannot be reached"):
            client.health()
        assert time.monotonic() - began > 0.05


def test_a_connection_that_was_closed_meanwhile_is_made_anew():
    serving = Serving(keep_alive_s=1)
    try:
        with client_of(serving, patience_s=0.0) as client:
            assert client.health().state == "ready"
            time.sleep(1.6)
            assert client.submit(job("[sleep]")).id == "g0-0"
            time.sleep(1.6)
            assert client.preempt("g0-0.0").preempted == 1
    finally:
        serving.stop()


# -- what it makes of answers ------------------------------------------------------------------------------------------


def test_errors_are_those_of_the_service(serving):
    with client_of(serving) as client:
        with pytest.raises(NotFoundError, match="there is no job g0-9"):
            client.job("g0-9")
        with pytest.raises(InvalidError, match=r"my\.yaml:2: queue") as caught:
            client.submit("metadata: {name: a}\nqueue: ''\ncommand: [x]\n", file="my.yaml")
        assert caught.value.field == "body"
    with client_of(serving, token=TOKEN) as client, pytest.raises(UnauthorizedError):
        client.jobs()


@pytest.mark.parametrize(("status", "kind"), [
    (404, NotFoundError), (502, UnavailableError), (503, UnavailableError), (504, UnavailableError),
    (429, UnavailableError), (401, UnauthorizedError), (500, ServiceError), (302, ServiceError),
])
def test_an_answer_that_is_no_masters_is_said_by_its_status(status, kind):
    error = error_of(status, b"<html>", "http://a")
    assert type(error) is kind
    assert str(error) == f"http://a: answered with status {status}, and not as a master does"
    owner = error_of(503, b'{"code":"not-owner","words":"w","owner":"http://b"}', "http://a")
    assert isinstance(owner, NotOwnerError)
    assert owner.owner == "http://b"


def test_exit_codes_tell_errors_apart():
    assert [kind.exit_code for kind in (InvalidError, NotFoundError, UnavailableError, NotOwnerError, RefusedError,
                                        UnauthorizedError, ServiceError)] == [2, 3, 4, 4, 5, 6, 1]


def test_output_is_followed_to_its_end(serving):
    service = serving.services["g0"]
    with client_of(serving) as client:
        id = f"{client.submit(job('[sleep]')).id}.0"

        def write():
            for part in (b"one\n", b"two\n"):
                time.sleep(0.1)
                serving.do(service.write(id, part))
            serving.do(service.finish(id))

        threading.Thread(target=write).start()
        assert b"".join(chunk.data for chunk in client.follow(id, timeout_s=0.02)) == b"one\ntwo\n"
        assert b"".join(chunk.data for chunk in client.follow(id, offset=-4)) == b"two\n"


def test_long_lists_come_page_by_page(serving, monkeypatch):
    monkeypatch.setattr("subak.live.client.client.ITEMS_ASKED", 3)
    with client_of(serving) as client:
        id = client.submit(job() + "tasks: 8\n").id
        assert [task.index for task in client.tasks(id)] == list(range(8))
        assert [task.index for task in client.tasks(id, limit=4)] == list(range(4))
        assert client.tasks(id, state="running") == []
        assert [machine.name for machine in client.machines()] == ["m0", "m1", "m2"]
        assert [machine.name for machine in client.machines("east")] == ["m2"]


# -- settings ----------------------------------------------------------------------------------------------------------


def token_file(folder, token=TOKEN):
    file = folder / "token"
    file.write_text(token + "\n")
    file.chmod(0o600)
    return file


def test_what_is_named_comes_before_the_environment_and_that_before_the_usual_file(tmp_path):
    token_file(tmp_path)
    usual, named = tmp_path / "subak" / "client.toml", tmp_path / "other.toml"
    usual.parent.mkdir()
    usual.write_text('address = "http://usual:1"\ntoken_file = "../token"\n')
    named.write_text('address = ["http://named:1", "http://named:2/"]\n')
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    other = new_token(PEOPLE)
    assert read_settings(None, home) == ClientSettings(("http://usual:1",), TOKEN)
    spoken = {**home, "SUBAK_ADDRESS": "http://a:1, http://b:2", "SUBAK_TOKEN": other}
    assert read_settings(None, spoken) == ClientSettings(("http://a:1", "http://b:2"), other)
    assert read_settings(named, spoken) == ClientSettings(("http://named:1", "http://named:2"), other)
    assert read_settings(usual, spoken) == ClientSettings(("http://usual:1",), TOKEN)
    assert read_settings(None, {"HOME": str(tmp_path), "SUBAK_TOKEN": other}).addresses == ("http://127.0.0.1:7433",)
    assert TOKEN not in repr(read_settings(None, home))


@pytest.mark.parametrize(("text", "words"), [
    ("adress = 'http://a'\n", "adress"), ("address = 1\n", "address"), ("address = 'a:1'\n", "must be such as"),
    ("address = 'ftp://a'\n", "must be such as"), ("address = 'http://a/b'\n", "must be such as"),
    ("address = 'http://a:99999'\n", "must be such as"), ("address = 'http://u:p@a'\n", "must be such as"),
    ("token_file = 'none'\n", "no such file"), ("x", "other.toml"),
])
def test_a_file_that_says_something_else_is_refused(tmp_path, text, words):
    file = tmp_path / "other.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        read_settings(file, {"SUBAK_TOKEN": TOKEN})


@pytest.mark.parametrize("token", ["", "x", f"subak-join-{64 * 'c'}"])
def test_a_token_that_is_none_is_not_sent_and_not_shown(token, tmp_path):
    with pytest.raises(InputError, match="SUBAK_TOKEN") as caught:
        read_settings(None, {"SUBAK_TOKEN": token, "HOME": str(tmp_path)})
    assert len(token) < 2 or token not in str(caught.value)


def test_without_a_token_it_is_said_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"^no federation runs from this folder: there is no "
                       r"/.*/subak-federation/client\.toml of yours; subak up --detach starts .{,45}$"):
        read_settings(None, {"HOME": str(tmp_path)})
    with pytest.raises(InputError, match=r"^SUBAK_TOKEN: must be set beside SUBAK_ADDRESS$"):
        read_settings(None, {"HOME": str(tmp_path), "SUBAK_ADDRESS": "http://127.0.0.1:9"})


# -- weight ------------------------------------------------------------------------------------------------------------


def test_it_loads_nothing_heavy():
    code = "import subak.live.client, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & {"numba", "numpy", "polars", "scipy", "rich", "typer", "yaml", "litestar", "uvicorn", "asyncio",
                         "secrets", "pydantic", "requests", "httpx"}
    assert len(json.loads(done.stdout)) < 220


@pytest.mark.parametrize(("answer", "is_whole"), [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", True), (b"HTTP/1.1 204 No Content\r\n\r\n", True),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", False), (b"HTTP/1.1 200 OK\r\nContent-Le", False)])
def test_an_answer_that_is_cut_anywhere_is_no_answer(answer, is_whole):
    """A master that is killed may have sent a part of its answer; http.client takes that for all of it."""
    found = http.client.HTTPResponse(SimpleNamespace(makefile=lambda _: io.BytesIO(answer)))
    found.begin()
    if is_whole:
        assert transport._whole(found) in (b"{}", b"")
    else:
        with pytest.raises(http.client.IncompleteRead):
            transport._whole(found)
