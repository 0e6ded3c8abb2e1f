"""Federations of real processes on this machine, in folders of their own; what is left of them is found in /proc."""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from subak.live.client import Client
from subak.live.up.folder import Home
from subak.live.up.plan import Wish

PATIENCE_S = 60.0  # for what takes seconds on a machine that is not busy
PYTHON = 'handlers = "python"\n'  # nothing is compiled: it takes minutes of two cores where nothing is kept


def until(holds, seconds=PATIENCE_S, words="it never came to be"):
    """Wait until something holds; return what it then is."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, words() if callable(words) else words
        time.sleep(0.02)
    return found


def left(folder) -> list[str]:
    """Return the command lines of processes that have to do with a folder."""
    name, found = os.fsencode(folder.name), []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with suppress(OSError):
                command = (process / "cmdline").read_bytes()
                if command and (name in command or name in (process / "environ").read_bytes()):
                    found.append(f"{process.name} {command.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


class Folder:
    """A folder for a federation, made but not started."""

    def __init__(self, **wish):
        self.folder = Path(tempfile.mkdtemp(prefix="fed"))
        wish = Wish(**{"queues": (("research", 1.0), ("web", 1.0)), **wish})
        home = Home(self.folder, wish, random.randrange(12_000, 30_000))
        self.members = {member.name: member for member in home.members}
        self.settings = home.settings()
        home.close()
        for member in self.members.values():
            if member.role != "worker":
                member.file.write_text(PYTHON + member.file.read_text())
        self.running = {}

    def start(self, name, *arguments):
        """Start one process of it."""
        member = self.members[name]
        log = self.log(name).open("ab")
        with log:
            process = subprocess.Popen([sys.executable, "-m", "subak", member.role, member.file, *arguments],
                                       stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.running[name] = process
        return process

    def log(self, name) -> Path:
        return self.folder / "log" / f"{name}.log"

    def said(self, name) -> str:
        return self.log(name).read_text() if self.log(name).exists() else ""

    def kill(self, name):
        """Kill a process, and wait for its end."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def client(self) -> Client:
        return Client(self.settings, patience_s=PATIENCE_S)

    def command(self, *arguments, **options):
        """Start a `subak` command that knows this federation."""
        return subprocess.Popen([sys.executable, "-m", "subak", *map(str, arguments)], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**os.environ, "SUBAK_FEDERATION": str(self.folder)}, **options)

    def stamped(self, name, seconds=0.0) -> str:
        """Return a job file of tasks that write when they begin and end, each into a file."""
        script = (f"d={self.folder}/stamps; mkdir -p $d; i={name}.$SUBAK_TASK_INDEX; "
                  f"date +%s.%N >> $d/$i.start; sleep {seconds}; date +%s.%N >> $d/$i.end")
        return f'metadata: {{name: {name}}}\ncommand: [sh, -c, "{script}"]\nresources: {{cpu: 100m, memory: 16Mi}}\n'

    def stamps(self, name) -> list[float]:
        """Return the times that a task has written."""
        file = self.folder / "stamps" / name
        return [float(line) for line in file.read_text().split()] if file.exists() else []

    def sweep(self):
        """Kill whatever has to do with the folder."""
        for line in left(self.folder):
            with suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)

    def over(self):
        """End all that runs here, however it stands, and remove the folder."""
        for process in self.running.values():
            process.kill()
        self.sweep()
        for process in self.running.values():
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
