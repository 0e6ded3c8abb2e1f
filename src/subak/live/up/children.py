"""Starts, restarts and stops the processes of a federation on this machine, in order.

This process is a *subreaper*: whatever loses its parent below it becomes its child, such as the agent of a worker
that has died; so all of them can be ended, and waited for. If this process dies itself, they notice by their lifeline.
"""
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from subak.errors import RunError
from subak.live.agent.processes.proc import children, kill_children, send
from subak.live.up.folder import Member

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
PAUSE_S, PAUSE_MAX_S = 0.1, 10.0  # before a process is started again: twice as long each time
WELL_S = 10.0  # after which a process that dies is not thought to fail at its start
MASTER_S, WORKER_S, KILL_S = 15.0, 15.0, 10.0  # to end in order
LOG_KEPT_BYTES = 4 << 20  # after which a log is put aside when its process starts


class Child:
    """A process, and when it is started again."""

    def __init__(self, member: Member, log: Path) -> None:
        self.member, self.log = member, log
        self.pid = 0  # 0: it does not run
        self.began = 0.0
        self.starts = 0
        self.pause = PAUSE_S
        self.due = 0.0  # when it is started next; infinite: not again


class Children:
    """See the head of the file; *members* are started in their order."""

    def __init__(self, members: list[Member], logs: list[Path]) -> None:
        self.all = [Child(member, log) for member, log in zip(members, logs, strict=True)]
        self.of_pid: dict[int, Child] = {}
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise RunError(f"prctl: {os.strerror(ctypes.get_errno())}")
        self.lifeline, self.held = os.pipe()  # nobody else has the end that is held
        os.set_inheritable(self.lifeline, True)

    # -- while they run ------------------------------------------------------------------------------------------------

    def start_due(self, now: float) -> list[Child]:
        """Start those that are to run and do not, and are due; return them."""
        found = [child for child in self.all if child.pid == 0 and child.due <= now]
        for child in found:
            self._start(child, now)
        return found

    def _start(self, child: Child, now: float) -> None:
        if child.log.exists() and child.log.stat().st_size > LOG_KEPT_BYTES:
            child.log.replace(child.log.with_suffix(".log.old"))
        command = [sys.executable, "-m", "subak.live.process", child.member.role, str(child.member.file),
                   "--lifeline", str(self.lifeline)]
        files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                 (os.POSIX_SPAWN_OPEN, 1, str(child.log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                 (os.POSIX_SPAWN_DUP2, 1, 2)]
        child.pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=files, setsid=True,
                                   setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        child.began = now
        child.starts += 1
        self.of_pid[child.pid] = child

    def ended(self, now: float) -> Iterator[tuple[Child, int]]:
        """Yield those that have ended since, each with its exit code, below zero for a signal; all are to run again."""
        for pid, status in _reaped():
            child = self.of_pid.pop(pid, None)
            if child is not None:
                child.pid = 0
                child.pause = PAUSE_S if now - child.began >= WELL_S else min(2 * child.pause, PAUSE_MAX_S)
                child.due = now + child.pause
                yield child, os.waitstatus_to_exitcode(status)

    # -- to the end ----------------------------------------------------------------------------------------------------

    def end(self) -> Iterator[str]:
        """End workers, then what they have left, then masters; yield what is being waited for, again and again.

        Agents end what runs, and give it the grace that its job asks for. Whoever calls may stop in between, and then
        calls `kill`.
        """
        yield from self._end([child for child in self.all if child.member.role == "worker"], "workers", WORKER_S)
        told: set[int] = set()
        while agents := set(children(os.getpid())) - set(self.of_pid):
            for pid in agents - told:
                send(pid, signal.SIGTERM)
            told |= agents
            self._forget_ended()
            yield "tasks"
        yield from self._end(self.all, "masters", MASTER_S)

    def _end(self, some: list[Child], words: str, seconds: float) -> Iterator[str]:
        until = time.monotonic() + seconds
        for child in some:
            if child.pid:
                send(child.pid, signal.SIGTERM)
        while any(child.pid for child in some):
            self._forget_ended()
            if time.monotonic() > until:
                for child in some:
                    if child.pid:
                        send(child.pid, signal.SIGKILL)
            yield words

    def _forget_ended(self) -> None:
        for _ in self.ended(time.monotonic()):
            pass

    def kill(self) -> list[int]:
        """Kill all, and return what is there even so."""
        return kill_children(KILL_S)


def _reaped() -> Iterator[tuple[int, int]]:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status
