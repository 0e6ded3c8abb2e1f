"""Plans a federation on several hosts, and writes a folder for each: files, certificates, token, units of systemd.

```
DIR/ca/            the authority: ca.key stays with whoever sets hosts up
DIR/people/        client.toml, ca.crt, people.token: for people's commands, from any host
DIR/HOST/          all that a host needs; `subak up HOST` starts what is there
```
"""
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from subak.errors import InputError
from subak.live.certificates import AUTHORITY, DAYS, REVOKED, Authority, check_days, make_authority, stem_of, write_pair
from subak.live.client.settings import CLIENT
from subak.live.config import ADDRESS, FederationFile, check, decoded
from subak.live.identities import GLOBAL_MASTER, LOCAL_MASTER, NAME, STANDBY, WORKER
from subak.live.private_files import read_private, write_private
from subak.live.tokens import PEOPLE, make_token
from subak.live.up.folder import FEDERATION
from subak.live.up.plan import toml_text, worker_text

CA, FOR_PEOPLE, TOKEN = "ca", "people", "people.token"
HOSTS_MAX = 10_000
HTTP_PORT, LOCAL_PORT = 0, 10  # behind the first port: of global masters, of local masters and standbys
HOME = "/var/lib/subak"  # where units of systemd take a host's folder to be
RUN_AS = ('# Under root: the account of tasks that name no user; "submitter" is whoever submitted them, or nobody.\n'
          'run_as = "submitter"\n')
RESERVED = (CA, FOR_PEOPLE)


class Host(NamedTuple):
    """A host: its name, and the address at which others reach it."""

    name: str
    address: str


class Cluster(NamedTuple):
    """A cluster: the first of its hosts has the local master, the second the standby; a worker is on each."""

    name: str
    hosts: tuple[str, ...]


class Spread(NamedTuple):
    """A federation on several hosts."""

    name: str
    hosts: tuple[Host, ...]
    global_masters: tuple[str, ...]  # hosts of g0, g1, ...
    clusters: tuple[Cluster, ...]
    queues: tuple[tuple[str, float], ...]
    order: str
    port: int


class Process(NamedTuple):
    """A process on a host, and its file."""

    host: str
    role: str
    name: str
    text: str

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{_member(self.role, self.name)}.toml"


def parse_hosts(text: str) -> tuple[Host, ...]:
    """Return hosts for a text such as h1=10.0.0.1,h2; a name alone is its address too. Raises InputError."""
    found, addresses = dict[str, Host](), set[str]()
    for part in text.split(","):
        name, _, address = part.strip().partition("=")
        host = Host(name, _bracketed(address or name))
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", name) or not ADDRESS.fullmatch(f"{host.address}:1"):
            raise InputError(f"--hosts: must be such as h1=10.0.0.1,h2=host2.example.org, and {part!r} is not")
        if name in RESERVED:
            raise InputError(f"--hosts: a host cannot be called {name}: a folder of this name is made beside it")
        if name in found or host.address in addresses:
            raise InputError(f"--hosts: {part!r} is there twice, by its name or its address")
        if len(found) == HOSTS_MAX:
            raise InputError(f"--hosts: at most {HOSTS_MAX:,} hosts")
        found[name] = host
        addresses.add(host.address)
    return tuple(found.values())


def parse_clusters(text: str, hosts: Sequence[Host]) -> tuple[Cluster, ...]:
    """Return clusters for a text such as a=h1+h2,b=h3. Raises InputError."""
    known, taken, found = {host.name for host in hosts}, dict[str, str](), dict[str, Cluster]()
    for part in text.split(","):
        name, _, members = part.strip().partition("=")
        cluster = Cluster(name, tuple(members.split("+")) if members else ())
        if not NAME.fullmatch(name) or not cluster.hosts or name in found:
            raise InputError(f"--clusters: must be such as a=h1+h2,b=h3+h4, each name once, and {part!r} is not")
        for host in cluster.hosts:
            if host not in known:
                raise InputError(f"--clusters: there is no host {host!r}; --hosts names {_some(known)}")
            if host in taken:
                raise InputError(f"--clusters: host {host} is in cluster {taken[host]} already; its worker joins one")
            taken[host] = name
        found[name] = cluster
    return tuple(found.values())


def parse_masters(text: str, hosts: Sequence[Host]) -> tuple[str, ...]:
    """Return the hosts of global masters for a text such as h1,h2. Raises InputError."""
    found, known = tuple(part.strip() for part in text.split(",")), {host.name for host in hosts}
    for host in found:
        if host not in known:
            raise InputError(f"--global-masters: there is no host {host!r}; --hosts names {_some(known)}")
        if found.count(host) > 1:
            raise InputError(f"--global-masters: host {host} is there twice")
    return found


def processes_of(spread: Spread) -> tuple[str, list[Process]]:
    """Return the text of the federation's file, and all processes with their files. Raises InputError."""
    address = {host.name: host.address for host in spread.hosts}
    used = dict.fromkeys(address, spread.port + LOCAL_PORT)
    masters = {f"g{number}": host for number, host in enumerate(spread.global_masters)}
    lines = ["# What all masters agree on: the same file on every host of one.", f"name = {toml_text(spread.name)}",
             f"order = {toml_text(spread.order)}"]
    found: list[Process] = []
    for name, host in masters.items():
        lines += ["", "[[global_master]]", f"name = {toml_text(name)}",
                  f'http = "{address[host]}:{spread.port + HTTP_PORT}"']
        found.append(Process(host, GLOBAL_MASTER, name, f'name = "{name}"\ndata = "data/{name}"\n'
                             + _tls(GLOBAL_MASTER, name)))
    with_standby = all(len(cluster.hosts) > 1 for cluster in spread.clusters)
    for cluster in spread.clusters:
        addresses = []
        for role, host in zip((LOCAL_MASTER, STANDBY)[: 1 + with_standby], cluster.hosts, strict=False):
            addresses.append(f"{address[host]}:{used[host]}")
            used[host] += 1
            found.append(Process(host, role, cluster.name, (
                f'cluster = "{cluster.name}"\nstandby = {str(role == STANDBY).lower()}\n'
                f'data = "data/{_member(role, cluster.name)}"\n') + _tls(role, cluster.name)))
        lines += ["", "[[cluster]]", f"name = {toml_text(cluster.name)}", f'local_master = "{addresses[0]}"',
                  *(f'standby = "{standby}"' for standby in addresses[1:])]
        found += [Process(host, WORKER, host, RUN_AS + worker_text(host, addresses, {}) + _tls(WORKER, host))
                  for host in cluster.hosts]
    for name, weight in spread.queues:
        lines += ["", "[[queue]]", f"name = {toml_text(name)}", f"weight = {weight!r}"]
    text = "\n".join(lines) + "\n"
    try:
        check(decoded(text, FederationFile))
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None
    return text, found


def write(folder: Path, spread: Spread, days: int = DAYS) -> list[Process]:
    """Make the folders of all hosts; return their processes. Raises InputError where the folder is there, or can't be.

    The folder appears whole, or not at all.
    """
    text, processes = processes_of(spread)
    check_days(days)
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder}: is there already, and not empty; take another folder (subak ca issue makes "
                             "certificates for more processes of a federation that is there)")
        _write_all(beside, spread, days, text, processes)
        beside.replace(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return processes


def _write_all(folder: Path, spread: Spread, days: int, text: str, processes: Sequence[Process]) -> None:
    """Write the folders of the authority, of people, and of all hosts."""
    authority = make_authority(folder / CA, spread.name)
    address = {host.name: host.address for host in spread.hosts}
    http = [f"https://{address[host]}:{spread.port + HTTP_PORT}" for host in spread.global_masters]
    people = folder / FOR_PEOPLE
    make_token(people / TOKEN, PEOPLE)
    _copy_public(authority, people)
    (people / CLIENT).write_text(f'address = [{", ".join(map(toml_text, http))}]\n'
                                 f'token_file = "{TOKEN}"\nca = "{AUTHORITY}"\nrevoked = "{REVOKED}"\n')
    by_host: dict[str, list[Process]] = {host.name: [] for host in spread.hosts}
    for process in processes:
        by_host[process.host].append(process)
    for host in spread.hosts:
        _write_host(folder / host.name, host, by_host[host.name], authority, days)
        if any(process.role == GLOBAL_MASTER for process in by_host[host.name]):
            write_private(folder / host.name / TOKEN, read_private(people / TOKEN) or "")
        (folder / host.name / FEDERATION).write_text(text)


def _write_host(folder: Path, host: Host, processes: Sequence[Process], authority: Authority, days: int) -> None:
    units = folder / "systemd"
    units.mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    _copy_public(authority, folder)
    for process in processes:
        (folder / process.file).write_text(process.text)
        hosts = [host.address] if process.role == GLOBAL_MASTER else []
        write_pair(folder, stem_of(process.role, process.name),
                   authority.issue(process.role, process.name, hosts, days))
        (units / f"subak-{_member(process.role, process.name)}.service").write_text(_unit(process))
    names = " ".join(f"subak-{_member(each.role, each.name)}.service" for each in processes)
    (units / "subak.target").write_text(f"[Unit]\nDescription=Subak on this host\nWants={names}\n\n[Install]\n"
                                        "WantedBy=multi-user.target\n")


def _copy_public(authority: Authority, folder: Path) -> None:
    """Copy the certificate of the authority, and what it has revoked."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in (AUTHORITY, REVOKED):
        (folder / name).write_bytes((authority.folder / name).read_bytes())


def _member(role: str, name: str) -> str:
    """Return how the file of a process is called, without its ending, as `subak up` reads it."""
    return f"{LOCAL_MASTER}-{name}-standby" if role == STANDBY else f"{role}-{name}"


def _tls(role: str, name: str) -> str:
    return (f'\n[tls]\ncertificate = "{role}-{name}.crt"\nkey = "{role}-{name}.key"\nca = "{AUTHORITY}"\n'
            f'revoked = "{REVOKED}"\n')


def _unit(process: Process) -> str:
    """Return a unit of systemd. What runs under a worker goes on when the worker is started again."""
    command = LOCAL_MASTER if process.role == STANDBY else process.role
    leaves = "process" if process.role == WORKER else "mixed"
    return (f"[Unit]\nDescription=Subak {process.role} {process.name}\nAfter=network-online.target\n"
            f"Wants=network-online.target\nPartOf=subak.target\n\n[Service]\n"
            f"ExecStart=/usr/bin/env subak {command} {HOME}/{process.file}\nWorkingDirectory={HOME}\nRestart=always\n"
            f"RestartSec=1\nKillMode={leaves}\nLimitNOFILE=65536\n\n[Install]\nWantedBy=subak.target\n")


def _bracketed(address: str) -> str:
    return f"[{address}]" if address.count(":") > 1 and not address.startswith("[") else address


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10:,} more" if len(listed) > 10 else "")


def count_of(processes: Iterable[Process]) -> Mapping[str, int]:
    """Return how many processes of each role there are."""
    found: dict[str, int] = {}
    for process in processes:
        found[process.role] = found.get(process.role, 0) + 1
    return found
