"""Parses what `kubectl get ... -o json` prints.

https://kubernetes.io/docs/reference/kubernetes-api/, v1.32. Fields that are not named here are skipped.
"""
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from subak.errors import InputError, first_line
from subak.workload.readers.files.stream import Advance, content

Quantity = str | int | float
NAME_MAX = 60  # characters of a name that a message shows


class Owner(msgspec.Struct, frozen=True):
    """Who made a pod."""

    kind: str
    name: str
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What every object has."""

    name: str
    namespace: str = "default"
    uid: str | None = None
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None


class Resources(msgspec.Struct, frozen=True):
    """What a container, or a pod, asks for."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container; an init container that restarts always is a sidecar."""

    resources: Resources | None = None
    restart_policy: str | None = None


class Requirement(msgspec.Struct, frozen=True):
    """A requirement on a label."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class Term(msgspec.Struct, frozen=True, rename="camel"):
    """Requirements that must all hold."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """All of them."""
        return (*(self.match_expressions or ()), *(self.match_fields or ()))


class NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    """Terms of which one must hold."""

    node_selector_terms: tuple[Term, ...] = ()


class NodeAffinity(msgspec.Struct, frozen=True):
    """Which nodes a pod must have."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: Any = msgspec.field(default=None, name="preferredDuringSchedulingIgnoredDuringExecution")


class Affinity(msgspec.Struct, frozen=True, rename="camel"):
    """Where a pod must run, or likes to."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: Any = None
    pod_anti_affinity: Any = None


class Toleration(msgspec.Struct, frozen=True):
    """A taint, or several, that a pod tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a pod is to be."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    overhead: dict[str, Quantity] | None = None
    resources: Resources | None = None
    node_selector: dict[str, str] | None = None
    node_name: str | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: Any = None
    priority: int = 0


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """Something that holds of a pod since an instant."""

    type: str
    status: str
    last_transition_time: str | None = None


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    """The end of a container."""

    finished_at: str | None = None


class ContainerState(msgspec.Struct, frozen=True):
    """What a container is doing."""

    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True):
    """How a container stands."""

    state: ContainerState = ContainerState()


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How a pod stands."""

    phase: str = "Unknown"
    reason: str | None = None
    start_time: str | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(msgspec.Struct, frozen=True):
    """A pod."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(msgspec.Struct, frozen=True, order=True):
    """What keeps pods from a node that do not tolerate it."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(msgspec.Struct, frozen=True):
    """What a node is to be."""

    taints: tuple[Taint, ...] | None = None


class NodeStatus(msgspec.Struct, frozen=True):
    """What a node has."""

    allocatable: dict[str, Quantity] | None = None
    capacity: dict[str, Quantity] | None = None


class Node(msgspec.Struct, frozen=True):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Object(msgspec.Struct, frozen=True):
    kind: str = ""
    metadata: _Named = _Named()
    items: tuple[msgspec.Raw, ...] | None = None


class Item(NamedTuple):
    """An object and where it stands."""

    path: Path
    place: int  # in the file, from 1
    kind: str
    value: Pod | Node | None  # None of any other kind

    @property
    def where(self) -> str:
        """The beginning of a message about it."""
        name = "" if self.value is None else f" {self.value.metadata.name[:NAME_MAX]}"
        return f"{self.path}, item {self.place} ({self.kind[:NAME_MAX]}{name})"


def items_of(path: Path, advance: Advance) -> list[Item]:
    """Read a file: one object, or a list of them.

    Raises InputError naming line and column where the text is no JSON, or the item whose field has another type.
    """
    text = content(path, advance)
    outer: _Object = _decoded(text, _Object, path, f"{path}")
    if not outer.kind:
        raise InputError(f"{path}: has no kind; it must be what kubectl get --output=json prints")
    if outer.items is None:
        return [_item(path, 1, msgspec.Raw(text), "")]
    listed = outer.kind.removesuffix("List")  # what the API itself returns names the kind of its items only there
    return [_item(path, place, each, listed) for place, each in enumerate(outer.items, 1)]


def _item(path: Path, place: int, raw: msgspec.Raw, listed: str) -> Item:
    inner: _Object = _decoded(raw, _Object, path, f"{path}, item {place}")
    named = inner.kind or listed
    if not named:
        raise InputError(f"{path}, item {place}: has no kind")
    types: dict[str, type[Pod] | type[Node]] = {"Pod": Pod, "Node": Node}
    kind = types.get(named)
    where = f"{path}, item {place} ({named[:NAME_MAX]} {inner.metadata.name[:NAME_MAX]})"
    return Item(path, place, named, None if kind is None else _decoded(raw, kind, path, where))


def _decoded(text: bytes | msgspec.Raw, kind: Any, path: Path, where: str) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {first_line(error)[:160]}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}, {_place(bytes(text), str(error))}: is no JSON, or is cut off: "
                         f"{first_line(error)[:100]}") from None
    except RecursionError:
        raise InputError(f"{where}: JSON that cannot be read: lists in lists without end") from None


def _place(text: bytes, said: str) -> str:
    """Return line and column of the byte that a message names; without one, of the end."""
    found = re.search(r"\(byte (\d+)\)", said)
    place = min(int(found[1]), len(text)) if found else len(text.rstrip())
    line, column = text.count(b"\n", 0, place) + 1, place - text.rfind(b"\n", 0, place)
    return f"line {line}, column {column}"
