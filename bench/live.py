"""A federation of real processes on this machine: how soon a task starts, how many a second, what memory it takes.

Two global masters, two clusters with standbys, everything durable. Latency is from before the POST of a job with one
task to the moment that its process, `date`, prints; so beside it in the same run is what a bare launch over HTTP takes.
Rates are end to end, of jobs of 100 tasks; processor time of each process says what a machine that is not busy would
do. `--soak N` tasks are run to see whether memory grows; the load of the machine is said with each figure.
Required: latency 5 ms in the median, 20 ms for 99 %, three times that beside 1,000 machines and 100,000 waiting tasks;
10,000 tasks a second without processes, 600 with.
"""
import argparse
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from _peers import ray_latency, slurm_latency
from live_federation import Federation, free_addresses, until
from subak.live.agent.processes.proc import TICKS, shared_out_memory
from subak.live.api.errors import ServiceError
from subak.live.client.client import Client

LATENCIES, TASKS_OF_JOB, OPEN_JOBS = 200, 100, 20
NO_OP_TASKS, TRUE_TASKS, SOAK_TASKS, SOAK_FIRST = 20_000, 3_000, 100_000, 20_000
MACHINES, WAITING, SLOT, LEFT = 1000, 100_000, 1000, 100  # thousandths of a core: what holders take, and leave
CAPACITY = 6400, 65_536  # 64 attempts at once: a machine has room for 128, with those whose end is not noted yet
TURNS = 3
PAUSE_S = 0.02  # between two tasks: a light load
DATE = ("date", "+%s.%N")
QUEUES = ("research", "web")  # of g0 and g1
SLOW = {"heartbeat": 5.0, "retry": 5.0, "lease": 60.0, "timer_slack": 1.0}  # for many workers in one process
LARGE = {"heartbeat": 10.0, "retry": 10.0, "lease": 30.0, "timer_slack": 1.0}  # of 50,000 machines on two cores
LARGE_QUEUES, LARGE_TASKS = ("q0", "q1", "q2", "q3"), 20_000  # one of each global master
HOLLOW_EACH = 8_000  # machines that a process plays: each has two connections
LARGE_S, IDLE_S = 1800.0, 30.0
HERE = Path(__file__).parent
MIB = 1 << 20


def job(command: tuple[str, ...], tasks: int = 1, queue: str = QUEUES[0], cpu: str = "100m") -> bytes:
    return msgspec.json.encode({
        "apiVersion": "subak/v1", "kind": "Job", "metadata": {"name": "bench"}, "queue": queue, "command": command,
        "tasks": tasks, "resources": {"cpu": cpu, "memory": "1Mi"}})


def tell(words: str) -> None:
    print(f"{words}  [load {os.getloadavg()[0]:.1f}]", flush=True)


def spread(seconds: list[float]) -> str:
    """Return median, 99 % and most, in milliseconds."""
    ranked = sorted(seconds)
    return (f"median {1e3 * ranked[len(ranked) // 2]:.1f} ms, 99 % {1e3 * ranked[int(len(ranked) * 0.99)]:.1f} ms, "
            f"most {1e3 * ranked[-1]:.1f} ms")


@contextmanager
def running(folder: Path, **settings: object) -> Iterator[Federation]:
    """Run a federation."""
    federation = Federation(folder, **settings)
    try:
        began = time.perf_counter()
        federation.start()
        federation.wait_ready()
        tell(f"-- {folder.name}: ready after {time.perf_counter() - began:.1f} s")
        yield federation
    finally:
        left = federation.stop()
        if left:
            tell("\n".join(left))


# -- processes ---------------------------------------------------------------------------------------------------------


def pids(federation: Federation) -> dict[str, int]:
    found = {name: process.pid for name, process in federation.running.items()}
    return found | {f"agent of {name}": agent.agent for name, agent in federation.agents().items()}


def cpu_s(federation: Federation) -> dict[str, float]:
    """Return the processor time of each process, without that of its children."""
    def of(pid: int) -> float:
        words = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(words[11]) + int(words[12])) / TICKS
    return {name: of(pid) for name, pid in pids(federation).items()}


def memory(federation: Federation) -> dict[str, float]:
    """Return the memory of each process (PSS), in MiB."""
    return {name: shared_out_memory(pid) / MIB for name, pid in pids(federation).items()}


def used(federation: Federation, before: dict[str, float], tasks: int) -> str:
    """Return the processor time that each process took for a task, in words, and in all."""
    after = cpu_s(federation)
    each = {name: 1e6 * (after[name] - before[name]) / tasks for name in before if name in after}
    return (f"processor time of a task {sum(each.values()):.0f} us: "
            + ", ".join(f"{name} {micros:.0f}" for name, micros in each.items() if micros >= 1))


# -- latency -----------------------------------------------------------------------------------------------------------


def output_of(client: Client, task: str) -> float:
    """Return what a task printed: the time at which it ran."""
    return float(b"".join(chunk.data for chunk in client.follow(task)))


def latency(federation: Federation) -> list[float]:
    """Return the seconds from the POST to the start of the process, of jobs one at a time, and print the POST's own."""
    begun, posts, ids = [], [], []
    with federation.client() as client:
        for _ in range(LATENCIES):
            began, monotonic = time.time(), time.perf_counter()
            ids.append(client.submit(job(DATE)).id)
            posts.append(time.perf_counter() - monotonic)
            begun.append(began)
            client.wait(ids[-1])
            time.sleep(PAUSE_S)
        starts = [output_of(client, f"{id_}.0") for id_ in ids]
    tell(f"acknowledged: {spread(posts)}")
    return [start - began for start, began in zip(starts, begun, strict=True)]


def bare_start() -> list[float]:
    """Return the seconds that a process takes by itself to begin and to print when: a part of every latency here."""
    found = []
    for _ in range(LATENCIES):
        began = time.time()
        found.append(float(subprocess.run(DATE, capture_output=True, check=True).stdout) - began)
        time.sleep(PAUSE_S)
    return found


def bare_latency(folder: Path) -> list[float]:
    """Return the same of a bare launch over HTTP."""
    host, port = free_addresses(1)[0].split(":")
    with subprocess.Popen([sys.executable, HERE / "_bare_launch.py", port]) as server:
        def answers() -> bool:
            wire = http.client.HTTPConnection(host, int(port))
            try:
                wire.connect()
            except OSError:
                return False
            wire.close()
            return True
        until(answers)
        wire, found = http.client.HTTPConnection(host, int(port)), []
        for number in range(LATENCIES):
            output = folder / f"bare{number}"
            began = time.time()
            wire.request("POST", "/", "\n".join((str(output), *DATE)))
            wire.getresponse().read()
            until(lambda output=output: output.stat().st_size)
            found.append(float(output.read_text()) - began)
        server.terminate()
    return found


def disk_latency(folder: Path) -> list[float]:
    """Return the seconds that the disk takes to make 4 KiB durable; a start waits for two of them, one by one."""
    found = []
    with (folder / "durable").open("wb", buffering=0) as file:
        for _ in range(LATENCIES):
            began = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            found.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)
    return found


# -- rates -------------------------------------------------------------------------------------------------------------


def run_tasks(federation: Federation, tasks: int, command: tuple[str, ...] = ("true",),
              queues: tuple[str, ...] = QUEUES) -> float:
    """Run tasks in jobs of 100, some of them open in each queue; return the seconds from first POST to last end."""
    jobs = tasks // TASKS_OF_JOB // len(queues)
    began = time.perf_counter()
    with ThreadPoolExecutor(len(queues)) as threads:
        for done in [threads.submit(_submit_all, federation, number, jobs, command, queue)
                     for number, queue in enumerate(queues)]:
            done.result()
    return time.perf_counter() - began


def _submit_all(federation: Federation, number: int, jobs: int, command: tuple[str, ...], queue: str) -> None:
    open_jobs: deque[str] = deque()
    text = job(command, TASKS_OF_JOB, queue)
    with federation.client(first=number) as client:
        for _ in range(jobs):
            open_jobs.append(client.submit(text).id)
            while len(open_jobs) >= OPEN_JOBS:
                _finished(client, open_jobs.popleft())
        while open_jobs:
            _finished(client, open_jobs.popleft())


def _finished(client: Client, id_: str) -> None:
    while (view := client.wait(id_)).state != "ended":
        pass
    assert view.outcome == "finished", view


def rate(federation: Federation, tasks: int, what: str) -> None:
    before = cpu_s(federation)
    seconds = run_tasks(federation, tasks)
    tell(f"{what}: {tasks / seconds:,.0f} tasks a second; {used(federation, before, tasks)}")


def soak(federation: Federation, tasks: int) -> None:
    """Run tasks, and print how the memory of each process grew after the first ones."""
    run_tasks(federation, SOAK_FIRST)
    before = memory(federation)
    run_tasks(federation, tasks)
    after = memory(federation)
    tell(f"memory (PSS) after {SOAK_FIRST:,} and {tasks:,} more tasks: " + ", ".join(
        f"{name} {before[name]:.0f} -> {after[name]:.0f} MiB" for name in before))


# -- many machines -----------------------------------------------------------------------------------------------------


def many(folder: Path) -> None:
    """Print the latency beside very many machines, all of them held, and very many waiting tasks."""
    federation = Federation(
        folder, clusters=1, workers=MACHINES, capacity=(SLOT + LEFT, 1024), timing=SLOW, agent="none",
        rooms={"attempts_each": 8})  # for so many workers in one process
    workers = None
    try:
        masters = [name for name in federation.members if not name.startswith("w")]
        federation.start(*masters)
        with (folder / "starts").open("wb") as starts:
            workers = subprocess.Popen([sys.executable, HERE / "_live_workers.py", folder], stdout=starts)
        began = time.perf_counter()
        federation.wait_ready(600.0)
        tell(f"-- {MACHINES:,} machines joined after {time.perf_counter() - began:.0f} s")
        with federation.client() as client:
            _many(federation, client, folder / "starts", workers)
    finally:
        if workers is not None:
            workers.terminate()
            workers.wait()
        federation.stop()


def _many(federation: Federation, client: Client, starts: Path, workers: subprocess.Popen[bytes]) -> None:
    before, began = cpu_s(federation), time.perf_counter()
    ids = [client.submit(job(("hold",), 1000, cpu=f"{SLOT}m")).id for _ in range((WAITING + MACHINES) // 1000)]
    taken = time.perf_counter() - began
    until(lambda: client.job(ids[0]).counts.running == MACHINES, 300.0)
    tell(f"{len(ids) * 1000:,} tasks acknowledged in {taken:.1f} s, {MACHINES:,} run after "
         f"{time.perf_counter() - began:.1f} s; {used(federation, before, len(ids) * 1000)}")
    begun: dict[str, float] = {}
    before = cpu_s(federation)
    for _ in range(LATENCIES):
        began = time.time()
        begun[f"{(id_ := client.submit(job(('quick',))).id)}.0"] = began
        while client.wait(id_).state != "ended":
            pass
        time.sleep(PAUSE_S)
    when = dict(line.split() for line in starts.read_text().splitlines())
    tell(f"latency beside {MACHINES:,} machines and {WAITING:,} waiting tasks: "
         f"{spread([float(when[task]) - began for task, began in begun.items()])}; "
         f"{used(federation, before, LATENCIES)}")
    tell("memory (PSS): " + ", ".join(f"{name} {mib:.0f} MiB" for name, mib in memory(federation).items())
         + f", all workers {shared_out_memory(workers.pid) / MIB:.0f} MiB")


# -- many clusters -----------------------------------------------------------------------------------------------------


def large(folder: Path, clusters: int, each: int) -> None:
    """Print how a federation of many clusters of hollow machines starts, idles, and runs tasks."""
    federation = Federation(
        folder, masters=len(LARGE_QUEUES), clusters=clusters, workers=clusters * each, capacity=(SLOT + LEFT, 1024),
        timing=LARGE, agent="none", rooms={"attempts_each": 8}, queues=LARGE_QUEUES)
    hollow: list[subprocess.Popen[bytes]] = []
    try:
        began = time.perf_counter()
        federation.start(*(name for name in federation.members if not name.startswith("w")))
        parts = -(-clusters * each // HOLLOW_EACH)
        for part in range(parts):
            with (folder / f"starts{part}").open("wb") as starts:
                hollow.append(subprocess.Popen(
                    [sys.executable, HERE / "_live_workers.py", folder, str(part), str(parts)], stdout=starts))
        until(lambda: ready(federation) == [clusters * each] * len(LARGE_QUEUES), LARGE_S,
              lambda: f"global masters see {ready(federation)} machines")
        tell(f"-- {clusters} clusters of {each:,} machines under {len(LARGE_QUEUES)} global masters, heartbeat "
             f"{LARGE['heartbeat']:g} s, lease {LARGE['lease']:g} s: ready after {time.perf_counter() - began:.0f} s")
        before, began = cpu_s(federation), time.perf_counter()
        time.sleep(IDLE_S)
        idle = {name: (used - before[name]) / (time.perf_counter() - began) for name, used in cpu_s(federation).items()}
        tell(f"idle, processors used: {by_role(federation, idle, '.3f')}")
        tell(f"memory (PSS), MiB: {by_role(federation, memory(federation), ',.0f')}")
        before = cpu_s(federation)
        seconds = run_tasks(federation, LARGE_TASKS, queues=LARGE_QUEUES)
        tell(f"end to end: {LARGE_TASKS / seconds:,.0f} tasks a second; {used_by(federation, before)}")
        with federation.client() as client:
            took = []
            for _ in range(LATENCIES):
                began = time.perf_counter()
                _finished(client, client.submit(job(("quick",), queue=LARGE_QUEUES[0])).id)
                took.append(time.perf_counter() - began)
                time.sleep(PAUSE_S)
        tell(f"from submission to the end of a task of no length: {spread(took)}")
        tell(f"memory (PSS), MiB: {by_role(federation, memory(federation), ',.0f')}")
    finally:
        for process in hollow:
            process.terminate()
        for process in hollow:
            process.wait()
        federation.stop()


def ready(federation: Federation) -> list[int]:
    """Return how many machines each global master may place tasks on; 0 of one that does not answer."""
    found = []
    for address in federation.http:
        with Client(federation.settings(address), patience_s=0.0) as client:
            try:
                seen = client.federation()
            except ServiceError:
                found.append(0)
            else:
                found.append(sum(free.machines for free in seen.free) + seen.free_left_out)
    return found


def used_by(federation: Federation, before: dict[str, float]) -> str:
    """Return the processor time of each role since then."""
    seconds = {name: used - before[name] for name, used in cpu_s(federation).items() if name in before}
    return f"processor time, s: {by_role(federation, seconds, ',.0f')}"


def by_role(federation: Federation, values: dict[str, float], form: str) -> str:
    """Return the sum, and the most of one, for each role, in words."""
    roles: dict[str, list[float]] = {}
    for name, value in values.items():
        member = federation.members.get(name)
        role = "agent" if member is None else "standby" if name.endswith("standby") else member.role
        roles.setdefault(role, []).append(value)
    return ", ".join(f"{len(each)} {role}s {sum(each):{form}} (most {max(each):{form}})"
                     for role, each in roles.items())


# -- all ---------------------------------------------------------------------------------------------------------------


def encrypted(folder: Path) -> None:
    """Print rates and latencies with TLS beside those without, in turns."""
    for turn in range(TURNS):
        for tls in (False, True) if turn % 2 == 0 else (True, False):
            words = "with TLS" if tls else "in clear"
            with running(folder / f"{words} {turn}", workers=4, capacity=CAPACITY, agent="none", tls=tls) as federation:
                run_tasks(federation, SOAK_FIRST // 10)
                rate(federation, NO_OP_TASKS, words)
            with running(folder / f"{words} {turn} light", workers=2, capacity=CAPACITY, tls=tls) as federation:
                latency(federation)
                tell(f"latency {words}: {spread(latency(federation))}")


def peers(folder: Path) -> None:
    """Print the same of others, where they are installed."""
    ports = [int(address.rpartition(":")[2]) for address in free_addresses(2)]
    for name, found in (("Slurm", slurm_latency(folder / "slurm", (ports[0], ports[1]))), ("Ray", ray_latency())):
        tell(f"{name}: " + ("skipped, it is not installed here, or may not be started" if found is None
                            else f"latency: {spread(found)}, {len(found)} one by one"))


def light(folder: Path) -> None:
    with running(folder / "light", workers=2, capacity=CAPACITY) as federation:
        latency(federation)  # first of all, so that all code is warm
        before = cpu_s(federation)
        tell(f"latency: {spread(latency(federation))}; {used(federation, before, LATENCIES)}")
        tell(f"of that, until a process that is begun prints: {spread(bare_start())}")
        tell(f"the disk alone: {spread(disk_latency(folder))}")
        tell(f"a bare launch over HTTP, in the same run: {spread(bare_latency(folder))}")
        rate(federation, TRUE_TASKS, "true as processes")
        tell("memory (PSS): " + ", ".join(f"{name} {mib:.0f} MiB" for name, mib in memory(federation).items()))


def no_op(folder: Path, tasks: int) -> None:
    with running(folder / "no-op", workers=4, capacity=CAPACITY, agent="none") as federation:
        run_tasks(federation, SOAK_FIRST // 10)
        rate(federation, NO_OP_TASKS, "without processes")
        if tasks:
            soak(federation, tasks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--soak", type=int, default=SOAK_TASKS, metavar="N", help=f"tasks ({SOAK_TASKS:,}); 0 for none")
    parser.add_argument("--only", choices=("light", "no-op", "many", "tls", "large"), help="one part of it")
    parser.add_argument("--clusters", type=int, default=50, metavar="N", help="of --only large (50)")
    parser.add_argument("--each", type=int, default=1000, metavar="N", help="hollow machines of each cluster (1,000)")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="live"))
    parts: dict[str, Callable[[], None]] = {
        "light": lambda: light(folder), "no-op": lambda: no_op(folder, given.soak),
        "many": lambda: many(folder / "many"), "tls": lambda: encrypted(folder)}
    try:
        if given.only == "large":
            large(folder / "large", given.clusters, given.each)
            return
        if given.only != "tls":
            peers(folder)
        for name, part in parts.items():
            if given.only in (None, name):
                part()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
