"""A federation in chunks is the federation in memory: places are used again, and nobody who is named has lost his."""
import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from small import TWO, cases, staged
from subak.federation.settings import Federation
from subak.policy import find_scheduler
from subak.queues.tree import Queue, TreeChange, TreeFile
from subak.simulator.chunks import federated
from subak.simulator.chunks.checkpoint import Checkpoint
from subak.simulator.chunks.run import Cut, run_in_chunks
from subak.simulator.federated.fault_plan import Crash, FaultPlan
from subak.simulator.federated.fault_plan import Cut as NetworkCut
from subak.simulator.federated_results import waiting_tables
from test_chunks import StoppedError, busy, in_memory, places, quick, stopping, stored, tables, told

RECEIVED = {"global_masters": 2, "local_masters": 2, "heartbeat": 0.75, "delay": 0.125}


def chunked(case, name, folder, cut, on_progress=None, federation=None, faults=None, **more):
    workload, fleet = case
    folder.mkdir(exist_ok=True)
    scheduler = find_scheduler(name)
    terms = told(scheduler, workload, **more)
    return run_in_chunks(stored(workload, folder), fleet, scheduler, terms, cut, True, on_progress, federation, faults)


def known(found, case):
    """What is known of the tasks that wait in the end, by their numbers in the workload."""
    return waiting_tables(found, *case)


def agree(case, name, chunk, block=3, **more):
    outcome, whole = in_memory(case, name, **more)
    with places() as (folder, place):
        found = chunked(case, name, folder, Cut(place, chunk, None, block), **more)
        for one, other in zip(tables(found, case), whole, strict=True):
            assert_frame_equal(one, other)
    end, chunks_end = outcome.loop_result, found.outcome.loop_result
    assert (chunks_end.events, chunks_end.end) == (end.events, end.end)
    one, other = (each.federated.network for each in (found.outcome, outcome))
    assert one.handled.tolist() == other.handled.tolist()
    assert one.worked.tolist() == other.worked.tolist() and one.queued.tolist() == other.queued.tolist()


def in_queues(case, queues):
    """The case with its jobs in as many queues in turn."""
    workload, fleet = case
    names = [f"q{job % queues}" for job in range(len(workload.jobs))]
    return replace(workload, jobs=workload.jobs.with_columns(queue=pl.Series(names))), fleet


@st.composite
def federations(draw):
    """Settings of small federations, of every kind that a task's course may depend on."""
    return Federation(
        global_masters=draw(st.integers(1, 3)), local_masters=1,
        heartbeat=draw(st.sampled_from([0.75, 4.0])), delay=draw(st.sampled_from([0.0, 0.0005, 0.125])),
        delay_law=draw(st.sampled_from(["constant", "exponential"])), service_scale=draw(st.sampled_from([0.0, 1.0, 1e4])),
        preemption=draw(st.sampled_from(["off", "off", "strict", "paper"])),
        order=draw(st.sampled_from(["fifo", "priority", "fewest-tasks"])),
        queue_order=draw(st.sampled_from(["round-robin", "round-robin", "hdrf"])),
        retry=draw(st.sampled_from([math.inf, math.inf, 0.5])), standby=draw(st.booleans()),
        updates=draw(st.sampled_from(["changes", "full"])))


@st.composite
def fault_plans(draw):
    """What goes wrong: with messages, and with masters."""
    crashes = draw(st.lists(st.tuples(st.sampled_from(["global master 0", "local master 0", "worker 0"]),
                                      st.floats(0.1, 6.0), st.sampled_from([0.5, 3.0, math.inf])), max_size=2))
    cuts = draw(st.lists(st.tuples(st.floats(0.0, 4.0), st.floats(0.1, 3.0)), max_size=1))
    return FaultPlan(
        seed=draw(st.integers(0, 2**20)), loss=draw(st.sampled_from([0.0, 0.1])),
        duplication=draw(st.sampled_from([0.0, 0.2])), reordering=draw(st.sampled_from([0.0, 0.2])), late_max=1.0,
        spike=draw(st.sampled_from([0.0, 0.05])), spike_max=5.0, timer_late=0.05, faults_until=12.0,
        crash=[Crash(role=role, at=at, restart_after=after) for role, at, after in crashes],
        cut=[NetworkCut(between=["global masters", "local masters"], begin=begin, until=begin + long)
             for begin, long in cuts])


@settings(quick, max_examples=100)
@given(case=cases(), queues=st.integers(1, 4), federation=federations(), chunk=st.integers(1, 12),
       block=st.integers(1, 9), until=st.sampled_from([math.inf, math.inf, 0.0, 1.0, 4.0, 5.25]),
       seed=st.integers(0, 2**40))
def test_a_federation_in_chunks_is_the_federation_in_memory(case, queues, federation, chunk, block, until, seed):
    agree(in_queues(case, queues), "megha", chunk, block, federation=federation, until=until, seed=seed)


@settings(quick, max_examples=60)
@given(case=cases(), queues=st.integers(1, 3), federation=federations(), faults=fault_plans(), chunk=st.integers(1, 12))
def test_faults_befall_both_alike(case, queues, federation, faults, chunk):
    agree(in_queues(case, queues), "megha", chunk, federation=federation, faults=faults, until=60.0)


def many(jobs=60, seed=3):
    """Tasks of four queues in jobs of two stages, over some minutes: most places are used again and again."""
    random, (_, fleet) = np.random.default_rng(seed), busy()
    stages = [{"job": job, "request": (float(random.integers(1, 5)), 1.0), "priority": int(random.integers(0, 3)),
               "depends_on": [2 * job] if part else []} for job in range(jobs) for part in range(2)]
    tasks = [(row, float(row // 2 * 4 + random.integers(0, 9)), float(random.exponential(9.0)))
             for row in range(2 * jobs) for _ in range(4)]
    return in_queues((staged(stages, sorted(tasks, key=lambda task: task[1]), TWO), fleet), 4)


@settings(quick, max_examples=40)
@given(federation=federations(), faults=st.none() | fault_plans(), chunk=st.integers(1, 60), seed=st.integers(0, 2**20))
def test_places_are_used_again(federation, faults, chunk, seed):
    agree(many(seed=seed % 7), "megha", chunk, 64, federation=federation, faults=faults, until=900.0, seed=seed)
