"""Follow docs/hosts.md on four hosts, which are namespaces of this machine, and listen to all that they send.

Each command of the page is run where the page says, with the addresses of the hosts: `scp` is a copy here, and
systemd's commands are left out. Then come the things the page promises: a worker is added, a certificate renewed and
revoked, a process waits for its address. All packets between hosts are kept meanwhile: none may hold a token, a
command, a variable, or the output of a job.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from chaos import words
from hosts import Host, Hosts, Inside, unable
from live_federation import until
from subak.live.certificates import read_certificate

PAGE = Path(__file__).parents[2] / "docs" / "hosts.md"
ALL_PACKETS = 3  # ETH_P_ALL
COMMAND, VARIABLE, OUTPUT, CONTROL = (f"said-in-{what}-{os.getpid()}" for what in ("command", "variable", "output",
                                                                                   "clear"))
SUBAK = [sys.executable, "-m", "subak"]
SYSTEM = ("systemctl",)  # what no namespace has
END_S = 60.0


class Sniffer:
    """Keeps all packets that cross the bridge."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PACKETS))
        self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                self.kept += self.wire.recv(1 << 17)

    def heard(self, secrets: dict[str, str]) -> list[str]:
        """Return what was said in clear."""
        return [what for what, text in secrets.items() if text.encode() in self.kept]


class Walk:
    """The page, followed in a folder."""

    def __init__(self, folder: Path, hosts: Hosts) -> None:
        self.folder, self.hosts = folder, hosts.all
        self.running: list[Inside] = []
        self.done = 0

    def home(self, host: Host) -> Path:
        """Return a folder that only one host uses."""
        folder = self.folder / "disks" / host.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def run(self, host: Host, *command: object, code: int | None = 0, seconds: float = END_S) -> str:
        """Run a command on a host, and return what it printed; *code*: with which it must end, or None."""
        output = self.folder / "output"
        with output.open("wb") as file:
            process = host.begin(["env", "-C", self.home(host), *command], file)
            found = process.wait(seconds)
        text = output.read_text(errors="replace")
        assert code in (None, found), f"{' '.join(map(str, command))} ended with {found}: {text}"
        self.done += 1
        return text

    def machines(self) -> str:
        """Return how the machines stand; nothing where no master answers yet."""
        return self.run(self.hosts[3], *SUBAK, "machines", code=None)

    def follow(self, line: str) -> None:
        """Do what a line of the page says."""
        for number, host in enumerate(self.hosts, 1):
            line = line.replace(f"10.0.0.{number}", host.address)
        first, *rest = line.split()
        setter = self.hosts[3]  # the computer from which all is set up, and asked
        if first == "subak" and rest[0] == "doctor":
            until(lambda: self.machines().count(" ready ") == 3, 60.0)
            for host, name in zip(self.hosts, ("h1", "h2", "h3"), strict=False):
                self.run(host, *SUBAK, "doctor", name)  # no fault: it ends with 0
        elif first == "subak" and rest[0] in ("init", "ca"):
            self.run(setter, *SUBAK, *rest)
        elif first == "scp":
            source, to = rest[-2], rest[-1].removesuffix(":")
            host = next(host for host in self.hosts if host.address == to)
            shutil.copytree(self.home(setter) / source, self.home(host) / Path(source).name)
            assert "-pr" in rest, "the modes of keys must be kept"
        elif first == "subak" and rest[0] == "up":
            for host, name in zip(self.hosts, ("h1", "h2", "h3"), strict=False):
                with (self.home(host) / "up.log").open("wb") as log:
                    self.running.append(host.begin(["env", "-C", self.home(host), *SUBAK, "up", name], log))
        elif first == "export":
            name, _, value = rest[0].partition("=")
            os.environ[name] = value
        elif first == "subak":
            until(lambda: self.machines().count(" ready ") == 3, 60.0)
            self.run(setter, *SUBAK, *rest)
        else:
            assert first in SYSTEM, f"the page says {line!r}, which nobody follows here"


def lines_of(page: str) -> list[str]:
    """Return the commands of the page, in order."""
    blocks = re.findall(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def promises(walk: Walk) -> None:
    """Do what the page's table says of certificates."""
    first, second, third, setter = walk.hosts
    home, ca = walk.home(setter), walk.home(setter) / "lab" / "ca"
    assert walk.run(setter, *SUBAK, "run", "--", "id", "-un").split() == ["nobody"]
    text = walk.run(setter, *SUBAK, "run", "-e", f"TOKEN_OF_MINE={VARIABLE}", "--", "sh", "-c",
                    f"echo {COMMAND} | tr c c; echo $TOKEN_OF_MINE; printf '%s' {OUTPUT[:8]}; echo {OUTPUT[8:]}")
    assert COMMAND in text and VARIABLE in text and OUTPUT in text, text
    # a worker more, on the host from which all was set up
    folder = walk.home(setter) / "h4"
    shutil.copytree(home / "lab" / "h3", folder)
    for file in folder.glob("worker-h3.*"):
        file.unlink()
    walk.run(setter, *SUBAK, "ca", "issue", ca, "worker", "h4", "--out", folder)
    said = (home / "lab" / "h3" / "worker-h3.toml").read_text()
    (folder / "worker-h4.toml").write_text(said.replace("h3", "h4"))
    walk.run(setter, *SUBAK, "up", "--detach", "h4")
    until(lambda: walk.machines().count(" ready ") == 4, 30.0)
    walk.run(setter, *SUBAK, "down", "h4")
    # a worker's certificate is no use to be a master, or another worker
    (folder / "as-h3.toml").write_text(said.replace("worker-h3", "worker-h4"))
    assert "is of worker h4 of lab, and one of worker h3 is needed" in walk.run(
        setter, *SUBAK, "worker", folder / "as-h3.toml", code=2)
    # renewed without a restart, while a job runs
    own = walk.home(third) / "h3"
    before = read_certificate(own / "worker-h3.crt").serial_number
    walk.run(setter, *SUBAK, "ca", "issue", ca, "worker", "h3", "--out", home)
    old = (own / "worker-h3.crt").read_bytes()
    for ending in ("key", "crt"):
        shutil.copy(home / f"worker-h3.{ending}", own)
    assert read_certificate(own / "worker-h3.crt").serial_number != before
    until(lambda: "certificates were read anew" in (own / "log" / "h3.log").read_text(), 10.0)
    # the old one is revoked, and then all that it ever had
    (home / "old.crt").write_bytes(old)
    for file, is_there in ((home / "old.crt", True), ("worker-h3", False)):
        walk.run(setter, *SUBAK, "ca", "revoke", ca, file)
        for host, name in ((first, "h1"), (second, "h2")):
            shutil.copy(ca / "ca.crl", walk.home(host) / name / "ca.crl")
        if is_there:
            time.sleep(3.0)
            until(lambda: _state(walk, "h3") == "ready", 20.0)
        else:
            until(lambda: _state(walk, "h3") == "lost", 30.0)
    assert "its certificate was revoked, or has expired" in (own / "log" / "h3.log").read_text()


def _state(walk: Walk, name: str) -> str:
    return next((line.split()[2] for line in walk.machines().splitlines() if line.startswith(f"{name} ")), "")


def waits_for_its_address(walk: Walk) -> None:
    """Let a host get its address only after its process has begun."""
    second = walk.hosts[1]
    walk.run(second, *SUBAK, "down", "h2")
    walk.run(second, "ip", "addr", "del", f"{second.address}/24", "dev", "eth0")
    with (walk.home(second) / "up.log").open("wb") as log:
        walk.running.append(second.begin(["env", "-C", walk.home(second), *SUBAK, "up", "h2"], log))
    until(lambda: (walk.home(second) / "up.log").read_text().count("does not have the address yet; waits") == 2, 30.0)
    walk.run(second, "ip", "addr", "add", f"{second.address}/24", "dev", "eth0")
    until(lambda: _state(walk, "h2") == "ready", 60.0)


def walked(folder: Path) -> str:
    """Follow the page, and return what is to be said of it. Raises AssertionError."""
    hosts = Hosts(4, folder)
    walk, sniffer, began = Walk(folder, hosts), Sniffer(), time.monotonic()
    try:
        for host in hosts.all:
            host.on()
        for line in lines_of(PAGE.read_text()):
            walk.follow(line)
        followed = time.monotonic() - began
        promises(walk)
        waits_for_its_address(walk)
        token = (walk.home(hosts.all[3]) / "lab" / "people" / "people.token").read_text().strip()
        secrets = {"the token of people": token, "a command": COMMAND, "a variable": VARIABLE, "an output": OUTPUT}
        assert not sniffer.heard(secrets), f"in clear on the network: {', '.join(sniffer.heard(secrets))}"
        walk.run(hosts.all[0], sys.executable, "-c", "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)."
                 f"sendto({CONTROL!r}.encode(), ({hosts.all[1].address!r}, 9))")
        until(lambda: sniffer.heard({"what was said in clear": CONTROL}), 5.0)
        return (f"docs/hosts.md: followed in {followed:.0f} s, {walk.done} commands in "
                f"{time.monotonic() - began:.0f} s, "
                f"{len(sniffer.kept):,} bytes on the network: no token, command, variable or output in them")
    finally:
        hosts.down()
        sniffer.wire.close()


def main() -> int:
    """Follow the page; 1 where it leads nowhere."""
    reason = unable()
    if reason:
        words(f"skipped: {reason}")
        return 0
    folder = Path(tempfile.mkdtemp(prefix="walk"))
    folder.chmod(0o755)  # tasks run as nobody, in the folder from which they are submitted
    try:
        words(walked(folder))
    except (AssertionError, subprocess.TimeoutExpired) as error:
        words(f"WRONG: {error}")
        words(f"kept: {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
