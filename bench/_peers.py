"""Others that start what they are asked to, for comparison in the same run: where they are installed.

Slurm is one node on this machine, with its defaults, without accounting and authentication; Ray a task on a worker that
is there already. Each is measured from before it is asked to what the task says is the time.
"""
import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

JOBS, PATIENCE_S = 30, 60.0
PAUSE_S = 0.02  # between two jobs: a light load
CONFIGURATION = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def slurm_latency(folder: Path, ports: tuple[int, int]) -> list[float] | None:
    """Return the seconds from `sbatch` to the start of the job, of jobs one at a time; None where it is not there."""
    if any(shutil.which(name) is None for name in ("sbatch", "slurmctld", "slurmd")) or os.geteuid() != 0:
        return None
    with _slurm(folder, ports) as environment:
        return [_slurm_job(folder / f"out.{number}", environment) for number in range(JOBS)]


def ray_latency() -> list[float] | None:
    """Return the same of Ray's tasks, after the first, which starts a worker; None where it is not there."""
    if importlib.util.find_spec("ray") is None:
        return None
    import ray  # noqa: PLC0415  (it may not be there)

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        now = ray.remote(lambda: time.time())  # noqa: PLW0108  (it takes no function that is built in)
        found = []
        for _ in range(JOBS + 1):
            began = time.time()
            found.append(ray.get(now.remote()) - began)
            time.sleep(PAUSE_S)
        return found[1:]
    finally:
        ray.shutdown()


@contextmanager
def _slurm(folder: Path, ports: tuple[int, int]) -> Iterator[dict[str, str]]:
    folder.mkdir()
    for name in ("state", "spool"):
        (folder / name).mkdir()
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(
        host=socket.gethostname(), ports=ports, user="root", folder=folder, cpus=os.cpu_count()))
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    daemons = []
    try:
        for name in ("slurmctld", "slurmd"):
            log = (folder / f"{name}.out").open("wb")
            daemons.append(subprocess.Popen([name, "-D"], env=environment, stdout=log, stderr=log))
        until = time.monotonic() + PATIENCE_S
        while b"idle" not in subprocess.run(["sinfo", "-h"], env=environment, capture_output=True, check=False).stdout:
            if time.monotonic() > until:
                raise TimeoutError(f"Slurm has no idle node; see {folder}")
            time.sleep(0.2)
        yield environment
    finally:
        for daemon in daemons[::-1]:
            daemon.terminate()
            daemon.wait()


def _slurm_job(output: Path, environment: dict[str, str]) -> float:
    began = time.time()
    subprocess.run(["sbatch", "-o", str(output), "--wrap", "date +%s.%N"], env=environment, check=True,
                   capture_output=True)
    until = time.monotonic() + PATIENCE_S
    while not output.exists() or not output.read_text().endswith("\n"):
        if time.monotonic() > until:
            raise TimeoutError(f"Slurm has not run the job of {output}")
        time.sleep(PAUSE_S)
    return float(output.read_text()) - began
