"""Runs the prototype: submits tasks as they arrive, records each, then simulates the same."""
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.errors import RunError
from subak.federation.messages import CARRIES, GLOBAL_MASTER, HANDLER, KINDS, LOCAL_MASTER, PROFILES
from subak.federation.settings import Federation as Settings
from subak.fleet.table import make_fleet
from subak.policy import find_scheduler
from subak.reproduce import workloads as made
from subak.reproduce.claims import Notify
from subak.reproduce.federated_runs import Run, federated_run
from subak.reproduce.megha.prototype import burner
from subak.reproduce.megha.prototype.federation import HEARTBEAT_S, Federation, federation
from subak.reproduce.megha.prototype.work import GLOBALS, QUEUES, UNITS, Work, job_file
from subak.simulator.results import finish_times, full_pace_finish
from subak.simulator.settings import PROMISED_MAX
from subak.simulator.simulate import simulate

COMMAND = [sys.executable, "-IS", str(Path(burner.__file__).resolve())]
RUNS_WAITED = 30  # for tasks after the last has arrived, in longest run times
ECHOES = 500
HEARD_S = 20.0  # for a master to hear of an end
ALONE_TIMES, ALONE_S = 5, 1.0
LEAD_S = 0.5  # before the first task


class Live(NamedTuple):
    """What was measured of a live run; by task, in order of arrival."""

    arrival: np.ndarray  # float64[task], seconds from the first submission: when it was submitted
    allocation: np.ndarray  # float64[task], seconds from then until its process is begun
    began: np.ndarray  # float64[task], seconds from the first submission: when its last attempt began
    delay: np.ndarray  # float64[task], seconds that it ran longer than its run time
    used: np.ndarray  # float64[task], CPU-seconds, over those that it wants
    of_global_master: float  # seconds, of a message
    of_local_master: float
    message: float  # seconds that one is under way on this machine
    load: float  # of this machine, when it began: processes that ran or waited
    lost: int  # attempts that a master ended, and began again


def run_live(work: Work, notify: Notify) -> Live:
    """Run the tasks of *work*. Raises RunError where the federation does not begin, or loses a task."""
    label = f"Prototype: {work.name}, live"
    load, delay = os.getloadavg()[0], message_delay()
    with tempfile.TemporaryDirectory(prefix="megha", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with federation(folder, work, lambda part: notify(label, part)) as running:
            submitted, jobs = _submit_all(running, work, lambda part: notify(label, part))
            ends, lost = _ends(folder, jobs, work, lambda part: notify(label, part))
            _refuse_unfinished(running, list(jobs))
        service = running.service_seconds()
    first, began, ended, used = ends.T
    wanted = work.cpu / UNITS * work.run_time
    return Live(submitted - submitted.min(), first - submitted, began - submitted.min(),
                ended - began - work.run_time, used / wanted, *service, delay, load, lost)


def _submit_all(running: Federation, work: Work, notify: Callable[[float], None]) -> tuple[np.ndarray, dict[str, int]]:
    """Submit each task when it arrives; return float64[task], when that was, and the tasks by their jobs."""
    submitted, jobs = np.zeros(work.arrival.size), {}
    begin = time.time() + LEAD_S
    said = threading.Lock()

    def submit(master: int) -> None:
        with running.client(master) as client:
            for task in np.flatnonzero(work.queue == master).tolist():
                text = job_file(work, task, COMMAND)
                time.sleep(max(0.0, begin + work.arrival[task] - time.time()))
                submitted[task] = time.time()
                found = client.submit(text).id
                with said:
                    jobs[found] = task
                    notify(0.5 * len(jobs) / work.arrival.size)
    with ThreadPoolExecutor(GLOBALS) as threads:
        for done in [threads.submit(submit, master) for master in range(GLOBALS)]:
            done.result()
    return submitted, jobs


class End(NamedTuple):
    """What became of a task: when its first attempt and its last began, when that ended, CPU-seconds that it used."""

    first: float
    began: float
    ended: float
    used: float


def _ends(folder: Path, jobs: dict[str, int], work: Work, notify: Callable[[float], None]) -> tuple[np.ndarray, int]:
    """Return float64[task, field of End] once all tasks have ended, and how many attempts were lost on the way."""
    until = time.monotonic() + RUNS_WAITED * float(work.run_time.max())
    while True:
        found, lost = read_ends([line for file in folder.glob("*.ends") for line in file.read_text().splitlines()])
        notify(0.5 + 0.5 * len(found) / len(jobs))
        if len(found) == len(jobs):
            return np.array([found[job] for job in sorted(jobs, key=jobs.__getitem__)]), lost
        if time.monotonic() > until:
            raise RunError(f"prototype: {len(jobs) - len(found)} of {len(jobs)} tasks had not ended {RUNS_WAITED} "
                           "times the longest run time after the last arrived")
        time.sleep(0.2)


def read_ends(lines: list[str]) -> tuple[dict[str, End], int]:
    """Return what became of the jobs that have ended, and how many attempts a signal ended, which are tried again."""
    first: dict[str, float] = {}
    found, lost = {}, 0
    for line in lines:
        job, began, ended, code, used = line.split()
        first[job] = min(first.get(job, float(began)), float(began))
        if int(code) > 0:
            raise RunError(f"prototype: the task of job {job} ended with exit code {code}")
        if int(code) < 0:
            lost += 1
        else:
            found[job] = End(first[job], float(began), float(ended), float(used))
    return found, lost


def _refuse_unfinished(running: Federation, jobs: list[str]) -> None:
    """Raise RunError unless the masters say of every job that it has finished; they hear of an end a moment later."""
    with running.client(0) as client:
        for job in jobs:
            view = client.wait(job, timeout_s=HEARD_S)
            if view.outcome != "finished":
                raise RunError(f"prototype: the task of job {job} has ended, but its master says {view.state} "
                               f"{view.outcome or ''}")


def message_delay() -> float:
    """Return the seconds that a message is under way between two processes' sockets here: half an echo, the median."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def echo() -> None:
            wire, _ = server.accept()
            with wire:
                while data := wire.recv(64):
                    wire.sendall(data)
        thread = threading.Thread(target=echo, daemon=True)
        thread.start()
        found = []
        with socket.create_connection(server.getsockname()) as wire:
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(ECHOES):
                began = time.perf_counter()
                wire.sendall(b"x" * 32)
                wire.recv(64)
                found.append(time.perf_counter() - began)
        thread.join()
    return float(np.median(found)) / 2


def delay_alone() -> float:
    """Return the seconds that a task runs longer by itself, the least of some: what Python takes to begin."""
    found = []
    for _ in range(ALONE_TIMES):
        began = time.time()
        subprocess.run([*COMMAND, "0.005", f"{ALONE_S:g}"], check=True, stdout=subprocess.DEVNULL)
        found.append(time.time() - began - ALONE_S)
    return min(found)


def run_simulated(work: Work, live: Live, seed: int, notify: Notify) -> Run:
    """Simulate the tasks as they arrived live, with masters that take as long for a message as the live ones did."""
    cost = {GLOBAL_MASTER: live.of_global_master, LOCAL_MASTER: live.of_local_master}
    service = {kind: cost.get(int(HANDLER[KINDS.index(kind)]), 0.0) for kind in PROFILES["python"].service}
    settings = Settings(
        global_masters=GLOBALS, heartbeat=HEARTBEAT_S, delay=live.message, service=service,
        part=dict.fromkeys(CARRIES, 0.0), masters_of={queue: number for number, queue in enumerate(QUEUES)})
    order = np.argsort(live.arrival, kind="stable")
    sample = made.Sample(work.name, "prototype", live.arrival[order], work.run_time[order], work.cpu[order] / UNITS,
                         work.memory[order] / UNITS, np.arange(order.size))
    workload = made.workload_of(sample, work.constraints[order], work.queue[order])
    return federated_run(f"Prototype: {work.name}, simulated", workload, work.fleet, "megha", settings, seed, notify)


def simulated_delay(work: Work, live: Live, seed: int) -> np.ndarray:
    """Return float64[task], the execution delay (s) where tasks begin as they did live, and share this machine's CPU.

    It is one machine with all cores of the workers, of which the tasks may want more together.
    """
    order = np.argsort(live.began, kind="stable")
    sample = made.Sample(work.name, "prototype", live.began[order], work.run_time[order], work.cpu[order] / UNITS,
                         work.memory[order] / UNITS, np.arange(order.size))
    cores = float(work.fleet.capacity[0].sum()) / UNITS
    table = pl.DataFrame({"machine": ["all"], "cluster": ["all"], "cpu": [cores], "memory": [sample.memory.sum()]})
    times = min(max(2.0, float(np.ceil(sample.cpu.sum() / cores))), PROMISED_MAX)
    outcome = simulate(made.workload_of(sample), make_fleet(table, made.RESOURCES), find_scheduler("first-fit"), seed,
                       interference=times)
    delay = np.empty(order.size)
    delay[order] = np.maximum(finish_times(outcome) - full_pace_finish(outcome), 0.0)
    return delay
