"""Collects what tasks did, in memory or in a file, for the fairness sweep at the end.

What the sweep goes by is gathered meanwhile, and is to the bit the same however many tasks come at once.
"""
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from subak.measures.fairness.measure import Fairness, Field, Totals, fairness_of, seconds_held
from subak.measures.fairness.spans import CHANGES, Part, Trail, sample_step, sampled
from subak.measures.fairness.trail import attempt_trail, since
from subak.workload.table import Workload


class FairnessTally:
    """What tasks did, and what of it must be known before the sweep; some tasks at a time, in their order."""

    def __init__(self, field: Field, of_stage: np.ndarray, lost: int, folder: Path | None) -> None:
        """Begin without tasks, in memory or with room in *folder*.

        *of_stage* is int64[stage], how many tasks each will have; *lost* is how many attempts were.
        """
        self.field, self.of_stage, self.path = field, of_stage, folder and folder / "trail.bin"
        self.rows = int(of_stage.sum()) + lost
        self.tasks = 0
        self.trails: list[Trail] = []  # of each part, in memory
        self.rows_kept: list[int] = []  # of each part, in the file
        self.arrives: list[float] = []  # seconds, when the first task of each part does
        self.held = np.zeros(of_stage.size)
        self.held_by_lost: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # place, stage, seconds
        self.sample: list[np.ndarray] = []
        if self.path is not None:
            self.path.write_bytes(b"")  # a run that goes on measures anew

    def add(self, tasks: pl.DataFrame, attempts: pl.DataFrame, places: np.ndarray, workload: Workload) -> None:
        """Add rows of the task table of a run, with those of their workload and their lost attempts.

        *places* are the places of these attempts among all that were lost, int64[attempt], ascending.
        """
        begin, count = self.field.begin, len(tasks)
        trail = since(begin, attempt_trail(tasks, attempts, workload))
        self._count(trail, count, places)
        self._keep(trail, max(float(workload.tasks["arrival"][0]) - begin, 0.0))
        self.tasks += count

    def _count(self, trail: Trail, count: int, places: np.ndarray) -> None:
        """Note what must be known before the sweep; rows behind the first *count* are lost attempts."""
        seconds = seconds_held(trail, self.field.span)
        np.add.at(self.held, trail.stage[:count], seconds[:count])
        self.held_by_lost.append((places, trail.stage[count:].copy(), seconds[count:].copy()))
        all_tasks, step = int(self.of_stage.sum()), sample_step(self.rows)
        of_lost = count + np.flatnonzero((all_tasks + places) % step == 0)
        self.sample += [sampled(trail, slice(-self.tasks % step, count, step)), sampled(trail, of_lost)]

    def _keep(self, trail: Trail, arrives: float) -> None:
        """Keep the rows of which something changes in the time that is measured, and what does not end as it begins."""
        _, waits, starts, ends = trail
        first, last = (combine(combine(waits, starts), ends) for combine in (np.minimum, np.maximum))
        matters = (first < self.field.span) & (last > 0.0)
        kept = trail if matters.all() else Trail(*(column[matters] for column in trail))
        self.arrives.append(arrives)
        if self.path is None:
            self.trails.append(kept)
            return
        with self.path.open("ab") as file:
            for column in kept:
                file.write(np.ascontiguousarray(column).data)
        self.rows_kept.append(int(matters.sum()))

    def fairness(self) -> Fairness:
        """Return the measures of the run, when it has been told of all tasks."""
        places, stages, seconds = (np.concatenate(each) for each in zip(*self.held_by_lost, strict=True))
        order = np.argsort(places)
        np.add.at(self.held, stages[order], seconds[order])  # behind all tasks, as rows of a trail are
        totals = Totals(self.of_stage, self.held, np.concatenate(self.sample), self.rows)
        return fairness_of(self.field, totals, self._parts())

    def _parts(self) -> Iterator[Part]:
        """Return what was kept, a part at a time."""
        yield from map(Part, self.trails or self._read(), [*self.arrives[1:], float("inf")])

    def _read(self) -> Iterator[Trail]:
        if self.path is None:
            return
        with self.path.open("rb") as file:
            for rows in self.rows_kept:
                stage = np.fromfile(file, np.uint32, rows)
                yield Trail(stage, *(np.fromfile(file, np.float64, rows) for _ in range(CHANGES)))
