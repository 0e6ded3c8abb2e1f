"""Reads the quantities and requests of pods and nodes.

https://kubernetes.io/docs/concepts/resource-management/effective-pod-requests-limits/: during initialisation one init
container at a time beside the sidecars before it; then all containers beside all sidecars; the larger of the two, and
the pod's overhead. A request for the whole pod replaces that. Without a request, a limit is one.
"""
import re
from collections.abc import Callable, Iterable, Mapping

from subak.errors import InputError
from subak.quantities import KUBERNETES_BYTES, MILLI
from subak.resources import AMOUNT_MAX, RESERVED_NAMES, Resource
from subak.workload.readers.kubernetes.objects import Container, PodSpec, Quantity, Resources

Amounts = dict[str, float]  # by Kubernetes' name of a resource; cores, bytes, or as many
PODS = "pods"  # a node has room for so many; every pod is one
MIB = 2.0**20
QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([A-Za-z]*))", re.ASCII)
SUFFIXES: dict[str, float] = {"n": 1e-9, "u": 1e-6, "m": MILLI, **KUBERNETES_BYTES}
QUANTITY_TEXT_MAX = 40  # characters


def amount(quantity: Quantity, where: str) -> float:
    """Return a quantity such as 500m or 4Gi. Raises InputError, beginning with *where*, for what is none."""
    text = str(quantity)
    match = QUANTITY.fullmatch(text) if len(text) <= QUANTITY_TEXT_MAX else None
    if match is None or (match[3] is not None and match[3] not in SUFFIXES):
        raise InputError(f"{where}: a quantity must be a number with a suffix such as m, Mi or G, not {text[:60]!r}")
    value = float(match[1] + (match[2] or "")) * SUFFIXES[match[3] or ""]
    if not 0 <= value < float("inf"):
        raise InputError(f"{where}: a quantity must be finite, 0 or more, not {text[:60]!r}")
    return value


def amounts(quantities: Mapping[str, Quantity] | None, where: str) -> Amounts:
    """Return quantities by name. Raises InputError for one that has none, or is none."""
    if "" in (quantities or {}):
        raise InputError(f"{where}: a resource needs a name")
    return {name: amount(quantity, f"{where}, {name[:60]}") for name, quantity in (quantities or {}).items()}


def effective(spec: PodSpec, where: str) -> Amounts:
    """Return what Kubernetes reserves for a pod. Raises InputError, beginning with *where*, for a bad quantity."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        asked = _of(container.resources, where)
        beside = _joined(sidecars, asked, _plus)
        peak = _joined(peak, beside, max)
        sidecars = beside if _is_sidecar(container) else sidecars
    running = sidecars
    for container in spec.containers:
        running = _joined(running, _of(container.resources, where), _plus)
    whole = _joined(running, peak, max) | _of(spec.resources, where)
    return _joined(whole, amounts(spec.overhead, where), _plus) | {PODS: 1.0}


def _of(resources: Resources | None, where: str) -> Amounts:
    return {} if resources is None else amounts((resources.limits or {}) | (resources.requests or {}), where)


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _plus(first: float, second: float) -> float:
    return first + second


def _joined(first: Amounts, second: Amounts, by: Callable[[float, float], float]) -> Amounts:
    return {name: by(first.get(name, 0.0), second.get(name, 0.0)) for name in {**first, **second}}


# Resources


def resources_of(asked: Iterable[Amounts]) -> dict[str, Resource]:
    """Return pods, cpu, memory and whatever else somebody asks for, by Kubernetes' name."""
    others = sorted({name for each in asked for name, value in each.items() if value > 0} - {PODS, "cpu", "memory"})
    found: dict[str, Resource] = {}
    for name in ("cpu", "memory", PODS, *others):
        short, whole = (re.sub(r"\W", "_", text, flags=re.ASCII) for text in (name.rpartition("/")[2], name))
        taken = {each.name for each in found.values()} | RESERVED_NAMES
        found[name] = _resource(name, whole if short in taken or not short.isidentifier() else short)
    return found


def _resource(name: str, short: str) -> Resource:
    if name == "cpu":
        return Resource(short, 1e-3, "cores")
    return Resource(short, 1.0, "MiB" if _is_bytes(name) else name)


def _is_bytes(name: str) -> bool:
    return name in ("memory", "ephemeral-storage", "storage") or name.startswith("hugepages-")


def in_unit_of(name: str, value: float, resource: Resource, where: str) -> float:
    """Return an amount in what the resource is of. Raises InputError when it is more than there can be units."""
    found = value / MIB if _is_bytes(name) else value
    if found > AMOUNT_MAX * resource.unit:
        raise InputError(f"{where}: {name[:60]} must be at most {AMOUNT_MAX * resource.unit:.10g} {resource.of[:60]}, "
                         f"not {found:.10g}")
    return found
