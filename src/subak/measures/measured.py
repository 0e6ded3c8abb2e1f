"""What a finished run measures in the words of objectives, without its folder: for those who do many runs."""
import math

from subak.fleet.table import Fleet
from subak.measures.jobs import described, job_table
from subak.measures.objective import Objective
from subak.measures.objectives import judged
from subak.measures.window import Window, measured, window_facts
from subak.simulator.outcome import Outcome
from subak.simulator.results import task_table, timeline_table
from subak.workload.table import Workload


def values_of(
    outcome: Outcome, workload: Workload, fleet: Fleet, window: Window, objectives: list[Objective]
) -> list[float]:
    """Return the value of each objective's measure, inf where it is endless.

    Raises InputError where one concerns no task.
    """
    tasks, timeline = task_table(outcome, workload, fleet), timeline_table(outcome, workload)
    facts = window_facts(tasks, timeline, window)
    counted, jobs = described(tasks, workload, facts), measured(job_table(tasks, workload), facts)
    found = (judged(each, counted, jobs, workload).value for each in objectives)
    return [math.inf if value is None else value for value in found]
