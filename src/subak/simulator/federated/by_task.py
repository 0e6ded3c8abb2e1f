"""What global masters know of each task, for those who inspect a run."""
import numpy as np

from subak.federation.megha.global_master.state import PHASE_ENDED, TASK
from subak.federation.megha.jobs import SUBMISSION_ENDED
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.roles import Megha
from subak.federation.messages import NOBODY


def states_by_task(roles: Megha) -> np.ndarray:
    """Return TASK[task]: as its global master has each open task, and of each other what is left of it."""
    jobs = roles.jobs
    table = np.zeros(jobs.state.size, TASK)
    table["machine"], table["sent_to"] = NOBODY, NOBODY
    ended = jobs.state == SUBMISSION_ENDED
    table["phase"][ended] = PHASE_ENDED
    for kept, of_master in (("refusals", "refusals"), ("repartitions", "repartitioned"), ("preempted", "preempted"),
                            ("lost", "lost")):
        table[of_master] = jobs.ending[kept]
    for submitter, master in zip(roles.submitters, roles.masters, strict=True):
        rows = known_rows(submitter.tasks, master.task)
        table[submitter.tasks.number[rows] & jobs.mask] = master.task[rows]
    return table


def phases_by_task(roles: Megha) -> np.ndarray:
    """Return the phases alone, as `states_by_task` has them: in a quarter of the time."""
    jobs = roles.jobs
    phases = np.where(jobs.state == SUBMISSION_ENDED, PHASE_ENDED, 0).astype(TASK["phase"])
    for submitter, master in zip(roles.submitters, roles.masters, strict=True):
        rows = known_rows(submitter.tasks, master.task)
        phases[submitter.tasks.number[rows] & jobs.mask] = master.task["phase"][rows]
    return phases


def known_rows(tasks: OpenTasks, known: np.ndarray) -> np.ndarray:
    """Return the rows of the open tasks of which their global master knows, by its *known* (TASK[row])."""
    number, ever = tasks.number, tasks.counts.tasks_ever
    is_known = (known["tenant"] == number + 1) & (known["round"] == tasks.round) & (number != NOBODY)
    return np.flatnonzero(is_known[:ever])


def row_of_each(roles: Megha) -> dict[int, int]:
    """Return the row of each open task, by its number."""
    tables = (submitter.tasks.number[: submitter.tasks.counts.tasks_ever] for submitter in roles.submitters)
    return {int(number): row for table in tables for row, number in enumerate(table) if number != NOBODY}
