"""Reads rows of tasks from disk, also in the format of older versions.

Of a task that has ended, such a row says enough. Of one that is open it does not say which attempt may run, without
which the task could run twice: a store with open tasks of that version is refused.
"""
import zlib

import numpy as np
from msgspec import json, msgpack

from subak.errors import RunError
from subak.live.jobfile.spec import JobSpec
from subak.live.role.global_master.book import ON_DISK, StoredJob
from subak.live.role.global_master.history import Happening

FORMER = np.dtype([
    ("number", np.int64), ("state", np.int8), ("outcome", np.int8), ("reason", np.int8), ("round", np.int16),
    ("row", np.int32), ("sent_to", np.int16), ("code", np.int16), ("failed", np.int16), ("lost", np.int16),
    ("preempted", np.int16), ("attempts", np.int32), ("machine", np.int32), ("attempt", np.int64),
    ("started", np.float64), ("ended", np.float64),
])


def open_rows(bodies: list[bytes]) -> np.ndarray:
    """Return ON_DISK[task], of tasks of jobs that are open. Raises RunError for rows of another version."""
    if any(len(body) != ON_DISK.itemsize for body in bodies):
        raise RunError("this store has open jobs that another version of subak wrote; start that version, and let it "
                       "end them, or cancel them, before this one takes the store over")
    return np.frombuffer(b"".join(bodies), ON_DISK)


def read_ended(body: bytes) -> tuple[StoredJob, JobSpec, np.ndarray, list[Happening]]:
    """Return what `ended_body` wrote: the job, its rows ON_DISK[task], and what has happened."""
    stored, data, events = msgpack.decode(body, type=tuple[StoredJob, bytes, list[Happening]])
    spec = json.decode(stored.spec, type=JobSpec)
    return stored, spec, ended_rows(data, spec.task_count), events


def ended_rows(data: bytes, count: int) -> np.ndarray:
    """Return ON_DISK[task], of the *count* tasks of a job that has ended; many are compressed."""
    if len(data) == count * FORMER.itemsize:
        former, rows = np.frombuffer(data, FORMER), np.zeros(count, ON_DISK)
        for name in FORMER.names or ():
            rows[name] = former[name]
        return rows
    return np.frombuffer(data if len(data) == count * ON_DISK.itemsize else zlib.decompress(data), ON_DISK)
