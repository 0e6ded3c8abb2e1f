"""A hundred thousand different requests through one global master, which has numbers for 4,096 at once.

A federation of real processes on this machine, without processes of tasks. Each stage of a job asks for another amount
of memory than any before; printed are, a tenth at a time, how many tasks end a second, and the memory of the masters:
neither may change with what has been. Each number stands for some 25 things, one after the other.
Required: all tasks finish, and memory of the masters does not grow after the first tenth.
"""
import argparse
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import msgspec

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from live_federation import Federation
from subak.live.agent.processes.proc import shared_out_memory
from subak.live.client.client import Client

REQUESTS, STAGES, AT_ONCE, PARTS = 100_000, 20, 16, 10
CAPACITY = 64_000, 1 << 21  # memory in MiB: more than there are requests
MIB = 1 << 20


def job(first: int) -> bytes:
    """Return a job whose stages ask for first, first + 1 ... MiB."""
    stages = [{"name": f"s{number}", "command": ["true"], "resources": {"cpu": "1m", "memory": f"{first + number}Mi"}}
              for number in range(STAGES)]
    return msgspec.json.encode({"apiVersion": "subak/v1", "kind": "Job", "metadata": {"name": "requests"},
                                "queue": "research", "stages": stages})


def run(client: Client, firsts: range) -> None:
    """Run jobs to their ends, some at once. Raises AssertionError where not all of their tasks finish."""
    open_: deque[str] = deque()
    for first in [*firsts, *[None] * AT_ONCE]:
        if len(open_) == AT_ONCE or (first is None and open_):
            id_ = open_.popleft()
            while (view := client.wait(id_)).state != "ended":
                pass
            assert view.counts.finished == STAGES, view
        if first is not None:
            open_.append(client.submit(job(first)).id)


def main() -> None:
    """Print how it goes, a tenth at a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=REQUESTS, help=f"different ones ({REQUESTS:,})")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        federation = Federation(Path(folder) / "requests", masters=1, clusters=2, workers=2, capacity=CAPACITY,
                                agent="none")
        try:
            federation.start()
            federation.wait_ready()
            with federation.client() as client:
                part = given.requests // PARTS // STAGES
                for number in range(PARTS):
                    began = time.perf_counter()
                    firsts = range(1 + number * part * STAGES, 1 + (number + 1) * part * STAGES, STAGES)
                    run(client, firsts)
                    memory = ", ".join(f"{name} {shared_out_memory(process.pid) / MIB:.0f}"
                                       for name, process in federation.running.items() if not name.startswith("w"))
                    rate = part * STAGES / (time.perf_counter() - began)
                    print(f"{(number + 1) * part * STAGES:>9,} requests: {rate:,.0f} tasks a second; MiB: {memory}",
                          flush=True)
        finally:
            for words in federation.stop():
                print(words)


if __name__ == "__main__":
    main()
