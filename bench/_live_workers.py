"""Many workers of a federation in one process, without attempts' processes: `python _live_workers.py FOLDER [NTH OF]`.

With NTH and OF only each of that many is run here: a process may have too few open files for all.

Each is a whole worker, with its role, its store and its connections, and an agent in which attempts of the command
`hold` run for ever and all others end at once. When an attempt starts, a line says so on standard output.
"""
import asyncio
import resource
import sys
import time
from pathlib import Path

from subak.live.agent.attempts.attempt import AttemptToRun
from subak.live.agent.attempts.simulated import SimulatedAgent
from subak.live.config import WorkerFile, read
from subak.live.process.driver import clock
from subak.live.process.worker import Worker
from subak.live.role.worker.worker_role import WorkerRole

HOLD, EVER_S = "hold", 1e9


class Told(SimulatedAgent):
    """An agent that says when attempts start."""

    def __init__(self) -> None:
        super().__init__(clock, lambda attempt: EVER_S if attempt.command[0] == HOLD else 0.0)

    def start(self, attempt: AttemptToRun) -> None:
        """Run an attempt."""
        if attempt.command[0] != HOLD:
            sys.stdout.write(f"{attempt.job}.{attempt.index} {time.time():.6f}\n")
            sys.stdout.flush()
        super().start(attempt)


class SimulatedWorker(Worker):
    """A worker with such an agent."""

    async def _reach_agent(self, _number: int, _role: WorkerRole) -> None:
        self.agent, self.attached = Told(), True

    async def _watch_agent(self) -> None:
        await asyncio.Event().wait()


async def serve(files: list[Path]) -> None:
    """Run the workers of all files."""
    workers = [SimulatedWorker(read(file, WorkerFile), file.parent, lambda words: None) for file in files]
    await asyncio.gather(*(worker.run() for worker in workers))


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    nth, of = map(int, sys.argv[2:4] or ("0", "1"))
    asyncio.run(serve(sorted(Path(sys.argv[1]).glob("w*.toml"))[nth::of]))
