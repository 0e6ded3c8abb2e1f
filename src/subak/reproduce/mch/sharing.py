"""Fig. 4: six jobs on one machine, what each holds under every order, beside the exact shares.

The paper gives the tree, the demands, 2,000 tasks a job and the machine, not when jobs arrive and how long tasks run.
Chosen here: the three groups arrive 100 s apart, and tasks take as long as makes n1,1 the first to leave, at about
600 s, and n1,2 the next, at about 790 s, as in the paper. Run times vary, so that tasks do not end in step.
"""
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.fleet.table import Fleet, make_fleet
from subak.policy import find_scheduler
from subak.queues.fluid import fluid_shares
from subak.queues.tree import Queue, TreeFile, tree_of_file
from subak.resources import Resource
from subak.simulator.simulate import simulate
from subak.tables import Provenance
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.table import Workload, make_workload

LEAVES = ("n1/1", "n1/2", "n2/1", "n2/2", "n2/3", "n3/1")
DEMAND = ((1, 0), (0, 1), (1, 0), (1, 0), (0, 1), (1, 0))  # cpu, memory of a task
ARRIVAL_S = (0.0, 0.0, 100.0, 100.0, 100.0, 200.0)
TASK_S = (29.3, 46.0)  # mean run time of a task that asks for cpu, for memory
SPREAD = 0.5  # a run time is its mean times 1 +- at most this
SETTLED_S = TASK_S[1] * (1 + SPREAD)  # when every task that ran at a phase's beginning has ended
WINDOW_S = 10.0  # the least time over which shares are averaged
INSTANTS = 400  # at which they are looked at
STEP_S = 4.0  # of the chart
RESOURCES = (Resource("cpu", 1.0, "cores"), Resource("memory", 1.0, "GB"))


class Shares(NamedTuple):
    """What happened under one order."""

    capacity: int
    start: list[np.ndarray]  # float64[task of the leaf], seconds, sorted
    end: list[np.ndarray]  # likewise

    def at(self, times: np.ndarray) -> np.ndarray:
        """Return float64[time, leaf], the dominant share that each leaf holds."""
        running = [np.searchsorted(start, times, "right") - np.searchsorted(end, times, "right")
                   for start, end in zip(self.start, self.end, strict=True)]
        return np.stack(running, axis=1) / self.capacity


class Phase(NamedTuple):
    """A time in which the same jobs have tasks that wait, and the mean shares once it has settled."""

    active: tuple[int, ...]  # leaves
    begin: float
    end: float
    share: np.ndarray  # float64[leaf]


def machine(capacity: int) -> Fleet:
    """Return one machine with so many CPUs and GB."""
    table = pl.DataFrame({"machine": ["m"], "cluster": ["c"], "cpu": [float(capacity)], "memory": [float(capacity)]})
    return make_fleet(table, RESOURCES, provenance=_made("one machine"))


def six_jobs(tasks: int, seed: int) -> Workload:
    """Return a job of so many tasks for each leaf."""
    random = np.random.default_rng((seed, 22))
    leaf = np.repeat(np.arange(len(LEAVES)), tasks)
    mean = np.array([TASK_S[cpu == 0] for cpu, _ in DEMAND])[leaf]
    jobs = pl.DataFrame({"job": LEAVES, "queue": LEAVES, "user": LEAVES})
    count = len(LEAVES)
    stages = pl.DataFrame({
        "job": np.arange(count, dtype=np.uint32), "name": LEAVES, "kind": ["TASK"] * count, "priority": [0] * count,
        "depends_on": pl.Series([[]] * count, dtype=pl.List(pl.UInt32)),
        "constraints": pl.Series([[]] * count, dtype=pl.List(CONSTRAINT_TYPE)),
        "cpu": [float(cpu) for cpu, _ in DEMAND], "memory": [float(memory) for _, memory in DEMAND]})
    rows = pl.DataFrame({
        "stage": leaf.astype(np.uint32), "index": np.tile(np.arange(tasks, dtype=np.uint32), count),
        "arrival": np.array(ARRIVAL_S)[leaf], "run_time": mean * random.uniform(1 - SPREAD, 1 + SPREAD, len(leaf))})
    return make_workload(jobs, stages, rows, RESOURCES, _made("the six jobs of Fig. 4"))


def _made(what: str) -> Provenance:
    return Provenance("mch", what, "made by hand")


def shares_under(order: str, capacity: int, tasks: int, seed: int) -> Shares:
    """Simulate the six jobs under an order."""
    workload = six_jobs(tasks, seed)
    sim = simulate(workload, machine(capacity), find_scheduler(order), queues=TreeFile()).simulation
    leaf, run_time = workload.tasks["stage"].to_numpy(), workload.tasks["run_time"].to_numpy()
    start = [np.sort(sim.progress.start[leaf == number]) for number in range(len(LEAVES))]
    end = [np.sort((sim.progress.start + run_time)[leaf == number]) for number in range(len(LEAVES))]
    return Shares(capacity, start, end)


def phases(shares: Shares) -> list[Phase]:
    """Return the phases long enough to settle, in order."""
    leaves = [float(start[-1]) for start in shares.start]  # when the last task starts
    bounds = np.unique([*ARRIVAL_S, *leaves])
    found = []
    for begin, end in pairwise(bounds):
        active = tuple(leaf for leaf in range(len(LEAVES)) if ARRIVAL_S[leaf] <= begin < leaves[leaf])
        if active and end - begin >= SETTLED_S + WINDOW_S:
            mean = shares.at(np.linspace(begin + SETTLED_S, end, INSTANTS, endpoint=False)).mean(axis=0)
            found.append(Phase(active, float(begin), float(end), mean))
    return found


def exact_shares(active: tuple[int, ...]) -> np.ndarray:
    """Return float64[leaf]: the fluid shares of H-DRF with only these jobs."""
    tree = tree_of_file(TreeFile(queue=[Queue(name=LEAVES[leaf]) for leaf in active]))
    exact = np.zeros(len(LEAVES))
    exact[list(active)] = fluid_shares(tree, np.array(DEMAND)[list(active)], np.ones(2))
    return exact


def name_of(active: tuple[int, ...]) -> str:
    """Return a phase's jobs in words."""
    gone = [leaf for leaf in range(len(LEAVES)) if leaf not in active]
    if not gone:
        return "all"
    few, words = (gone, "all but ") if len(gone) < len(active) else (active, "")
    return words + "; ".join(node(leaf) for leaf in few)


def node(leaf: int) -> str:
    """Return a leaf's name as the paper has it."""
    return LEAVES[leaf].replace("/", ",")


def over_time(order: str, shares: Shares) -> pl.DataFrame:
    """Return the points of the chart."""
    last = max(float(end[-1]) for end in shares.end)
    times = np.arange(0.0, last + STEP_S, STEP_S)
    held = shares.at(times)
    return pl.concat([pl.DataFrame({"order": [order] * len(times), "job": [node(leaf)] * len(times), "time (s)": times,
                                    "share": held[:, leaf]}) for leaf in range(len(LEAVES))])
