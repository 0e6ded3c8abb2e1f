"""Ends a process when the one that started it is gone, by a pipe held open by `subak up`.

Nobody ever writes to it. It is read to its end when that process is gone, however it died; then whoever has the
lifeline ends too, so nothing is left behind.
"""
import asyncio
import os
import threading
from collections.abc import Callable

from subak.errors import InputError

NO_FILE = -1


def take(number: int) -> int:
    """Keep a lifeline from programs that are begun here, but for those that are given it. Raises InputError."""
    try:
        os.set_inheritable(number, False)
        os.set_blocking(number, True)
    except OSError as error:
        raise InputError(f"--lifeline: {number} is no open file: {error.strerror}") from None
    return number


def handed_on(number: int) -> tuple[list[str], tuple[int, ...]]:
    """Return the options and the files with which a program that is begun here has the same lifeline."""
    return ([], ()) if number == NO_FILE else (["--lifeline", str(number)], (number,))


def watch(number: int, on_gone: Callable[[], None]) -> None:
    """Call *on_gone* once from the running loop when the lifeline is at its end."""
    if number == NO_FILE:
        return
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(number)
        on_gone()

    loop.add_reader(number, gone)


def end_with(number: int) -> None:
    """End this process, whatever it does, when the lifeline is at its end."""
    def wait() -> None:
        os.read(number, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
