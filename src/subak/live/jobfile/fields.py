"""From a tree of nodes to the fields of a form, by their types: every value that breaks its rule is noted."""
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar

from msgspec import UNSET, Struct, inspect

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
    filled = _Filler(mistakes).value(_type_of(form), node, ())
    return None if filled is UNSET else filled


@cache
def _type_of(form: type[Struct]) -> inspect.Type:
    """Return the fields of a form, with their rules: finding them takes longer than all else of a job file."""
    return inspect.type_info(form)


class _Filler:
    """Notes lines and mistakes on the way down; a value that is wrong is UNSET."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = mistakes

    def value(self, kind: inspect.Type, node: Node, field: Field) -> Any:
        """Return what a node says where a value of this kind is asked for."""
        self.mistakes.lines.setdefault(field, node.line)
        extra: dict[str, Any] = {}
        while isinstance(kind, inspect.Metadata):
            extra, kind = (kind.extra or {}) | extra, kind.type
        if LEAF in extra:
            return self._leaf(extra[LEAF], node, field)
        if isinstance(kind, inspect.StructType):
            return self._struct(kind, node, field)
        if isinstance(kind, inspect.DictType):
            return self._map(kind, extra, node, field)
        assert isinstance(kind, inspect.ListType)
        return self._list(kind, node, field)

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

    def _struct(self, kind: inspect.StructType, node: Node, field: Field) -> Any:
        if not isinstance(node, Mapping):
            return self._wrong(field, f"must be a map of fields, not {node}")
        known = {part.encode_name: part for part in kind.fields}
        for name in (name for name in node.parts if name not in known):
            self.mistakes.add((*field, name), _unknown(name, list(known)), node.key_lines[name])
        said = {known[name].name: self.value(known[name].type, part, (*field, name))
                for name, part in node.parts.items() if name in known}
        for name, part in known.items():
            if part.required and name not in node.parts:
                self.mistakes.add((*field, name), "must be given")
        return kind.cls(**{part.name: UNSET for part in kind.fields if part.required} | said)

    def _list(self, kind: inspect.ListType, node: Node, field: Field) -> Any:
        if not isinstance(node, Sequence):
            return self._wrong(field, f"must be a list, not {node}")
        self._check_count(kind, len(node.parts), field)
        return [self.value(kind.item_type, part, (*field, place)) for place, part in enumerate(node.parts)]

    def _map(self, kind: inspect.DictType, extra: dict[str, Any], node: Node, field: Field) -> Any:
        if not isinstance(node, Mapping):
            return self._wrong(field, f"must be a map, not {node}")
        self._check_count(kind, len(node.parts), field)
        leaf_of: Callable[[str], Leaf] | None = extra.get(LEAF_OF)
        said = {}
        for name, part in node.parts.items():
            key = Scalar(node.key_lines[name], name)
            try:
                extra[KEY].read(key)
            except ValueError:
                self.mistakes.add((*field, name), f"the key must be {extra[KEY].rule}, not {key}", key.line)
            of_value = kind.value_type
            if leaf_of is not None:
                of_value = inspect.Metadata(of_value, extra={LEAF: leaf_of(name)})
            said[name] = self.value(of_value, part, (*field, name))
        return said

    def _check_count(self, kind: inspect.ListType | inspect.DictType, count: int, field: Field) -> None:
        least, most = kind.min_length or 0, kind.max_length
        assert most is not None
        if not least <= count <= most:
            self.mistakes.add(field, f"must have {least} to {most:,} entries, not {count:,}")


def _unknown(name: str, known: list[str]) -> str:
    """Return the words for a field that does not exist, with the one that may have been meant."""
    meant = [ELSEWHERE[name]] if ELSEWHERE.get(name) in known else get_close_matches(name, known, 1)
    return "there is no such field" + (f"; is {meant[0]} meant?" if meant else f" among {', '.join(known)}")
