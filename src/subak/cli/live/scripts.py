"""Scripts on a command line of `subak run` and `subak submit`: which words name one, and what then runs."""
import difflib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from subak.cli.live.job_options import GPU, OPTIONS_OF_JOBS
from subak.errors import InputError
from subak.json_type import Json
from subak.live.jobfile.spec import INTERPRETERS
from subak.live.jobfile.wrapped import renumbered

PROGRAM = re.compile("python[0-9.]*|sh|bash|Rscript|julia|perl")
# Python keeps back what it prints to a file until it has 8 KiB; so does Python that make or torchrun begins.
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}
FIRST_LINE_BYTES = 4096  # of a script, that are looked at for its first line

HOW_TO_ADD_ARGUMENTS = "a script with arguments is submitted by subak run --detach train.py --epochs 3"
DEFAULTS = {  # fields of a job by options, and what it takes where it says nothing
    "--cpu": ("cpu", "1 core"), "--memory": ("memory", "no limit of memory"), "--gpus": (GPU, "no GPU"),
    "--tasks": ("tasks", "1 task"), "--array": ("tasks", "1 task"), "--retries": ("retries", "no retry"),
    "--time-limit": ("time_limit", "no time limit"), "--priority": ("priority", "priority 0")}
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


def meant_for_subak(words: Sequence[str], fields: Mapping[str, object]) -> str:
    """Return a line for a script's argument that looks like an option of the job; empty where none does.

    It says what the job takes instead, by its *fields*. A -- right behind the script says that its arguments are its
    own.
    """
    script, *rest = words or ("",)
    if not is_script(script) or rest[:1] == ["--"]:
        return ""
    for place, word in enumerate(rest):
        if word.partition("=")[0] in OPTIONS_OF_JOBS:
            value = "".join(f" {each}" for each in rest[place + 1:place + 2] if "=" not in word and each[:1] != "-")
            instead = _instead(word.partition("=")[0], fields)
            return (f"{word}{value} is given to {script}{instead}; put Subak's options before the script (a -- behind "
                    "it says that all others are its own)")
    return ""


def _instead(option: str, fields: Mapping[str, object]) -> str:
    """Return what a job takes instead of an option that went to its script; empty of those without an amount."""
    field, default = DEFAULTS.get(option, ("", ""))
    amounts = fields.get("resources")
    value = fields.get(field, amounts.get(field) if isinstance(amounts, dict) else None)
    return f", and the job takes {default if value is None else f'{option} {value}'}" if field else ""


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


def is_program(name: str) -> bool:
    """Whether what is given as a file is rather a program that runs scripts, such as python."""
    return bool(PROGRAM.fullmatch(name)) and is_absent(name)


def absent_script(words: Sequence[str]) -> str:
    """Return a line for a command that hands a program a script of this folder which is not there; empty for others."""
    if not words or not PROGRAM.fullmatch(os.path.basename(words[0])):  # noqa: PTH119
        return ""
    first = next((word for word in words[1:] if not word.startswith("-")), "")
    if not is_script(first) or not is_absent(first):
        return ""
    near = nearest_script(first)
    return f"there is no file {first} here" + (f"; is {near} meant?" if near else "")


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
    first, *others = name.split() or [""]
    if is_program(first):
        more = f" {name.partition(' ')[2]}" if others else " SCRIPT"
        return f"{name}: is no file, but a command; subak run -- {first}{more} runs it (--detach: without waiting)"
    if has_arguments(name):
        return f"{name}: is no file; {HOW_TO_ADD_ARGUMENTS}"
    near = next((f"{name}{suffix}" for suffix in INTERPRETERS if os.path.isfile(f"{name}{suffix}")),  # noqa: PTH113
                "") or nearest_script(name)
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
