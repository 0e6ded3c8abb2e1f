"""Plans a federation on one machine: its processes and their files."""
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from subak.errors import InputError
from subak.live.jobfile.quantities import parse_amount, print_amount
from subak.live.jobfile.spec import CPU, MEMORY, TASKS
from subak.threads import usable_cores

HOST = "127.0.0.1"
GLOBAL_MASTERS = ("g0", "g1")
CLUSTERS = "abcdefgh"
WORKERS_MAX = 64
CLUSTERS_MADE = 2  # where there are workers enough, and nobody says how many
MEMORY_PART = 4, 5  # of this machine's memory that tasks may have; the rest is for the federation, and all else
QUEUES = (("default", 1.0),)  # where none are named
BARE = re.compile("[A-Za-z0-9_-]+")  # a key of TOML without quotes


class Wish(Struct, frozen=True):
    """What somebody wants of a federation; what is None is chosen."""

    clusters: int | None = None
    workers: int | None = None  # of all clusters
    queues: tuple[tuple[str, float], ...] | None = None  # names and weights
    capacity: tuple[tuple[str, int], ...] | None = None  # of each worker, in units
    order: str | None = None
    preemption: str | None = None

    def said(self) -> list[str]:
        """Return the names of what was wished for."""
        return [name for name in self.__struct_fields__ if getattr(self, name) is not None]


class Plan(NamedTuple):
    """A federation on this machine."""

    clusters: Sequence[str]
    workers: list[tuple[str, str]]  # name, cluster
    queues: tuple[tuple[str, float], ...]
    capacity: dict[str, int]  # of each worker, in units
    order: str
    preemption: str

    @property
    def ports(self) -> int:
        """How many ports it needs."""
        return len(GLOBAL_MASTERS) + 2 * len(self.clusters)


def planned(wish: Wish) -> Plan:
    """Return what is wished for; where nothing is, one worker with all that this machine has. Raises InputError."""
    count = min(CLUSTERS_MADE, max(1, wish.workers or 1)) if wish.clusters is None else wish.clusters
    if not 1 <= count <= len(CLUSTERS):
        raise InputError(f"--clusters: must be from 1 to {len(CLUSTERS)}, not {count}")
    cores = usable_cores()
    workers = count if wish.workers is None else wish.workers
    if not 1 <= workers <= WORKERS_MAX:
        raise InputError(f"--workers: must be from 1 to {WORKERS_MAX}, not {workers}")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    own = {CPU: max(1000, 1000 * cores // workers), MEMORY: memory * MEMORY_PART[0] // MEMORY_PART[1] // workers}
    names = [f"{CLUSTERS[number % count]}{number // count + 1}" for number in range(workers)]
    return Plan(CLUSTERS[:count], [(name, name[0]) for name in names],
                QUEUES if wish.queues is None else wish.queues, {**own, **dict(wish.capacity or ())},
                "drf" if wish.order is None else wish.order, "off" if wish.preemption is None else wish.preemption)


def parse_capacity(text: str) -> tuple[tuple[str, int], ...]:
    """Return amounts for a text such as cpu=2,memory=4Gi. Raises InputError."""
    found = {}
    for part in text.split(","):
        name, _, amount = part.partition("=")
        try:
            found[name] = parse_amount(name, amount)
        except ValueError:
            raise InputError(f"--capacity: must be such as cpu=2,memory=4Gi, and {part!r} is not") from None
    return tuple(found.items())


def parse_queue(text: str) -> tuple[str, float]:
    """Return name and weight for a text such as research=2, or research. Raises InputError."""
    name, separator, weight = text.partition("=")
    try:
        return name, float(weight) if separator else 1.0
    except ValueError:
        raise InputError(f"--queue: must be NAME or NAME=WEIGHT, such as research=2, not {text!r}") from None


def files_of(plan: Plan, name: str, ports: list[int]) -> dict[str, str]:
    """Return the texts of all files, by their names: of the federation, of each process, and of its clients."""
    http, rest = ports[: len(GLOBAL_MASTERS)], iter(ports[len(GLOBAL_MASTERS):])
    local = {cluster: (f"{HOST}:{next(rest)}", f"{HOST}:{next(rest)}") for cluster in plan.clusters}
    files = {"federation.toml": _federation(plan, name, http, local)}
    for master in GLOBAL_MASTERS:
        files[f"global-master-{master}.toml"] = f'name = "{master}"\ndata = "data/{master}"\n'
    for cluster in plan.clusters:
        for standby, suffix in ((False, ""), (True, "-standby")):
            files[f"local-master-{cluster}{suffix}.toml"] = (
                f'cluster = "{cluster}"\nstandby = {str(standby).lower()}\ndata = "data/{cluster}{suffix}"\n')
    for worker, cluster in plan.workers:
        files[f"worker-{worker}.toml"] = worker_text(worker, local[cluster], plan.capacity)
    addresses = ", ".join(f'"http://{HOST}:{port}"' for port in http)
    files["client.toml"] = f'address = [{addresses}]\ntoken_file = "people.token"\n'
    return files


def worker_text(name: str, local_masters: Sequence[str], capacity: Mapping[str, int]) -> str:
    """Return the text of a worker's file; *capacity* in units."""
    masters = ", ".join(map(toml_text, local_masters))
    amounts = "".join(f"{resource if BARE.fullmatch(resource) else toml_text(resource)} = {_amount(resource, amount)}\n"
                      for resource, amount in capacity.items())
    return (f'name = {toml_text(name)}\nlocal_masters = [{masters}]\ndata = {toml_text(f"data/{name}")}\n'
            f"[capacity]  # cores, such as 4, 0.5 or \"500m\", and bytes, such as \"8Gi\"\n{amounts}")


def _amount(resource: str, amount: int) -> str:
    """Return an amount as a file says it."""
    said = print_amount(resource, amount)
    if not isinstance(said, str):
        return str(said)
    return said if said.isdecimal() else toml_text(said)


def _federation(plan: Plan, name: str, http: list[int], local: dict[str, tuple[str, str]]) -> str:
    resources = [CPU, MEMORY, *(resource for resource in plan.capacity if resource not in (CPU, MEMORY, TASKS))]
    lines = [
        "# What all processes agree on. `subak apply` changes queues and weights while it runs; all else takes",
        "# a restart.",
        f"name = {toml_text(name)}",
        f"resources = [{', '.join(map(toml_text, resources))}]",
        f"order = {toml_text(plan.order)}  # whose turn it is: round-robin, or a fair order such as drf or mch",
        "", "[timing]",
        f"preemption = {toml_text(plan.preemption)}  # off; strict or paper: a queue below its share takes from others",
    ]
    for master, port in zip(GLOBAL_MASTERS, http, strict=True):
        lines += ["", "[[global_master]]", f"name = {toml_text(master)}", f'http = "{HOST}:{port}"']
    for cluster, (active, standby) in local.items():
        lines += ["", "[[cluster]]", f"name = {toml_text(cluster)}", f"local_master = {toml_text(active)}",
                  f"standby = {toml_text(standby)}"]
    for queue, weight in plan.queues:
        lines += ["", "[[queue]]", f"name = {toml_text(queue)}", f"weight = {weight!r}"]
    return "\n".join(lines) + "\n"


def toml_text(words: str) -> str:
    """Return a string of TOML."""
    return '"' + "".join(f"\\u{ord(each):04x}" if each in '"\\' or not each.isprintable() else each
                         for each in words) + '"'


def name_of(folder: Path) -> str:
    """Return a name for the federation of a folder."""
    kept = "".join(each for each in folder.absolute().name if each.isascii() and (each.isalnum() or each == "_"))
    return kept[:63] if kept[:1].isalpha() else "home"
