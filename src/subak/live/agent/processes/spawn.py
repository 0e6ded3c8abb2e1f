"""Starts a process in its own session and files, and in another user or control group if asked.

It is begun by `vfork`, through `subprocess`: a `fork` of this small interpreter costs two to five times as much, and
with it whatever Python code would run between (decision 26). What cannot be done between `vfork` and `exec` is done by
a program that is executed before the command: `setpriv` becomes the user, a shell enters the control group.
"""
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from subak.live.agent.attempts.attempt import NOT_BEGUN, AttemptToRun, Ending
from subak.live.agent.processes.proc import AGENT

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells have it
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GO_TO = 'cd -- "$0" && exec "$@"'
ENTER = 'echo 0 > "$0" && exec "$@"'


def begin(attempt: AttemptToRun, identity: str, files: tuple[int, int, int], group: Path | None
          ) -> int | Ending:
    """Begin an attempt's process, with *files* as input, output and errors; return its number, or why there is none."""
    variables = environment(attempt, identity)
    try:
        problem = find_problem(attempt, variables, os.geteuid())
        if problem is not None:
            return problem
        process = subprocess.Popen(
            [*entering(group), *becoming(attempt), *attempt.command], env=variables, cwd=_first_folder(attempt),
            stdin=files[0], stdout=files[1], stderr=files[2], close_fds=False, start_new_session=True,
            umask=attempt.umask)
    except OSError as error:
        return _failed(attempt, error)
    process.returncode = 0  # it is not waited for here
    return process.pid


def environment(attempt: AttemptToRun, identity: str) -> dict[str, str]:
    """Return the variables of an attempt: the job's own, and what it is; those cannot be changed by a job."""
    return {
        "PATH": PATH, **attempt.environment,
        "SUBAK_TASK": str(attempt.key.task), "SUBAK_ATTEMPT": str(attempt.key.attempt), "SUBAK_JOB": attempt.job,
        "SUBAK_QUEUE": attempt.queue, "SUBAK_TASK_INDEX": str(attempt.index), AGENT: identity,
    }


def becoming(attempt: AttemptToRun) -> list[str]:
    """Return the command that becomes the attempt's user, before its own."""
    if attempt.user is None or (attempt.user.uid == os.geteuid() and attempt.user.gid == os.getegid()):
        return []
    groups = ["--groups", ",".join(map(str, attempt.user.groups))] if attempt.user.groups else ["--clear-groups"]
    return ["setpriv", "--reuid", str(attempt.user.uid), "--regid", str(attempt.user.gid), *groups,
            "--inh-caps=-all", "--", "/bin/sh", "-c", GO_TO, attempt.folder]


def _first_folder(attempt: AttemptToRun) -> str:
    """Return the folder in which a process is begun: another user enters its own, for it may not be allowed to."""
    return "/" if becoming(attempt) else attempt.folder


def entering(group: Path | None) -> list[str]:
    """Return the command that enters a control group, before the attempt's own."""
    return [] if group is None else ["/bin/sh", "-c", ENTER, str(group / "cgroup.procs")]


def find_problem(attempt: AttemptToRun, variables: Mapping[str, str], own_uid: int) -> Ending | None:
    """Return why an attempt cannot begin, as far as it can be known beforehand."""
    name = attempt.command[0]
    if any("\0" in text for text in (*attempt.command, *variables, *variables.values(), attempt.folder)):
        return _ending(NOT_EXECUTABLE, "a null character in the command, its environment or its folder")
    if any(not name or "=" in name for name in variables):
        return _ending(NOT_EXECUTABLE, "a variable of the environment without a name, or with = in it")
    if attempt.user is not None and becoming(attempt) and own_uid != 0:
        return _ending(NOT_EXECUTABLE, f"user {attempt.user.uid}: the node agent runs as user {own_uid}, and "
                                       "only root can run attempts as others")
    if not os.path.isdir(attempt.folder):  # noqa: PTH112  (which says nothing else of names that are too long)
        return _ending(NOT_EXECUTABLE, f"{attempt.folder}: no such folder")
    return _find_command(name, variables["PATH"], attempt.folder)


def _folders(path: str) -> str:
    """Return a PATH in a few words: its first folder, and how many more there are."""
    first, *others = path.split(os.pathsep)
    return f"{first} and {len(others)} more folders of PATH" if others else first


def _find_command(name: str, path: str, folder: str) -> Ending | None:
    if "/" not in name:
        return None if shutil.which(name, path=path) else _ending(NOT_FOUND, f"{name}: not found in {_folders(path)}")
    file = Path(folder) / name
    if not file.exists():
        return _ending(NOT_FOUND, f"{name}: no such file")
    if file.is_dir() or not os.access(file, os.X_OK):
        return _ending(NOT_EXECUTABLE, f"{name}: may not be executed")
    return None


def _failed(attempt: AttemptToRun, error: OSError) -> Ending:
    code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    return _ending(code, f"{error.filename or attempt.command[0]}: {error.strerror or error}")


def _ending(code: int, words: str) -> Ending:
    return Ending(NOT_BEGUN, code, words)
