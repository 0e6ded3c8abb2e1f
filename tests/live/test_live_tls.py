"""A federation of real processes with certificates: people are answered over HTTPS, wherever their jobs are kept."""
import http.client
import shutil
import socket
import ssl

import pytest
from msgspec import json, structs

from live_federation import Federation, until
from subak.live.api.errors import UnauthorizedError, UnavailableError
from subak.live.certificates import Authority, read_certificate
from subak.live.client.client import Client


def job(queue):
    return json.encode({"apiVersion": "subak/v1", "kind": "Job", "metadata": {"name": "small"}, "queue": queue,
                        "command": ["true"], "resources": {"cpu": "100m", "memory": "1Mi"}})


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    made = Federation(tmp_path_factory.mktemp("tls"), clusters=1, workers=1, tls=True)
    made.start()
    try:
        made.wait_ready()
        yield made
    finally:
        assert made.stop() == []


def test_jobs_are_taken_by_their_masters_whichever_is_asked(federation):
    settings = structs.replace(federation.settings(*federation.http), addresses=(f"https://{federation.http[0]}",))
    with Client(settings) as client:
        for queue in ("research", "web"):  # of g0 and g1
            assert client.wait(client.submit(job(queue)).id, timeout_s=30).outcome == "finished"
        assert [master.address for master in client.masters() if master.role == "global"] == [
            f"https://{address}" for address in federation.http]


def test_people_in_clear_are_not_answered(federation):
    settings = structs.replace(federation.settings(), addresses=(f"http://{federation.http[0]}",))
    with Client(settings, patience_s=0.0) as client, pytest.raises(UnavailableError):
        client.health()


def test_people_who_do_not_know_the_authority_are_told_why(federation, tmp_path):
    settings = structs.replace(federation.settings(federation.http[0]), ca="")
    with Client(settings, patience_s=0.0) as client, pytest.raises(UnavailableError, match="certificate"):
        client.health()


def test_a_token_of_another_federation_is_refused_over_tls_too(federation):
    settings = structs.replace(federation.settings(federation.http[0]), token="subak-people-" + "0" * 64)
    with Client(settings) as client, pytest.raises(UnauthorizedError):
        client.machines()


def test_a_head_that_never_comes_does_not_hold_others_up(federation):
    """A connection that never shakes hands, or never speaks afterwards."""
    host, port = federation.http[0].split(":")
    context = ssl.create_default_context(cafile=str(federation.authority.folder / "ca.crt"))
    with socket.create_connection((host, int(port))), \
            context.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host):
        wire = http.client.HTTPSConnection(host, int(port), context=context, timeout=5)
        wire.request("GET", "/v1/health")
        assert wire.getresponse().status == 200
        wire.close()


def test_people_refuse_a_revoked_global_master(federation, tmp_path):
    ca = tmp_path / "ca"
    shutil.copytree(federation.authority.folder, ca)
    Authority(ca).revoke(read_certificate(federation.folder / "g0.crt"))
    settings = structs.replace(federation.settings(federation.http[0]), revoked=str(ca / "ca.crl"))
    with Client(settings, patience_s=0.0) as client, pytest.raises(UnavailableError, match="revoked"):
        client.health()
    with Client(structs.replace(settings, addresses=(f"https://{federation.http[1]}",))) as client:
        assert client.health().state == "ready"


def test_what_a_revoked_worker_had_goes_on_elsewhere_and_it_is_lost(federation):
    federation.authority.revoke(read_certificate(federation.folder / "w0.crt"))
    with federation.client() as client:
        until(lambda: [machine.state for machine in client.machines()] == ["lost"], 40.0)
        assert client.submit(job("web")).state == "waiting"
