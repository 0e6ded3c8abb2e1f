"""Kill processes of a real federation under load with signal 9, and count what became of every job.

`python tests/support/chaos.py --kills 200`: two global masters, two clusters with standbys, four workers, their agents.
Clients submit jobs of short commands, each under a key of its own, again until it is acknowledged, and their
connections are cut too. What was killed is started again after a while. In the end all is up again, and every
acknowledged job must be there and have ended, with one outcome for each task; see `chaos_stamps` for the rest.
"""
import argparse
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from chaos_stamps import SCRIPT, START, Kill, outcomes_of, read_stamps, takeovers, wrongs
from live_federation import GLOBAL_MASTER, LOCAL_MASTER, WORKER, Federation, until
from subak.errors import SubakError
from subak.live.api.errors import ServiceError, UnavailableError
from subak.live.api.models import MasterView
from subak.live.client.client import Client

TIMING = {"heartbeat": 0.5, "retry": 0.5, "lease": 3.0, "timer_slack": 0.5}
KINDS = {"global master": 2, "local master": 3, "worker": 3, "agent": 2, "connection": 2}  # how often each
SUBMITTERS, WAITING_TASKS = 3, 40  # at most so many tasks wait to be started, so that kills meet all states
KILL_PAUSE_S = (0.2, 1.2)
AWAY_S, AWAY_LONG_S, LONG_PART = (0.05, 1.0), (3.0, 6.0), 0.25  # until what was killed is started again
EARLY_PART = 0.15  # of the kills may meet a process that does not serve yet
IN_FLIGHT_S = 0.2
END_S = 120.0  # that all jobs have to end when all is up again
FAILS, CANCELLED, ONCE = 0.1, 0.05, 0.25  # parts of the jobs; the last may not be lost, and so starts once
CODE = 3  # with which those that fail do


class Submitted(NamedTuple):
    """A job that was acknowledged, and what its tasks may become."""

    id: str
    tasks: int
    outcomes: tuple[str, ...]
    once: bool = False  # whether none may start twice


def make_stamps(stamps: Path) -> None:
    """Make the folders that tasks write into."""
    stamps.mkdir()
    stamps.with_name(f"{stamps.name}-locks").mkdir()


class Load:
    """Clients that submit until they are told to stop."""

    def __init__(self, federation: Federation, stamps: Path, seed: int) -> None:
        self.federation, self.stamps, self.seed = federation, stamps, seed
        self.acknowledged: list[Submitted] = []
        self.stopping = threading.Event()
        self.clients: list[Client] = []
        self.again = 0  # times that a submission had to be repeated, beyond what the client itself repeats
        self.failed: list[Exception] = []
        self.threads = [threading.Thread(target=self._work, args=(number,)) for number in range(SUBMITTERS)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Let every submission under way be acknowledged, and end."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        if self.failed:
            raise self.failed[0]

    def cut(self, draw: random.Random) -> bool:
        """Break a connection of a client, whatever is under way on it; return whether there was one."""
        wires = [wire for client in self.clients for wire in [*client._transport.connections.values()]]
        if not wires:
            return False
        with suppress(OSError, AttributeError):
            draw.choice(wires).sock.shutdown(socket.SHUT_RDWR)
        return True

    def _work(self, number: int) -> None:
        try:
            self._submit(number)
        except Exception as error:  # told by `stop`
            self.failed.append(error)

    def _submit(self, number: int) -> None:
        draw = random.Random(self.seed * 1000 + number)
        client = self.federation.client(first=number % len(self.federation.http))
        self.clients.append(client)
        place = 0
        while not self.stopping.is_set():
            place += 1
            once = draw.random() < ONCE
            text, tasks, outcomes = self._job(draw, once)
            id_ = self._acknowledged(client, text, f"chaos-{number}-{place}")
            if draw.random() < CANCELLED:
                outcomes = (*outcomes, "cancelled")
                with suppress(ServiceError):
                    client.cancel(id_)
            self.acknowledged.append(Submitted(id_, tasks, outcomes, once))
            while not self.stopping.is_set() and self._waiting() > WAITING_TASKS:
                time.sleep(0.02)
        client.close()

    def _acknowledged(self, client: Client, text: bytes, key: str) -> str:
        while True:
            try:
                return client.submit(text, key=key).id
            except UnavailableError:
                self.again += 1

    def _waiting(self) -> int:
        return sum(job.tasks for job in [*self.acknowledged]) - sum(1 for _ in self.stamps.iterdir())

    def _job(self, draw: random.Random, once: bool) -> tuple[bytes, int, tuple[str, ...]]:
        """Return a job file, how many tasks it has, and what they may become."""
        code = CODE if draw.random() < FAILS else 0
        def stage(name: str, **more: object) -> dict[str, object]:
            return {"name": name, "command": ["/bin/sh", "-c", SCRIPT, "task", str(draw.randint(0, 5)), str(code)],
                    "tasks": draw.randint(1, 5), "resources": {"cpu": "500m", "memory": "16Mi"},
                    "grace_period": "200ms", "env": {"STAMPS": str(self.stamps)},
                    **({"losses_max": 0} if once else {}), **more}

        stages = [stage("first")]
        if draw.random() < 0.2:
            stages.append(stage("second", depends_on=["first"]))
        job = {"apiVersion": "subak/v1", "kind": "Job", "metadata": {"name": "chaos"},
               "queue": draw.choice(("research", "web")), "stages": stages}
        failing = ("failed", "cancelled") if len(stages) > 1 else ("failed",)
        outcomes = failing if code else ("finished",)
        if once:
            outcomes = (*outcomes, "lost", *(("cancelled",) if len(stages) > 1 else ()))
        return msgspec.json.encode(job), sum(int(each["tasks"]) for each in stages), outcomes


class Killer:
    """Kills what a seed says, and starts it again."""

    def __init__(self, federation: Federation, load: Load, seed: int) -> None:
        self.federation, self.load, self.draw = federation, load, random.Random(seed)
        self.away: dict[str, float] = {}  # when to start it again
        self.count: Counter[str] = Counter()
        self.explained: list[Kill] = []  # what may let a task run again that had ended
        self.active: list[tuple[str, float]] = []  # cluster, when: kills of local masters that were active
        self.cluster_of: dict[str, str] = {}  # by agent
        self.asking = federation.client(patience_s=0.0)

    def run(self, kills: int) -> None:
        """Kill so many processes and connections."""
        while sum(self.count.values()) < kills:
            self._pause(self.draw.uniform(*KILL_PAUSE_S))
            kind = self.draw.choices([*KINDS], [*KINDS.values()])[0]
            self.count[kind] += self._kill(kind)
        while self.away:
            self._pause(0.05)

    def take_over(self) -> list[float]:
        """Kill the active local master of each cluster while all else is up; return the seconds to the next start."""
        found = []
        for cluster in self.federation.clusters:
            active = next(name for name in self.federation.names(LOCAL_MASTER)
                          if self.federation.members[name].cluster == cluster and self._is_active(name))
            at = uptime()
            self.federation.kill(active)
            self.count["local master"] += 1
            until(lambda at=at, cluster=cluster: self._takeovers(cluster, at))
            found += self._takeovers(cluster, at)
            self.federation.start(active)
            until(lambda active=active: self._is_ready(active))
        return found

    def _takeovers(self, cluster: str, at: float) -> list[float]:
        return takeovers(read_stamps(self.load.stamps), [(cluster, at)], self.cluster_of, IN_FLIGHT_S)

    def note_agents(self) -> None:
        """Note which cluster each agent is of."""
        for name, agent in self.federation.agents().items():
            self.cluster_of[agent.identity] = self.federation.members[name].cluster

    def _pause(self, seconds: float) -> None:
        """Wait, and start again what is due."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            for name in [name for name, at in self.away.items() if at <= now]:
                del self.away[name]
                self.federation.start(name)
            self._mind_the_dead()
            time.sleep(0.02)

    def _mind_the_dead(self) -> None:
        """Start again whatever has ended by itself, and count it: nothing should."""
        for name, process in [*self.federation.running.items()]:
            if process.poll() is not None:
                self.count[f"{name} ended by itself"] += 1
                self.federation.start(name)

    def _kill(self, kind: str) -> bool:
        """Kill one of a kind; return whether there was one."""
        if kind == "connection":
            return self.load.cut(self.draw)
        if kind == "agent":
            return self._kill_agent()
        role = {"global master": GLOBAL_MASTER, "local master": LOCAL_MASTER, "worker": WORKER}[kind]
        early = self.draw.random() < EARLY_PART
        there = [name for name in self.federation.names(role)
                 if self.federation.has_begun(name) or (early and name in self.federation.running)]
        if not there:
            return False
        name = self.draw.choice(there)
        if role == LOCAL_MASTER and self._is_active(name):
            self.active.append((self.federation.members[name].cluster, uptime()))
        if role == WORKER and name in (agents := self.federation.agents()):
            self.explained.append(Kill(agents[name].identity, uptime(), TIMING["lease"]))
        self.federation.kill(name)
        self.away[name] = time.monotonic() + self.draw.uniform(
            *(AWAY_LONG_S if self.draw.random() < LONG_PART else AWAY_S))
        return True

    def _kill_agent(self) -> bool:
        agents = self.federation.agents()
        if not agents:
            return False
        agent = agents[self.draw.choice(sorted(agents))]
        victims = self.draw.choice(([agent.guard], [agent.agent], [agent.guard, agent.agent]))
        self.explained.append(Kill(agent.identity, uptime()))
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return True

    def _is_active(self, name: str) -> bool:
        """Whether a local master speaks for its cluster, as a global master sees it."""
        return any(master.name == name and master.role == "local" for master in self._masters())

    def _is_ready(self, name: str) -> bool:
        return any(master.name == name and master.state == "ready" for master in self._masters())

    def _masters(self) -> tuple[MasterView, ...]:
        with suppress(ServiceError):
            return self.asking.masters()
        return ()


def uptime() -> float:
    """Return seconds by the clock that attempts stamp with."""
    return float(Path("/proc/uptime").read_text().split()[0])


# -- afterwards --------------------------------------------------------------------------------------------------------


def reported(client: Client, jobs: Sequence[Submitted], seconds: float) -> tuple[dict[str, str], list[str]]:
    """Return what is said of each task when its job has ended, and what is wrong with that."""
    end, outcomes, wrong = time.monotonic() + seconds, {}, []
    for job in jobs:
        view = client.wait(job.id, timeout_s=0.0)
        while view.state != "ended" and time.monotonic() < end:
            view = client.wait(job.id, timeout_s=min(20.0, max(end - time.monotonic(), 0.0)))
        tasks = client.tasks(job.id)
        outcomes.update((task.id, task.outcome) for task in tasks)
        if view.state != "ended" or len(tasks) != job.tasks:
            wrong.append(f"{job.id}: is {view.state} with {len(tasks)} tasks, of {job.tasks}; {view.counts}")
        wrong += [f"{task.id}: ended as {task.outcome!r}, {task.reason}, and not as {' or '.join(job.outcomes)}"
                  for task in tasks if task.state != "ended" or task.outcome not in job.outcomes]
    return outcomes, wrong


def at_rest(federation: Federation) -> list[str]:
    """Return what still waits, runs or is held though all jobs have ended."""
    def is_at_rest() -> bool:
        with federation.client() as client:
            held = [machine for machine in client.machines() if any(machine.used.values())]
            return not held and not any(queue.running or queue.waiting for queue in client.queues().items)
    try:
        until(is_at_rest, 20.0)
    except AssertionError:
        with federation.client() as client:
            return [f"left: {machine.name} holds {machine.used}" for machine in client.machines()
                    if any(machine.used.values())] + [
                f"left: queue {queue.path} has {queue.running} running, {queue.waiting} waiting"
                for queue in client.queues().items if queue.running or queue.waiting]
    return []


def check(federation: Federation, load: Load, killer: Killer) -> list[str]:
    """Print what became of everything, and return what is wrong, as lines."""
    with federation.client() as client:
        outcomes, wrong = reported(client, load.acknowledged, END_S)
    stamps, once = read_stamps(load.stamps), {job.id for job in load.acknowledged if job.once}
    for task, of_task in stamps.items():
        if task not in outcomes:
            wrong.append(f"{task}: ran, and is of no job that was acknowledged")
        wrong += wrongs(task, outcomes.get(task, ""), of_task, killer.explained, task.rpartition(".")[0] in once)
    wrong += [f"{task}: is reported finished, and never ran" for task, outcome in outcomes.items()
              if outcome == "finished" and task not in stamps]
    wrong += at_rest(federation)
    killer.note_agents()
    submitted = sum(job.tasks for job in load.acknowledged)
    attempts = sum(stamp.what == START for of_task in stamps.values() for stamp in of_task)
    words(f"{len(load.acknowledged):,} jobs acknowledged, {submitted:,} tasks submitted = {outcomes_of(outcomes)}; "
          f"{attempts:,} attempts started; submissions begun anew {load.again}")
    times = sorted(takeovers(stamps, killer.active, killer.cluster_of, IN_FLIGHT_S))
    if times:
        words(f"{len(times)} more kills of an active local master, its standby up or not: {times[len(times) // 2]:.2f} "
              f"s in the median, {times[-1]:.2f} s at most")
    return wrong


def run(kills: int, seed: int, folder: Path) -> list[str]:
    """Do so many kills under a seed, in a folder of its own, and return what is wrong afterwards, as lines."""
    federation, stamps = Federation(folder / "federation", timing=TIMING), folder / "stamps"
    make_stamps(stamps)
    load = Load(federation, stamps, seed)
    try:
        began = time.monotonic()
        federation.start()
        federation.wait_ready()
        words(f"seed {seed}; ready after {time.monotonic() - began:.1f} s; load {os.getloadavg()[0]:.1f}")
        killer = Killer(federation, load, seed)
        killer.note_agents()
        load.start()
        try:
            words("takeovers, with all else up: " + ", ".join(f"{each:.2f} s" for each in sorted(killer.take_over()))
                  + f" from the kill to the next start of a task in the cluster (lease {TIMING['lease']:g} s)")
            killer.run(kills)
        finally:
            load.stop()
        words(f"{kills} kills in {time.monotonic() - began:.0f} s: "
              + ", ".join(f"{count} {kind}" for kind, count in sorted(killer.count.items())))
        federation.wait_ready()
        wrong = check(federation, load, killer)
        words(f"{time.monotonic() - began:.0f} s in all; load {os.getloadavg()[0]:.1f}")
    finally:
        left = federation.stop()
    wrong += [f"{name}: {line}" for name in federation.members for line in tracebacks(federation.log(name))]
    return wrong + left


def tracebacks(log: str) -> list[str]:
    """Return the last lines of tracebacks in a log, each once."""
    found, inside = [], False
    for line in log.splitlines():
        if line.startswith("Traceback"):
            inside = True
        elif inside and line and not line.startswith(" "):
            found.append(f"raised {line}")
            inside = False
    return sorted(set(found))


def words(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"), help="of what is drawn")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="chaos"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    try:
        wrong = run(given.kills, given.seed, folder)
    except (AssertionError, SubakError) as error:
        wrong = [str(error)]
    for line in wrong[:40]:
        words(f"WRONG: {line}")
    if given.keep or wrong:
        words(f"kept: {folder}")
    else:
        shutil.rmtree(folder)
    again = f"python tests/support/chaos.py --kills {given.kills} --seed {given.seed}"
    words(f"{len(wrong)} things are wrong; {again}" if wrong
          else "nothing lost, nothing twice, nothing left")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
