"""Fill the disk of a global master of a real federation, also kill it then, and make room again.

Its data are on a file system of a few MiB where this process may mount one; else Linux refuses its process larger
files. Jobs must be refused clearly, none that was acknowledged may be lost, and it must go on when there is room.
"""
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from live_federation import END_S, Federation, until
from subak.live.api.errors import ServiceError, UnavailableError
from subak.live.client.client import Client

DISK, BALLAST = "6m", "ballast"
JOB = """
apiVersion: subak/v1
kind: Job
metadata: {{name: full}}
queue: research
command: [sh, -c, "{}"]
tasks: 20
"""
MASTER = "g0"  # whose disk is filled; the queue is its
TRIES_MAX = 2_000


class MountedDisk:
    """A file system in memory, filled by one file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, _: Federation) -> None:
        """Leave no room."""
        with suppress(OSError), (self.folder / BALLAST).open("wb", buffering=0) as file:
            for size in (65_536, 4096, 512):
                with suppress(OSError):
                    while True:
                        file.write(b"x" * size)

    def free(self, _: Federation) -> None:
        """Make room again."""
        (self.folder / BALLAST).unlink()


class LimitedFiles:
    """A process that may make no file larger than its write-ahead log is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, federation: Federation) -> None:
        """Leave no room."""
        self._limit(federation, max(file.stat().st_size for file in self.folder.iterdir()))

    def free(self, federation: Federation) -> None:
        """Make room again."""
        self._limit(federation, resource.RLIM_INFINITY)

    @staticmethod
    def _limit(federation: Federation, size: int) -> None:
        pid = federation.running[MASTER].pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]))


@contextmanager
def small_disk(folder: Path, may_mount: bool = True) -> Iterator[MountedDisk | LimitedFiles]:
    """Let a folder be on a disk that can be filled."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "subak", str(folder)]
    if may_mount and os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        try:
            yield MountedDisk(folder)
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)
    else:
        yield LimitedFiles(folder)


def fill_and_free(folder: Path, may_mount: bool = True) -> tuple[list[str], list[str]]:
    """Return what happened, and what of it is wrong, as lines."""
    with small_disk(folder / "disk", may_mount) as disk:
        federation = Federation(folder / "federation", 2, 1, 1, standby=False, data={MASTER: disk.folder / "g0"})
        try:
            federation.start()
            federation.wait_ready()
            if isinstance(disk, LimitedFiles):
                disk.folder = federation.data[MASTER]
            with federation.client(patience_s=0.0) as client:
                return _fill_and_free(federation, disk, client)
        finally:
            federation.stop()


def _fill_and_free(federation: Federation, disk: MountedDisk | LimitedFiles, client: Client,
                   ) -> tuple[list[str], list[str]]:
    wrong: list[str] = []
    jobs = [client.submit(JOB.format("sleep 0.1")).id]
    disk.fill(federation)
    before = len(jobs)
    refusal, seconds = _submit_until_refused(client, jobs)
    if refusal is None or not any(word in refusal.words for word in ("full", "disk")):
        wrong.append(f"after {len(jobs)} jobs on a full disk, what was said was {refusal}")
    again, seconds_again = _submit_until_refused(client, [])
    if again is None or seconds_again > 1.0:
        wrong.append(f"on a full disk, a second refusal took {seconds_again:.2f} s: {again}")
    said = [f"a full disk ({type(disk).__name__}): {len(jobs) - before} jobs were still acknowledged, then one was "
            f"refused after {seconds:.2f} s, the next after {1000 * seconds_again:.0f} ms: {refusal}"]
    if client.health().state != "refusing":
        wrong.append(f"the disk is full, and health is {client.health()}")
    client.job(jobs[0])  # what is only read is answered
    if isinstance(disk, MountedDisk):
        federation.kill(MASTER)
        federation.start(MASTER)  # on a disk that is full
        time.sleep(1.0)
    disk.free(federation)
    began = time.monotonic()
    said.append(f"room again, and a job was acknowledged after {_accepted(federation, client, jobs) - began:.2f} s")
    wrong += [line for job in jobs if (line := _wrong(client, job))]
    said.append(f"{len(jobs)} jobs acknowledged, {len(jobs) - len(wrong)} finished")
    return said, wrong


def _submit_until_refused(client: Client, jobs: list[str]) -> tuple[ServiceError | None, float]:
    """Submit jobs until one is refused; return the refusal, and how long it took."""
    for _ in range(TRIES_MAX):
        began = time.monotonic()
        try:
            jobs.append(client.submit(JOB.format("true")).id)
        except ServiceError as error:
            return error, time.monotonic() - began
    return None, 0.0


def _accepted(federation: Federation, client: Client, jobs: list[str]) -> float:
    """Submit a job until it is acknowledged, and return when it was; a master that ended is started again."""
    def try_once() -> bool:
        if federation.running[MASTER].poll() is not None:
            federation.start(MASTER)
        with suppress(UnavailableError):
            jobs.append(client.submit(JOB.format("true"), key="when there is room".replace(" ", "-")).id)
            return True
        return False
    until(try_once)
    return time.monotonic()


def _wrong(client: Client, job: str) -> str:
    try:
        view = client.wait(job, timeout_s=END_S)
    except ServiceError as error:
        return f"{job}: was acknowledged, and now: {error}"
    return "" if view.outcome == "finished" else f"{job}: was acknowledged, and is {view.state} {view.outcome}"
