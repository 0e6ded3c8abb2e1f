"""What an attempt costs the agent, beside a bare process launch in the same run: `/bin/true`, ends on disk.

Everything is pinned to one core, unless other work is on the machine: then processor time says more than the rate.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from subak.live.agent.attempts.attempt import AttemptToRun, Exited, Fence, Key
from subak.live.agent.attempts.client import AgentClient, AgentError
from subak.live.agent.processes.proc import TICKS, children

ATTEMPTS, IN_FLIGHT = 3000, 64
TRUE = "/bin/true"


def connected(state: Path) -> AgentClient:
    while True:
        try:
            return AgentClient(state / "socket")
        except AgentError:
            time.sleep(0.001)


def cpu_s(pid: int) -> tuple[float, float]:
    """Return the processor time of a process, and of those that it has waited for."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS, (int(words[13]) + int(words[14])) / TICKS


def memory_mib(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / 1024


def run_attempts(agent: AgentClient, count: int) -> float:
    """Run attempts, some at a time, each forgotten when its end is told; return the seconds it took."""
    begun, ended, sent = time.perf_counter(), 0, 0
    while ended < count:
        while sent < count and sent - ended < IN_FLIGHT:
            agent.start(AttemptToRun(Key(sent, 1), Fence(1, 1, sent), (TRUE,)))
            sent += 1
        over = [event.key for event in agent.watch(1.0) if isinstance(event, Exited)]
        if over:
            agent.forget(*over)
        ended += len(over)
    return time.perf_counter() - begun


def run_bare(count: int) -> tuple[float, float]:
    """Launch and await processes one by one; return seconds, and processor time, of each."""
    begun, before = time.perf_counter(), os.times()
    for _ in range(count):
        os.waitpid(os.posix_spawn(TRUE, [TRUE], {}), 0)
    after = os.times()
    return (time.perf_counter() - begun) / count, sum(b - a for a, b in zip(before[:4], after[:4], strict=True)) / count


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    state = Path(tempfile.mkdtemp(prefix="agent"))
    begun = time.perf_counter()
    guard = subprocess.Popen([sys.executable, "-m", "subak.live.agent", "--state", state, "--machine", "0"],
                             stderr=subprocess.DEVNULL)
    agent = connected(state)
    print(f"started in {1000 * (time.perf_counter() - begun):.0f} ms")
    agent.attach(0, 1, 0)
    agent.ping()
    agent = children(guard.pid)[0]
    before = cpu_s(agent)
    seconds = run_attempts(agent, ATTEMPTS)
    own, theirs = ((b - a) / ATTEMPTS for a, b in zip(before, cpu_s(agent), strict=True))
    bare_s, bare_cpu_s = run_bare(ATTEMPTS // 3)
    print(f"{ATTEMPTS / seconds:.0f} attempts a second; processor time of each: agent {1e3 * own:.2f} ms, process "
          f"{1e3 * theirs:.2f} ms, so that a core has room for {1 / (own + theirs):.0f} a second")
    print(f"bare: {1 / bare_s:.0f} a second; {1e3 * bare_cpu_s:.2f} ms, {1 / bare_cpu_s:.0f} a second")
    print(f"memory (PSS): guard {memory_mib(guard.pid):.1f} MiB, agent {memory_mib(agent):.1f} MiB")
    guard.terminate()
    guard.wait()
    shutil.rmtree(state)


if __name__ == "__main__":
    main()
