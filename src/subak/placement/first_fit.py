"""First fit: the first machine, in the fleet's order, that can start the task."""
from subak.placement.feasible import first_fitting


def first_fit(fleet, tasks, task):
    """Return the first machine that fits, -1 if none does."""
    return first_fitting(fleet, tasks, task)
