"""Checks a federation at rest (rule i), allowing for roles that never come back."""

import numpy as np

from subak.federation.megha.attempts import has_room
from subak.federation.megha.global_master.state import (
    PHASE_ENDED,
    PHASE_RUNNING,
    PHASE_UNKNOWN,
    PHASE_WAITING,
    PHASES,
)
from subak.federation.megha.jobs import OUTCOME_FINISHED, OUTCOMES, SUBMISSION_BACKOFF, SUBMISSION_OPEN, terms_of
from subak.federation.megha.jobs import SUBMISSION_ENDED as SUBMITTED_ENDED
from subak.federation.megha.local_master.state import ATTEMPT_RUNNING as RUNNING_ROW
from subak.federation.megha.local_master.state import ATTEMPT_STARTING as STARTING_ROW
from subak.federation.megha.local_master.state import (
    SILENT,
)
from subak.federation.megha.worker import WORKER_RUNNING as RUNS
from subak.federation.messages import GLOBAL_MASTER, KINDS, LOCAL_MASTER, NOBODY, PERIODIC, WORKER
from subak.fleet.state import BLOCK
from subak.placement.claims import STATUSES, TASK_BLOCKED, TASK_FINISHED, TASK_GIVEN_UP, TASK_UNPLACEABLE
from subak.placement.claims import TASK_RUNNING as PHYSICALLY
from subak.placement.claims import TASK_WAITING as WAITS
from subak.simulator.federated.by_task import states_by_task
from subak.simulator.federated.network import on_the_way
from subak.simulator.torture.invariants import Watch


def unrest(watch: Watch) -> str:
    """(i) Say what is not yet as it must be in the end, an empty text when everything is."""
    sim = watch.sim
    used = on_the_way(watch.net)
    if sim.counts.next_arrival < sim.tasks.arrival.size:
        return "tasks are still to arrive"
    kinds = sorted({KINDS[kind] for kind in watch.net.flight["kind"][used] if not PERIODIC[kind]} - in_vain(watch))
    if kinds:
        return f"messages are on their way: {', '.join(kinds)}"
    tasks = (unrest_of(watch, task) for task in range(sim.claims.status.size))
    return next(filter(None, tasks), "") or left_behind(watch)


def unrest_of(watch: Watch, task: int) -> str:  # noqa: PLR0911
    """Say how a task is not as it must be in the end."""
    sim, phase = watch.sim, states_by_task(watch.roles)["phase"][task]
    status = sim.claims.status[task]
    if is_out_of_reach(watch, task):
        return ""
    name, called = STATUSES[status], PHASES[phase]
    if status == PHYSICALLY and (sim.tasks.run_time[task] < np.inf or phase != PHASE_RUNNING):
        return f"task {task} is {name}, its global master has it {called}"
    if status in (TASK_FINISHED, TASK_BLOCKED) and phase == PHASE_WAITING and not could_run(watch, task):
        return ""  # the news of its end was lost with its worker, and there is no machine to run it again
    if status == TASK_FINISHED and watch.roles.jobs.state[task] != SUBMITTED_ENDED:
        return f"task {task} is {name}, its submitter has not heard of it, its global master has it {called}"
    if status == TASK_FINISHED and phase not in (PHASE_ENDED, PHASE_UNKNOWN):  # else it never hears
        return f"task {task} is {name}, its global master has it {called}"
    if status == WAITS and (phase != PHASE_WAITING or could_run(watch, task)):
        return f"task {task} waits, its global master has it {called}"
    if status not in (PHYSICALLY, TASK_FINISHED, WAITS, TASK_BLOCKED, TASK_UNPLACEABLE, TASK_GIVEN_UP):
        return f"task {task} is {name}"
    return wrong_outcome(watch, task)


def wrong_outcome(watch: Watch, task: int) -> str:
    """Say how a task has not ended as it is said to have, or was tried more often than its terms allow."""
    status, jobs = watch.sim.claims.status[task], watch.roles.jobs
    ending, ended, name = jobs.ending[task], jobs.state[task] == SUBMITTED_ENDED, STATUSES[status]
    if ending["failed"] > terms_of(jobs, task)["retries"] + 1:
        return f"task {task} failed {ending['failed']} times, more often than it may be tried"
    if ended and (ending["outcome"] == OUTCOME_FINISHED) != (status == TASK_FINISHED):
        return f"task {task} is {name}, its outcome is {OUTCOMES[ending['outcome']] or 'unknown'}"
    if status == TASK_GIVEN_UP and not ended:
        return f"task {task} is {name}, and its submitter has not ended it"
    if status == TASK_BLOCKED and jobs.state[task] in (SUBMISSION_OPEN, SUBMISSION_BACKOFF):
        return f"task {task} is neither tried again nor given up"
    return ""


def left_behind(watch: Watch) -> str:  # noqa: C901
    """Say which attempts are left at local masters or workers that should have been forgotten."""
    for cluster in range(watch.clusters):
        if is_down(watch, cluster):
            continue
        number = watch.speaker(cluster)
        if number == NOBODY:
            return f"nobody speaks for cluster {cluster}"
        local, (first, end) = watch.roles.locals[number], watch.span[cluster]
        for machine in watch.machines:
            if first <= machine < end and not is_undecidable(watch, machine):
                if local.machine["state"][machine] == SILENT:
                    return f"machine {machine} has not reported to local master {number}"
                for row in watch.rows(local.rows.row, local.rows.first, machine):
                    if row["state"] != RUNNING_ROW and not is_dead(watch, row["owner"]) and not (
                        row["state"] == STARTING_ROW and watch.sim.claims.status[row["task"]] == PHYSICALLY
                    ):
                        return f"task {row['task']} is left in state {row['state']} on machine {machine}"
    workers = watch.roles.workers
    for machine in watch.machines:
        down = watch.net.incarnation[watch.net.first[WORKER] + machine] < 0
        down |= is_down(watch, int(watch.roles.topology.machine["cluster"][machine]))
        for row in watch.rows(workers.rows.row, workers.rows.first, machine):
            if row["state"] != RUNS and not down and not is_dead(watch, watch.owner[row["task"]]):
                return f"the worker of machine {machine} has not forgotten task {row['task']}"
    return ""


def could_run(watch: Watch, task: int) -> bool:
    """Whether machines whose workers live have room for a waiting task, and for what its gang has not ended."""
    members = [task]
    if watch.gang[task] != NOBODY:
        gang, status = watch.gang[task], watch.sim.claims.status
        members = [one for one in np.flatnonzero(watch.gang == gang).tolist() if status[one] != TASK_FINISHED]
        if any(status[one] != WAITS for one in members):
            return False  # some have not arrived, or wait for their stage
    free = watch.sim.fleet.free.copy()
    for member in members:
        machine = first_machine(watch, member, free)
        if machine == NOBODY:
            return False
        free[:, machine] -= watch.request[member]
    return True


def first_machine(watch: Watch, task: int, free: np.ndarray) -> int:
    """Return the first machine whose worker lives that has room for a task, NOBODY if none has."""
    words = watch.sim.fleet.allowed[watch.sim.tasks.constraint_set[watch.sim.tasks.shape[task]]]
    for machine in watch.machines:
        meets = int(words[machine // BLOCK]) >> (machine % BLOCK) & 1
        alive = watch.net.incarnation[watch.net.first[WORKER] + machine] > 0
        alive &= has_rows(watch, int(watch.roles.topology.machine["cluster"][machine]))
        if meets and alive and (free[:, machine] >= watch.request[task]).all():
            return machine
    return NOBODY

# -- who never comes back ---------------------------------------------------------------------------------------


def is_dead(watch: Watch, master: int) -> bool:
    """Whether a global master is down; in the end that is for ever."""
    return bool(watch.net.incarnation[watch.net.first[GLOBAL_MASTER] + master] < 0)


def is_down(watch: Watch, cluster: int) -> bool:
    """Whether nobody can ever speak for a cluster."""
    first = watch.net.first[LOCAL_MASTER]
    return all(watch.net.incarnation[first + number] < 0 for number in range(cluster, watch.instances, watch.clusters))


def has_rows(watch: Watch, cluster: int) -> bool:
    """Whether somebody speaks for a cluster who can note another attempt."""
    number = watch.speaker(cluster)
    return number != NOBODY and has_room(watch.roles.locals[number].rows)


def is_out_of_reach(watch: Watch, task: int) -> bool:
    """Whether a task's global master is dead, or cannot know what became of its last request, or its gang's."""
    members = [task] if watch.gang[task] == NOBODY else np.flatnonzero(watch.gang == watch.gang[task])
    own = int(watch.owner[task])
    return is_dead(watch, own) or any(is_out_of_sight(watch, own, int(member)) for member in members)


def is_out_of_sight(watch: Watch, master: int, task: int) -> bool:
    """Whether nobody can ever tell a global master what became of a task's last request."""
    state = states_by_task(watch.roles)[task]
    cluster, machine = int(state["sent_to"]), int(state["machine"])
    if cluster == NOBODY:
        return False
    known = bool(watch.roles.masters[master].cluster["known"][cluster])
    undecidable = [one for one in watch.machines if is_undecidable(watch, one)
                   and watch.roles.topology.machine["cluster"][one] == cluster]
    return is_down(watch, cluster) or machine in undecidable or (bool(undecidable) and not known)


def is_undecidable(watch: Watch, machine: int) -> bool:
    """Whether a worker never comes back and may not be declared lost: the other local master cannot confirm it."""
    first, cluster = watch.net.first[LOCAL_MASTER], int(watch.roles.topology.machine["cluster"][machine])
    pair = [watch.net.incarnation[first + one] < 0 for one in range(cluster, watch.instances, watch.clusters)]
    return bool(watch.net.incarnation[watch.net.first[WORKER] + machine] < 0 and len(pair) > 1 and any(pair))


def in_vain(watch: Watch) -> set[str]:
    """Return the kinds of messages that go on for ever where somebody is dead."""
    kinds: set[str] = set()
    if any(is_dead(watch, master) for master in range(watch.masters)):
        kinds |= {"SUBMIT", "WITHDRAW", "RESUBMIT", "EXPIRE", "REBUILD", "OVER", "FORGET"}
    if any(is_down(watch, cluster) for cluster in range(watch.clusters)):
        kinds |= {"RETRY", "WAKE", "ASK", "LAUNCH", "REPARTITION", "PREEMPT", "GO", "ABANDON", "OVER", "HOLD_BACK"}
    return kinds
