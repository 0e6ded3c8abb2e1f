"""A process of a federation: `python -m subak.live.process ROLE FILE`, as `subak global-master FILE` and others do."""
import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from subak.errors import InputError, SubakError
from subak.live.process.config import GlobalMasterFile, LocalMasterFile, WorkerFile, read
from subak.output.plain import plain

ROLES = ("global-master", "local-master", "worker")
EXIT_MISTAKE, EXIT_FAILED = 2, 1


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
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, process.stop)
    await process.run(lambda *words: say(f"ready{' at ' + words[0] if words else ''}"))
    say("ended")


def serve(role: str, path: Path) -> None:
    """Be a process until SIGINT or SIGTERM. Raises InputError, RunError."""
    def say(words: str) -> None:
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {role} {path.stem}: {plain(words)}\n")
        sys.stderr.flush()

    process = made(role, path, say)
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415

        uvloop.install()
    asyncio.run(_run(process, say))


def main() -> int:
    """Read the command line, and serve."""
    arguments = sys.argv[1:]
    if len(arguments) != 2 or arguments[0] not in ROLES:
        sys.stderr.write(f"usage: python -m subak.live.process {'|'.join(ROLES)} FILE\n")
        return EXIT_MISTAKE
    try:
        serve(arguments[0], Path(arguments[1]))
    except SubakError as error:
        sys.stderr.write(f"subak {arguments[0]}: {plain(str(error))}\n")
        return EXIT_MISTAKE if isinstance(error, InputError) else EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
