"""What became of tasks, in files of a block of tasks each: rows are written where they belong, whenever a task ends.

A row may be written again, by a run that goes on from a checkpoint; it is the same then.
"""
import os
from pathlib import Path

import numpy as np

from subak.simulator.engine.state import Simulation

BLOCK_TASKS = 1 << 18
RESULT = np.dtype([("ready", np.float64), ("start", np.float64), ("machine", np.int32), ("attempts", np.uint16),
                   ("status", np.int8)])  # zeros where nothing has been written: status is then NOT_ARRIVED


class Blocks:
    """The results of a run of *tasks* tasks, in a folder that is there."""

    def __init__(self, folder: Path, tasks: int, block: int = BLOCK_TASKS) -> None:
        self.folder, self.tasks, self.block = folder, tasks, block
        self.unflushed: set[int] = set()

    def write(self, number: np.ndarray, sim: Simulation, rows: np.ndarray) -> None:
        """Write *rows* of a simulation; *number* are their tasks' in the workload, int64[row], ascending."""
        values = np.empty(rows.size, RESULT)
        for name in ("ready", "start", "machine", "attempts"):
            values[name] = getattr(sim.progress, name)[rows]
        values["status"] = sim.claims.status[rows]
        which = number // self.block
        for block in np.unique(which).tolist():
            begin, end = np.searchsorted(which, [block, block + 1])
            held = self._opened(block)
            held[number[begin:end] - block * self.block] = values[begin:end]
            del held  # and so unmapped: what was touched does not count as the process's memory
            self.unflushed.add(block)

    def read(self, block: int) -> np.ndarray:
        """Return RESULT[task] of a block."""
        path = self._path(block)
        count = self._count(block)
        return np.fromfile(path, RESULT, count) if path.exists() else np.zeros(count, RESULT)

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
        path = self._path(block)
        return np.memmap(path, RESULT, "r+" if path.exists() else "w+", shape=(self._count(block),))

    def _count(self, block: int) -> int:
        return min(self.block, self.tasks - block * self.block)

    def _path(self, block: int) -> Path:
        return self.folder / f"block-{block:06}.bin"
