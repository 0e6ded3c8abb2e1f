"""Fills the fields of a form from a tree of nodes, and notes every value that breaks its rule."""
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from msgspec import UNSET, Struct, inspect

from subak.json_type import Json
from subak.live.jobfile.form import KEY, LEAF, LEAF_OF
from subak.live.jobfile.leaves import Leaf
from subak.live.jobfile.mistakes import Field, Mistakes
from subak.live.jobfile.tree import Mapping, Node, Scalar, Sequence

T = TypeVar("T", bound=Struct)
ELSEWHERE = {  # what fields are called in Kubernetes, Nomad, Slurm and Compose, and here
    "activeDeadlineSeconds": "time_limit", "array": "tasks", "backoffLimit": "retries", "cmd": "command",
    "completions": "tasks", "constraint": "constraints", "count": "tasks", "cwd": "workdir",
    "dependencies": "depends_on", "dependency": "depends_on", "environment": "env", "kill_timeout": "grace_period",
    "needs": "depends_on", "ntasks": "tasks", "parallelism": "tasks", "partition": "queue", "replicas": "tasks",
    "terminationGracePeriodSeconds": "grace_period", "time": "time_limit", "timeout": "time_limit",
    "workingDir": "workdir", "working_dir": "workdir",
}


def fill(form: type[T], node: Node, mistakes: Mistakes) -> T | None:
    """Return the form with what the nodes say; None if it cannot be, what is wrong with a part of it is left out."""
    filled = _Filler(mistakes).value(_plan_of(form), node, ())
    return None if filled is UNSET else filled


# -- what is asked for: the types of a form, read once, since that takes longer than all else of a job file -----------


class _Fields(NamedTuple):
    """A map of fields, which a form holds."""

    form: type[Struct]
    name_of: dict[str, str]  # in the form, by that in the file
    plan_of: dict[str, "_Plan"]
    required: list[str]  # in the file


class _List(NamedTuple):
    """A list, and how many entries it may have."""

    part: "_Plan"
    least: int
    most: int


class _Map(NamedTuple):
    """A map from text; *of* gives the leaf of a key's value where keys differ."""

    key: Leaf
    part: "_Plan"
    of: Callable[[str], Leaf] | None
    least: int
    most: int


_Plan = Leaf | _Fields | _List | _Map


@cache
def _plan_of(form: type[Struct]) -> _Plan:
    return _plan(inspect.type_info(form))


def _plan(kind: inspect.Type) -> _Plan:
    extra: dict[str, Any] = {}
    while isinstance(kind, inspect.Metadata):
        extra, kind = (kind.extra or {}) | extra, kind.type
    if LEAF in extra:
        return cast(Leaf, extra[LEAF])
    if isinstance(kind, inspect.StructType):
        return _Fields(kind.cls, {part.encode_name: part.name for part in kind.fields},
                       {part.encode_name: _plan(part.type) for part in kind.fields},
                       [part.encode_name for part in kind.fields if part.required])
    assert isinstance(kind, inspect.DictType | inspect.ListType) and kind.max_length is not None
    if isinstance(kind, inspect.ListType):
        return _List(_plan(kind.item_type), kind.min_length or 0, kind.max_length)
    return _Map(extra[KEY], _plan(kind.value_type), extra.get(LEAF_OF), kind.min_length or 0, kind.max_length)


# -- what is said ------------------------------------------------------------------------------------------------------


class _Filler:
    """Notes lines and mistakes on the way down; a value that is wrong is UNSET."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = mistakes

    def value(self, plan: _Plan, node: Node, field: Field) -> Json:
        """Return what a node says where a value of this kind is asked for."""
        self.mistakes.lines.setdefault(field, node.line)
        if isinstance(plan, Leaf):
            return self._leaf(plan, node, field)
        if isinstance(plan, _Fields):
            return self._fields(plan, node, field)
        return self._list(plan, node, field) if isinstance(plan, _List) else self._map(plan, node, field)

    def _wrong(self, field: Field, rule: str) -> Any:
        self.mistakes.add(field, rule)
        return UNSET

    def _leaf(self, leaf: Leaf, node: Node, field: Field) -> Any:
        if isinstance(node, Scalar):
            try:
                return leaf.read(node)
            except ValueError:
                pass
        return self._wrong(field, f"must be {leaf.rule}, not {node}")

    def _fields(self, plan: _Fields, node: Node, field: Field) -> Any:
        if not isinstance(node, Mapping):
            return self._wrong(field, f"must be a map of fields, not {node}")
        said: dict[str, Any] = {}
        for name, part in node.parts.items():
            if name in plan.name_of:
                said[plan.name_of[name]] = self.value(plan.plan_of[name], part, (*field, name))
            else:
                self.mistakes.add((*field, name), _unknown(name, list(plan.name_of)), node.key_lines[name])
        for name in plan.required:
            if name not in node.parts:
                said[plan.name_of[name]] = self._wrong((*field, name), "must be given")
        return plan.form(**said)

    def _list(self, plan: _List, node: Node, field: Field) -> Any:
        if not isinstance(node, Sequence):
            return self._wrong(field, f"must be a list, not {node}")
        self._check_count(plan, len(node.parts), field)
        return [self.value(plan.part, part, (*field, place)) for place, part in enumerate(node.parts)]

    def _map(self, plan: _Map, node: Node, field: Field) -> Any:
        if not isinstance(node, Mapping):
            return self._wrong(field, f"must be a map, not {node}")
        self._check_count(plan, len(node.parts), field)
        said = {}
        for name, part in node.parts.items():
            key = Scalar(node.key_lines[name], name)
            try:
                plan.key.read(key)
            except ValueError:
                self.mistakes.add((*field, name), f"the key must be {plan.key.rule}, not {key}", key.line)
            said[name] = self.value(plan.part if plan.of is None else plan.of(name), part, (*field, name))
        return said

    def _check_count(self, plan: _List | _Map, count: int, field: Field) -> None:
        if not plan.least <= count <= plan.most:
            self.mistakes.add(field, f"must have {plan.least} to {plan.most:,} entries, not {count:,}")


def _unknown(name: str, known: list[str]) -> str:
    """Return the words for a field that does not exist, with the one that may have been meant."""
    meant = [ELSEWHERE[name]] if ELSEWHERE.get(name) in known else get_close_matches(name, known, 1)
    return "there is no such field" + (f"; is {meant[0]} meant?" if meant else f" among {', '.join(known)}")
