"""Gives each attempt a control group (version 2) within the agent's own, so that host limits apply.

What the host delegates is used: a systemd unit with `Delegate=yes`, a container with a writable tree, or root.
Version 1 is not used: Debian 12 mounts it only where it was asked for.
"""
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from subak.live.agent.attempts.attempt import AttemptToRun, Key

ROOT = Path("/sys/fs/cgroup")
WEIGHT_OF_A_CORE = 100  # cpu.weight of an attempt that asks for 1,000 thousandths
PERIOD_US = 100_000
OURS = "subak-"


class Cgroups:
    """The tree below *home*, which holds nobody but us; *controllers* says which limits can be set there."""

    def __init__(self, home: Path, controllers: frozenset[str]) -> None:
        self.home = home
        self.controllers = controllers

    def describe(self) -> str:
        """Return in words which limits are kept here."""
        return f"cgroup {self.home} ({', '.join(sorted(self.controllers)) or 'no controllers, to kill only'})"

    def make(self, attempt: AttemptToRun) -> Path:
        """Make the group of an attempt, with its limits; raise OSError where that is not possible."""
        path = self.path(attempt.key)
        path.mkdir(exist_ok=True)
        for name, value in limits(attempt, self.controllers).items():
            if (path / name).exists():  # memory.swap.max is not there without swap accounting
                (path / name).write_text(value)
        return path

    def path(self, key: Key) -> Path:
        """Return the folder of an attempt's group."""
        return self.home / f"{key.task}.{key.attempt}"

    def kill(self, key: Key) -> None:
        """Kill all processes of an attempt's group at once."""
        with suppress(OSError):
            (self.path(key) / "cgroup.kill").write_text("1")

    def is_empty(self, key: Key) -> bool:
        """Whether no process of an attempt's group is left."""
        return not _populated(self.path(key))

    def ran_out_of_memory(self, key: Key) -> bool:
        """Whether a process of the group was killed because of its limit."""
        return _field(self.path(key) / "memory.events", "oom_kill") > 0

    def memory(self, key: Key) -> int:
        """Return how many bytes the group used at most, as far as Linux says (6.5 and later)."""
        with suppress(OSError, ValueError):
            return int((self.path(key) / "memory.peak").read_text())
        return 0

    def drop(self, key: Key) -> None:
        """Remove an attempt's group; it must be empty."""
        with suppress(OSError):
            self.path(key).rmdir()

    def clear(self) -> list[Path]:
        """Kill and remove all groups that a former agent has left; return those that are still there."""
        left = [path for path in self.home.iterdir() if path.is_dir() and path.name != "agent"]
        for path in left:
            with suppress(OSError):
                (path / "cgroup.kill").write_text("1")
        for path in left:
            with suppress(OSError):
                path.rmdir()
        return [path for path in left if path.exists()]

    def close(self) -> None:
        """Remove the tree, which the agent has left; nothing of it may run."""
        with suppress(OSError):
            self.home.rmdir()


def limits(attempt: AttemptToRun, controllers: frozenset[str]) -> dict[str, str]:
    """Return what is to be written into which file for an attempt's limits."""
    files = {}
    if attempt.memory and "memory" in controllers:
        files = {"memory.max": str(attempt.memory), "memory.swap.max": "0", "memory.oom.group": "1"}
    if attempt.cpu and "cpu" in controllers:
        files["cpu.weight"] = str(min(10_000, max(1, attempt.cpu * WEIGHT_OF_A_CORE // 1000)))
        if attempt.cpu_limited:
            files["cpu.max"] = f"{max(1000, attempt.cpu * PERIOD_US // 1000)} {PERIOD_US}"
    return files


def find_home(identity: str, pids: Iterable[int], root: Path = ROOT, own: str | None = None) -> Cgroups | None:
    """Return a tree of groups for the agent of *identity*, or None where the host gives none.

    *own* is what /proc/self/cgroup says. Where the tree is delegated, the processes *pids*, which are the agent's,
    first move into a leaf of their own, since a group that hands controllers on may hold no process.
    """
    base = _own_group(root, Path("/proc/self/cgroup").read_text() if own is None else own)
    if base is None:
        return None
    try:
        home = base / f"{OURS}{identity}"
        home.mkdir(exist_ok=True)
        if not (home / "cgroup.kill").exists():
            raise OSError("older than Linux 5.14")
        return Cgroups(home, _hand_on(base, home, pids))
    except OSError:
        with suppress(OSError):
            home.rmdir()
        return None


def _own_group(root: Path, own: str) -> Path | None:
    """Return the folder of this process's group of version 2."""
    mounted = next((path for path in (root, root / "unified") if (path / "cgroup.controllers").exists()), None)
    name = next((line[3:] for line in own.splitlines() if line.startswith("0::/")), None)
    return None if mounted is None or name is None else mounted / name.lstrip("/")


def _hand_on(base: Path, home: Path, pids: Iterable[int]) -> frozenset[str]:
    """Let groups in *home* have the controllers that *base* has, as far as possible; return which."""
    wanted = [name for name in ("memory", "cpu") if name in (base / "cgroup.controllers").read_text().split()]
    if wanted and (base / "cgroup.type").exists():  # not the root, in which processes may stay
        leaf = base / "agent"
        leaf.mkdir(exist_ok=True)
        for pid in pids:
            (leaf / "cgroup.procs").write_text(str(pid))
    for name in wanted:
        for folder in (base, home):
            with suppress(OSError):  # others may be in the group
                (folder / "cgroup.subtree_control").write_text(f"+{name}")
    return frozenset((home / "cgroup.subtree_control").read_text().split()) & {"memory", "cpu"}


def _populated(path: Path) -> bool:
    return _field(path / "cgroup.events", "populated") > 0


def _field(file: Path, name: str) -> int:
    """Return a number of a file of lines `name number`; 0 where it is not there."""
    with suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    return 0
