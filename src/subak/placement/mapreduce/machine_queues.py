"""Follows a plan: each machine starts its ready task of least rank, maps before reduces.

Lane m holds the maps that wait at machine m, lane m + padded machines its reduces. Where both kinds ask for the same
resource, reduces wait until no map does. Tasks that become ready when a machine is freed are there to choose from, as
in Algorithm 1 (A_i <= EAT); this is why it is no pair of hooks, of which the one about freed machines comes first.
"""
import numpy as np

from subak.fleet.feasible import fits
from subak.fleet.state import FleetState
from subak.marks import inlined
from subak.placement.claims import Claims, claim
from subak.queues.lanes import NOBODY, Lanes, pop, push
from subak.workload.tasks import Tasks


@inlined
def planned_instant(
    fleet: FleetState, tasks: Tasks, lanes: Lanes, lane_of_task: np.ndarray,
    freed: np.ndarray, arrived: np.ndarray, claims: Claims,
) -> None:
    """Let the *arrived* tasks (int32[:]) wait at their machines; serve these and the *freed* ones (int32[:])."""
    for task in arrived:
        push(lanes, tasks.rank, lane_of_task[task], task)
    for machine in freed:
        serve(fleet, tasks, lanes, machine, claims)
    for task in arrived:
        serve(fleet, tasks, lanes, lane_of_task[task] % fleet.free.shape[1], claims)


@inlined
def serve(fleet: FleetState, tasks: Tasks, lanes: Lanes, machine: int, claims: Claims) -> None:
    """Start the maps that wait at a machine while they fit, then the reduces."""
    for kind in range(2):
        lane = machine + kind * fleet.free.shape[1]
        while lanes.root[lane] != NOBODY and fits(fleet, tasks, lanes.root[lane], machine):
            claim(claims, fleet, tasks, pop(lanes, tasks.rank, lane), machine)
