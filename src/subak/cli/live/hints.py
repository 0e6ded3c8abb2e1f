"""Words commands to type next: with the name that the user typed, else the id that `subak list` shows first."""
import shlex

from subak.cli.live.scripts import is_script


def called(id: str, typed: str = "") -> str:
    """Return what a job or a task is called in a hint: as it was *typed*, its task by the index behind that."""
    _, dot, index = id.partition(".")
    if not typed:
        return id
    if not dot or typed.endswith(f".{index}"):
        return shlex.quote(typed)
    return id if is_script(typed) else f"{typed}.{index}"


def hint(command: str, id: str, typed: str = "") -> str:
    """Return a command line about a job or a task, such as ``subak logs -f train_0``."""
    return f"subak {command} {called(id, typed)}"
