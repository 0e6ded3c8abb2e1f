"""Makes the job of `subak run -- COMMAND`, or of a script, from its options."""
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from subak.errors import InputError
from subak.json_type import Json
from subak.live.jobfile import tree
from subak.live.jobfile.leaves import NAME_SIZE
from subak.live.jobfile.read import job_of_tree
from subak.live.jobfile.spec import INTERPRETERS, JobSpec
from subak.live.jobfile.wrapped import fed

SHEBANG = b"#!"
PYTHON = re.compile(r"(python|pypy)[0-9.]*")
INTERPRETER = re.compile(rf"{PYTHON.pattern}|sh|bash|dash|zsh|Rscript|julia|perl|ruby|node|env")


def from_script(data: bytes, file: str, folder: str = "", **said: Json) -> JobSpec:
    """Return a job that runs a script whose first line names its interpreter, as `from_command` does for a command.

    A script of Python finds the modules in *folder*, where there is one on its machine, as if it lay there.

    Raises InputError, also for a script that is no text, or has no interpreter in its first line.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{file}:{line}: must be text in UTF-8") from None
    first = text.split("\n", 1)[0]
    if first.endswith("\r"):
        raise InputError(f"{file}:1: must end its lines as on Linux, not with CR LF")
    interpreter = first.removeprefix(SHEBANG.decode()).strip(" \t").split(None, 1)
    if not interpreter or not interpreter[0].startswith("/"):
        raise InputError(f"{file}:1: must name an interpreter by its path, such as #!/bin/sh, not {first!r}")
    name = said.pop("name", None) or _name([PurePath(file).stem])
    is_python = any(PYTHON.fullmatch(PurePath(word).name) for part in interpreter for word in part.split())
    beside = folder if is_python and ":" not in folder else ""
    return from_command(fed(text, beside, interpreter), name=name, **said)


def from_command(words: Sequence[str], *, name: str | None = None, labels: Mapping[str, str] | None = None,
                 **said: Json) -> JobSpec:
    """Return a job of one stage that runs a command; *said* are fields of a job file, None where nothing is said.

    Without a name it is called by the command's. Raises InputError with a line for each mistake: field, rule and value.
    """
    metadata = {"name": _name(words) if name is None else name, "labels": dict(labels or {})}
    fields = {"metadata": metadata, "command": list(words),
              **{field: value for field, value in said.items() if value is not None}}
    return job_of_tree(_tree(fields), None).spec


def interpreted(data: bytes, path: str) -> list[str]:
    """Return the command that runs a script where it lies: by the interpreter of its first line, else of its suffix."""
    line = data.split(b"\n", 1)[0].decode(errors="replace").rstrip()
    named = line.removeprefix(SHEBANG.decode()).strip(" \t").split(None, 1) if data.startswith(SHEBANG) else []
    return [*(named or [INTERPRETERS[PurePath(path).suffix]]), path]


def _name(words: Sequence[str]) -> str:
    """Return a name for a job: that of the command, or of the script or module that an interpreter runs."""
    called = PurePath(words[0] if words else "")
    if INTERPRETER.fullmatch(called.name):
        scripts = [PurePath(word) for word in words[1:] if PurePath(word).suffix in INTERPRETERS]
        modules = [PurePath(word) for before, word in pairwise(words) if before == "-m"]
        called = next(iter(scripts + modules), called)
    name = called.stem if called.suffix in INTERPRETERS else called.name
    known = re.sub("[^A-Za-z0-9_.-]+", "-", name)
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
