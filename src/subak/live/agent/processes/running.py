"""Tracks the processes of each running attempt, from its first to its last.

An attempt's processes are its first one, all of its session, their descendants, and orphans among them, which Linux
hands to the agent (it is a *subreaper*) whatever session they are in. Orphans are told apart by their session, by the
environment they were begun with, or by whose they were at the last look. Whose they are cannot be said of those that
hid all three: they are killed when none of the attempts runs any more that ran when they came. A control group, where
there is one, knows all of its own.

An attempt is over when its first process has ended and no other is left. What is left is killed then, unless the
attempt is just being ended: the others have the grace, too.
"""
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct, field

from subak.live.agent.attempts.attempt import (
    EXITED,
    NOT_BEGUN,
    OUT_OF_MEMORY,
    SIGNALLED,
    AttemptToRun,
    Ending,
    Key,
    Usage,
)
from subak.live.agent.processes import proc
from subak.live.agent.processes.cgroups import Cgroups
from subak.live.agent.processes.output import Outputs
from subak.live.agent.processes.proc import AGENT, Process, send
from subak.live.agent.processes.spawn import begin

UNSHOWN, NOBODYS = 0, -1  # whose an orphan is that shows nothing of it, or is of an attempt that is over
LOOK_S = 0.2  # from one look at memory and output to the next
LOOK_SHARE = 20  # looks take one part in so many of the time


class Run(Struct):
    """A running attempt."""

    key: Key
    pid: int  # of its first process, and of its session
    memory_max: int  # bytes; 0 for no limit, or one that its control group keeps
    has_group: bool
    status: int | None = None  # of its first process, when that has ended
    is_ending: bool = False  # it has been sent SIGTERM, and may still be cleaning up
    memory: int = 0  # bytes at most, so far as was seen
    cpu_s: float = 0.0
    ended_cpu_s: float = 0.0  # of processes that have ended
    words: str = ""


class Orphan(Struct):
    """A process whose parent has ended: *main* is whose it is; *beside* ran when it came, where that is not known."""

    main: int
    beside: frozenset[Key] = field(default_factory=frozenset)


class Seen(NamedTuple):
    """What a look at all attempts has shown: what each uses, and which use more than they asked for."""

    used: dict[Key, Usage]
    too_large: list[Key]


def _say(file: int, words: str) -> None:
    """Write why an attempt did not begin where its errors go; a full disk keeps nobody from hearing the code."""
    with suppress(OSError):
        os.write(file, f"subak: {words}\n".encode(errors="surrogateescape"))


class Running:
    """All attempts that run. *identity* marks their processes; *cgroups* is None where the host gives none."""

    def __init__(self, identity: str, outputs: Outputs, cgroups: Cgroups | None) -> None:
        self.identity, self.outputs, self.cgroups = identity, outputs, cgroups
        self.runs: dict[Key, Run] = {}
        self.mains: dict[int, Run] = {}  # by session
        self.orphans: dict[int, Orphan] = {}
        self.seen: dict[int, int] = {}  # whose each process was at the last look
        self.ended: dict[Key, Run] = {}  # the first process has, of those of `runs`
        self.look_at = 0.0  # when to look next
        self.nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)  # the input of every attempt

    def begin(self, attempt: AttemptToRun) -> int | Ending:
        """Begin an attempt; return its process, or why there is none."""
        try:
            group = self.cgroups.make(attempt) if self.cgroups else None
            files = self.outputs.open(attempt.key)
        except OSError as error:
            return Ending(NOT_BEGUN, 126, f"{error.filename}: {error.strerror}")
        try:
            pid = begin(attempt, self.identity, (self.nothing, *files), group)
            if isinstance(pid, Ending):  # masters hear of the code alone
                _say(files[1], pid.words)
        finally:
            os.close(files[0])
            os.close(files[1])
        if isinstance(pid, Ending):
            self._clean(attempt.key)
            return pid
        watched = not (self.cgroups and "memory" in self.cgroups.controllers)
        run = Run(attempt.key, pid, attempt.memory if watched else 0, group is not None)
        self.runs[attempt.key] = self.mains[pid] = run
        return pid

    def close(self) -> None:
        """Close what is open; nothing may run."""
        os.close(self.nothing)

    def signal(self, key: Key, number: int) -> None:
        """Send a signal to all of an attempt: SIGTERM to its group of processes, SIGKILL to whatever is of it."""
        run = self.runs.get(key)
        if run is None:
            return
        run.is_ending = number != signal.SIGKILL
        if run.status is None:  # else its number may be another's
            send(run.pid, number, to_group=True)
        if number == signal.SIGKILL:
            self.adopt()
            self._kill(run)

    def reap(self) -> list[tuple[Key, Ending]]:
        """Take note of processes that have ended; return the attempts of which none is left, and how they ended."""
        some = False
        while (pid := _ended_child()) > 0:
            some = True
            self._note_end(pid)
        if not some and not self.ended:
            return []
        self.adopt()
        over = [(run.key, self._finish(run)) for run in [*self.ended.values()] if self._is_over(run)]
        if over:
            self._kill_strays()
        return over

    def adopt(self) -> None:
        """Find out whose the processes are that have become the agent's children; kill those of nobody."""
        for pid in proc.children(os.getpid()):
            if pid not in self.orphans and (pid not in self.mains or self.mains[pid].status is not None):
                self.orphans[pid] = self._whose(pid)
        self._kill_strays()

    def look(self, now: float) -> Seen:
        """Look at what all attempts use, and have written."""
        begun = time.monotonic()
        adopted = {pid: orphan.main for pid, orphan in self.orphans.items()}
        every = proc.all_processes()
        whose = proc.members(self.mains, adopted, every)
        for main, pids in whose.items():
            self._measure(self.mains[main], [every[pid] for pid in pids])
        self.seen = {pid: main for main, pids in whose.items() for pid in pids}
        self.outputs.trim(self.runs)
        too_large = [run.key for main, run in self.mains.items() if self._is_too_large(run, whose[main], every)]
        self.look_at = now + max(LOOK_S, LOOK_SHARE * (time.monotonic() - begun))
        return Seen({key: Usage(run.memory, run.cpu_s) for key, run in self.runs.items()}, too_large)

    # within

    def _note_end(self, pid: int) -> None:
        """Take note of the end of a child: the first process of an attempt, or an orphan."""
        run = self.mains.get(pid)
        if run is not None and run.status is None and not run.is_ending:
            send(pid, signal.SIGKILL, to_group=True)  # while its number is still taken
        _, status, used = os.wait4(pid, 0)
        if run is not None and run.status is None:
            run.status, self.ended[run.key] = status, run
        orphan = self.orphans.pop(pid, None)
        of = run if orphan is None else self.mains.get(orphan.main)
        if of is not None:
            of.ended_cpu_s += used.ru_utime + used.ru_stime

    def _is_over(self, run: Run) -> bool:
        """Whether nothing of an attempt is left whose first process has ended; kills what may not be left."""
        if not run.is_ending:
            self._kill(run)
        if run.has_group and self.cgroups and not self.cgroups.is_empty(run.key):
            return False
        if any(orphan.main == run.pid for orphan in self.orphans.values()):
            return False
        return not send(run.pid, 0, to_group=True)

    def _kill(self, run: Run) -> None:
        if run.has_group and self.cgroups:
            self.cgroups.kill(run.key)
        for pid in self._members(run) if run.status is None else ():
            send(pid, signal.SIGKILL)
        for pid, orphan in self.orphans.items():
            if orphan.main == run.pid:
                send(pid, signal.SIGKILL)

    def _members(self, run: Run) -> Iterable[int]:
        adopted = {pid: orphan.main for pid, orphan in self.orphans.items()}
        return proc.members(self.mains, adopted, proc.all_processes())[run.pid]

    def _finish(self, run: Run) -> Ending:
        """Forget an attempt that is over; return how it ended."""
        del self.runs[run.key], self.mains[run.pid], self.ended[run.key]
        words, usage = run.words, Usage(run.memory, run.ended_cpu_s)
        if run.has_group and self.cgroups:
            usage = Usage(max(run.memory, self.cgroups.memory(run.key)), run.ended_cpu_s)
            if self.cgroups.ran_out_of_memory(run.key):
                words = "it needed more memory than it asked for, and its control group has no more"
        self._clean(run.key)
        return how(run.status or 0, words, usage)

    def _clean(self, key: Key) -> None:
        self.outputs.end(key)
        if self.cgroups:
            self.cgroups.drop(key)

    def _kill_strays(self) -> None:
        for pid, orphan in self.orphans.items():
            if not self._may_live(orphan):
                send(pid, signal.SIGKILL)

    def _may_live(self, orphan: Orphan) -> bool:
        if orphan.main == UNSHOWN:
            return any(key in self.runs for key in orphan.beside)
        return orphan.main in self.mains

    def _whose(self, pid: int) -> Orphan:
        process = proc.look_at(pid)
        if process is not None and process.session in self.mains:
            return Orphan(process.session)
        variables = proc.environment(pid)
        if variables.get(AGENT) == self.identity:
            try:
                run = self.runs.get(Key(int(variables["SUBAK_TASK"]), int(variables["SUBAK_ATTEMPT"])))
            except (KeyError, ValueError):
                run = None
            return Orphan(run.pid if run else NOBODYS)
        if self.seen.get(pid) in self.mains:
            return Orphan(self.seen[pid])
        return Orphan(UNSHOWN, frozenset(self.runs)) if len(self.runs) > 1 else Orphan(next(iter(self.mains), NOBODYS))

    def _measure(self, run: Run, members: list[Process]) -> None:
        run.memory = max(run.memory, sum(process.memory for process in members))
        run.cpu_s = run.ended_cpu_s + sum(process.cpu_s for process in members)

    def _is_too_large(self, run: Run, pids: list[int], every: dict[int, Process]) -> bool:
        """Whether an attempt uses more than it asked for; what several of its processes share counts once."""
        if not run.memory_max or sum(every[pid].memory for pid in pids) <= run.memory_max:
            return False
        used = sum(proc.shared_out_memory(pid) for pid in pids)
        if used <= run.memory_max:
            return False
        run.words = f"it used {used} bytes of memory, and asked for {run.memory_max}"
        return True


def how(status: int, words: str, usage: Usage) -> Ending:
    """Return how an attempt ended whose first process had *status*, as `wait` has it; *words* if it was its memory."""
    code = os.waitstatus_to_exitcode(status)
    if words:
        return Ending(OUT_OF_MEMORY, code, words, usage)
    if code >= 0:
        return Ending(EXITED, code, "", usage)
    return Ending(SIGNALLED, code, f"signal {-code} ({signal.strsignal(-code)})", usage)


def _ended_child() -> int:
    """Return a child that has ended and has not been waited for, or 0."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return 0
    return found.si_pid if found else 0
