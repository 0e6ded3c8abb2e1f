"""Reads processes from /proc: their owner, their memory, and those of a former agent."""
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
AGENT = "SUBAK_AGENT"  # in the environment of every attempt: the identity of its agent
ENDED_STATES = ("Z", "X")


class Process(NamedTuple):
    """A process; *memory* is resident, in bytes, *cpu_s* the processor time of it and of children it waited for."""

    parent: int
    session: int
    has_ended: bool
    memory: int
    cpu_s: float


def boot() -> str:
    """Return the name that Linux gives to the time since it was booted."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def all_processes() -> dict[int, Process]:
    """Return all processes that can be seen, by number."""
    found = {}
    for name in os.listdir(PROC):  # noqa: PTH208  (some thousand names, several times a second)
        process = look_at(int(name)) if name.isdigit() else None
        if process is not None:
            found[int(name)] = process
    return found


def look_at(pid: int) -> Process | None:
    """Return a process, or None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  (hundreds of them, several times a second)
            text = file.read()
    except OSError:
        return None
    words = text[text.rindex(b")") + 2:].split()  # the name before may hold anything
    cpu_s = sum(map(int, words[11:15])) / TICKS
    return Process(int(words[1]), int(words[3]), words[0].decode() in ENDED_STATES, int(words[21]) * PAGE, cpu_s)


def children(pid: int) -> list[int]:
    """Return the children of a process that has one thread; one that is just ending may be missing."""
    with suppress(OSError):
        return [int(word) for word in (PROC / f"{pid}/task/{pid}/children").read_text().split()]
    return [number for number, process in all_processes().items() if process.parent == pid]  # an older Linux


def shared_out_memory(pid: int) -> int:
    """Return the bytes a process has, those that it shares with others in part (PSS); 0 where it cannot be known."""
    with suppress(OSError, ValueError):
        for line in (PROC / f"{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def environment(pid: int) -> dict[str, str]:
    """Return what a process was begun with; nothing where it cannot be read."""
    with suppress(OSError):
        pairs = (PROC / f"{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    return {}


def members(mains: Iterable[int], adopted: dict[int, int], processes: dict[int, Process]) -> dict[int, list[int]]:
    """Return the processes of each of *mains*: of its session, and their descendants, as far as that can be seen.

    *adopted* says whose the orphans are, in whatever session they are.
    """
    owner = {pid: pid for pid in mains} | adopted
    found: dict[int, list[int]] = {main: [] for main in mains}
    for pid, process in processes.items():
        main = _owner(pid, owner, processes)
        if main in found and not process.has_ended:
            found[main].append(pid)
    return found


def _owner(pid: int, owner: dict[int, int], processes: dict[int, Process]) -> int:
    """Return the main process of the attempt that a process is of, or 0; and note it for all on the way up."""
    way = []
    while pid not in owner and pid in processes:
        way.append(pid)
        pid = processes[pid].session if processes[pid].session in owner else processes[pid].parent
    main = owner.get(pid, 0)
    owner.update(dict.fromkeys(way, main))
    return main


def send(pid: int, number: int, to_group: bool = False) -> bool:
    """Send a signal; return whether there was somebody to send it to."""
    try:
        (os.killpg if to_group else os.kill)(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user: a program that changes it, started by an agent that is not root
        return True
    return True


def kill_marked(identity: str, seconds: float) -> list[int]:
    """Kill what an agent of *identity* has left; return what is still there after *seconds*."""
    own = {os.getpid(), os.getppid()}
    return _kill_all(lambda: [pid for pid, process in all_processes().items() if not process.has_ended
                              and pid not in own and environment(pid).get(AGENT) == identity], seconds)


def kill_children(seconds: float) -> list[int]:
    """Kill all children, and theirs as they become ours; return what is still there after *seconds*."""
    return _kill_all(lambda: children(os.getpid()), seconds)


def _kill_all(find: Callable[[], list[int]], seconds: float) -> list[int]:
    until = time.monotonic() + seconds
    while found := find():
        if time.monotonic() >= until:
            break
        for pid in found:
            send(pid, signal.SIGKILL)
        _reap()
        time.sleep(0.002)
    return found


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
