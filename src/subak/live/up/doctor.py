"""Looks at this host's part of a federation, and says what is wrong: files, certificates, ports, clocks, limits.

Every look is a `Finding`: good, to be minded, or a fault that keeps something from working. Nothing is changed.
"""
import asyncio
import http.client
import os
import resource
import shutil
import ssl
import time
from collections.abc import Generator, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import DecodeError, json, msgpack

from subak.errors import InputError
from subak.live import identities
from subak.live.agent.processes.cgroups import ROOT
from subak.live.api.models import Health
from subak.live.certificates import read_certificate, shown
from subak.live.config import (
    FederationFile,
    GlobalMasterFile,
    LocalMasterFile,
    TlsEntry,
    WorkerFile,
    read,
    split_address,
)
from subak.live.process.links import LENGTH_BYTES, Challenge
from subak.live.process.trust import SOON_S, CertificateTrust, TokenTrust, Trust, check_plaintext, words_of
from subak.live.role.frames import WIRE_VERSION
from subak.live.tokens import PEOPLE, TokenHash, read_token
from subak.live.up.folder import FEDERATION, KINDS, Member
from subak.version import VERSION

Grade = Literal["good", "mind", "fault"]
ANSWER_S = 5.0
CLOCK_S = 60.0  # by which clocks may differ before it is said; certificates allow two hours
OPEN_FILES = 8192  # open files that a master of a thousand machines may need
FREE_BYTES = 1 << 30
COMMIT_S = 0.05  # that a disk may take for a commit
COMMITS = 5
AnyFile = GlobalMasterFile | LocalMasterFile | WorkerFile


class Finding(NamedTuple):
    """What was looked at, and what is to be said of it."""

    grade: Grade
    about: str
    words: str


def examined(folder: Path) -> Iterator[Finding]:
    """Yield what is found of a folder, as it is found. Raises InputError where there is no such folder."""
    _check_folder(folder)
    yield Finding("good", "version", f"subak {VERSION}, wire {WIRE_VERSION}")
    federation: FederationFile | None = None
    if (folder / FEDERATION).exists():
        try:
            federation = read(folder / FEDERATION, FederationFile)
        except InputError as error:
            yield Finding("fault", FEDERATION, str(error))
            return
    members = [Member(role, file.stem.removeprefix(f"{role}-"), file)
               for role in KINDS for file in sorted(folder.glob(f"{role}-*.toml"))]
    if not members:
        yield Finding("fault", str(folder), "holds no file of a process, such as worker-w1.toml")
    others: dict[tuple[str, str], Trust] = {}  # addresses to try, each with the certificate that is shown
    for member in members:
        try:
            file = read(member.file, KINDS[member.role])
        except InputError as error:
            yield Finding("fault", member.file.name, str(error))
            continue
        trust = yield from _of_member(folder, member, file, federation)
        if trust is not None:
            for kind, address in _others(file, federation):
                others.setdefault((kind, address), trust)
    yield from _of_host(folder, federation is not None)
    for (kind, address), trust in others.items():
        yield _of_master(address, trust) if kind == "master" else _of_people(address, trust)


def _check_folder(folder: Path) -> None:
    try:
        is_there = folder.is_dir()
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    if not is_there:
        raise InputError(f"{folder}: no such folder")


def _of_member(folder: Path, member: Member, file: AnyFile, federation: FederationFile | None,
               ) -> Generator[Finding, None, Trust | None]:
    """Yield what is found of a process's file; return how it knows others, or None where that can't be."""
    about = member.file.name
    role, name = _whose(file)
    try:
        if not isinstance(file, WorkerFile):
            if federation is None:
                raise InputError(f"{folder / FEDERATION}: no such file")
            (federation.number_of if isinstance(file, GlobalMasterFile) else federation.number_of_cluster)(name)
        if isinstance(file, GlobalMasterFile) and (folder / file.people_token_file).exists():
            read_token(folder / file.people_token_file, PEOPLE)
        if file.tls is None:
            for address in _own_addresses(file, federation):
                check_plaintext("address", address, file.plaintext)
            yield Finding("good" if not file.plaintext else "mind", about,
                          "speaks in clear: plaintext = true" if file.plaintext else "speaks on this machine only")
            return TokenTrust(TokenHash(""))
        trust = CertificateTrust(file.tls, folder, role, name, federation=federation.name if federation else "")
    except InputError as error:
        yield Finding("fault", about, str(error))
        return None
    yield from _of_certificate(folder, about, file.tls)
    return trust


def _of_certificate(folder: Path, about: str, entry: TlsEntry) -> Iterator[Finding]:
    certificate, authority = read_certificate(folder / entry.certificate), read_certificate(folder / entry.ca)
    found, now = shown(certificate), time.time()
    left = found.end.timestamp() - now
    if certificate.issuer != authority.subject:
        yield Finding("mind", about, f"{entry.certificate} was not issued by the first authority in {entry.ca}")
    if found.begin.timestamp() > now:
        yield Finding("fault", about, f"{entry.certificate} counts from {found.begin:%Y-%m-%d %H:%M} UTC only: is this "
                      "host's clock right?")
    yield Finding("mind" if left < SOON_S else "good", about,
                  f"is {found.identity}, until {found.end:%Y-%m-%d} ({left / 86400:.0f} days)")


def _of_host(folder: Path, has_masters: bool) -> Iterator[Finding]:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    is_enough = files >= OPEN_FILES or files == resource.RLIM_INFINITY
    yield Finding("good" if is_enough else "mind", "open files", f"a process may have {files:,}" + (
        "" if is_enough else f"; masters of many machines need {OPEN_FILES:,} (LimitNOFILE, ulimit -n)"))
    free = shutil.disk_usage(folder).free
    yield Finding("good" if free >= FREE_BYTES else "mind", "disk", f"{free / (1 << 30):.1f} GiB are free")
    if has_masters:
        took = _commit_s(folder)
        yield Finding("good" if took <= COMMIT_S else "mind", "disk", f"a commit takes {1e3 * took:.1f} ms" + (
            "" if took <= COMMIT_S else "; each submission and each start waits for it: give data a faster disk"))
    controllers = (ROOT / "cgroup.controllers").read_text().split() if (ROOT / "cgroup.controllers").exists() else []
    lacking = [name for name in ("cpu", "memory", "pids") if name not in controllers]
    yield Finding("mind" if lacking else "good", "control groups", "cpu, memory and pids can be limited" if not lacking
                  else f"no {', '.join(lacking)}: memory of tasks is looked at every 0.2 s, the rest is not limited")
    yield Finding("good", "user", "root: tasks may have users of their own" if os.geteuid() == 0 else
                  f"{os.geteuid()}: tasks run as this user")


def _commit_s(folder: Path) -> float:
    """Return the longest of some commits, in seconds."""
    file, took = folder / f".doctor-{os.getpid()}", []
    try:
        with file.open("wb", buffering=0) as opened:
            for _ in range(COMMITS):
                began = time.perf_counter()
                opened.write(bytes(4096))
                os.fdatasync(opened.fileno())
                took.append(time.perf_counter() - began)
    except OSError as error:
        raise InputError(f"{folder}: nothing can be written there: {error.strerror}") from None
    finally:
        file.unlink(missing_ok=True)
    return sorted(took)[COMMITS // 2]


def _of_master(address: str, trust: Trust) -> Finding:
    """Dial a local master, and see which version it speaks."""
    about = f"master {address}"
    try:
        challenge, transport = asyncio.run(_challenged(address, trust))
    except ssl.SSLError as error:
        return Finding("fault", about, words_of(error))
    except (OSError, TimeoutError, EOFError, ValueError) as error:
        return Finding("fault", about, _unreachable(error))
    if not WIRE_VERSION.speaks(challenge.version):
        return Finding("fault", about, f"speaks wire version {challenge.version}, and this host {WIRE_VERSION}: run "
                       "releases of subak with the same major wire version on both")
    return Finding("good", about, f"answers, wire {challenge.version}{transport}")


def _unreachable(error: BaseException) -> str:
    number = getattr(error, "errno", None)
    words = os.strerror(number) if number else str(error) or "no answer"
    return f"cannot be reached: {words}; is it started, is its host, and does a firewall let this one through?"


async def _challenged(address: str, trust: Trust) -> tuple[Challenge, str]:
    host, port = split_address("address", address)
    async with asyncio.timeout(ANSWER_S):
        reader, writer = await asyncio.open_connection(
            host, port, ssl=trust.client, server_hostname="" if trust.client is not None else None)
        try:
            length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
            challenge = msgpack.decode(await reader.readexactly(min(length, 4096)), type=Challenge)
            name = trust.name_of(writer.transport)
            return challenge, f", by the certificate of {name}" if name else ""
        finally:
            writer.close()


def _of_people(address: str, trust: Trust) -> Finding:
    """Ask a global master for its health, and compare clocks."""
    about = f"global master {address}"
    host, port = split_address("address", address)

    if isinstance(trust, CertificateTrust):
        context = ssl.create_default_context(cafile=str(trust.ca))
        wire: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, timeout=ANSWER_S, context=context)
    else:
        wire = http.client.HTTPConnection(host, port, timeout=ANSWER_S)
    try:
        wire.request("GET", "/v1/ready")
        answer = wire.getresponse()
        health = json.decode(answer.read(), type=Health)
    except ssl.SSLError as error:
        return Finding("fault", about, words_of(error))
    except (OSError, http.client.HTTPException, DecodeError) as error:
        return Finding("fault", about, _unreachable(error))
    finally:
        wire.close()
    there = answer.getheader("date")
    apart = time.time() - parsedate_to_datetime(there).timestamp() if there else 0.0
    if abs(apart) > CLOCK_S:
        return Finding("fault", about, f"its clock is {abs(apart):,.0f} s {'behind' if apart > 0 else 'ahead of'} this "
                       "host's: let NTP keep both")
    if answer.status != http.client.OK:
        return Finding("mind", about, f"takes no jobs now: {health.words or health.state}")
    return Finding("good", about, f"takes jobs; its clock agrees within {CLOCK_S:g} s")


def _others(file: AnyFile, federation: FederationFile | None) -> Iterator[tuple[str, str]]:
    """Yield whom a process speaks with: local masters, and global masters as people find them."""
    if isinstance(file, WorkerFile):
        for address in file.local_masters:
            yield "master", address
    elif federation is not None:
        for address in federation.local_addresses().values():
            yield "master", address
        for master in federation.masters().values():
            yield "people", master.http


def _own_addresses(file: AnyFile, federation: FederationFile | None) -> Iterator[str]:
    if isinstance(file, WorkerFile) or federation is None:
        yield from getattr(file, "local_masters", ())
    else:
        yield from federation.local_addresses().values()
        if file.listen:
            yield file.listen


def _whose(file: AnyFile) -> tuple[str, str]:
    """Return the role and the name that a process's certificate must have."""
    if isinstance(file, LocalMasterFile):
        return identities.STANDBY if file.standby else identities.LOCAL_MASTER, file.cluster
    return identities.WORKER if isinstance(file, WorkerFile) else identities.GLOBAL_MASTER, file.name
