"""Many hosts on one machine: each a network, a PID and a mount namespace, with an address and a boot id of its own.

They hang on one bridge, and nothing routes out. Power is lost by killing the first process of a host, which takes all
others along; its disk stays, and the next start has another boot id. Packets are dropped where they come in, by peer.
"""
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from live_federation import GLOBAL_MASTER, WORKER, Federation

PORT = 7443
NEEDED = ("ip", "iptables", "unshare", "nsenter", "mount")
INIT = Path(__file__).with_name("init.py")


def unable() -> str:
    """Return why this machine can't play hosts, or nothing."""
    if os.geteuid() != 0:
        return "only root may make namespaces"
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian: iproute2, iptables, util-linux)"
    tag = f"sbk{os.getpid()}"
    for words in (["unshare", "-p", "-f", "-m", "--mount-proc", "true"], ["ip", "netns", "add", tag],
                  ["ip", "netns", "exec", tag, "iptables", "-w", "-A", "INPUT", "-m", "statistic", "--mode", "random",
                   "--probability", "0.5", "-j", "ACCEPT"], ["ip", "link", "add", f"{tag}b", "type", "bridge"]):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            break
    for words in (["ip", "netns", "del", tag], ["ip", "link", "del", f"{tag}b"]):
        subprocess.run(words, capture_output=True, check=False)
    return f"{' '.join(words[:3])}: {done.stderr.strip() or done.returncode}" if done.returncode else ""


def ip(*words: str) -> None:
    """Run `ip`. Raises AssertionError with what it says."""
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}"


def children(pid: int) -> list[int]:
    """Return the children of a process, by their numbers outside of all namespaces."""
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


class Inside(subprocess.Popen[bytes]):
    """A process on a host: what is begun here enters the host and waits for it; signals go to what it waits for."""

    def send_signal(self, sig: int) -> None:
        """Send a signal to the process on the host."""
        for pid in children(self.pid) if self.poll() is None else []:
            with suppress(ProcessLookupError):
                os.kill(pid, sig)
        if sig != signal.SIGSTOP and self.returncode is None:
            os.kill(self.pid, signal.SIGCONT)  # it stands still with what it waits for, and would not see it end


class Host:
    """One host. *number*: its place in the network; *folder*: for its boot id."""

    def __init__(self, net: str, tag: str, number: int, folder: Path) -> None:
        self.address, self.name, self.boot = f"{net}.{number + 1}", f"{tag}h{number}", folder / f"boot{number}"
        self.power: subprocess.Popen[str] | None = None
        ip("netns", "add", self.name)
        ip("link", "add", f"{tag}v{number}", "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("link", "set", f"{tag}v{number}", "master", tag, "up")
        ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        ip("-n", self.name, "link", "set", "eth0", "up")
        ip("-n", self.name, "link", "set", "lo", "up")

    def on(self) -> None:
        """Switch the host on."""
        self.boot.write_text(f"{uuid.uuid4()}\n")
        self.power = subprocess.Popen(
            ["ip", "netns", "exec", self.name, "unshare", "-p", "-f", "-m", "--mount-proc", "--kill-child",
             sys.executable, INIT, self.boot], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)  # Debian's unshare complains when its child is killed
        assert self.power.stdout is not None
        assert self.power.stdout.readline() == "up\n", f"host {self.name} does not come up"

    def off(self) -> None:
        """Take its power away."""
        if self.power is not None:
            for pid in children(self.power.pid):
                os.kill(pid, signal.SIGKILL)
            self.power.wait()
            self.power = None

    def begin(self, words: Sequence[Any], log: Any) -> Inside:
        """Begin a process on the host."""
        assert self.power is not None
        first = children(self.power.pid)[0]
        return Inside(["nsenter", "-t", str(first), "-n", "-p", "-m", *words], stdin=subprocess.DEVNULL, stdout=log,
                      stderr=log)

    def filter(self, what: str, peer: str, loss: float = 1.0) -> None:
        """Begin (-I), or end (-D), to drop what comes in from a peer's address: all of it, or a share."""
        share = [] if loss == 1.0 else ["-m", "statistic", "--mode", "random", "--probability", str(loss)]
        subprocess.run(["ip", "netns", "exec", self.name, "iptables", "-w", what, "INPUT", "-s", peer, *share, "-j",
                        "DROP"], check=True, capture_output=True)


class Hosts:
    """A bridge, and hosts on it. What is taken down goes only after a while; so each has names of its own."""

    made = 0

    def __init__(self, count: int, folder: Path) -> None:
        number = os.getpid() + 7 * Hosts.made
        Hosts.made += 1
        self.tag, self.all = f"sb{number % 1_000_000}", list[Host]()
        net = f"198.18.{number % 250}"  # of the range for tests of networks (RFC 2544)
        try:
            ip("link", "add", self.tag, "type", "bridge")
            ip("addr", "add", f"{net}.254/24", "dev", self.tag)
            ip("link", "set", self.tag, "up")
            for place in range(count):
                self.all.append(Host(net, self.tag, place, folder))
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """Take everything down."""
        for host in self.all:
            host.off()
            with suppress(AssertionError):
                ip("netns", "del", host.name)
        with suppress(AssertionError):
            ip("link", "del", self.tag)


class SpreadFederation(Federation):
    """A federation each process of which is on a host of its own; nobody listens but masters."""

    def __init__(self, folder: Path, hosts: Hosts, **more: Any) -> None:
        self.hosts = hosts
        super().__init__(folder, tls=True, **more)
        places = dict(zip(self.names(GLOBAL_MASTER), self.http, strict=True))
        for cluster, addresses in self.local.items():
            places |= dict(zip((cluster, f"{cluster} standby"), addresses, strict=False))
        by_address = {f"{host.address}:{PORT}": host for host in hosts.all}
        self.host_of = {name: by_address[address] for name, address in places.items()}
        self.host_of |= dict(zip(self.names(WORKER), hosts.all[len(places):], strict=True))

    def addresses(self, count: int) -> list[str]:
        """Return an address of each of the first hosts."""
        return [f"{host.address}:{PORT}" for host in self.hosts.all[:count]]

    def begin(self, name: str, words: Sequence[Any], log: Any) -> subprocess.Popen[bytes]:
        """Begin a member on its host."""
        return self.host_of[name].begin(words, log)

    def members_of(self, host: Host) -> list[str]:
        """Return the members that are on a host."""
        return [name for name, each in self.host_of.items() if each is host]
