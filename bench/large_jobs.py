"""One job of very many tasks: submitted, described and cancelled, while somebody else asks for health all the time.

A federation of real processes on this machine, whose only machine is held by a task that sleeps; so all tasks of the
job wait. Printed are how long each stage takes, the distribution of what health takes meanwhile (asked every 5 ms), how
long the global master says that its event loop was held, and its memory. In the end another job runs, on what is left.
Required: a cancel of 30,000 tasks is over in 2 s, of 1,000,000 in 60 s; health answers in 100 ms, the loop is held for
50 ms at most.
"""
import argparse
import http.client
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from live_federation import Federation
from subak.live.agent.processes.proc import shared_out_memory
from subak.live.client.client import Client

SIZES = (30_000, 1_000_000)
PAUSE_S, READY_S = 0.005, 120.0
MIB = 1 << 20
CAPACITY = 1000, 1024


def job(command: tuple[str, ...], tasks: int = 1) -> bytes:
    return msgspec.json.encode({
        "apiVersion": "subak/v1", "kind": "Job", "metadata": {"name": "large"}, "queue": "research", "command": command,
        "tasks": tasks, "resources": {"cpu": "1", "memory": "1Mi"}})


def tell(words: str) -> None:
    print(f"{words}  [load {os.getloadavg()[0]:.1f}]", flush=True)


class Health:
    """Asks for health again and again, on a connection of its own."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.seconds, self.held_ms = address, list[float](), 0.0
        self.headers = {"Authorization": f"Bearer {token.strip()}"}  # a stranger's connection ends after some seconds
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()

    def _ask(self) -> None:
        wire = http.client.HTTPConnection(*self.address.split(":"))
        while not self.over.is_set():
            began = time.perf_counter()
            wire.request("GET", "/v1/health", headers=self.headers)
            found = msgspec.json.decode(wire.getresponse().read())
            self.seconds.append(time.perf_counter() - began)
            self.held_ms = max(self.held_ms, found["held_ms"])
            time.sleep(PAUSE_S)

    def stop(self) -> str:
        """Stop, and return what was found in words."""
        self.over.set()
        self.thread.join()
        ranked = sorted(self.seconds)
        median, most = ranked[len(ranked) // 2], ranked[-1]
        late = ranked[int(len(ranked) * 0.99)]
        return (f"health, {len(ranked):,} times: median {1e3 * median:.1f} ms, 99 % {1e3 * late:.1f} ms, most "
                f"{1e3 * most:.1f} ms; loop held for {self.held_ms:.1f} ms at most")


def timed(what: str, do: Callable[[], object]) -> object:
    """Do something, and print how long it takes."""
    began = time.perf_counter()
    found = do()
    tell(f"  {what}: {time.perf_counter() - began:.2f} s")
    return found


def ended(client: Client, id_: str) -> None:
    while client.wait(id_).state != "ended":
        pass



def run(federation: Federation, client: Client, size: int, pid: int) -> None:
    tell(f"{size:,} tasks")
    holder = client.submit(job(("sleep", "100000"))).id
    while client.job(holder).counts.running != 1:
        time.sleep(0.05)
    health = Health(federation.http[0], federation.people)
    id_ = timed("submitted", lambda: client.submit(job(("true",), size))).id  # type: ignore[attr-defined]
    timed("described", lambda: client.job(id_))
    timed("a page of its tasks", lambda: client.tasks(id_, limit=100))
    timed("cancelled", lambda: client.cancel(id_))
    timed("over", lambda: ended(client, id_))
    timed("described again", lambda: client.job(id_))
    client.cancel(holder)
    timed("another job", lambda: ended(client, client.submit(job(("true",))).id))
    tell(f"  {health.stop()}")
    tell(f"  memory of the global master: {shared_out_memory(pid) / MIB:.0f} MiB")


def main() -> None:
    """Print what large jobs take."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, nargs="*", default=SIZES, help="of the job, one after the other")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        federation = Federation(Path(folder) / "large", masters=1, clusters=1, workers=1, capacity=CAPACITY)
        try:
            federation.start()
            federation.wait_ready()
            with federation.client() as client:
                for size in given.tasks:
                    run(federation, client, size, federation.running["g0"].pid)
        finally:
            left = federation.stop()
            if left:
                tell("\n".join(left))


if __name__ == "__main__":
    main()
