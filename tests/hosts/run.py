"""Let things go wrong between ten hosts, and judge from outside what became of every job.

`python tests/hosts/run.py --seeds 1 --seconds 60`: two global masters, two clusters with a local master and a standby,
four workers, each on a host of its own (hosts.py). Hosts lose power and come back as after a reboot, processes are
killed, and stopped for longer than a lease, networks are cut, in one direction or in both, pairs are split, packets are
lost. Clients submit meanwhile. In the end every acknowledged job must have ended, with what `chaos_stamps` says of its
tasks: none twice at once, none a second time that may not be lost, none to its end a second time but for what explains
it. Where namespaces may not be made it says so, and ends well.
"""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from chaos import AWAY_LONG_S, AWAY_S, LONG_PART, TIMING, Killer, Load, check, make_stamps, tracebacks, uptime, words
from chaos_stamps import Kill
from hosts import Host, Hosts, Inside, SpreadFederation, children, unable
from live_federation import LOCAL_MASTER, WORKER
from subak.errors import SubakError

HOSTS = 10
# how often each: a process, a process that stands still, a host, a network
FAULTS = {"kill": 3, "stop": 3, "power": 2, "cut": 3, "one-way cut": 3, "split pair": 1, "loss": 1}
KILLED = {"global master": 2, "local master": 3, "worker": 3, "agent": 2}
PAUSE_S, FAULT_LEASES, LOSS = (0.1, 1.0), (0.3, 2.5), 0.3
LEASES_AFTER = 2.0  # in which what a fault has held up may still be unheard


class Trouble(Killer):
    """Draws what goes wrong, and lets it be over after a while."""

    def __init__(self, federation: SpreadFederation, load: Load, seed: int) -> None:
        super().__init__(federation, load, seed)
        self.spread = federation
        self.ends: list[tuple[float, Callable[[], None]]] = []
        self.off: set[str] = set()  # names of hosts without power

    def go_on(self, seconds: float) -> None:
        """Let things go wrong for so long, and then be over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._pause(self.draw.uniform(*PAUSE_S))
            what = self.draw.choices([*FAULTS], [*FAULTS.values()])[0]
            self.count[what] += self._begin(what)
        while self.away or self.ends:
            self._pause(0.05)

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            for at, over in [each for each in self.ends if each[0] <= now]:
                self.ends.remove((at, over))
                over()
            super()._pause(min(0.05, until - now))

    def _begin(self, what: str) -> bool:  # noqa: PLR0911  (one for each kind)
        """Begin a fault; return whether there was anything to do it to."""
        if what == "kill":
            return self._kill(self.draw.choices([*KILLED], [*KILLED.values()])[0])
        seconds = self.draw.uniform(*FAULT_LEASES) * TIMING["lease"]
        if what == "stop":
            return self._stop(self.draw.choice([*self.spread.members]), seconds)
        if what == "power":
            return self._power(self.draw.choice(self.spread.hosts.all))
        if what == "split pair":
            cluster = self.draw.choice(self.spread.clusters)
            one, other = (self.spread.host_of[name] for name in (cluster, f"{cluster} standby"))
            return self._drop(self._both(one, [other]), seconds)
        one = self.draw.choice(self.spread.hosts.all)
        others = [host for host in self.spread.hosts.all if host is not one]
        if what == "loss":
            return self._drop(self._both(one, others), seconds, LOSS)
        others = self.draw.sample(others, self.draw.choice((1, 3, len(others))))
        if what == "cut":
            return self._drop(self._both(one, others), seconds)
        return self._drop([(one, other) for other in others] if self.draw.random() < 0.5
                          else [(other, one) for other in others], seconds)

    @staticmethod
    def _both(one: Host, others: list[Host]) -> list[tuple[Host, Host]]:
        return [pair for other in others for pair in ((one, other), (other, one))]

    def _after(self, seconds: float, over: Callable[[], None]) -> None:
        self.ends.append((time.monotonic() + seconds, over))

    def _drop(self, pairs: list[tuple[Host, Host]], seconds: float, loss: float = 1.0) -> bool:
        """Let the first of each pair hear nothing of the second, or little."""
        for to, sender in pairs:
            to.filter("-I", sender.address, loss)
        for host in {host for pair in pairs for host in pair}:
            self._explain(host, seconds)

        def over() -> None:
            for to, sender in pairs:
                to.filter("-D", sender.address, loss)

        self._after(seconds, over)
        return True

    def _stop(self, name: str, seconds: float) -> bool:
        """Let a process stand still."""
        process = self.spread.running.get(name)
        if not isinstance(process, Inside) or process.poll() is not None or not self.spread.has_begun(name):
            return False
        pids = [*children(process.pid), process.pid]  # nsenter stands still with what it waits for
        process.send_signal(signal.SIGSTOP)
        self._explain(self.spread.host_of[name], seconds)

        def over() -> None:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

        self._after(seconds, over)
        return True

    def _power(self, host: Host) -> bool:
        """Take the power of a host away, and switch it on again."""
        if host.name in self.off:
            return False
        members = self.spread.members_of(host)
        seconds = self.draw.uniform(*(AWAY_LONG_S if self.draw.random() < LONG_PART else AWAY_S))
        self._explain(host, seconds)
        self.explained += [Kill(agent.identity, uptime()) for name, agent in self.spread.agents().items()
                           if name in members]
        for name in members:
            self.away.pop(name, None)
            process = self.spread.running.pop(name, None)
            if process is not None:
                process.send_signal(signal.SIGKILL)
        host.off()
        self.off.add(host.name)

        def over() -> None:
            host.on()
            self.off.discard(host.name)
            self.spread.start(*members)

        self._after(seconds, over)
        return True

    def _explain(self, host: Host, seconds: float) -> None:
        """Note of which attempts nobody may hear for a lease: those of the host, or of the cluster of its master."""
        names = set(self.spread.members_of(host))
        clusters = {self.spread.members[name].cluster for name in names
                    if self.spread.members[name].role == LOCAL_MASTER}
        names |= {name for name in self.spread.names(WORKER) if self.spread.members[name].cluster in clusters}
        now = uptime()
        self.explained += [
            Kill(self.identities[name], now, TIMING["lease"], now + seconds + LEASES_AFTER * TIMING["lease"])
            for name in names if name in self.identities]

    def note_agents(self) -> None:
        """Note which cluster each agent is of, and what the agent of each worker is called."""
        super().note_agents()
        self.identities = {name: agent.identity for name, agent in self.spread.agents().items()}


def run(seed: int, seconds: float, folder: Path) -> list[str]:
    """Let things go wrong for so long under a seed, and return what is wrong afterwards, as lines."""
    stamps = folder / "stamps"
    make_stamps(stamps)
    hosts = Hosts(HOSTS, folder)
    try:
        federation = SpreadFederation(folder / "federation", hosts, timing=TIMING)
        for host in hosts.all:
            host.on()
        load, left = Load(federation, stamps, seed), list[str]()
        try:
            began = time.monotonic()
            federation.start()
            federation.wait_ready()
            trouble = Trouble(federation, load, seed)
            trouble.note_agents()
            load.start()
            try:
                trouble.go_on(seconds)
            finally:
                load.stop()
            words(f"seed {seed}: {sum(trouble.count.values())} faults in {time.monotonic() - began:.0f} s: "
                  + ", ".join(f"{count} {what}" for what, count in sorted(trouble.count.items())))
            federation.wait_ready()
            wrong = check(federation, load, trouble)
        finally:
            left = federation.stop()
        wrong += [f"{name}: {line}" for name in federation.members for line in tracebacks(federation.log(name))]
        return wrong + left
    finally:
        hosts.down()


def main() -> int:
    """Run seeds one after the other; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="how many, one after the other (1)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which things go wrong with each (60)")
    given = parser.parse_args()
    reason = unable()
    if reason:
        words(f"skipped: {reason}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    broken = Counter[int]()
    for seed in range(given.first, given.first + given.seeds):
        folder = Path(tempfile.mkdtemp(prefix="hosts"))
        try:
            wrong = run(seed, given.seconds, folder)
        except (AssertionError, SubakError) as error:
            wrong = [str(error)]
        broken[seed] = len(wrong)
        for line in wrong[:40]:
            words(f"WRONG: {line}")
        if wrong:
            words(f"kept: {folder}; python tests/hosts/run.py --first {seed} --seconds {given.seconds:g}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    words(f"{+broken} things are wrong, by seed" if +broken else
          f"{given.seeds} seeds of {given.seconds:g} s: nothing lost, nothing twice, nothing left")
    return int(bool(+broken))


if __name__ == "__main__":
    sys.exit(main())
