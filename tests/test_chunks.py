"""A run in chunks is the run in memory: task by task, interval by interval, attempt by attempt, however it is cut."""
import math
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from small import TWO, cases, fleet_of, staged
from subak.policy import find_scheduler
from subak.simulator.chunks.checkpoint import Checkpoint
from subak.simulator.chunks.run import Cut, run_in_chunks
from subak.simulator.engine.setup import Terms
from subak.simulator.results import attempt_table, task_table, timeline_table
from subak.simulator.simulate import simulate
from subak.workload.chunks import open_workload

SCHEDULERS = ["first-fit", "first-fit+backfill", "best-fit+shortest-first", "random-fit+backfill+priority", "worst-fit",
              "greedy", "tetris", "hdrf-fast", "best-fit+mch"]
quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


def stored(workload, folder):
    workload.write(folder)
    return open_workload(folder)


def told(scheduler, workload, seed=1, interval=1.0, until=math.inf):
    estimates = "user" if "estimate" in workload.tasks.columns and workload.tasks["estimate"].count() else "exact"
    return Terms(scheduler.order, seed, interval, until, estimates=estimates)


def chunked(case, name, folder, chunk, block=3, fixed=True, checkpoint=None, on_progress=None, **more):
    workload, fleet = case
    kept, blocks = folder / "W", folder / "B"
    kept.mkdir(exist_ok=True)
    blocks.mkdir(exist_ok=True)
    scheduler = find_scheduler(name)
    terms = told(scheduler, workload, **more)
    cut = Cut(blocks, chunk, checkpoint, block)
    return run_in_chunks(stored(workload, kept), fleet, scheduler, terms, cut, fixed, on_progress)


def plain(table):
    return table.with_columns(pl.col(name).cast(pl.String) for name, kind in table.schema.items()
                              if isinstance(kind, pl.Enum))


def tables(found, case):
    workload, fleet = case
    tasks = pl.concat(plain(task_table(outcome, part, fleet)) for part, outcome in found.parts())
    return tasks, timeline_table(found.outcome, workload), plain(attempt_table(found.outcome, workload, fleet))


def in_memory(case, name, **more):
    workload, fleet = case
    outcome = simulate(workload, fleet, find_scheduler(name), **{"interval": 1.0, **more})
    return outcome, (plain(task_table(outcome, workload, fleet)), timeline_table(outcome, workload),
                     plain(attempt_table(outcome, workload, fleet)))


def agree(case, name, chunk, block=3, **more):
    outcome, whole = in_memory(case, name, **more)
    with tempfile.TemporaryDirectory() as folder:
        found = chunked(case, name, Path(folder), chunk, block, **more)
        for one, other in zip(tables(found, case), whole, strict=True):
            assert_frame_equal(one, other)
    assert found.outcome.loop_result.events == outcome.loop_result.events


@settings(quick, max_examples=150)
@given(case=cases(), name=st.sampled_from(SCHEDULERS), chunk=st.integers(1, 12), block=st.integers(1, 9),
       until=st.sampled_from([math.inf, math.inf, 0.0, 1.0, 4.0, 5.25]), seed=st.integers(0, 2**40))
def test_a_run_in_chunks_is_the_run_in_memory(case, name, chunk, block, until, seed):
    agree(case, name, chunk, block, until=until, seed=seed)
