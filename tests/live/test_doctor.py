"""`subak doctor`: what it finds on a host, with processes that run and without, and that it changes nothing."""
import subprocess
import sys

import pytest

from live_federation import Federation
from subak.errors import InputError
from subak.live.certificates import Authority
from subak.live.role.frames import WireVersion
from subak.live.up import doctor
from subak.live.up.doctor import examined
from subak.live.up.hosts import Cluster, Spread, parse_hosts, write


def faults(folder):
    return {finding.about: finding.words for finding in examined(folder) if finding.grade == "fault"}


def minded(folder):
    return {finding.about: finding.words for finding in examined(folder) if finding.grade == "mind"}


@pytest.fixture
def host(tmp_path):
    """The folder of a host with a worker alone: nobody answers."""
    hosts = parse_hosts("h1=127.0.0.1,h2=127.0.0.2")
    clusters = (Cluster("a", ("h1", "h2")),)
    write(tmp_path / "lab", Spread("lab", hosts, ("h1",), clusters, (("default", 1.0),), "drf", 65_000))
    return tmp_path / "lab" / "h2"


def test_masters_that_do_not_answer_are_faults(host):
    found = faults(host)
    assert set(found) == {"master 127.0.0.1:65010", "master 127.0.0.2:65010", "global master 127.0.0.1:65000"}
    assert all("Connection refused" in words for words in found.values())


@pytest.mark.parametrize(("change", "about", "words"), [
    (lambda host: (host / "worker-h2.key").chmod(0o644), "worker-h2.toml", "others may read it"),
    (lambda host: (host / "worker-h2.crt").unlink(), "worker-h2.toml", "No such file"),
    (lambda host: (host / "worker-h2.crt").write_bytes((host / "standby-a.crt").read_bytes()), "worker-h2.toml",
     "is of standby a of lab, and one of worker h2 is needed"),
    (lambda host: (host / "worker-h2.toml").write_text("name = 3"), "worker-h2.toml", "Expected `str`"),
    (lambda host: (host / "federation.toml").unlink(), "local-master-a-standby.toml", "federation.toml: no such file"),
    (lambda host: (host / "federation.toml").write_text("x"), "federation.toml", "federation.toml"),
])
def test_files_that_are_wrong_are_named(host, change, about, words):
    change(host)
    assert words in faults(host)[about]


def test_a_certificate_that_expires_soon_is_minded(host, tmp_path):
    pair = Authority(tmp_path / "lab" / "ca").issue("worker", "h2", days=3)
    (host / "worker-h2.key").write_bytes(pair.key)
    (host / "worker-h2.crt").write_bytes(pair.certificate)
    assert "(3 days)" in minded(host)["worker-h2.toml"]


def test_it_changes_nothing(host):
    before = {file: (file.stat().st_mtime_ns, file.stat().st_mode) for file in host.rglob("*")}
    list(examined(host))
    assert {file: (file.stat().st_mtime_ns, file.stat().st_mode) for file in host.rglob("*")} == before


def test_no_folder_and_an_empty_one(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        list(examined(tmp_path / "nothing"))
    assert faults(tmp_path) == {str(tmp_path): "holds no file of a process, such as worker-w1.toml"}


def test_clear_over_a_network_is_a_fault_and_minded_where_it_is_allowed(tmp_path):
    worker = tmp_path / "worker-w1.toml"
    worker.write_text('name = "w1"\nlocal_masters = ["198.18.0.1:1"]\ndata = "data"\n')
    assert "all goes there in clear" in faults(tmp_path)["worker-w1.toml"]
    worker.write_text(worker.read_text() + "plaintext = true\n")
    assert minded(tmp_path)["worker-w1.toml"] == "speaks in clear: plaintext = true"


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    made = Federation(tmp_path_factory.mktemp("doctor"), masters=1, clusters=1, workers=1, tls=True)
    for member in list(made.members.values()):  # named as `subak init` names them
        member.file.with_name(f"{member.role}-{member.file.name}").write_text(member.file.read_text())
    made.start()
    try:
        made.wait_ready()
        yield made
    finally:
        assert made.stop() == []


def test_what_serves_is_good(federation):
    assert faults(federation.folder) == {}
    said = {finding.about: finding.words for finding in examined(federation.folder)}
    assert said[f"master {federation.local['a'][0]}"].endswith("by the certificate of a")
    assert said[f"global master {federation.http[0]}"].startswith("takes jobs; its clock agrees")


def test_a_clock_an_hour_off_is_a_fault(federation, monkeypatch):
    now = doctor.time.time
    monkeypatch.setattr(doctor.time, "time", lambda: now() + 3600)
    assert "s behind this host's" in faults(federation.folder)[f"global master {federation.http[0]}"]


def test_another_version_of_the_wire_is_a_fault(federation, monkeypatch):
    monkeypatch.setattr(doctor, "WIRE_VERSION", WireVersion(99, 0))
    words = faults(federation.folder)[f"master {federation.local['a'][0]}"]
    assert "speaks wire version" in words and "this host 99.0" in words


def test_the_command_says_how_many_and_ends_with_1(host):
    words = [sys.executable, "-m", "subak", "doctor", "-q", host]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("3 faults, ")
    assert "ok " not in done.stdout
