"""Scripts on a command line of `subak run` and `subak submit`: which words name one, and what then runs."""
import difflib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from subak.cli.live.job_options import OPTIONS_OF_JOBS
from subak.errors import InputError
from subak.json_type import Json
from subak.live.jobfile.spec import INTERPRETERS
from subak.live.jobfile.wrapped import renumbered

# Python keeps back what it prints to a file until it has 8 KiB; so does Python that make or torchrun begins.
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}
FIRST_LINE_BYTES = 4096  # of a script, that are looked at for its first line

HOW_TO_ADD_ARGUMENTS = "a script with arguments is submitted by subak run --detach train.py --epochs 3"
NEAR = 0.75  # of 1, how alike two names are where one is meant by the other


def is_script(name: str) -> bool:
    """Whether a file is no job file, whatever its first line: it has the suffix of a script."""
    return Path(name).suffix in INTERPRETERS


def command_of(words: Sequence[str]) -> list[str]:
    """Return what to run for a command line: of a script in a file here, its interpreter, its path, its arguments.

    What a shell would find as a program is left as it is, and so is what a worker's PATH may hold. A -- right behind a
    script is no argument of it. Raises InputError for a script that cannot be read, and for one that is not in this
    folder while another of nearly its name is.
    """
    script = words[0] if words else ""
    if "/" not in script and is_script(script) and is_absent(script) and not shutil.which(script) and (
            nearest_script(script)):
        raise InputError(no_script(script))
    if not is_script(script) or not os.path.isfile(script) or shutil.which(script):  # noqa: PTH113  (never raises)
        return [*words]
    return [*script_command(script), *(words[2:] if words[1:2] == ["--"] else words[1:])]


def meant_for_subak(words: Sequence[str]) -> str:
    """Return a line for a script's argument that looks like an option of the job; empty where none does.

    A -- right behind the script says that its arguments are its own.
    """
    script, *rest = words or ("",)
    if not is_script(script) or rest[:1] == ["--"]:
        return ""
    for place, word in enumerate(rest):
        if word.partition("=")[0] in OPTIONS_OF_JOBS:
            value = "".join(f" {each}" for each in rest[place + 1:place + 2] if "=" not in word and each[:1] != "-")
            return (f"{word}{value} is given to {script}; put Subak's options before the script (a -- behind it says "
                    "that all others are its own)")
    return ""


def folder_of_script(file: str) -> str:
    """Return the folder in which Python would look for modules of a script: where it lies, or the file it is a link to.

    Empty for standard input.
    """
    if file == "-":
        return ""
    return os.path.dirname(os.path.realpath(file) if os.path.islink(file) else os.path.abspath(file))  # noqa: PTH100, PTH114, PTH120


def is_absent(name: str) -> bool:
    """Whether there is no file of a name, not even a link that leads nowhere."""
    return not os.path.lexists(name)


def has_arguments(name: str) -> bool:
    """Whether what is given as a file is rather an argument of a script, or a script with its arguments."""
    first, *others = name.split() or [""]
    return (first.startswith("-") and name != "-") or (bool(others) and is_script(first))


def only_tasks(file: dict[str, Json], tasks: Sequence[int]) -> dict[str, Json]:
    """Return a job file of one stage that runs only *tasks* of it; each finds its own number in SUBAK_TASK_INDEX."""
    stages = file.get("stages")
    stage: Any = stages[0] if isinstance(stages, list) else file
    less = {**stage, "tasks": len(tasks), "command": renumbered(tasks, stage["command"])}
    return {**file, "stages": [less]} if isinstance(stages, list) else less


def nearest_script(name: str) -> str:
    """Return the script that exists in the folder of *name* and whose name is nearest; empty where none is near."""
    folder, base = os.path.split(name)
    here = os.listdir(folder or ".") if os.access(folder or ".", os.R_OK) and os.path.isdir(folder or ".") else []  # noqa: PTH112, PTH208
    near = difflib.get_close_matches(base, sorted(filter(is_script, here)), 1, NEAR)
    return os.path.join(folder, near[0]) if near else ""  # noqa: PTH118


def no_script(name: str) -> str:
    """Return what is said of a script that is no file here."""
    if has_arguments(name):
        return f"{name}: is no file; {HOW_TO_ADD_ARGUMENTS}"
    near = nearest_script(name)
    return f"no file {name} here" + (f"; is {near} meant?" if near else "")


def script_command(name: str) -> list[str]:
    """Return the command that runs a script from where it lies. Raises InputError for one that cannot be read."""
    from subak.live.jobfile.command import interpreted  # noqa: PLC0415  (loads a YAML reader)

    try:
        with Path(name).open("rb") as opened:
            head = opened.readline(FIRST_LINE_BYTES)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    return interpreted(head, os.path.abspath(name))  # noqa: PTH100  (which leaves links as they are written)
