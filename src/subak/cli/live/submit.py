"""`subak submit` and `subak run`: submit jobs from files, or one command as a job."""
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from subak import exit_codes
from subak.cli.ending import CommandEndedError
from subak.cli.live.changes import changes
from subak.cli.live.hints import hint
from subak.cli.live.job_options import (
    ArrayOption,
    CpuOption,
    EnvOption,
    GpusOption,
    MemoryOption,
    NameOption,
    PriorityOption,
    QueueOption,
    ResourcesOption,
    RetriesOption,
    StrictOption,
    TasksOption,
    TimeLimitOption,
    WorkdirOption,
    folder_of,
    job_fields,
)
from subak.cli.live.next_steps import is_seen, say_next, say_what_waits
from subak.cli.live.options import (
    ClientOption,
    Output,
    OutputOption,
    file_bytes,
    if_interrupted,
    opened,
)
from subak.cli.live.pythons import other_python
from subak.cli.live.scripts import (
    UNBUFFERED,
    absent_script,
    command_of,
    folder_of_script,
    has_arguments,
    is_absent,
    is_program,
    is_script,
    meant_for_subak,
    no_script,
    script_command,
)
from subak.cli.live.show import ENDED_BADLY, HOW_LARGER, ending_text, going_on, of_counts, remark, show, why_full
from subak.cli.live.writing import follow_streams
from subak.errors import InputError, SubakError
from subak.live.api.models import (
    CANCELLED,
    FAILED,
    FINISHED,
    TASK_ENDED,
    TASK_WAITING,
    TIMED_OUT,
    WAITS_FOR_MACHINES,
    JobView,
    TaskView,
)
from subak.report.console import echo
from subak.report.number_text import count_text, counted

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import Client, ClientSettings

SHOWN = "subak list shows what was submitted"  # after Ctrl-C
UNFINISHED_NAMED = 20  # tasks of a job
LONG_S = 30.0  # between two looks whether it waits for something else
FULL_S = 2.0  # that a job waits before `subak run` says what for


def submit(
    files: Annotated[list[Path], typer.Argument(
        metavar="FILE...", help="Job files in YAML or JSON, or scripts; - is standard input.",
        show_default=False)],
    key: Annotated[str, typer.Option(
        "--key", metavar="TEXT", show_default=False,
        help="An idempotency key: with the same key the same job is submitted once, however often this is "
             "run; goes with one file.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all have ended; exit code 1 if one did not "
                                                      "finish.")] = False,
    queue: QueueOption = None,
    name: NameOption = None,
    tasks: TasksOption = None,
    array: ArrayOption = None,
    cpu: CpuOption = None,
    memory: MemoryOption = None,
    gpus: GpusOption = None,
    resources: ResourcesOption = None,
    env: EnvOption = None,
    workdir: WorkdirOption = None,
    time_limit: TimeLimitOption = None,
    priority: PriorityOption = None,
    retries: RetriesOption = None,
    strict: StrictOption = False,
    output: OutputOption = Output.TABLE,
    client: ClientOption = None,
) -> None:
    """Submit jobs; each is on disk before its id is printed.

    A script becomes a job described by the options; a job file takes no such options. A script that begins with #!
    travels with its job, as it is now; without it, one that ends with .py, .sh, .R, .jl or .pl is run from where it
    lies, as it then is. Either way Python finds modules beside the script. It runs in the present folder, or that of
    --workdir. Of your environment it gets what -e adds; PATH and HOME, and so its Python, are those of the worker (of
    the shell in which `subak up` was started); `-e PATH` takes your PATH, and so your Python. For arguments: `subak run
    --detach train.py --epochs 3`.

    - `subak submit train_*.py --cpu 0.25` submits a job for each script, four of which share a core.
    - `subak submit job.yaml` prints the id of the job.
    - `subak submit train.yaml test.yaml --wait` waits for both, and says how each ended as it ends.
    - `subak submit train.sh --array 0-9 --cpu 4 --memory 2Gi` runs a script ten times.
    - `subak submit job.yaml --key nightly-2026-11-22` is safe to repeat, also after a crash of the caller.
    """
    if key and len(files) > 1:
        raise InputError("--key: goes with one file, for it names one job")
    said = job_fields(tasks, array, cpu, memory, gpus, resources, env, queue=queue, name=name, workdir=workdir,
                      time_limit=time_limit, priority=priority, retries=retries)
    with opened(client, SHOWN) as federation:
        texts = [_text_of(file, said, workdir) for file in files]
        remark(other_python(federation.settings, [script_command(str(file)) for file in files
                                                  if is_script(str(file))], said.get("env")))
        before = federation.federation() if output == Output.TABLE and is_seen() else None
        found = [_submitted(federation, text, file, key, strict, output)
                 for file, text in zip(files, texts, strict=True)]
        if before is not None:
            say_what_waits(found, before)
        if before is not None and not wait:
            say_next(found)
        ended = {job.id: job for job in found}
        with if_interrupted(lambda: going_on([id for id, job in ended.items() if job.state != TASK_ENDED])):
            for job in changes(federation, found) if wait else ():
                ended[job.id] = job
                if job.state == TASK_ENDED:
                    _say_end(federation, job, found)
    show([*ended.values()], output)
    if wait and any(job.outcome != FINISHED for job in ended.values()):
        raise CommandEndedError(exit_codes.OTHERWISE)


def _text_of(file: Path, said: dict[str, object], workdir: str | None) -> bytes:
    """Return the job file that a file is, or the one of the script that it is. Raises InputError."""
    name = str(file)
    if name != "-" and is_absent(name) and (is_script(name) or has_arguments(name) or not file.suffix
                                            or is_program(name.partition(" ")[0])):
        raise InputError(no_script(str(file)))
    data = file_bytes(file)
    if data.startswith(b"#!"):
        return _job_text(data, {**said, "workdir": folder_of(workdir)}, str(file))
    if is_script(str(file)):
        return _job_text(script_command(str(file)), {**said, "workdir": folder_of(workdir)})
    if said:
        raise InputError(f"{file}: is a job file, and says {next(iter(said))} itself; options of a job go with a "
                         "script")
    return data


def _submitted(federation: "Client", text: bytes, file: Path, key: str, strict: bool, output: Output,
               ) -> JobView:
    """Submit a job; what was submitted is said at once, for the next may be refused."""
    job = federation.submit(text, key=key, file=str(file), strict=strict)
    warn(job)
    if output == Output.TABLE:
        echo(f"{job.id}{_submitted_text(job)}")
    return job


def _submitted_text(job: JobView) -> str:
    """Return what is said of a job behind its id when it was submitted."""
    return f" {job.name} submitted to {job.queue}: {counted(job.tasks, 'task')}"


def warn(job: JobView) -> None:
    """Say what no machine is large enough for, and what to do about it."""
    remark([*(f"{job.id}: warning: {words}" for words in job.warnings),
            *[f"--strict refuses such a job; {HOW_LARGER}"][:len(job.warnings)]])


def _say_end(federation: "Client", job: JobView, among: Sequence[JobView]) -> None:
    """Say how a job of several ended, and which of its tasks did not finish; by its name, where no other has that."""
    name = job.name if sum(each.name == job.name for each in among) == 1 else job.id
    remark([f"{f'{job.id} ' * (name != job.id)}{ending_text(job, name)}"])
    if job.outcome != FINISHED and job.tasks > 1:
        _name_unfinished(federation, job)


def _name_unfinished(federation: "Client", job: JobView) -> TaskView:
    """Say how each task ended that did not finish, the first ones of many; return the first."""
    named = sorted(of_counts(federation, job, ENDED_BADLY, UNFINISHED_NAMED), key=lambda task: task.index)
    remark(f"{task.id} {task.outcome}{f': {task.reason}' if task.reason else ''}" for task in named)
    left = job.tasks - job.counts.finished - len(named)
    if left:
        remark([f"{count_text(left)} more did not finish; {hint('describe', job.id)} counts them"])
    return named[0]


def run(
    command: Annotated[list[str], typer.Argument(
        metavar="COMMAND|SCRIPT...", show_default=False,
        help="The command, or a script (.py, .sh, .R, .jl, .pl) in a file here, and then its arguments, as they stand; "
             "no shell reads them.")],
    queue: QueueOption = None,
    name: NameOption = None,
    tasks: TasksOption = None,
    array: ArrayOption = None,
    cpu: CpuOption = None,
    memory: MemoryOption = None,
    gpus: GpusOption = None,
    resources: ResourcesOption = None,
    env: EnvOption = None,
    workdir: WorkdirOption = None,
    time_limit: TimeLimitOption = None,
    priority: PriorityOption = None,
    retries: RetriesOption = None,
    strict: StrictOption = False,
    detach: Annotated[bool, typer.Option(
        "--detach", "-d", help="Print the id of the job (at a terminal also name, queue and tasks), and do not wait.",
        )] = False,
    raw: Annotated[bool, typer.Option(
        "--raw", help="Let what it writes reach a terminal as it is, colours and all; else colours are left "
                      "out, and what else could steer the terminal is shown as escapes.")] = False,
    client: ClientOption = None,
) -> None:
    """Run one command in the federation, show its output, and end with its exit code.

    It runs in the present folder, or that of --workdir, on its machine, with the files that are there then. Of your
    environment it gets what -e adds; PATH and HOME, and so its Python, are those of the worker (of the shell in which
    `subak up` was started). `-e PATH` takes your PATH, and so your Python (a venv, conda); or name one: `subak run
    .venv/bin/python train.py`.

    The output of several tasks is shown one task after the other; the exit code is that of the first task that did not
    finish. Ctrl-C cancels all. Its own exit codes: 124, the task ran longer than --time-limit; 125, it could not be
    run, or was lost with its machine; 130, it was cancelled.

    - `subak run train.py --epochs 10` runs a script with one core; what follows the script goes to it.
    - `subak run --cpu 0.25 train.py` asks for a quarter of a core, so that four such run side by side on each.
    - `for s in *.py; do subak run --detach --cpu 0.25 $s; done` runs all scripts of a folder at once; `subak list`.
    - `subak run --queue web --cpu 500m --memory 4Gi -e STAGE=test -- make check` asks for half a core and 4 GiB.
    - `subak run -n 4 --retries 1 -- ./simulate` runs it four times, SUBAK_TASK_INDEX from 0 to 3.
    - `subak run --detach -- sleep 60` prints the id; `subak logs -f ID` follows it.
    """
    if len(command) == 1 and is_program(command[0].partition(" ")[0]) and " " in command[0]:
        raise InputError(f"{command[0]!r}: is one word, and no shell reads it; subak run -- {command[0]}")
    words, fields = command_of(command), job_fields(
        tasks, array, cpu, memory, gpus, resources, env, queue=queue, name=name, workdir=folder_of(workdir),
        time_limit=time_limit, priority=priority, retries=retries)
    said = sys.argv[:-len(command)][-1:] != ["--"] and meant_for_subak(command, fields)
    absent = "" if workdir else absent_script(words)
    text = _job_text(words, fields)
    from subak.live.client import Client, read_settings  # noqa: PLC0415  (see above)

    settings = read_settings(client)
    try:
        remark([*([said] if said else []), *([absent] if absent else []),
                *other_python(settings, [words], fields.get("env"))])
        with if_interrupted(lambda: f"interrupted; {SHOWN}"), Client(settings) as federation:
            job = federation.submit(text, file="run", strict=strict)
            warn(job)
            if detach:
                echo(f"{job.id}{_submitted_text(job) if is_seen() else ''}")
                return
            code = _followed(federation, job, settings, raw)
    except SubakError as error:
        error.exit_code = exit_codes.NOT_RUN
        raise
    raise CommandEndedError(code)


def _job_text(what: list[str] | bytes, said: dict[str, object], file: str = "") -> bytes:
    """Return a job file for a command, or for the script in a file. Raises InputError, all mistakes in one line."""
    from subak.live.jobfile.command import from_command, from_script  # noqa: PLC0415  (loads a YAML reader)
    from subak.live.jobfile.write import as_file  # noqa: PLC0415

    env = said.get("env")
    said = {**said, "env": {**UNBUFFERED, **(env if isinstance(env, dict) else {})}}
    try:
        spec = from_script(what, file, folder_of_script(file), **said) if isinstance(what, bytes) else from_command(
            what, **said)  # type: ignore[arg-type]
    except InputError as error:  # of the command line
        raise InputError("; ".join(str(error).splitlines())) from None
    return msgspec.json.encode(as_file(spec))


def _followed(federation: "Client", job: JobView, settings: "ClientSettings", raw: bool) -> int:
    """Show what each task of a job writes, one after the other, until all have ended; return the exit code for it."""
    try:
        threading.Thread(target=_say_what_for, args=(settings, job), daemon=True).start()
        for index in range(job.tasks):
            follow_streams(settings, f"{job.id}.{index}", raw, attempt=1)
        while job.state != "ended":
            job = federation.wait(job.id)
    except KeyboardInterrupt:
        federation.cancel(job.id)
        remark([f"{job.id} is cancelled"])
        return exit_codes.INTERRUPTED
    return exit_codes.EXIT_DONE if job.outcome == FINISHED else _exit_code(_name_unfinished(federation, job))


def _say_what_for(settings: "ClientSettings", job: JobView) -> None:
    """Say what a job waits for, at once where no machine is large enough, else if it waits for long; also what then."""
    from subak.live.client import Client  # noqa: PLC0415  (see above)

    said, pause = "", 0.0 if job.warnings else FULL_S
    with suppress(SubakError), Client(settings) as federation:  # who follows the task says what goes wrong
        while job.state == TASK_WAITING:
            until = time.monotonic() + pause
            while job.state == TASK_WAITING and (left := until - time.monotonic()) > 0:
                job = federation.wait(job.id, seen=job.version, timeout_s=left)
            job = federation.job(job.id)
            if job.state == TASK_WAITING and job.reason not in ("", said):
                _say_waits(job)
                said = job.reason
            pause = LONG_S


def _say_waits(job: JobView) -> None:
    """Say what a job waits for, and what ends that."""
    if job.reason.startswith(WAITS_FOR_MACHINES):
        remark(why_full([job]))
    else:
        remark([f"{job.id} waits: {job.reason.removeprefix('waits for ')}; Ctrl-C cancels it"])


def _exit_code(task: TaskView) -> int:
    """Return the exit code for a task that did not finish."""
    if task.outcome == FAILED:
        return exit_codes.of_command(task.exit_code, task.signal)
    return {TIMED_OUT: exit_codes.TIMED_OUT, CANCELLED: exit_codes.INTERRUPTED}.get(task.outcome, exit_codes.NOT_RUN)
