"""The job that `subak run -- COMMAND` submits."""
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from subak.live.jobfile import tree
from subak.live.jobfile.leaves import NAME_SIZE
from subak.live.jobfile.read import job_of_tree
from subak.live.jobfile.spec import JobSpec


def from_command(words: Sequence[str], *, name: str | None = None, labels: Mapping[str, str] | None = None,
                 **said: Any) -> JobSpec:
    """Return a job of one stage that runs a command; *said* are fields of a job file, None where nothing is said.

    Without a name it is called by the command's. Raises InputError with a line for each mistake: field, rule and value.
    """
    metadata = {"name": _name(words) if name is None else name, "labels": dict(labels or {})}
    fields = {"metadata": metadata, "command": list(words),
              **{field: value for field, value in said.items() if value is not None}}
    return job_of_tree(_tree(fields), None).spec


def _name(words: Sequence[str]) -> str:
    """Return a name for a job that runs a command."""
    known = re.sub("[^A-Za-z0-9_.-]+", "-", PurePath(words[0]).name if words else "")
    return known.strip("_.-")[:NAME_SIZE].strip("_.-") or "job"


def _tree(value: Any) -> tree.Node:
    """Return a value as a file would say it."""
    if isinstance(value, dict):
        return tree.Mapping(1, {str(name): _tree(part) for name, part in value.items()}, dict.fromkeys(value, 1))
    if isinstance(value, list | tuple):
        return tree.Sequence(1, [_tree(part) for part in value])
    if isinstance(value, bool):
        return tree.Scalar(1, str(value).lower(), True)
    return tree.Scalar(1, str(value), not isinstance(value, str))
