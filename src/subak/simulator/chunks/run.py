"""Runs a whole workload in chunks, from the start or from a checkpoint."""
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from subak.federation.settings import Federation
from subak.fleet.table import Fleet
from subak.placement.schedulers import Scheduler
from subak.simulator.chunks.blocks import BLOCK_TASKS, Blocks
from subak.simulator.chunks.central import CentralRun
from subak.simulator.chunks.checkpoint import Checkpoint
from subak.simulator.chunks.federated import FederatedRun, Inputs
from subak.simulator.chunks.stream import ChunkedRun, Stream, Streamed, told_part
from subak.simulator.engine.run_loop import Course, Progress
from subak.simulator.engine.setup import Terms
from subak.simulator.federated.fault_plan import FaultPlan
from subak.workload.stored import TASKS_READ, StoredWorkload


class Cut(NamedTuple):
    """How a run is cut: what it is like does not depend on that."""

    folder: Path  # that is there: where results grow
    chunk: int = TASKS_READ  # tasks read at a time
    checkpoint: Checkpoint | None = None
    block: int = BLOCK_TASKS  # tasks whose results are in one file


def run_in_chunks(  # noqa: PLR0913, PLR0917  (the words of `simulate`)
    stored: StoredWorkload, fleet: Fleet, scheduler: Scheduler, terms: Terms, cut: Cut, fixed: bool = False,
    on_progress: Callable[[Progress], None] | None = None, federation: Federation | None = None,
    faults: FaultPlan | None = None,
) -> ChunkedRun:
    """Simulate a scheduler on a workload of which only the open tasks are in memory.

    *fixed*: the timeline's interval was given; *federation* and *faults* as of `simulate`. Raises InputError for rows
    that break a rule, and for a checkpoint of another run; what cannot be run in chunks is refused by `refuse_chunks`.
    """
    stream = _begun(stored, fleet, scheduler, terms, cut, federation or Federation(), faults)
    course = Course(stream.run, fixed)
    restored = cut.checkpoint is not None and cut.checkpoint.restore(course, stream)

    def next_block() -> None:
        stream.drop_ended()
        if cut.checkpoint is not None and cut.checkpoint.is_due():
            cut.checkpoint.write(course, stream)
        stream.take_on(next(parts))

    with closing(stream.parts_to_come()) as parts:
        if restored:
            stream.take_on(next(parts))
        result = course.drive(on_progress, next_block=next_block)
    stream.write_rest()
    return ChunkedRun(stored, fleet, stream.run, stream.run.outcome(result), stream.blocks)


def _begun(
    stored: StoredWorkload, fleet: Fleet, scheduler: Scheduler, terms: Terms, cut: Cut, federation: Federation,
    faults: FaultPlan | None,
) -> Stream:
    """Return a run that has read its first tasks."""
    first = told_part(stored, 0, cut.chunk, terms)
    run: Streamed
    if scheduler.architecture:
        run = FederatedRun(Inputs(stored, fleet, scheduler, terms, federation, faults), cut.chunk)
        run.read(0, first)
    else:
        run = CentralRun(first, stored, fleet, scheduler, terms)
    blocks = Blocks(cut.folder, stored.tasks, run.kind, cut.block)
    return Stream(stored, run, len(first.tasks), terms, cut.chunk, blocks)
