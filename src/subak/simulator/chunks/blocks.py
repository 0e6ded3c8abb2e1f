"""Stores results on disk in blocks of tasks, whenever a task ends.

A row may be written again, by a run that goes on from a checkpoint; it is the same then.
"""
import os
from pathlib import Path
from typing import Any

import numpy as np

from subak.placement.claims import TASK_NOT_ARRIVED
from subak.simulator.engine.state import Simulation

BLOCK_TASKS = 1 << 18
OF_PROGRESS: list[tuple[str, Any]] = [
    ("ready", np.float64), ("start", np.float64), ("machine", np.int32), ("attempts", np.uint16)]
RESULT = np.dtype([*OF_PROGRESS, ("status", np.int8)])  # zeros where nothing was written: status is then NOT_ARRIVED


class Blocks:
    """The results of a run of *tasks* tasks, in a folder that is there; *kind* begins with the fields of RESULT."""

    def __init__(self, folder: Path, tasks: int, kind: np.dtype = RESULT, block: int = BLOCK_TASKS) -> None:
        self.folder, self.tasks, self.kind, self.block = folder, tasks, kind, block
        self.whole = np.dtype(f"V{kind.itemsize}")  # a row as it is, which NumPy moves six times as fast as its fields
        self.unflushed: set[int] = set()

    def write(self, number: np.ndarray, values: np.ndarray) -> None:
        """Write results (of the *kind*); *number* are their tasks' in the workload, int64[row], ascending.

        Raises OSError when the disk refuses.
        """
        which = number // self.block
        for block in np.unique(which).tolist():
            begin, end = np.searchsorted(which, [block, block + 1])
            held = self._opened(block)
            held.view(self.whole)[number[begin:end] - block * self.block] = values[begin:end].view(self.whole)
            del held  # and so unmapped: what was touched does not count as the process's memory
            self.unflushed.add(block)

    def read(self, block: int) -> np.ndarray:
        """Return the results of a block's tasks."""
        path = self._path(block)
        count = self._count(block)
        return np.fromfile(path, self.kind, count) if path.exists() else np.zeros(count, self.kind)

    def spans(self) -> list[tuple[int, int, int]]:
        """Return number, first task and task behind the last of each block."""
        count = -(-self.tasks // self.block)
        return [(block, block * self.block, block * self.block + self._count(block)) for block in range(count)]

    def flush(self) -> None:
        """Bring what has been written to the disk."""
        for block in sorted(self.unflushed):
            number = os.open(self._path(block), os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)
        self.unflushed.clear()

    def _opened(self, block: int) -> np.memmap:
        """Map a block's file; room for all of it is there before, since a full disk ends whoever writes to a map."""
        path, count = self._path(block), self._count(block)
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            os.posix_fallocate(number, 0, count * self.kind.itemsize)
        finally:
            os.close(number)
        return np.memmap(path, self.kind, "r+", shape=(count,))

    def _count(self, block: int) -> int:
        return min(self.block, self.tasks - block * self.block)

    def _path(self, block: int) -> Path:
        return self.folder / f"block-{block:06}.bin"


def results(sim: Simulation, rows: np.ndarray, kind: np.dtype = RESULT) -> np.ndarray:
    """Return what became of the tasks of some rows; what *kind* has beside RESULT is left to be written."""
    values = np.zeros(rows.size, kind)
    for name, _ in OF_PROGRESS:
        values[name] = getattr(sim.progress, name)[rows]
    values["status"] = sim.claims.status[rows]
    return values


def with_results(fresh: Simulation, values: np.ndarray) -> Simulation:
    """Return a state in which nothing has arrived, but with what became of those that did."""
    late, progress = np.flatnonzero(values["status"] == TASK_NOT_ARRIVED), fresh.progress
    columns = {name: _taken(values[name], getattr(progress, name), late) for name, _ in OF_PROGRESS}
    claims = fresh.claims._replace(status=_taken(values["status"], fresh.claims.status, late))
    return fresh._replace(progress=progress._replace(**columns), claims=claims)


def _taken(values: np.ndarray, fresh: np.ndarray, late: np.ndarray) -> np.ndarray:
    """Return the values as a column like *fresh*, and those of *fresh* in the rows *late*."""
    column = values.astype(fresh.dtype)
    column[late] = fresh[late]
    return column
