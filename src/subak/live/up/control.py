"""`subak up --detach` and `subak down`: runs a federation without a terminal, and ends it."""
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from subak.errors import InputError, RunError
from subak.live.agent.processes.proc import send
from subak.live.client import read_settings
from subak.live.client.settings import CLIENT, FEDERATION
from subak.live.up.folder import READY, WORKER, WORKER_FILES, lines_after, runs_in
from subak.live.up.picture import Picture, look

LOOK_S = 0.05


def start_detached(folder: Path, arguments: list[str], seconds: float) -> int:
    """Start `subak up` with *arguments* in a session of its own; return its number when all is ready.

    Raises RunError with the last that it said, where it ends before, or is not ready in time.
    """
    before = runs_in(folder)
    if before is not None:
        raise InputError(f"{folder}: a federation runs here already, as process {before.pid}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = folder / "up.log"
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "subak", "up", *arguments], stdin=subprocess.DEVNULL,
                                   stdout=file, stderr=file, start_new_session=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        code = process.poll()
        if code is not None:
            raise (InputError if code == InputError.exit_code else RunError)(_last(log))
        found = runs_in(folder)
        if found is not None and found.pid == process.pid and found.state == READY:
            return process.pid
        time.sleep(LOOK_S)
    missing = ", ".join(picture_of(folder).missing(workers_of(folder)))
    raise RunError(f"{folder}: not ready after {seconds:g} s{f': {missing}' if missing else ''}; {log} says why, and "
                   f"`subak down {folder}` ends it")


def workers_of(folder: Path) -> list[str]:
    """Return the names of the workers of which a folder has files, whether they can be read or not."""
    return sorted(file.stem.removeprefix(f"{WORKER}-") for file in folder.glob(WORKER_FILES))


def picture_of(folder: Path) -> Picture:
    """Return what is to be seen of a folder's federation; nothing where its files are broken, so that it can end."""
    try:
        return look(read_settings(folder / CLIENT))
    except InputError:
        return Picture()


def stop(folder: Path, at_once: bool, seconds: float, may: Callable[[Picture], bool]) -> Picture:
    """End the federation that runs in a folder, and wait for its end; return how it stood before.

    *may*: whether it is to be ended, as it stands. Raises InputError where none runs or it may not, RunError.
    """
    found = runs_in(folder)
    if found is None:
        raise InputError(f"no federation runs in {folder.absolute()}; subak down FOLDER, or {FEDERATION}=FOLDER, ends "
                         "another's")
    before = picture_of(folder)
    if not may(before):
        raise InputError("nothing was stopped; --yes stops it without asking")
    send(found.pid, signal.SIGQUIT if at_once else signal.SIGTERM)
    until = time.monotonic() + seconds
    while found.is_there():
        if time.monotonic() > until:
            raise RunError(f"{folder}: process {found.pid} still waits for tasks after {seconds:g} s; --now kills them")
        time.sleep(LOOK_S)
    return before


def _last(log: Path) -> str:
    lines = [line for line, _ in lines_after(log, 0) if line.strip()]
    return lines[-1].removeprefix("subak: ") if lines else f"it ended, and said nothing in {log}"
