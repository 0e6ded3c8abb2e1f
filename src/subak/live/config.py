"""Reads the configuration files of processes: one shared by the federation, one small file for each process.

```toml
# federation.toml
name = "home"
resources = ["cpu", "memory", "gpu"]        # cpu in cores, memory in bytes, others in pieces

[[global_master]]
name = "g0"
http = "127.0.0.1:7433"                     # where it answers people

[[cluster]]
name = "a"
local_master = "127.0.0.1:7441"             # where masters and workers find it
standby = "127.0.0.1:7442"                  # all clusters have one, or none has

[[cluster]]                                 # masters and clusters are numbered by their places: new ones come last, and
name = "b"                                  # one that is there no more stays in the file, as removed
removed = true

[[queue]]
name = "research/ada"
weight = 2.0
owner = "g0"                                # left out: the global masters in turn

[history]                                   # of jobs that have ended: left out, as here
keep = "30d"                                # since their end
bytes = "4Gi"                               # of all of them, on the disk of each global master

[limits]                                    # of each person, at each global master; left out, or 0: none
jobs = 1000                                 # that are open
tasks = 100_000                             # of those
submissions_per_s = 50.0
job_file_bytes = 65536
[limits.people.ada]                         # of one, in place of all these
jobs = 50                                   # a [[queue]] has its own: limits = { jobs = 5000 }

# worker.toml
name = "node-3"
local_masters = ["127.0.0.1:7441", "127.0.0.1:7442"]
token_file = "join.token"
data = "node-3"
[capacity]                                  # left out: the cores and the memory of this machine
cpu = 4                                     # cores; 0.5 or "500m" is half of one
memory = "8Gi"
tasks = 110                                 # at once; left out: half of [rooms] attempts_each
[attributes]
rack = "b"
```
"""
import math
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from subak.errors import InputError
from subak.live.identities import MACHINE_NAME, NAME
from subak.live.jobfile.quantities import (
    CPU_UNITS,
    MEMORY_UNIT,
    parse_amount,
    parse_bytes,
    parse_duration,
    print_amount,
)
from subak.live.jobfile.spec import AMOUNT_MAX, CPU, MEMORY, TASKS
from subak.live.people.limits import Limits, PeopleLimits
from subak.live.role.layout import OF_A_KIND_MAX, Layout, Rooms, Timing, cluster_of_local, standby_of
from subak.threads import usable_cores

RESOURCE = re.compile(r"[a-z][a-z0-9_]{0,62}")
HISTORY_BYTES_MIN = 1 << 20
ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
T = TypeVar("T")
PIECES = f"a whole number from 0 to {AMOUNT_MAX:,}"
BYTES = 'bytes, such as "4Gi", "512Mi" or 4294967296'
AMOUNTS = {
    CPU: f'cores, such as 4, 0.5 or "500m", at most {AMOUNT_MAX // CPU_UNITS:,}',
    MEMORY: f'such as "8Gi" or "512Mi", or bytes, from {MEMORY_UNIT:,} on',
}
Handlers = Literal["compiled", "python"]  # python: slower, and nothing is ever compiled, as tests want it


class GlobalMasterEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A global master, and where it answers people."""

    name: str
    http: str = ""
    removed: bool = False


class ClusterEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A cluster, and where its local master and its standby are found."""

    name: str
    local_master: str = ""
    standby: str = ""
    removed: bool = False


class QueueEntry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A queue, and which global master serves it."""

    name: str
    weight: float = 1.0
    owner: str = ""
    limits: Limits | None = None  # of all persons together, for it and all below it


class HistoryEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """How long jobs that have ended are kept, with the keys under which they were submitted."""

    keep: str = "30d"  # since their end
    bytes: int = 4 << 30  # of all of them, on the disk of each global master; the earliest go first

    def keep_s(self) -> float:
        """Return the age in seconds. Raises InputError for a text that is no duration."""
        try:
            return parse_duration(self.keep)
        except ValueError:
            raise InputError(f"history.keep: must be a duration such as 30d or 12h, not {self.keep!r}") from None


class TimingEntry(Timing, frozen=True, forbid_unknown_fields=True):
    """How long to wait for what, in a file; on the wire, fields of later versions are skipped."""


class RoomsEntry(Rooms, frozen=True, forbid_unknown_fields=True):
    """How much of everything there may be at once, in a file; on the wire, fields of later versions are skipped."""


class FederationFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The file of a federation; see the head of this one."""

    name: str
    global_master: tuple[GlobalMasterEntry, ...]
    cluster: tuple[ClusterEntry, ...]
    queue: tuple[QueueEntry, ...]
    resources: tuple[str, ...] = ("cpu", "memory")
    order: str = "round-robin"
    timing: TimingEntry = TimingEntry()
    rooms: RoomsEntry = RoomsEntry()
    history: HistoryEntry = HistoryEntry()
    limits: PeopleLimits = PeopleLimits()

    def layout(self) -> Layout:
        """Return the numbers that all processes agree on."""
        return Layout(
            len(self.global_master), len(self.cluster), (*self.resources, TASKS),
            any(cluster.standby for cluster in self.cluster), self.rooms,
            tuple(number for number, master in enumerate(self.global_master) if master.removed),
            tuple(number for number, cluster in enumerate(self.cluster) if cluster.removed))

    def masters(self) -> dict[int, GlobalMasterEntry]:
        """Return the global masters that are there, by their numbers."""
        return {number: master for number, master in enumerate(self.global_master) if not master.removed}

    def clusters(self) -> dict[int, ClusterEntry]:
        """Return the clusters that are there, by their numbers."""
        return {number: cluster for number, cluster in enumerate(self.cluster) if not cluster.removed}

    def number_of(self, master: str) -> int:
        """Return the number of a global master. Raises InputError where there is none of this name."""
        return _number_of(self.masters(), "name", "global master", master)

    def number_of_cluster(self, name: str) -> int:
        """Return the number of a cluster. Raises InputError where there is none of this name."""
        return _number_of(self.clusters(), "cluster", "cluster", name)

    def local_addresses(self) -> dict[int, str]:
        """Return where the local masters are found, and behind them the standbys, by their numbers."""
        clusters = self.clusters()
        active = {number: cluster.local_master for number, cluster in clusters.items()}
        return active | {standby_of(number): cluster.standby for number, cluster in clusters.items() if cluster.standby}

    def name_of_local(self, local: int) -> str:
        """Return how people call the local master, or the standby, of this number."""
        cluster = cluster_of_local(local)
        what = "local master" if local == cluster else "standby"
        return f"the {what} of cluster {self.clusters()[cluster].name}"


E = TypeVar("E", GlobalMasterEntry, ClusterEntry)


def _number_of(entries: dict[int, E], field: str, what: str, name: str) -> int:
    names = {entry.name: number for number, entry in entries.items()}
    if name not in names:
        raise InputError(f"{field}: the federation has no {what} {name!r}; it has {', '.join(names)}")
    return names[name]


class TlsEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """The certificate of a process, and whom it trusts; paths are meant from the folder of the file."""

    certificate: str
    key: str
    ca: str = "ca.crt"  # of the authorities whose certificates count
    revoked: str = ""  # a list of revoked certificates (a CRL in PEM)


class GlobalMasterFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The file of a global master."""

    name: str
    data: str
    federation: str = "federation.toml"
    people_token_file: str = "people.token"
    join_token_file: str = "join.token"
    handlers: Handlers = "compiled"
    listen: str = ""  # HOST:PORT on this host; left out: as in the federation's file
    tls: TlsEntry | None = None  # left out: a join token, and nothing is encrypted
    plaintext: bool = False  # whether it may speak in clear over a network
    socket: str = ""  # a file, where users of this host ask without a token; left out: people.sock in `data`


class LocalMasterFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The file of a local master, or of its standby."""

    cluster: str
    data: str
    standby: bool = False
    federation: str = "federation.toml"
    join_token_file: str = "join.token"
    handlers: Handlers = "compiled"
    listen: str = ""  # HOST:PORT on this host; left out: as in the federation's file
    tls: TlsEntry | None = None  # left out: a join token, and nothing is encrypted
    plaintext: bool = False  # whether it may speak in clear over a network


class WorkerFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The file of a worker."""

    name: str
    local_masters: tuple[str, ...]
    data: str
    join_token_file: str = "join.token"
    capacity: dict[str, int] = {}  # in units, thousandths of a core and MiB; its file says them as a job file does
    attributes: dict[str, str] = {}
    cgroups: str = "auto"
    agent: str = "processes"  # or none: attempts end at once, for benchmarks
    output_bytes: Annotated[int, Meta(ge=4096)] = 16 << 20
    tls: TlsEntry | None = None  # as of a master
    plaintext: bool = False
    run_as: str = ""  # the account of tasks of which the job names no user, or "submitter"; left out: the worker's own
    root: bool = False  # whether tasks may run as root where the worker does not run them as itself
    leave: bool = False  # whether the machine leaves the federation for good when its worker is told to end


def read(path: Path, kind: type[T]) -> T:
    """Return what a file says. Raises InputError with the file, the field and the rule."""
    try:
        found = decoded(path.read_bytes(), kind)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, InputError) as error:
        raise InputError(f"{path}: {error}") from None
    try:
        check(found)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return found


def decoded(data: bytes | str, kind: type[T]) -> T:
    """Return what the text of a file says; amounts are read as those of job files are, such as 4, 500m and 8Gi.

    Raises InputError for an amount that is none, msgspec.ValidationError and others for all else.
    """
    document = msgspec.toml.decode(data)
    if kind is WorkerFile:
        capacity = document.get("capacity")
        for name in capacity if isinstance(capacity, dict) else ():
            capacity[name] = _amount(capacity[name], f"capacity.{name}", AMOUNTS.get(name, PIECES),
                                     partial(parse_amount, name))
    for place, table, name in (("output_bytes", document, "output_bytes"),
                               ("history.bytes", document.get("history"), "bytes")):
        if isinstance(table, dict) and name in table:
            table[name] = _amount(table[name], place, BYTES, parse_bytes)
    return msgspec.convert(document, kind)


def _amount(value: object, place: str, words: str, parse: Callable[[str], int]) -> int:
    if isinstance(value, str | int | float):
        with suppress(ValueError):
            return parse(str(value))
    shown = repr(value) if isinstance(value, str) else f"{value}".lower()
    raise InputError(f"{place}: must be {words}, not {shown}")


def document_of(file: WorkerFile) -> dict[str, object]:
    """Return what `read` takes for the file of a worker."""
    found: dict[str, object] = msgspec.to_builtins(file)
    return {**found, "capacity": {name: print_amount(name, amount) for name, amount in file.capacity.items()}}


def check(file: object) -> None:
    """Raise InputError for what no federation, or process, could be."""
    if isinstance(file, FederationFile):
        _check_federation(file)
    elif isinstance(file, WorkerFile):
        _matches(MACHINE_NAME, "name", file.name)
        if not file.local_masters:
            raise InputError("local_masters: must name one at least")
        for address in file.local_masters:
            split_address("local_masters", address)
        if file.agent not in ("processes", "none"):
            raise InputError(f"agent: must be processes or none, not {file.agent!r}")
    elif isinstance(file, GlobalMasterFile | LocalMasterFile) and file.listen:
        split_address("listen", file.listen)


def _check_federation(file: FederationFile) -> None:
    _matches(NAME, "name", file.name)
    for what, entries in (("global_master", file.global_master), ("cluster", file.cluster), ("queue", file.queue)):
        if not 1 <= len(entries) <= (OF_A_KIND_MAX if what != "queue" else file.rooms.queues):
            raise InputError(f"{what}: there must be one at least, and {OF_A_KIND_MAX} at most, not {len(entries)}")
        names = [entry.name for entry in entries]
        for name in names:
            if what != "queue":
                _matches(NAME, f"{what}.name", name)
            if names.count(name) > 1:
                raise InputError(f"{what}: {name!r} is there twice")
    _check_removed(file)
    if len({bool(cluster.standby) for cluster in file.clusters().values()}) > 1:
        raise InputError("cluster.standby: must be given for all clusters, or for none")
    for address in [*file.local_addresses().values(), *(master.http for master in file.masters().values())]:
        split_address("address", address)
    _check_resources(file.resources)
    _check_queues(file)
    _check_timing(file.timing)
    _check_history(file.history)
    _check_limits(file)


def _check_resources(resources: tuple[str, ...]) -> None:
    for resource in resources:
        _matches(RESOURCE, "resources", resource)
    if len(set(resources)) < len(resources) or resources[:2] != ("cpu", "memory"):
        raise InputError("resources: must begin with cpu and memory, and name none twice")
    if TASKS in resources:
        raise InputError(f"resources: must not name {TASKS}: each task counts as one")


def _check_removed(file: FederationFile) -> None:
    """Raise InputError where one that was removed has an address, one that is there has none, or none is there."""
    for what, entries, there, addresses in (
            ("global_master", file.global_master, file.masters(), ("http",)),
            ("cluster", file.cluster, file.clusters(), ("local_master", "standby"))):
        if not there:
            raise InputError(f"{what}: all of them are removed; one must be there at least")
        for entry in entries:
            if entry.removed and any(getattr(entry, address) for address in addresses):
                raise InputError(f"{what} {entry.name}: is removed, and has an address; leave one of both out")
            if not entry.removed and not getattr(entry, addresses[0]):
                raise InputError(f"{what} {entry.name}: {addresses[0]} is missing; it says where it is found")


def _check_history(history: HistoryEntry) -> None:
    history.keep_s()
    if history.bytes < HISTORY_BYTES_MIN:
        raise InputError(f"history.bytes: must be {HISTORY_BYTES_MIN:,} at least, not {history.bytes:,}")


def _check_limits(file: FederationFile) -> None:
    places = {"limits": file.limits, **{f"limits.people.{name}": each for name, each in file.limits.people.items()},
              **{f"queue {each.name}: limits": each.limits for each in file.queue if each.limits is not None}}
    for place, limits in places.items():
        if not limits.is_sound():
            raise InputError(f"{place}: must be 0, for none, or more")


def _check_queues(file: FederationFile) -> None:
    owners = {master.name for master in file.masters().values()}
    for queue in file.queue:
        if not queue.name or any(not part or not part.isprintable() for part in queue.name.split("/")):
            raise InputError(f"queue.name: must be a path such as research/ada, not {queue.name!r}")
        if not (math.isfinite(queue.weight) and queue.weight > 0):
            raise InputError(f"queue {queue.name}: weight must be more than 0, not {queue.weight:g}")
        if queue.owner and queue.owner not in owners:
            raise InputError(f"queue {queue.name}: owner must be one of {', '.join(sorted(owners))}, "
                             f"not {queue.owner!r}")


def _check_timing(timing: Timing) -> None:
    for name in ("heartbeat", "retry", "lease"):
        value = getattr(timing, name)
        if not 1e-3 <= value <= 1e6:
            raise InputError(f"timing.{name}: must be from 0.001 to 1,000,000 seconds, not {value:g}")
    if not timing.hold_back_after >= 0:
        raise InputError(f"timing.hold_back_after: must be 0 seconds or more, or inf, not {timing.hold_back_after:g}")
    if not 0 <= timing.timer_slack <= timing.lease / 6:
        raise InputError(f"timing.timer_slack: must be from 0 to a sixth of the lease of {timing.lease:g} s, "
                         f"not {timing.timer_slack:g}")


def _matches(pattern: re.Pattern[str], what: str, text: str) -> None:
    if not pattern.fullmatch(text):
        raise InputError(f"{what}: must match {pattern.pattern}, and {text!r} does not")


def split_address(what: str, text: str) -> tuple[str, int]:
    """Return host and port. Raises InputError for a text that is no address."""
    found = ADDRESS.fullmatch(text)
    if found is None or int(found[2]) > 65_535:
        raise InputError(f"{what}: must be HOST:PORT, not {text!r}")
    return found[1].strip("[]"), int(found[2])


def capacity_of(file: WorkerFile, layout: Layout) -> tuple[int, ...]:
    """Return what a machine has, in units, by resource.

    Raises InputError for a resource that nobody knows, and for more tasks than the rooms allow.
    """
    resources, tasks = layout.resources, file.capacity.get(TASKS, layout.tasks_each)
    unknown = sorted(set(file.capacity) - set(resources))
    if unknown:
        raise InputError(f"capacity: this federation has no {unknown[0]!r}; it has {', '.join(resources)}")
    if tasks > layout.tasks_each:
        raise InputError(f"capacity.{TASKS}: must be at most {layout.tasks_each:,}, half of [rooms] attempts_each of "
                         f"the federation, not {tasks:,}")
    own = {"cpu": 1000 * usable_cores(),
           "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20}
    return layout.amounts(own | file.capacity, tasks)
