"""Declares the options that describe a job, for `subak run` and for scripts given to `subak submit`."""
import os
import re
from typing import Annotated, Any

import typer

from subak.errors import InputError

GPU = "gpu"  # the resource that --gpus asks for
PANEL = "The job"


OPTIONS_OF_JOBS = ["--strict"]  # and those below, by their long names


def _option(name: str, metavar: str, help_: str, *more: str) -> Any:
    OPTIONS_OF_JOBS.append(name)
    return typer.Option(name, *more, metavar=metavar, show_default=False, help=help_, rich_help_panel=PANEL)


QueueOption = Annotated[str | None, _option(
    "--queue", "PATH", "Such as research/ada [default: the queue `default` of the federation, else its first].")]
NameOption = Annotated[str | None, _option("--name", "NAME", "Of the job [default: the command's, or the script's].")]
TasksOption = Annotated[int | None, _option(
    "--tasks", "N", "How many tasks; each finds its number, from 0 on, in SUBAK_TASK_INDEX [default: 1].", "-n")]
ArrayOption = Annotated[str | None, _option("--array", "0-N", "The same as --tasks N+1.")]
CpuOption = Annotated[str | None, _option(
    "--cpu", "AMOUNT", "Cores of each task, such as 4, or 0.25 for four tasks a core [default: 1].")]
MemoryOption = Annotated[str | None, _option("--memory", "AMOUNT", "Memory of each task, such as 2Gi "
                                                                   "[default: no limit].")]
GpusOption = Annotated[str | None, _option(
    "--gpus", "N", "GPUs of each task, of a federation that has them (subak up --capacity gpu=N) [default: 0].")]
ResourcesOption = Annotated[list[str] | None, _option(
    "--resource", "NAME=AMOUNT", "Any resource of each task, such as licence=1; once for each.", "-r")]
EnvOption = Annotated[list[str] | None, _option(
    "--env", "NAME[=VALUE]", "A variable of its environment, without a value as it is in yours; once for each. -e PATH "
                             "runs the Python that you would run.", "-e")]
WorkdirOption = Annotated[str | None, _option(
    "--workdir", "FOLDER", "Where it runs, on its machine [default: the present folder].")]
TimeLimitOption = Annotated[str | None, _option("--time-limit", "DURATION", "That it may run, such as 90s or 1h30m.")]
PriorityOption = Annotated[int | None, _option("--priority", "N", "Larger is more important [default: 0].")]
RetriesOption = Annotated[int | None, _option(
    "--retries", "N", "How often a task is tried again after it failed or ran too long [default: 0].")]

StrictOption = Annotated[bool, typer.Option("--strict", help="Refuse a job that no machine is large enough for (exit "
                                                             "code 2, of `subak run` 125); else it is warned of, and "
                                                             "waits.")]


def folder_of(workdir: str | None) -> str:
    """Return the folder that a job of this command line runs in: the one that is named, or the present one."""
    return os.path.abspath(workdir or ".")  # noqa: PTH100  (which leaves links as they are written)


def job_fields(tasks: int | None, array: str | None, cpu: str | None, memory: str | None, gpus: str | None,
               resources: list[str] | None, env: list[str] | None, **same: object) -> dict[str, object]:
    """Return the fields of a job file that the options say; *same* are called there as here. Raises InputError."""
    if tasks is not None and array is not None:
        raise InputError("--array: says the same as --tasks; give one of the two")
    amounts = _pairs(resources, "--resource")
    for option, resource, amount in (("--cpu", "cpu", cpu), ("--memory", "memory", memory), ("--gpus", GPU, gpus)):
        if amount is None:
            continue
        if resource in amounts:
            raise InputError(f"{option}: --resource {resource}={amounts[resource]} says it already")
        amounts[resource] = amount
    said = {**same, "tasks": tasks if array is None else _tasks_of(array), "resources": amounts or None,
            "env": _pairs([_with_value(text) for text in env or ()], "--env") or None}
    return {field: value for field, value in said.items() if value is not None}


def _tasks_of(array: str) -> int:
    """Return how many tasks 0-N is."""
    found = re.fullmatch("0-([0-9]{1,9})", array)
    if found is None:
        raise InputError(f"--array: must be 0-N, such as 0-9 for ten tasks, since tasks are counted from 0, "
                         f"not {array!r}")
    return int(found[1]) + 1


def _with_value(text: str) -> str:
    """Return NAME=VALUE, for a NAME alone with its value here. Raises InputError where it has none."""
    if "=" in text or not text:
        return text
    if text not in os.environ:
        raise InputError(f"--env: {text} is not set here; set it, or give {text}=VALUE")
    return f"{text}={os.environ[text]}"


def _pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise InputError(f"{option}: must be NAME=VALUE, not {text!r}")
        if name in found:
            raise InputError(f"{option}: must name each once, {name} comes again")
        found[name] = value
    return found
