"""An agent as a process, in a folder of its own, and attempts for it."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from subak.live.agent.attempts.attempt import AttemptToRun, Begun, Exited, Fence, Key, Refused, Used
from subak.live.agent.attempts.client import AgentClient, AgentError
from subak.live.agent.processes import proc
from subak.live.agent.processes.cgroups import find_home

PATIENCE_S = 20.0  # for what takes milliseconds on a machine that is not busy
MACHINE = 3


def attempt(number, *command, attempt=1, incarnation=1, epoch=1, start=None, **others) -> AttemptToRun:
    """Return attempt *attempt* of task *number*."""
    fence = Fence(incarnation, epoch, number if start is None else start)
    return AttemptToRun(Key(number, attempt), fence, tuple(map(str, command)), **others)


def until(holds, seconds=PATIENCE_S):
    """Wait until something holds; return what it then is."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.005)
    return found


def alive(pid) -> bool:
    process = proc.look_at(pid)
    return process is not None and not process.has_ended


class Machine:
    """An agent's folder; *options* are those of the program."""

    def __init__(self, *options) -> None:
        self.state = Path(tempfile.mkdtemp(prefix="agent"))
        self.here = Path(tempfile.mkdtemp(prefix="here"))
        self.here.chmod(0o777)
        self.options = options
        self.guard = self.client = None
        self.events = []
        self.log = None

    def up(self, *options, incarnation=1, epoch=1, prefix=()) -> AgentClient:
        """Start the agent, and be its worker."""
        (self.state / "socket").unlink(missing_ok=True)
        self.guard = subprocess.Popen(
            [*prefix, sys.executable, "-m", "subak.live.agent", "--state", self.state, "--machine",
             str(MACHINE), *map(str, options or self.options)], stderr=subprocess.PIPE, text=True)
        until(lambda: (self.state / "socket").exists() or self.guard.poll() is not None)
        assert self.guard.poll() is None, self.guard.stderr.read()
        return self.connect(incarnation, epoch)

    def connect(self, incarnation=1, epoch=1) -> AgentClient:
        """Be the agent's worker; a former one is left as it is."""
        self.client = self.stranger()
        self.client.attach(MACHINE, incarnation, epoch)
        self.client.ping()
        return self.client

    def stranger(self) -> AgentClient:
        """Return a connection that is not the worker's."""
        def reached():
            try:
                return AgentClient(self.state / "socket")
            except AgentError:
                return None  # the socket is there, and not yet listened to
        return until(reached)

    @property
    def agent(self) -> int:
        return proc.children(self.guard.pid)[0]

    @property
    def identity(self) -> str:
        return (self.state / "identity").read_text()

    def marked(self) -> list[int]:
        """Return the processes of all attempts, as far as they have the environment they were begun with."""
        return [pid for pid, process in proc.all_processes().items()
                if not process.has_ended and proc.environment(pid).get(proc.AGENT) == self.identity]

    def hear(self, kind, number, attempt=1, seconds=PATIENCE_S):
        """Return the next event of a kind about a task."""
        end = time.monotonic() + seconds
        while True:
            for place, event in enumerate(self.events):
                if isinstance(event, kind) and event.key == Key(number, attempt):
                    return self.events.pop(place)
            assert time.monotonic() < end, f"no {kind.__name__} of task {number}; {self.events}"
            self.events += [event for event in self.client.watch(0.1) if not isinstance(event, Used)]

    def begun(self, number, attempt=1) -> int:
        return self.hear(Begun, number, attempt).pid

    def ending(self, number, attempt=1):
        return self.hear(Exited, number, attempt).ending

    def refused(self, number, attempt=1) -> str:
        return self.hear(Refused, number, attempt).why

    def run(self, each):
        """Run an attempt to its end."""
        self.client.start(each)
        return self.ending(each.key.task, each.key.attempt)

    def text(self, number, stream="out") -> str:
        return self.client.read(Key(number, 1), stream).data.decode()

    def said(self) -> str:
        """Return the first line that the agent logged."""
        if self.log is None:
            self.log = self.guard.stderr.readline()
        return self.log

    def wait(self) -> int:
        """Wait for the agent, and its guard, to end."""
        return self.guard.wait(PATIENCE_S)

    def kill(self, *pids) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        if self.client is not None:
            self.client.close()
        if self.guard is not None:
            if self.guard.poll() is None:
                self.kill(*proc.children(self.guard.pid))
                self.wait()
            self.guard.stderr.close()
        left = proc.kill_marked(self.identity, 5.0) if (self.state / "identity").exists() else []
        groups = find_home(self.identity, ()) if "always" in self.options else None
        if groups is not None:
            groups.clear()
            groups.close()
        shutil.rmtree(self.state)
        shutil.rmtree(self.here)
        assert not left
