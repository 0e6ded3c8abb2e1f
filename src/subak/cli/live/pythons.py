"""Says where a script would run with another Python than it would in the shell in which it is submitted."""
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loads the standard library's HTTP, which help does without
    from subak.live.client import ClientSettings

SEARCHED = "PATH"


def other_python(settings: "ClientSettings", commands: Sequence[Sequence[str]], env: object) -> list[str]:
    """Return a line where commands look for Python by PATH, and a worker of `subak up` here finds another one.

    *env*: variables that the job sets; one that sets PATH says itself which Python it wants.
    """
    names = [name for command in commands if (name := _searched(command))]
    path = _path_of_up(settings.folder)
    if not names or not path or (isinstance(env, Mapping) and SEARCHED in env):
        return []
    here, there = shutil.which(names[0]), shutil.which(names[0], path=path)
    if here is None or there is None or here == there:
        return []
    return [f"it runs with {there}, of the shell in which subak up was started, and not with {here}, of this one: "
            f"-e {SEARCHED} takes this one"]


def _searched(command: Sequence[str]) -> str:
    """Return the name of the Python that a command looks for by PATH; empty where it looks for none."""
    words = [*command[1:]] if command and PurePath(command[0]).name == "env" else [*command]
    name = next((word for word in words if not word.startswith("-") and "=" not in word), "")
    return name if name.startswith("python") and "/" not in name and not name.endswith(".py") else ""


def _path_of_up(folder: str) -> str:
    """Return the PATH of the `subak up` of a folder; empty where none runs, or it is another user's."""
    from subak.live.client.settings import PID  # noqa: PLC0415  (see above)

    try:
        pid = int(Path(folder, PID).read_text().split()[0]) if folder else 0
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if pid else []
    except (OSError, ValueError, IndexError):
        return ""
    return next((os.fsdecode(each[len(SEARCHED) + 1:]) for each in variables if each.startswith(b"PATH=")), "")
