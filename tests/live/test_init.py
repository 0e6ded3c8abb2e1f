"""Folders for several hosts: what is in each, who is where, and what is refused."""
import configparser
import ipaddress

import pytest

from subak.errors import InputError
from subak.live.certificates import read_certificate, shown
from subak.live.client.settings import read_settings
from subak.live.config import FederationFile, GlobalMasterFile, LocalMasterFile, WorkerFile, read
from subak.live.identities import Identity
from subak.live.process.trust import CertificateTrust
from subak.live.up.folder import Home, members_of
from subak.live.up.hosts import Cluster, Host, Spread, parse_clusters, parse_hosts, parse_masters, processes_of, write
from subak.live.up.plan import Wish

HOSTS = parse_hosts("h1=10.0.0.1,h2=10.0.0.2,h3=fd00::3,h4=node4.example.org")
KINDS = {"global-master": GlobalMasterFile, "local-master": LocalMasterFile, "worker": WorkerFile}


def spread_of(hosts=HOSTS, masters=("h1", "h2"), clusters=(Cluster("a", ("h1", "h2", "h3", "h4")),), port=7433):
    return Spread("lab", hosts, masters, clusters, (("default", 1.0),), "drf", port)


def test_each_host_has_its_processes_with_certificates_that_name_them(tmp_path):
    write(tmp_path / "lab", spread_of())
    seen = {}
    for host in HOSTS:
        folder = tmp_path / "lab" / host.name
        members, broken = members_of(folder)
        assert broken == []
        seen[host.name] = {member.name for member in members}
        for member in members:
            file = read(member.file, KINDS[member.role])
            role = "standby" if getattr(file, "standby", False) else member.role
            name = getattr(file, "name", None) or file.cluster
            trust = CertificateTrust(file.tls, folder, role, name)
            assert trust.me == Identity("lab", role, name)
            assert (folder / file.tls.key).stat().st_mode & 0o777 == 0o600
            assert (folder / "systemd" / f"subak-{member.file.stem}.service").exists()
        assert (folder / "people.token").exists() == (host.name in ("h1", "h2"))
        assert not (folder / "ca.key").exists() and not (folder / "client.toml").exists()
    assert seen == {"h1": {"g0", "a", "h1"}, "h2": {"g1", "a-standby", "h2"}, "h3": {"h3"}, "h4": {"h4"}}


def test_people_find_the_masters_over_https_at_hosts_that_certificates_name(tmp_path):
    write(tmp_path / "lab", spread_of(masters=("h1", "h3", "h4")))
    settings = read_settings(tmp_path / "lab" / "people" / "client.toml", {})
    assert settings.addresses == ("https://10.0.0.1:7433", "https://[fd00::3]:7433", "https://node4.example.org:7433")
    assert settings.ca == str(tmp_path / "lab" / "people" / "ca.crt")
    names = [shown(read_certificate(tmp_path / "lab" / host / f"global-master-g{number}.crt")).hosts
             for number, host in enumerate(("h1", "h3", "h4"))]
    assert names == [["10.0.0.1"], ["fd00::3"], ["node4.example.org"]]
    token = (tmp_path / "lab" / "people" / "people.token").read_text()
    assert all((tmp_path / "lab" / host / "people.token").read_text() == token for host in ("h1", "h3", "h4"))


def test_clusters_have_their_masters_on_their_own_hosts():
    text, processes = processes_of(spread_of(clusters=(Cluster("east", ("h1", "h2")), Cluster("west", ("h2x", "h4"))),
                                             hosts=(*HOSTS, Host("h2x", "10.0.0.9"))))
    assert '"10.0.0.1:7443"' in text and '"10.0.0.2:7443"' in text and '"10.0.0.9:7443"' in text
    assert [(each.host, each.role, each.name) for each in processes] == [
        ("h1", "global-master", "g0"), ("h2", "global-master", "g1"), ("h1", "local-master", "east"),
        ("h2", "standby", "east"), ("h1", "worker", "h1"), ("h2", "worker", "h2"), ("h2x", "local-master", "west"),
        ("h4", "standby", "west"), ("h2x", "worker", "h2x"), ("h4", "worker", "h4")]


def test_no_two_processes_of_a_host_have_a_port(tmp_path):
    clusters = tuple(Cluster(f"c{number}", (host.name,)) for number, host in enumerate(HOSTS))
    write(tmp_path / "lab", spread_of(clusters=clusters))
    file = read(tmp_path / "lab" / "h1" / "federation.toml", FederationFile)
    addresses = [*(master.http for master in file.global_master), *file.local_addresses().values()]
    assert len(set(addresses)) == len(addresses) == 6
    assert not any(cluster.standby for cluster in file.cluster)


def test_units_of_systemd_start_each_process_and_a_worker_leaves_its_tasks(tmp_path):
    write(tmp_path / "lab", spread_of())
    for file, command, mode in (("worker-h1", "worker", "process"), ("global-master-g0", "global-master", "mixed")):
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str
        unit.read(tmp_path / "lab" / "h1" / "systemd" / f"subak-{file}.service")
        assert unit["Service"]["ExecStart"] == f"/usr/bin/env subak {command} /var/lib/subak/{file}.toml"
        assert unit["Service"]["KillMode"] == mode
    target = (tmp_path / "lab" / "h2" / "systemd" / "subak.target").read_text()
    assert "Wants=subak-global-master-g1.service subak-local-master-a-standby.service subak-worker-h2.service" in target
    assert (tmp_path / "lab" / "h2" / "systemd" / "subak-local-master-a-standby.service").read_text().count(
        "subak local-master /var/lib/subak/local-master-a-standby.toml") == 1


@pytest.mark.parametrize(("text", "words"), [
    ("h1,,h2", "--hosts: must be such as"), ("h1=10.0.0.1,h1=10.0.0.2", "is there twice"),
    ("h1=10.0.0.1,h2=10.0.0.1", "is there twice"), ("h1=a b", "--hosts: must be such as"),
    ("ca=10.0.0.1", "cannot be called ca"), ("people", "cannot be called people"),
    ("../x", "--hosts: must be such as")])
def test_hosts_that_cannot_be_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        parse_hosts(text)


@pytest.mark.parametrize(("text", "words"), [
    ("a=h1+h9", "there is no host 'h9'"), ("a=h1,b=h1", "host h1 is in cluster a already"), ("a=", "must be such as"),
    ("a=h1,a=h2", "each name once"), ("1a=h1", "must be such as"), ("h1+h2", "must be such as")])
def test_clusters_that_cannot_be_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        parse_clusters(text, HOSTS)


@pytest.mark.parametrize(("text", "words"), [("h9", "there is no host 'h9'"), ("h1,h1", "is there twice")])
def test_global_masters_that_cannot_be_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        parse_masters(text, HOSTS)


def test_files_of_processes_without_the_federations_file_are_no_new_federation(tmp_path):
    write(tmp_path / "lab", spread_of())
    host = tmp_path / "lab" / "h3"
    (host / "federation.toml").unlink()
    before = sorted(host.rglob("*"))
    with pytest.raises(InputError, match="has files of processes and no federation"):
        Home(host, Wish())
    assert sorted(host.rglob("*")) == before


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    write(tmp_path / "lab", spread_of())
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="is there already, and not empty"):
        write(tmp_path / "lab", spread_of())
    assert sorted(tmp_path.rglob("*")) == before


def test_what_no_federation_can_be_leaves_nothing_behind(tmp_path):
    with pytest.raises(InputError, match="cluster: there must be"):
        write(tmp_path / "lab", spread_of(
            hosts=parse_hosts(",".join(f"h{number}" for number in range(70))), masters=("h1",),
            clusters=tuple(Cluster(f"c{number}", (f"h{number}",)) for number in range(70))))
    assert not (tmp_path / "lab").exists()


def test_many_hosts_are_parsed_without_quadratic_work():
    text = ",".join(f"n{number}={ipaddress.ip_address('10.0.0.0') + number}" for number in range(10_000))
    assert len(parse_hosts(text)) == 10_000
    with pytest.raises(InputError, match="at most 10,000 hosts"):
        parse_hosts(f"{text},one-more")
