"""LoTES under a fair order: the tree picks the task, the bins the machine.

An instant is as under any fair order (`placement/fair.py`), and a task takes the machine that it would take when it
arrives under LoTES alone. So a freed machine no longer looks for the class that its bin lacks most: who is served is
the order's to say.
"""
import numpy as np

from subak.fleet.feasible import NOWHERE
from subak.fleet.state import FleetState
from subak.marks import inlined
from subak.placement.claims import Claims
from subak.placement.fair import Fair, cap, next_turn, note_instant, together
from subak.placement.fair import start as take_turn
from subak.placement.lotes.dispatch import Dispatcher, place_arrival, start, start_gang
from subak.queues.hierarchy import NOBODY, close_shape
from subak.workload.tasks import Tasks


@inlined
def fair_lotes_instant(  # noqa: PLR0913, PLR0917  (what an instant brought)
    state: Dispatcher, fleet: FleetState, tasks: Tasks, fair: Fair, ended: np.ndarray, arrived: np.ndarray,
    freed: np.ndarray, nothing: np.ndarray, claims: Claims,
) -> None:
    """Serve the tree: *ended* and *arrived* are int32[task], *freed* int32[machine], *nothing* float64[0]."""
    note_instant(fleet, tasks, fair, ended, arrived, freed, claims)
    while True:
        leaf = next_turn(fleet, tasks, fair, nothing)
        if leaf == NOBODY:
            return
        task = fair.lanes.root[leaf]
        if together(fair, task) > 1:
            if start_gang(state, fleet, tasks, fair.gangs, fair.gangs.of_task[task], claims):
                take_turn(fair, tasks, leaf)
            else:
                cap(fair, leaf)
            continue
        machine = place_arrival(state, fleet, tasks, task)
        if machine == NOWHERE:
            close_shape(fair.tree, tasks.shape[task])
        else:
            take_turn(fair, tasks, leaf)
            start(state, fleet, tasks, task, machine, claims)
