"""Certificates: who may connect as whom, what a revoked or expired one does, and that nothing is said in clear."""
import asyncio
import datetime
import ssl
import subprocess
import sys

import pytest
from cryptography import x509

from live_federation import free_addresses
from subak.errors import InputError
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, WORKER
from subak.live import certificates
from subak.live.certificates import Authority, make_authority, read_certificate, read_revoked, shown, write_pair
from subak.live.config import TlsEntry
from subak.live.identities import Identity, identity_in
from subak.live.process import links, trust
from subak.live.process.links import LinkError, Links
from subak.live.process.trust import CertificateTrust, check_plaintext, is_own
from subak.live.role.layout import STANDBYS, Layout

NAMES = {(GLOBAL_MASTER, 0): "g0", (LOCAL_MASTER, 0): "a", (LOCAL_MASTER, STANDBYS): "a", (WORKER, 3): "w3"}


class Driver:
    """Notes what a process would be told."""

    def __init__(self):
        self.made, self.said, self.lost = [], [], 0

    def connected(self, wire):
        self.made.append((wire.peer, wire.name))

    def disconnected(self, _):
        self.lost += 1

    def arrived(self, *_):
        pass

    def say(self, words):
        self.said.append(words)

    def unreachable(self, host, port, words):
        self.said.append(words)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("ca"), "lab")


def entry_of(folder, authority, role, name, **how):
    pair = authority.issue(role, name, ["127.0.0.1"], **how)
    write_pair(folder, "own", pair)
    return TlsEntry("own.crt", "own.key", str(authority.folder / "ca.crt"), str(authority.folder / "ca.crl"))


def trust_of(tmp_path, authority, role, name, **how):
    folder = tmp_path / f"{role}-{name}-{authority.folder.name}-{authority.federation}"
    folder.mkdir(exist_ok=True)
    return CertificateTrust(entry_of(folder, authority, role, name, **how), folder,
                            names=lambda peer: NAMES.get(peer, ""))


def met(dialled, dials, me, to=None):
    """Let a process with trust *dials*, as *me*, dial a local master with *dialled*; return both drivers."""
    async def run():
        there, here = Driver(), Driver()
        host, port = free_addresses(1)[0].split(":")
        server = Links((LOCAL_MASTER, 0), dialled, "lab", there, Layout(1, 1, ("cpu",), True))
        await server.listen(host, int(port))
        client = Links(me, dials, "lab", here)
        try:
            wire, _ = await client.connect(host, int(port), to)
            await asyncio.sleep(0.05)
            wire.close()
        finally:
            await client.close()
            await server.close()
        return there.made
    return asyncio.run(run())


@pytest.mark.parametrize(("role", "name", "me"), [
    ("global-master", "g0", (GLOBAL_MASTER, 0)), ("standby", "a", (LOCAL_MASTER, STANDBYS)),
    ("worker", "w3", (WORKER, 3)), ("worker", "new", (WORKER, -1))])
def test_the_right_certificate_connects_and_its_name_is_known(tmp_path, authority, role, name, me):
    server = trust_of(tmp_path, authority, "local-master", "a")
    (peer, proven), = met(server, trust_of(tmp_path, authority, role, name), me, 0)
    assert peer[0] == me[0] and proven == name


@pytest.mark.parametrize(("role", "name", "me", "words"), [
    ("worker", "w3", (GLOBAL_MASTER, 0), "of a worker, and it says that it is a global-master"),
    ("worker", "w4", (WORKER, 3), "of worker w4, and it says that it is w3"),
    ("worker", "w3", (LOCAL_MASTER, STANDBYS), "of a worker, and it says that it is a standby"),
    ("local-master", "a", (LOCAL_MASTER, STANDBYS), "of a local-master, and it says that it is a standby"),
    ("global-master", "g1", (GLOBAL_MASTER, 0), "of global-master g1, and it says that it is g0"),
    ("global-master", "g0", (WORKER, 3), "of a global-master, and it says that it is a worker"),
])
def test_a_certificate_speaks_for_its_process_alone(tmp_path, authority, role, name, me, words):
    server = trust_of(tmp_path, authority, "local-master", "a")
    with pytest.raises(LinkError, match=words):
        met(server, trust_of(tmp_path, authority, role, name), me)


@pytest.mark.parametrize(("role", "name"), [("worker", "a"), ("global-master", "a"), ("local-master", "b")])
def test_who_is_dialled_shows_the_certificate_of_that_master(tmp_path, authority, role, name):
    server = trust_of(tmp_path, authority, role, name)
    with pytest.raises(LinkError, match="its certificate is of"):
        met(server, trust_of(tmp_path, authority, "global-master", "g0"), (GLOBAL_MASTER, 0), 0)


def test_a_certificate_of_another_federation_or_authority_is_refused(tmp_path, authority):
    server = trust_of(tmp_path, authority, "local-master", "a")
    other = make_authority(tmp_path / "other", "lab")
    with pytest.raises(LinkError, match="another authority"):  # it does not trust the server either
        met(server, trust_of(tmp_path, other, "global-master", "g0"), (GLOBAL_MASTER, 0))
    foreign = make_authority(tmp_path / "foreign", "elsewhere")
    both = tmp_path / "both.crt"
    both.write_bytes((authority.folder / "ca.crt").read_bytes() + (foreign.folder / "ca.crt").read_bytes())
    known = [CertificateTrust(TlsEntry("own.crt", "own.key", str(both)), made.certificate.parent)
             for made in (server, trust_of(tmp_path, foreign, "global-master", "g0"))]
    with pytest.raises(LinkError, match="is of federation elsewhere"):
        met(*known, (GLOBAL_MASTER, 0))


def test_an_authority_that_only_the_dialling_side_knows_is_said(tmp_path, authority):
    """The server refuses the client's certificate after the client's handshake, and the client says what may be."""
    other = make_authority(tmp_path / "other", "lab")
    server = trust_of(tmp_path, authority, "local-master", "a")
    client = trust_of(tmp_path, other, "global-master", "g0")
    client.client.load_verify_locations(authority.folder / "ca.crt")
    with pytest.raises(LinkError, match="an authority that it does not trust"):
        met(server, client, (GLOBAL_MASTER, 0))


def test_a_client_in_clear_hears_nothing_and_a_server_in_clear_is_told_apart(tmp_path, authority):
    certified = trust_of(tmp_path, authority, "local-master", "a")
    clear = trust.TokenTrust(trust.TokenHash("sha256:" + "0" * 64))
    with pytest.raises(LinkError, match="ended before it was known"):
        met(certified, clear, (GLOBAL_MASTER, 0))
    with pytest.raises(LinkError, match="does not speak TLS"):
        met(clear, trust_of(tmp_path, authority, "global-master", "g0"), (GLOBAL_MASTER, 0))


def test_revoked_certificates_lose_their_connections_and_connect_no_more(tmp_path, authority, monkeypatch):
    monkeypatch.setattr(links, "REFRESH_S", 0.02)
    own = make_authority(tmp_path / "own", "lab")
    server, client = (trust_of(tmp_path, own, *who) for who in (("local-master", "a"), ("worker", "w3")))

    async def run():
        there, here = Driver(), Driver()
        host, port = free_addresses(1)[0].split(":")
        listens = Links((LOCAL_MASTER, 0), server, "lab", there, Layout(1, 1, ("cpu",), True))
        listens.watch()
        await listens.listen(host, int(port))
        dials = Links((WORKER, 3), client, "lab", here)
        dials.dial(host, int(port))
        async with asyncio.timeout(5):
            while not there.made:
                await asyncio.sleep(0.01)
            Authority(own.folder).revoke(read_certificate(client.certificate))
            while not any("revoked" in words for words in here.said):
                await asyncio.sleep(0.01)
        assert there.lost == 1 and len(there.made) == 1
        assert any("ends the connection of w3" in words for words in there.said)
        await dials.close()
        await listens.close()
    asyncio.run(run())


def test_a_new_certificate_serves_without_a_restart_and_a_bad_one_does_not(tmp_path, authority):
    made = trust_of(tmp_path, authority, "local-master", "a")
    client = trust_of(tmp_path, authority, "global-master", "g0")
    folder = made.certificate.parent
    assert made.refresh() == ""
    before = read_certificate(made.certificate).serial_number
    write_pair(folder, "own", authority.issue("local-master", "a"))
    assert made.refresh() == "certificates were read anew"
    serials = []
    made_before = client.problem
    client.problem = lambda *what: (serials.append(int(what[-1].get_extra_info("peercert")["serialNumber"], 16)),
                                    made_before(*what))[1]
    met(made, client, (GLOBAL_MASTER, 0), 0)
    assert serials == [read_certificate(made.certificate).serial_number] and serials[0] != before
    write_pair(folder, "own", authority.issue("worker", "w3"))
    assert "is of worker w3 of lab, and one of local-master a is needed; what was read before" in made.refresh()
    assert made.refresh() == ""  # said once
    pair = authority.issue("local-master", "a")
    made.certificate.write_bytes(pair.certificate)  # without its key, as between two files that are copied
    assert "do not fit" in made.refresh()
    met(made, client, (GLOBAL_MASTER, 0), 0)
    made.key.write_bytes(pair.key)
    assert made.refresh() == "certificates were read anew"
    made.certificate.write_text("nothing")
    assert "holds no certificate" in made.refresh()
    met(made, client, (GLOBAL_MASTER, 0), 0)


def test_an_expired_certificate_is_refused_on_both_sides(tmp_path, authority, monkeypatch):
    now = datetime.datetime.now(datetime.UTC)
    monkeypatch.setattr(certificates, "_now", lambda: now - datetime.timedelta(days=3))
    old = entry_of(tmp_path, authority, "global-master", "g0", days=1)
    with pytest.raises(InputError, match="has expired on"):
        CertificateTrust(old, tmp_path)
    monkeypatch.setattr(CertificateTrust, "_checked", lambda self, *_: vars(self).update(end=0.0, serial=0) or Identity(
        "lab", "global-master", "g0"))
    with pytest.raises(LinkError, match="has expired or is not valid yet"):
        met(trust_of(tmp_path, authority, "local-master", "a"), CertificateTrust(old, tmp_path), (GLOBAL_MASTER, 0))


def test_a_clock_an_hour_off_does_no_harm_and_a_day_is_said(tmp_path, authority, monkeypatch):
    now = datetime.datetime.now(datetime.UTC)
    server = trust_of(tmp_path, authority, "local-master", "a")
    monkeypatch.setattr(certificates, "_now", lambda: now + datetime.timedelta(hours=1))
    met(server, trust_of(tmp_path, authority, "global-master", "g0"), (GLOBAL_MASTER, 0))
    monkeypatch.setattr(certificates, "_now", lambda: now + datetime.timedelta(days=1))
    early = trust_of(tmp_path, authority, "global-master", "g0")
    with pytest.raises(LinkError, match="not valid yet by its clock"):
        met(server, early, (GLOBAL_MASTER, 0))


def test_what_expires_soon_is_said_once(tmp_path, authority):
    made = trust_of(tmp_path, authority, "worker", "w3", days=5)
    assert "expires in 5.0 days" in made.refresh()
    assert made.refresh() == ""


@pytest.mark.parametrize(("change", "words"), [
    (lambda folder: (folder / "own.key").unlink(), "No such file"),
    (lambda folder: (folder / "own.key").write_text("no key"), "do not fit"),
    (lambda folder: (folder / "own.crt").unlink(), "No such file"),
])
def test_files_that_are_none_are_refused_in_one_line(tmp_path, authority, change, words):
    entry = entry_of(tmp_path, authority, "worker", "w3")
    change(tmp_path)
    with pytest.raises(InputError, match=words) as raised:
        CertificateTrust(entry, tmp_path)
    assert "\n" not in str(raised.value)


def test_a_certificate_without_a_process_is_refused(tmp_path, authority):
    with pytest.raises(InputError, match="names no process"):
        CertificateTrust(TlsEntry(str(authority.folder / "ca.crt"), str(authority.folder / "ca.key"),
                                  str(authority.folder / "ca.crt")), tmp_path)


def test_an_authority_is_made_once_and_keeps_its_key_private(tmp_path):
    made = make_authority(tmp_path, "lab")
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600
    assert read_revoked(tmp_path / "ca.crl") == frozenset()
    with pytest.raises(InputError, match="is there already"):
        make_authority(tmp_path, "lab")
    pair = made.issue("global-master", "g0", ["g0.example.org", "10.0.0.1", "[fd00::1]"])
    found = shown(x509.load_pem_x509_certificate(pair.certificate))
    assert found.identity == Identity("lab", "global-master", "g0")
    assert found.hosts == ["g0.example.org", "10.0.0.1", "fd00::1"]
    (tmp_path / "ca.key").chmod(0o644)
    with pytest.raises(InputError, match="others may read it"):
        Authority(tmp_path)


def test_all_that_a_process_ever_had_is_revoked_by_its_name(tmp_path):
    made = make_authority(tmp_path, "lab")
    for name in ("w1", "w1", "w1-2"):
        made.issue("worker", name)
    kept = {stem: made.issued(stem) for stem in ("worker-w1", "worker-w1-2", "worker-w")}
    assert [len(files) for files in kept.values()] == [2, 1, 0]
    done = subprocess.run([sys.executable, "-m", "subak", "ca", "revoke", tmp_path, "worker-w1"], capture_output=True,
                          text=True, check=True)
    assert "2 certificates of worker-w1 on it" in done.stdout
    assert read_revoked(tmp_path / "ca.crl") == {read_certificate(file).serial_number for file in kept["worker-w1"]}


def test_a_process_refuses_its_own_revoked_certificate(tmp_path):
    own = make_authority(tmp_path / "ca", "lab")
    made = trust_of(tmp_path, own, "worker", "w3")
    own.revoke(read_certificate(made.certificate))
    with pytest.raises(InputError, match="was revoked by"):
        CertificateTrust(TlsEntry("own.crt", "own.key", str(own.folder / "ca.crt"), str(own.folder / "ca.crl")),
                         made.certificate.parent)
    assert "was revoked by" in made.refresh()


@pytest.mark.parametrize(("how", "words"), [
    (("global-master", "g0"), "--host: a global master's certificate must name"),
    (("master", "g0"), "ROLE: must be one of"), (("worker", "a/b"), "NAME: must be"), (("worker", ""), "NAME: must be"),
    (("worker", "w", ["a b"]), "--host: must be"), (("worker", "w", [], 0), "--days: must be from 1 to 3650"),
])
def test_what_cannot_be_issued_is_refused(authority, how, words):
    with pytest.raises(InputError, match=words):
        authority.issue(*how)


def test_names_with_two_processes_or_with_more_behind_are_none():
    uri = Identity("lab", "worker", "w1").uri
    assert identity_in([uri]) == Identity("lab", "worker", "w1")
    assert identity_in([uri, "https://x"]) == Identity("lab", "worker", "w1")
    assert identity_in([uri, Identity("lab", "worker", "w2").uri]) is None
    assert identity_in([uri + "/x"]) is identity_in([uri + "\n"]) is identity_in([]) is None


def test_in_clear_only_on_this_machine_or_where_the_file_says_so():
    for own in ("127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"):
        assert is_own(own)
        check_plaintext("http", own, False)
    for other in ("0.0.0.0:1", "10.0.0.1:1", "host.example.org:1", "[fd00::1]:1", "[::]:1"):
        with pytest.raises(InputError, match="all goes there in clear"):
            check_plaintext("http", other, False)
        check_plaintext("http", other, True)


def test_old_versions_of_tls_are_refused(tmp_path, authority):
    made = trust_of(tmp_path, authority, "local-master", "a")
    assert made.server.minimum_version == made.client.minimum_version == ssl.TLSVersion.TLSv1_3
    assert made.server.verify_mode == made.client.verify_mode == ssl.CERT_REQUIRED
