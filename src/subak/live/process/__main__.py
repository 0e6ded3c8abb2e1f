"""Runs a process of a federation: `python -m subak.live.process ROLE FILE`.

With `--lifeline NUMBER` it ends when that open file is at its end; see `lifeline.py`.
"""
import argparse
import asyncio
import contextlib
import gc
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from subak import exit_codes
from subak.errors import InputError, StoreUnfitError, SubakError
from subak.live.config import GlobalMasterFile, LocalMasterFile, WorkerFile, read
from subak.live.process import lifeline
from subak.output.plain import plain

ROLES = ("global-master", "local-master", "worker")
SERVED = "served {} messages in {:.3f} s"


def made(role: str, path: Path, say: Callable[[str], None]) -> Any:
    """Return a process of a role, from its file. Raises InputError."""
    if role == "worker":
        from subak.live.process.worker import Worker  # noqa: PLC0415  (it loads nothing of the masters)

        return Worker(read(path, WorkerFile), path.parent, say)
    from subak.live.process.masters import GlobalMasterProcess, LocalMasterProcess  # noqa: PLC0415

    if role == "global-master":
        return GlobalMasterProcess(read(path, GlobalMasterFile), path.parent, say)
    return LocalMasterProcess(read(path, LocalMasterFile), path.parent, say)


async def _run(process: Any, say: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    lifeline.watch(process.lifeline, process.stop)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, process.stop)
    def ready(*words: str) -> None:
        say(f"ready{' at ' + words[0] if words else ''}")
        gc.freeze()  # what was loaded stays: to look through all of a master for garbage takes it a tenth of a second

    await process.run(ready)
    if process.driver is not None:
        say(SERVED.format(process.driver.role.handled, process.driver.busy_s))
    say("ended")


def serve(role: str, path: Path, line: int = lifeline.NO_FILE, leave: bool = False) -> None:
    """Be a process until SIGINT or SIGTERM, or the lifeline is at its end. Raises InputError, RunError.

    *leave*: whether a worker's machine leaves the federation for good then.
    """
    def say(words: str) -> None:
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {role} {plain(path.stem)}: {plain(words)}\n")
        sys.stderr.flush()

    process = made(role, path, say)
    if leave:
        process.leave = True
    process.lifeline = lifeline.take(line) if line != lifeline.NO_FILE else line
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415

        uvloop.install()
    asyncio.run(_run(process, say))


def main() -> int:
    """Read the command line, and serve."""
    parser = argparse.ArgumentParser(prog="python -m subak.live.process")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--lifeline", type=int, default=lifeline.NO_FILE, metavar="NUMBER",
                        help="of an open file, at whose end this process ends")
    given = parser.parse_args()
    try:
        serve(given.role, given.file, given.lifeline)
    except SubakError as error:
        sys.stderr.write(f"subak {given.role}: {plain(str(error))}\n")
        return error.exit_code if isinstance(error, InputError | StoreUnfitError) else exit_codes.OTHERWISE
    return 0


if __name__ == "__main__":
    sys.exit(main())
