"""Restores the jobs of a global master from disk, each to its former rows.

What is on disk of a task is one row; all else follows from those of its job: how many of a stage have yet to finish,
which stages wait, which are given up, what is left of a gang. Tasks that had not been submitted arrive again.
"""

import numpy as np

from subak.federation.megha.jobs import (
    OUTCOME_FINISHED,
    SUBMISSION_BACKOFF,
    SUBMISSION_ENDED,
    SUBMISSION_NEW,
    SUBMISSION_OPEN,
    SUBMISSION_WITHDRAWN,
    terms_of,
)
from subak.federation.megha.open_tasks import join_gang, open_gang
from subak.federation.megha.submitter import give_dependents_up
from subak.federation.messages import EXPIRE, NOBODY, TRY_AGAIN
from subak.live.role.global_master.base import GlobalRoleBase
from subak.live.role.global_master.book import OF_ENDING, Job, asked_of, read_job
from subak.live.role.global_master.history import Happening, saved_by_job
from subak.live.role.global_master.rows import open_rows

WITH_ROW = (SUBMISSION_OPEN, SUBMISSION_WITHDRAWN, SUBMISSION_BACKOFF)


def restore_jobs(role: GlobalRoleBase) -> None:
    """Fill the tables of a role, which are empty, with what is on disk."""
    rows = role.disk.get("task", {})
    on_disk = open_rows(list(rows.values()))
    of_job: dict[int, list[int]] = {}
    for place, number in enumerate(on_disk["number"].tolist()):
        of_job.setdefault(role.layout.job_of(number), []).append(place)
    role.submitter.counts.incarnation_known = role.master.counts.incarnation
    jobs, histories = [], saved_by_job(role.disk.get("history", {}))
    for number, body in sorted(role.disk.get("job", {}).items()):
        stored, spec = read_job(body)
        asked = asked_of(spec, stored.queue, stored.shapes, stored.submitted)
        role.admission.add_queue(stored.queue)
        job = Job(int(number), stored, spec, role.admission.restore(int(number), asked, stored.first))
        role.open_job(job)
        role.book.lay(job, job.admitted.tasks)
        jobs.append((job, on_disk[of_job.get(int(number), [])]))
    _restore_rows(role, on_disk)
    for job, known in jobs:
        _restore_job(role, job, known, histories.get(job.number, []))
    _free_the_rest(role)


def _restore_rows(role: GlobalRoleBase, on_disk: np.ndarray) -> None:
    """Let each row be that of its task again; of two, that of the task which has not ended."""
    tasks, jobs = role.tasks, role.jobs
    rows = on_disk[(on_disk["row"] != NOBODY) & (jobs.number[on_disk["number"] & jobs.mask] == on_disk["number"])]
    tasks.counts.tasks_ever = int(rows["row"].max(initial=NOBODY)) + 1
    tasks.number[: tasks.counts.tasks_ever] = NOBODY
    for each in rows[np.argsort(np.isin(rows["state"], WITH_ROW), kind="stable")]:
        row, place = int(each["row"]), int(each["number"] & jobs.mask)
        if tasks.number[row] != NOBODY:
            jobs.row[int(tasks.number[row]) & jobs.mask] = NOBODY
        jobs.row[place] = row
        asked, terms, me = jobs.asked[place], terms_of(jobs, place), role.master.task[row]
        tasks.number[row], tasks.round[row], tasks.gang[row] = each["number"], each["round"], NOBODY
        tasks.rank[row], tasks.shape[row], tasks.queue[row] = jobs.rank[place], jobs.shape[place], asked["queue"]
        tasks.lane[row], tasks.priority[row], tasks.next[row] = asked["lane"], asked["priority"], NOBODY
        tasks.losses_max[row], tasks.limit[row] = terms["losses_max"], terms["run_max"]
        role.submitter.submission[row]["reason"] = 0 if each["state"] == SUBMISSION_OPEN else each["reason"]
        me["tenant"], me["round"], me["machine"] = each["number"] + 1, each["round"], NOBODY
        me["sent_to"], me["sent"], me["lost"] = each["sent_to"], each["sent"], each["lost"]


def _restore_job(role: GlobalRoleBase, job: Job, known: np.ndarray, saved: list[Happening]) -> None:
    """Let the tasks of a job be in the states that they were in, and what follows from that be so."""
    jobs, book = role.jobs, role.book
    places = known["number"] & jobs.mask
    jobs.state[places] = known["state"]
    for name in OF_ENDING:
        jobs.ending[name][places] = known[name] if name != "reason" else np.where(
            known["state"] == SUBMISSION_ENDED, known[name], 0)
    book.disk[places] = book.now[places] = known
    job.history.restore(saved, known, job.admitted.places, jobs.mask)
    for each in saved:
        book.note_begun(job, each)
    _restore_stages(role, job)
    _restore_gangs(role, job)
    every = np.arange(job.places.start, job.places.stop)
    state = jobs.state[every]
    for place in every[np.isin(state, WITH_ROW)].tolist():
        _restore_timers(role, place)
    book.count_over(known, np.zeros(known.size, known.dtype))
    role.walks.add(job.number, jobs.number[every], role.touch)
    role.walks.add(job.number, jobs.number[every[state < SUBMISSION_OPEN]], role.arrive)
    if job.number in role.disk.get("cancel", {}):
        role.walks.add(job.number, job.numbers, role.cancel_tasks)


def _restore_stages(role: GlobalRoleBase, job: Job) -> None:
    """Count what has yet to finish of each stage, and give up what depends on one that never will."""
    jobs, graph = role.jobs, role.jobs.stages
    numbers = range(job.admitted.stages, job.admitted.stages + len(job.spec.stages))
    for number in numbers:
        places = slice(graph.task_first[number], graph.task_first[number + 1])
        unsent = jobs.state[places] < SUBMISSION_OPEN
        jobs.state[places] = np.where(unsent, SUBMISSION_NEW, jobs.state[places])
        graph.left[number] = int((jobs.ending["outcome"][places] != OUTCOME_FINISHED).sum())
    for number, before in zip(numbers, job.spec.earlier_stages(), strict=True):
        graph.waits[number] = sum(int(graph.left[job.admitted.stages + each] > 0) for each in before)
    for number in numbers:
        places = slice(graph.task_first[number], graph.task_first[number + 1])
        ended = jobs.state[places] == SUBMISSION_ENDED
        if (ended & (jobs.ending["outcome"][places] != OUTCOME_FINISHED)).any():
            give_dependents_up(jobs, number)


def _restore_gangs(role: GlobalRoleBase, job: Job) -> None:
    """Count what is left of each gang, and let its open rows be together."""
    jobs, tasks = role.jobs, role.tasks
    for gang in job.admitted.gangs:
        places = np.flatnonzero(jobs.gang[job.places] == gang) + job.places.start
        ended = jobs.state[places] == SUBMISSION_ENDED
        jobs.gang_left[gang] = int((~ended).sum())
        jobs.gang_failed[gang] = bool((ended & (jobs.ending["outcome"][places] != OUTCOME_FINISHED)).any())
        rows = jobs.row[places][jobs.row[places] != NOBODY]
        if rows.size:
            jobs.gang_row[gang] = open_gang(tasks, int(jobs.number[places[0]]), int(places.size))
            for row in rows.tolist():
                join_gang(tasks, row, int(jobs.gang_row[gang]))


def _restore_timers(role: GlobalRoleBase, place: int) -> None:
    """Arm what was due of an open task; it waits as long as it may from now on."""
    jobs, row = role.jobs, int(role.jobs.row[place])
    number, terms = int(jobs.number[place]), terms_of(jobs, place)
    about = {"task": number, "row": row, "round": int(role.tasks.round[row])}
    if jobs.state[place] == SUBMISSION_BACKOFF:
        role.submitter.submission[row]["settled"] = True
        pause = float(terms["backoff"]) * 2.0 ** max(int(jobs.ending["failed"][place]) - 1, 0)
        role.tell(TRY_AGAIN, pause, **about)
    elif terms["wait_max"] < np.inf:
        role.tell(EXPIRE, float(terms["wait_max"]), **about)


def _free_the_rest(role: GlobalRoleBase) -> None:
    """Let rows that nobody has be taken again, the lowest first."""
    tasks = role.tasks
    used = tasks.number[: tasks.counts.tasks_ever]
    tasks.counts.tasks_open = int((used != NOBODY).sum())
    tasks.counts.free_task = NOBODY
    for row in np.flatnonzero(used == NOBODY)[::-1].tolist():
        tasks.next[row] = tasks.counts.free_task
        tasks.counts.free_task = row
