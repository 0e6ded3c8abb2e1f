"""The node agent's settings, and the folder of its state."""
import os
import stat
from pathlib import Path
from typing import NamedTuple

from subak.errors import InputError

CGROUPS = ("auto", "always", "never")
OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Settings(NamedTuple):
    """What an agent is set to; *cgroups* is one of CGROUPS, *lease_grace_s* is within *lease_s*."""

    state: Path
    machine: int
    lease_s: float = 60.0
    lease_grace_s: float = 10.0
    cgroups: str = "auto"
    room: int = 100_000  # attempts that are kept, until they are forgotten
    output_bytes: int = 16 << 20  # of each stream of an attempt
    kept_bytes: int = 1 << 30  # of all attempts that have ended
    idle_s: float = 600.0  # without a worker and without attempts, after which the agent ends
    lifeline: int = -1  # an open file, at whose end the agent ends; below zero: none


def checked(settings: Settings) -> Settings:
    """Return the settings with an absolute folder; raise InputError for values that no agent can work with."""
    for holds, words in (
        (0 <= settings.machine < 1 << 31, f"--machine must be a number from 0 on, not {settings.machine}"),
        (0.1 <= settings.lease_s <= 1e9, f"--lease must be at least 0.1 seconds, not {settings.lease_s}"),
        (0 <= settings.lease_grace_s <= settings.lease_s / 2,
         f"--lease-grace must be within half of --lease, not {settings.lease_grace_s}"),
        (settings.room >= 1, f"--attempts must be at least 1, not {settings.room}"),
        (settings.output_bytes >= 4096, f"--output must be at least 4096 bytes, not {settings.output_bytes}"),
        (0.1 <= settings.idle_s <= 1e9, f"--idle must be at least 0.1 seconds, not {settings.idle_s}"),
        (settings.kept_bytes >= 0, f"--kept must not be negative, and is {settings.kept_bytes}"),
    ):
        if not holds:
            raise InputError(words)
    return settings._replace(state=Path(settings.state).absolute())


def open_state(folder: Path) -> str:
    """Make the folder of an agent's state where there is none; return the name by which its processes are known.

    InputError: the folder is another user's, or others may write to it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & OTHERS:
        raise InputError(f"{folder}: an agent's folder must be its user's own, and nobody else may write to it")
    file = folder / "identity"
    if not file.exists() or not file.read_text():
        beside = folder / "identity.new"
        beside.write_text(os.urandom(8).hex())
        beside.replace(file)
    return file.read_text()
