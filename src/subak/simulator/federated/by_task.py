"""What global masters know of each task of the workload: for those who look at a run."""
import numpy as np

from subak.federation.megha.global_master.state import PHASE_ENDED, TASK
from subak.federation.megha.open_tasks import TASKS_EVER
from subak.federation.megha.roles import Megha
from subak.federation.megha.submitter import SUBMISSION_ENDED
from subak.federation.messages import NOBODY


def states_by_task(roles: Megha) -> np.ndarray:
    """Return TASK[task]: as its global master has each open task, and of each other what is left of it."""
    jobs = roles.jobs
    table = np.zeros(jobs.state.size, TASK)
    table["machine"], table["sent_to"] = NOBODY, NOBODY
    ended = jobs.state == SUBMISSION_ENDED
    table["phase"][ended] = PHASE_ENDED
    for kept, of_master in (("refusals", "refusals"), ("repartitions", "repartitioned"), ("preempted", "preempted")):
        table[of_master] = jobs.ending[kept]
    for submitter, master in zip(roles.submitters, roles.masters, strict=True):
        rows = open_rows(submitter.tasks.number[: submitter.tasks.size[TASKS_EVER]], master.task)
        table[submitter.tasks.number[rows]] = master.task[rows]
    return table


def open_rows(number: np.ndarray, task: np.ndarray) -> np.ndarray:
    """Return the rows of the tasks, of *number* (int64[row]), that are open and known to their global master."""
    return np.flatnonzero((number != NOBODY) & (task["tenant"][: number.size] == number + 1))


def row_of_each(roles: Megha) -> dict[int, int]:
    """Return the row of each open task, by its number."""
    tables = (submitter.tasks.number[: submitter.tasks.size[TASKS_EVER]] for submitter in roles.submitters)
    return {int(number): row for table in tables for row, number in enumerate(table) if number != NOBODY}
