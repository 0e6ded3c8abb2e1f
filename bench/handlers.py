"""What a handler costs whom it occupies, by kind of message: compiled, as a live process calls it, and in plain Python.

Whole federations run in plain Python, and what each role is told is kept. Roles with tables of their own are then told
it again, a message a call, through the compiled function that a process would call (`compiled_service`), and must
answer with the same bytes. The call itself, about half a microsecond, is in the compiled times; a process that hands
over many messages in one call pays it once. What it takes to read, decode, encode and send a message is in neither:
that depends on what carries it.

The profiles of service times (`costs` in federation/messages.py) are these medians, rounded.
"""
import gc
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from _workloads import SHARES, google_tasks, uniform_fleet
from subak.federation.messages import HANDLER, KINDS, MESSAGE, PROFILES, ROLES
from subak.federation.serving import compiled_service
from subak.federation.settings import Federation
from subak.fleet.table import make_fleet
from subak.simulator.engine.run_loop import Course, Held
from subak.simulator.failures.draws import draw_failures
from subak.simulator.failures.plan import FailurePlan, Rule
from subak.simulator.federated.architectures import ARCHITECTURES
from subak.simulator.federated.simulate import open_federated
from subak.workload.table import STAGE_COLUMNS, make_workload

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from inboxes import Recorder, alone, hand_over

TASKS, MACHINES, SEED, ROUNDS = 2000, 1000, 1, 3
BUSY_MACHINES, JOBS, TASKS_A_JOB, LONG_S = 100, 200, 10, 200.0
HOLD_BACK_AFTER_S = 5.0  # of a busy federation: there is always somebody to hold machines back for
FEWEST, FEW_ALIKE = 20, 5  # messages of a kind whose median is worth a line; that carry as much


class Case(NamedTuple):
    """A federation that is recorded."""

    name: str
    architecture: str
    workload: object
    fleet: object
    settings: Federation
    failures: FailurePlan | None = None


def cases():
    fleet = uniform_fleet(MACHINES, {"cpu": 0.5, "memory": 0.5}, SHARES)
    yield Case("megha", "megha", google_tasks(TASKS, fleet), fleet, Federation())
    busy = Federation(shares={"a": 0.5, "b": 0.5}, preemption="strict", retry=1.0, heartbeat=1.0)
    yield Case("megha, busy", "megha", jobs(gangs=True), changing_fleet(), busy,
               FailurePlan(task=[Rule(cancel=0.1, cancel_after=60.0)]))
    for name in ("sparrow", "hawk", "eagle", "dodoor", "pigeon"):
        yield Case(name, name, jobs(gangs=False), changing_fleet(), Federation(cutoff=LONG_S / 2))


def jobs(gangs):
    """Jobs of two queues that want more than there is; one in ten is long, one in ten starts together."""
    random, resources = np.random.default_rng(SEED), SHARES
    long = np.arange(JOBS) % 10 == 0
    stages = pl.DataFrame({
        "job": range(JOBS), "name": ["s"] * JOBS, "depends_on": [[]] * JOBS, "kind": ["TASK"] * JOBS,
        "priority": [0] * JOBS, "constraints": [[]] * JOBS, "gang": [gangs and row % 10 == 5 for row in range(JOBS)],
        "cpu": [0.25] * JOBS, "memory": [0.25] * JOBS,
    }, schema={**STAGE_COLUMNS, "gang": pl.Boolean, "cpu": pl.Float64, "memory": pl.Float64})
    stage = np.repeat(np.arange(JOBS), TASKS_A_JOB)
    tasks = pl.DataFrame({
        "stage": stage.astype(np.uint32), "index": np.arange(stage.size, dtype=np.uint32),
        "arrival": np.repeat(np.sort(random.uniform(0.0, 300.0, JOBS)), TASKS_A_JOB),
        "run_time": np.where(long[stage], LONG_S, 20.0) * random.uniform(0.9, 1.1, stage.size)})
    queues = ["a" if 3 * row < JOBS or row % 2 else "b" for row in range(JOBS)]  # b comes later, and is owed its share
    table = pl.DataFrame({"job": [str(row) for row in range(JOBS)], "queue": queues, "user": queues})
    return make_workload(table, stages, tasks, resources)


def changing_fleet():
    """Machines of which some leave for a while."""
    machines = pl.DataFrame({"machine": [str(row) for row in range(BUSY_MACHINES)]}).with_columns(
        cluster=pl.lit("0"), cpu=pl.lit(0.5), memory=pl.lit(0.5))
    leaving = np.arange(0, BUSY_MACHINES, 4)
    times = np.concatenate([100.0 + leaving, 150.0 + leaving])
    back = np.repeat([False, True], leaving.size)
    changes = pl.DataFrame({"time": times, "machine": np.tile(leaving, 2), "present": back,
                            "cpu": 0.5 * back, "memory": 0.5 * back})
    return make_fleet(machines, SHARES, changes=changes)


def opened(case):
    architecture = ARCHITECTURES[case.architecture]
    drawn = None if case.failures is None else draw_failures(case.failures, case.workload, SEED)
    return open_federated(case.workload, case.fleet, architecture, architecture.settled(case.settings), SEED, 10.0,
                          np.inf, compiled=False, failures=drawn, hold_back_after=HOLD_BACK_AFTER_S)


def recorded(case):
    federation = opened(case)
    recorder = Recorder(federation)
    Course(Held(federation.simulation, federation.step, lambda: RuntimeError("a rule was broken")), True).drive()
    return recorder


def replayed(case, recorder):
    """Return the seconds of each call, by process, in the order in which each was told."""
    fresh, functions = opened(case), ARCHITECTURES[case.architecture].serve
    seconds = {}
    for process, calls in recorder.calls.items():
        tables = alone(fresh, process[0])
        serve = {role: compiled_service(functions[role], tables[role]) for role in tables}
        seconds[process] = [_call(tables[told.role], serve[told.role], told) for told in calls]
    return seconds


def _call(tables, serve, told):
    hand_over(tables, [told])
    began = time.perf_counter()
    serve(told.now, 1)
    seconds = time.perf_counter() - began
    posted = tables.out.row[: tables.out.counts.posted]
    assert posted.tobytes() == told.answers.tobytes(), KINDS[told.message[0]["kind"]]
    return seconds


def measured(case):
    """Return, by kind: what messages of it carried, and the seconds of each, plain and compiled."""
    recorder = recorded(case)
    rounds = [replayed(case, recorder) for _ in range(ROUNDS)]
    kinds = defaultdict(list)
    for process, calls in recorder.calls.items():
        compiled = np.median([each[process] for each in rounds], axis=0)
        for told, seconds in zip(calls, compiled, strict=True):
            kinds[int(told.message[0]["kind"])].append((int(told.message[0]["count"]), told.seconds, seconds))
    return {kind: np.array(rows).T for kind, rows in kinds.items()}


def parts_of(carried, seconds):
    """Return the median seconds of a message by itself, and the seconds of each entry that it carries."""
    counts, times = np.unique(carried, return_counts=True)
    usual = counts[times >= FEW_ALIKE]
    if usual.size < 2:
        return float(np.median(seconds)), 0.0
    medians = [np.median(seconds[carried == count]) for count in usual]
    each = max(np.polyfit(usual, medians, 1)[0], 0.0)
    return float(np.median(seconds - each * carried)), float(each)


def main():
    gc.disable()
    inbox = np.zeros(1, MESSAGE)
    print(f"{TASKS:,} tasks, 10 global and 10 local masters; {MACHINES:,} machines, busy ones {BUSY_MACHINES:,}; "
          f"a message has {inbox.itemsize} bytes")
    print(f"{'federation':<14}{'kind':<14}{'role':<15}{'messages':>10}{'plain us':>10}{'each':>8}{'compiled us':>13}"
          f"{'each':>8}{'python':>9}{'compiled':>10}")
    for case in cases():
        for kind, (carried, plain, compiled) in sorted(measured(case).items()):
            if carried.size < FEWEST:
                continue
            name = KINDS[kind]
            parts = [1e6 * part for times in (plain, compiled) for part in parts_of(carried, times)]
            defaults = [1e6 * PROFILES[profile].service.get(name, 0) for profile in ("python", "compiled")]
            print(f"{case.name:<14}{name:<14}{ROLES[HANDLER[kind]]:<15}{carried.size:>10,}{parts[0]:>10.1f}"
                  f"{parts[1]:>8.2f}{parts[2]:>13.2f}{parts[3]:>8.3f}{defaults[0]:>9g}{defaults[1]:>10g}", flush=True)


if __name__ == "__main__":
    main()
