"""The socket of a master for users of its own host: the kernel says who asks, and no token is needed."""
import os
import socket

import pytest

from live_federation import Federation, until
from serving import Serving
from subak.errors import InputError, RunError
from subak.live.api.errors import ForbiddenError, InvalidError, UnauthorizedError
from subak.live.api.host_socket import HostSocket, holder, name_of
from subak.live.api.server import HttpServer, ServerSettings
from subak.live.client.client import Client
from subak.live.client.settings import ClientSettings, checked_address, read_settings
from subak.live.people.identity import People
from subak.live.tokens import hash_of

JOB = ("{{apiVersion: subak/v1, kind: Job, metadata: {{name: j}}, queue: {queue}, "
       "resources: {{cpu: 100m, memory: 64Mi}}, command: ['true']}}")
STRANGER = 54_321  # a user that is not the one of this process


@pytest.fixture
def serving(tmp_path):
    """A master in a thread, with a socket in `serving.socket`."""
    serving = Serving()
    serving.socket = tmp_path / "people.sock"
    serving.other = HttpServer(serving.services["g0"], hash_of(serving.token), ServerSettings(port=0),
                               audit=serving.audits["g0"], own=serving.socket)
    serving.do(serving.other.start())
    yield serving
    serving.do(serving.other.stop())
    serving.stop()


def over(path):
    return Client(ClientSettings((f"unix:{path}",), ""), patience_s=0.0)


def as_user(monkeypatch, uid, name):
    """Let the kernel say that another user asks."""
    monkeypatch.setattr("subak.live.api.strangers.user_of", lambda transport: uid)
    monkeypatch.setattr("subak.live.api.host_socket.name_of", lambda uid: name)


def test_the_user_of_the_master_is_an_admin_without_a_token(serving):
    with over(serving.socket) as federation:
        assert federation.whoami().role == "admin"
        assert federation.cordon("m0").cordoned
        assert [each.origin for each in federation.audit().items] == [f"user {name_of(os.geteuid())}"]
    assert not checked(serving.addresses["g0"])


def checked(address):
    """Whether an address answers without a token."""
    with Client(ClientSettings((address,), ""), patience_s=0.0) as federation:
        try:
            return bool(federation.whoami())
        except UnauthorizedError:
            return False


def test_another_user_is_who_an_admin_says(serving, monkeypatch):
    with Client(ClientSettings((serving.addresses["g0"],), serving.token), patience_s=0.0) as admin:
        as_user(monkeypatch, STRANGER, "ada")
        with over(serving.socket) as ada, pytest.raises(
                UnauthorizedError, match="user ada of this host is nobody here: an admin runs `subak people add ada"):
            ada.whoami()
        made = admin.add_person("ada", "submitter", queues=("research",), on_host=True)
        assert (made.token, made.holder.on_host) == ("", True)
        with over(serving.socket) as ada:
            job = ada.submit(JOB.format(queue="research/ada"))
            assert (ada.whoami().name, job.user) == ("ada", "ada")
            with pytest.raises(ForbiddenError):
                ada.people()
        admin.revoke("ada")
        with over(serving.socket) as ada, pytest.raises(UnauthorizedError, match="was revoked"):
            ada.whoami()
        admin.add_person("ada", "reader", on_host=True)
        with over(serving.socket) as ada:
            assert ada.whoami().role == "reader"


def test_a_token_counts_more_than_the_user(serving):
    with over(serving.socket) as admin:
        token = admin.add_person("bo", "reader").token
    with Client(ClientSettings((f"unix:{serving.socket}",), token), patience_s=0.0) as bo:
        assert bo.whoami().name == "bo"
    with Client(ClientSettings((f"unix:{serving.socket}",), "x"), patience_s=0.0) as nobody, pytest.raises(
            UnauthorizedError):
        nobody.whoami()


def test_root_and_the_own_user_are_admins_and_nobody_else():
    people = People(hash_of("first"))
    assert {holder(people, uid).role for uid in (0, os.geteuid())} == {"admin"}
    assert isinstance(holder(people, STRANGER), str)


def test_a_socket_that_was_left_is_taken_and_a_name_too_long_is_refused(serving, tmp_path):
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "left.sock"))
    left.close()
    own = HostSocket(tmp_path / "left.sock")
    serving.do(own.start(lambda: None))
    own.stop()
    assert not own.path.exists()
    with pytest.raises(RunError, match="may have 107 bytes at most"):
        serving.do(HostSocket(tmp_path / ("n" * 108)).start(lambda: None))


def test_settings_of_sockets_need_no_token(tmp_path):
    file = tmp_path / "client.toml"
    file.write_text('address = ["unix:/srv/g0.sock", "unix:/srv/g1.sock"]')
    assert read_settings(file, {}).addresses == ("unix:/srv/g0.sock", "unix:/srv/g1.sock")
    file.write_text('address = ["unix:/srv/g0.sock", "http://127.0.0.1:7433"]')
    with pytest.raises(InputError, match="token"):
        read_settings(file, {})
    with pytest.raises(InputError, match="address: must be such as"):
        checked_address("unix:")


def test_jobs_of_all_masters_are_reached_over_their_sockets(tmp_path):
    """Of two processes, either of which names the other by an address that wants a token."""
    federation = Federation(tmp_path / "f", 2, 1, 0, standby=False)
    try:
        federation.start()
        until(lambda: all(federation.has_begun(name) for name in federation.members))
        sockets = [f"unix:{federation.data[name] / 'people.sock'}" for name in ("g0", "g1")]
        for first in (sockets, sockets[::-1]):
            with Client(ClientSettings(tuple(first), ""), patience_s=5.0) as admin:
                ids = [admin.submit(JOB.format(queue=queue)).id for queue in ("research", "web")]
                assert [each.partition("-")[0] for each in ids] == ["g0", "g1"]
                assert set(ids) <= {job.id for job in admin.jobs().items}
        with pytest.raises(InvalidError), Client(ClientSettings((sockets[0],), "")) as admin:
            admin.submit(JOB.format(queue="nowhere"))
        federation.kill("g0")
        federation.start("g0")
        until(lambda: federation.has_begun("g0"))
        with Client(ClientSettings((sockets[0],), ""), patience_s=5.0) as admin:
            assert admin.whoami().role == "admin"
    finally:
        assert federation.stop() == []
