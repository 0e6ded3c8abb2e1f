"""`make demo-live`: a federation that shares, preempts and survives killed masters, in under a minute.

Tasks of two queues write down when each of their attempts begins and ends. Weights are 2 to 1. One queue comes first
and takes everything; the other comes, and takes its share back by preemption. While both wait, a local master and a
global master are killed.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from subak.errors import RunError
from subak.live.agent.processes.proc import all_processes
from subak.live.api.models import JobView
from subak.live.client import Client
from subak.live.config import FederationFile, read
from subak.live.up.folder import FEDERATION, Home
from subak.live.up.plan import Wish

TIMING = 'heartbeat = 0.3\nretry = 0.5\nlease = 1.8\ntimer_slack = 0.2\n'  # a standby takes over after a lease
WEIGHTS = (("research", 2.0), ("web", 1.0))
TASKS = {"web": 40, "research": 60}
TASK_S = 2.0
SLOTS_WANTED = 12  # tasks that run at once: 3 on each of 4 machines
READY_S, SHARED_S, END_S = 120.0, 5.0, 90.0
SCRIPT = ("echo begin $SUBAK_ATTEMPT $(date +%s.%N) >> {folder}/$SUBAK_QUEUE.$SUBAK_TASK_INDEX; "
          "trap 'echo cut $SUBAK_ATTEMPT $(date +%s.%N) >> {folder}/$SUBAK_QUEUE.$SUBAK_TASK_INDEX; exit 143' TERM; "
          "sleep {seconds:g} & wait $!; "
          "echo end $SUBAK_ATTEMPT $(date +%s.%N) >> {folder}/$SUBAK_QUEUE.$SUBAK_TASK_INDEX")


class Attempt(Struct):
    """One attempt of a task, as it wrote itself down; *over* is infinite where it could not."""

    begin: float
    over: float = float("inf")
    is_whole: bool = False


class Demo:
    """The demonstration, in a folder; *say* is told what happens."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self.home = folder / "federation"
        self.stamps = folder / "stamps"
        self.began = time.monotonic()

    def run(self) -> bool:
        """Show all of it; return whether nothing was lost, and nobody ran twice at once."""
        self.stamps.mkdir()
        room = ("cpu", 500 * SLOTS_WANTED // 4), ("memory", 512)
        home = Home(self.home, Wish(2, 4, WEIGHTS, room, "drf", "strict"))
        settings = home.settings()
        home.close()
        file = self.home / FEDERATION
        file.write_text(file.read_text().replace("[timing]\n", f"[timing]\n{TIMING}"))
        with (self.folder / "up.log").open("wb") as log:
            up = subprocess.Popen([sys.executable, "-m", "subak", "up", self.home], stdout=log, stderr=log,
                                  stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            with Client(settings, patience_s=30.0) as client:
                self._until("all processes are ready", lambda: " ready after " in self._log(), READY_S)
                jobs = self._share(client)
                self._kill_masters(client)
                ended = [self._ended(client, job) for job in jobs]
                good = self._count(client, ended)
        finally:
            up.send_signal(signal.SIGTERM)
            code = up.wait(END_S)
        self._say(f"the federation has ended, with exit code {code}")
        return good and code == 0

    # -- what is shown -------------------------------------------------------------------------------------------------

    def _share(self, client: Client) -> list[JobView]:
        web = self._submit(client, "web")
        self._until(f"web came first, and runs {SLOTS_WANTED} tasks, all there is room for",
                    lambda: self._running(client)["web"] == SLOTS_WANTED, 30)
        research = self._submit(client, "research")
        self._until("research, with twice the weight, has two thirds: what web ran beyond its share was preempted",
                    lambda: self._running(client) == {"research": 2 * SLOTS_WANTED // 3, "web": SLOTS_WANTED // 3}, 30)
        until, seen = time.monotonic() + SHARED_S, []
        while time.monotonic() < until:
            seen.append(self._running(client))
            time.sleep(0.25)
        mean = {name: sum(each[name] for each in seen) / len(seen) for name in TASKS}
        self._say(f"for {SHARED_S:g} s, in which both wait, there ran {mean['research']:.1f} of research and "
                  f"{mean['web']:.1f} of web on average: {mean['research'] / max(mean['web'], 0.1):.2f} to 1")
        return [web, research]

    def _kill_masters(self, client: Client) -> None:
        self._until("somebody speaks for cluster a", lambda: bool(self._speaker(client)), 30)
        before, began = self._speaker(client), time.monotonic()
        active = read(self.home / FEDERATION, FederationFile).cluster[0].local_master == before
        file = f"local-master-a{'' if active else '-standby'}.toml"

        def is_taken_over() -> bool:
            self._kill(file)  # again, whenever it was started again: it would go on where it was
            return self._speaker(client) not in ("", before)

        self._say(f"kill -9 of the process of {file}, which speaks for cluster a, again and again")
        self._until("the other one speaks for cluster a", is_taken_over, 30)
        self._say(f"... {time.monotonic() - began:.1f} s after it was first killed")
        self._say("kill -9 of global master g0")
        self._kill("global-master-g0.toml")
        self._until("g0 was started again, and knows its jobs", lambda: bool(client.jobs(queue="research").items), 30)

    def _count(self, client: Client, jobs: list[JobView]) -> bool:
        tasks = [task for job in jobs for task in client.tasks(job.id)]
        finished = sum(task.outcome == "finished" for task in tasks)
        attempts = [self._attempts(queue, index) for queue, count in TASKS.items() for index in range(count)]
        twice = sum(sum(each.is_whole for each in of_task) != 1 for of_task in attempts)
        together = sum(one.over > other.begin for of_task in attempts
                       for one, other in pairwise(of_task))
        begun = sum(map(len, attempts))
        preempted, lost = sum(task.preempted for task in tasks), sum(task.lost for task in tasks)
        self._say(f"submitted {sum(TASKS.values())} tasks, finished {finished}, in {begun} attempts that wrote "
                  f"themselves down; preempted {preempted}, lost {lost}")
        self._say(f"tasks that were not done exactly once: {twice}; attempts of one task side by side: {together}")
        return finished == sum(TASKS.values()) and not twice and not together

    # -- how -----------------------------------------------------------------------------------------------------------

    def _submit(self, client: Client, queue: str) -> JobView:
        script = SCRIPT.format(folder=self.stamps, seconds=TASK_S)
        job = client.submit(f'metadata: {{name: {queue}}}\nqueue: {queue}\ntasks: {TASKS[queue]}\n'
                            f'resources: {{cpu: 500m, memory: 16Mi}}\ncommand: [bash, -c, "{script}"]\n')
        self._say(f"submitted {job.id} to {queue}: {job.tasks} tasks of {TASK_S:g} s")
        return job

    def _running(self, client: Client) -> dict[str, int]:
        return {queue.path: queue.running for queue in client.queues().items}

    def _speaker(self, client: Client) -> str:
        """Return the address of whoever speaks for cluster a, of those that can be reached."""
        return next((master.address for master in client.masters()
                     if master.cluster == "a" and master.role == "local" and master.state == "ready"), "")

    def _kill(self, file: str) -> None:
        for pid in all_processes():
            if os.fsencode(str(self.home / file)) in _command(pid):
                os.kill(pid, signal.SIGKILL)

    def _ended(self, client: Client, job: JobView) -> JobView:
        until = time.monotonic() + END_S
        while job.state != "ended":
            if time.monotonic() > until:
                raise RunError(f"{job.id} has not ended: {job.counts}")
            job = client.wait(job.id, timeout_s=5.0)
        self._say(f"{job.id} of {job.queue}: {job.outcome}")
        return job

    def _attempts(self, queue: str, index: int) -> list[Attempt]:
        """Return the attempts of a task, in the order in which they began."""
        found: dict[str, Attempt] = {}
        for what, attempt, at in self._stamps_of(queue, index):
            if what == "begin":
                found[attempt] = Attempt(at)
            elif attempt in found:
                found[attempt].over, found[attempt].is_whole = at, what == "end"
        return sorted(found.values(), key=lambda each: each.begin)

    def _stamps_of(self, queue: str, index: int) -> Iterator[tuple[str, str, float]]:
        file = self.stamps / f"{queue}.{index}"
        for line in file.read_text().splitlines() if file.exists() else ():
            what, attempt, at = line.split()
            yield what, attempt, float(at)

    def _until(self, words: str, holds: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > until:
                raise RunError(f"it never came to be within {seconds:g} s that {words}; {self._log()[-2000:]}")
            time.sleep(0.05)
        self._say(words)

    def _log(self) -> str:
        return (self.folder / "up.log").read_text()

    def _say(self, words: str) -> None:
        self.say(f"{time.monotonic() - self.began:5.1f} s  {words}")


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def main() -> int:
    """Show it in a folder that is removed afterwards; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="subak") as folder:
        demo = Demo(Path(folder), lambda words: print(words, flush=True))  # noqa: T201
        return 0 if demo.run() else 1


if __name__ == "__main__":
    sys.exit(main())
