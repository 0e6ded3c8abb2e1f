"""Runs a study on a Ray cluster; Ray assigns the runs to its processes.

Workload, fleet and other files are read there by the names that they have here, and Subak is the same there: a run
whose files or whose code differ is refused.
"""
import logging
from collections.abc import Generator, Iterator, Mapping
from types import ModuleType
from typing import Any

from subak.errors import InputError, RunError, first_line
from subak.experiment.study.digest import code_digest
from subak.experiment.study.plan import Work
from subak.experiment.study.records import Record, packed
from subak.experiment.study.runs import ENVIRONMENT, record_of, told_of

RAY = "ray"
RUNS_AHEAD = 4  # runs a core that Ray is given at once, so that none of its processes waits for this one


def done_on_ray(todo: Mapping[str, Work], address: str) -> Generator[tuple[str, bytes], None, None]:
    """Do runs on Ray, and yield the digest and the record of each that ended.

    *address* is ``ray``, for the cluster that this machine belongs to, or a new one of this machine alone, or
    ``ray://HOST:PORT``. Raises InputError without Ray, RunError when there is no cluster.
    """
    ray = ray_module()
    _connect(ray, address)
    try:
        yield from _done(ray, todo)
    except ray.exceptions.RaySystemError as error:
        raise RunError(f"--on {address}: {first_line(error)}") from None
    finally:
        ray.shutdown()


def ray_module() -> ModuleType:
    """Return Ray. Raises InputError, saying how to install it, where it is not."""
    try:
        import ray  # noqa: PLC0415  (an extra, and takes a while to load)
    except ImportError:
        raise InputError("--on ray: needs Ray; install it with: pip install 'subak[ray]'") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    try:
        ray.init(address=None if address == RAY else address, runtime_env={"env_vars": ENVIRONMENT},
                 logging_level=logging.ERROR, log_to_driver=False, include_dashboard=None)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise RunError(f"--on {address}: no such cluster: {first_line(error)}") from None


def _done(ray: Any, todo: Mapping[str, Work]) -> Iterator[tuple[str, bytes]]:
    remote = ray.remote(max_retries=0)(_work)
    code, due = code_digest(), list(todo.items())[::-1]
    running: dict[Any, str] = {}
    most = RUNS_AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
    while due or running:
        while due and len(running) < most:
            digest, work = due.pop()
            running[remote.remote(work.name, told_of(work), code)] = digest
        ready, _ = ray.wait(list(running))
        for reference in ready:
            digest = running.pop(reference)
            try:
                yield digest, ray.get(reference)
            except ray.exceptions.RayError as error:
                yield digest, packed(Record(error=f"run {todo[digest].name}: {_first_words(error)}"))


def _first_words(error: BaseException) -> str:
    """Say what ended a run: of an error that was raised there, the error itself."""
    return first_line(getattr(error, "cause", None) or error)


def _work(name: str, told: bytes, code: str) -> bytes:
    if code_digest() != code:
        return packed(Record(error=f"run {name}: a machine of the cluster has another Subak, or other libraries"))
    return record_of(name, told)
