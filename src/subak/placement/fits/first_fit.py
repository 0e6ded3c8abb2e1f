"""First fit: the first machine, in the fleet's order, that can start the task."""
from subak.fleet.feasible import first_fitting
from subak.fleet.state import FleetState
from subak.workload.tasks import Tasks


def first_fit(fleet: FleetState, tasks: Tasks, task: int) -> int:
    """Return the first machine that fits, -1 if none does."""
    return first_fitting(fleet, tasks, task)
