"""The hand-made federation of seed 0, for what draws hardly ever reach.

A task is withdrawn while its request waits for room that is to be preempted for it: of 3,000 drawn federations none
comes to that.
"""
import math

from subak.federation.settings import Federation
from subak.simulator.torture.torture import Case, Stage, Terms, random_case

SEED_BY_HAND = 0
WITHDRAWN_WHILE_IT_PREEMPTS = Case(
    seed=1, machines=[(1, 1)], racks=[""], absent=[], changes=[], queues=["a", "b"],
    stages=[Stage(0, (1, 0)), Stage(1, (1, 0))], tasks=[(0, 0.0, 5.0), (1, 1.0, 1.0)], plan=None,
    settings=Federation(global_masters=2, local_masters=1, heartbeat=0.3, delay=0.1, service_scale=0.0,
                        preemption="strict", shares={"a": 0.0, "b": 1.0}),
    planned=[(0, math.inf, math.inf), (0, math.inf, 1.1)], terms=Terms(0, 30_000, 0.0, math.inf, math.inf))


def case_of(seed: int) -> Case:
    """Return the federation that a seed stands for."""
    return WITHDRAWN_WHILE_IT_PREEMPTS if seed == SEED_BY_HAND else random_case(seed)
