"""Runs the workers of one cluster of the prototype in one process.

Each is a whole worker, with its node, its store and its connections; what it is told to run is begun as a process, and
when that ends a line of `FOLDER/CLUSTER.ends` says so: the job, when it began and ended, and what it used.
"""
import argparse
import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from subak.live.agent.attempts.attempt import EXITED, SIGNALLED, AttemptToRun, Ending, Key
from subak.live.agent.attempts.simulated import SimulatedAgent
from subak.live.config import WorkerFile, read
from subak.live.process import lifeline
from subak.live.process.driver import clock
from subak.live.process.worker import Worker
from subak.live.role.worker.worker_role import WorkerRole

LINE_BYTES = 4096  # what a task prints


class Processes(SimulatedAgent):
    """An agent that begins processes and waits for them; it forgets all when it ends, and then they end too."""

    def __init__(self, report: Path, on_news: Callable[[], None]) -> None:
        super().__init__(clock)
        self.report, self.on_news = report, on_news
        self.children: dict[Key, subprocess.Popen[bytes]] = {}

    def _release(self) -> None:
        while (step := self.ledger.take()).signals or step.records or step.begins or step.news:
            self.news += step.news
            for attempt in step.begins:
                self._begin(attempt)
            for each in step.signals:
                if each.key in self.children:
                    self.children[each.key].send_signal(each.number)

    def _begin(self, attempt: AttemptToRun) -> None:
        began = time.time()
        child = subprocess.Popen(attempt.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=attempt.folder)
        assert child.stdout is not None
        self.children[attempt.key] = child
        self.ledger.began(attempt.key, child.pid)
        asyncio.get_running_loop().add_reader(child.stdout.fileno(), self._ended, attempt, child.stdout, began)

    def _ended(self, attempt: AttemptToRun, said: IO[bytes], began: float) -> None:
        """Note that a process has printed what it used, and is about to end or has."""
        asyncio.get_running_loop().remove_reader(said.fileno())
        ended, words = time.time(), os.read(said.fileno(), LINE_BYTES).decode(errors="replace").strip()
        said.close()
        code = self.children.pop(attempt.key).wait()
        with self.report.open("a") as file:
            file.write(f"{attempt.job} {began:.6f} {ended:.6f} {code} {words or 'nothing'}\n")
        self.ledger.exited(attempt.key, Ending(EXITED, code) if code >= 0 else Ending(SIGNALLED, 128 - code))
        self._release()
        self.on_news()

    def kill(self) -> None:
        """End all that runs."""
        for child in self.children.values():
            child.kill()
            child.wait()


class HostedWorker(Worker):
    """A worker among others in one process."""

    report: Path

    async def _reach_agent(self, _number: int, _node: WorkerRole) -> None:
        self.agent, self.attached = Processes(self.report, self._news), True

    async def _watch_agent(self) -> None:
        await asyncio.Event().wait()


def say(words: str) -> None:
    """Write a line into the log."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


async def serve(folder: Path, cluster: str, line: int) -> None:
    """Run the workers of a cluster until SIGTERM, or the lifeline is at its end."""
    workers = []
    for file in sorted(folder.glob(f"worker-{cluster}-*.toml")):
        worker = HostedWorker(read(file, WorkerFile), folder, say)
        worker.report = folder / f"{cluster}.ends"
        workers.append(worker)

    def stop() -> None:
        for worker in workers:
            worker.stop()
    loop = asyncio.get_running_loop()
    lifeline.watch(line, stop)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    await asyncio.gather(*(worker.run() for worker in workers))
    for worker in workers:
        if worker.agent is not None:
            worker.agent.kill()


def main() -> None:
    """Read the command line, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("cluster")
    parser.add_argument("--lifeline", type=int, default=lifeline.NO_FILE)
    given = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    line = lifeline.take(given.lifeline) if given.lifeline != lifeline.NO_FILE else given.lifeline
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415

        uvloop.install()
    asyncio.run(serve(given.folder, given.cluster, line))


if __name__ == "__main__":
    main()
