"""Checks a world at rest: after the faults, and time enough for all that comes back.

Nobody keeps anything that nobody needs: no open rows, no attempts, no facts of jobs, no questions, no timers of tasks.
Of the jobs of a global master that never returns what has begun may run to its end, which is kept for that master.
Every job that was acknowledged has ended, with one outcome for each task that agrees with what agents did.
"""
from typing import TYPE_CHECKING

import numpy as np

from subak.federation.megha.jobs import OUTCOME_FINISHED, OUTCOMES, SUBMISSION_ENDED
from subak.federation.megha.local_master.state import LISTED
from subak.federation.messages import BEAT, CHECK, FAILURE, HANDLER, KINDS, NOBODY, TICK, WATCH
from subak.fleet.state import FleetState
from subak.live.agent.attempts.attempt import Key
from subak.live.role.facts import JOB
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.role.global_master.history import BEGAN, Happening
from subak.live.role.global_master.rows import read_ended
from subak.live.role.layout import owner_of_job
from subak.live.role.local_role import LocalRole
from subak.live.role.worker.worker_role import WorkerRole
from subak.live.torture.people import People
from subak.live.torture.process import Process
from subak.live.torture.watch import ALWAYS, BrokenError, Task

if TYPE_CHECKING:
    from subak.live.torture.world import World

PERIODIC = frozenset((BEAT, CHECK, TICK, WATCH))  # timers that go on for ever


def unrest(world: "World", people: People) -> str:
    """Say what is not yet as it must be in the end; nothing when everything is."""
    late = [name for name in world.case.dead if not world.process(name).is_dead]
    if late:
        return f"{late[0]} has not been killed for good"
    answered = {*people.told, *people.refused}
    waits = [job.client for job in world.case.jobs if job.client not in answered]
    stays = [world.machines.all[wish.target].process for wish in world.case.wishes if wish.what == "leave"]
    if stays and not stays[0].is_dead:
        return f"{stays[0].name} has yet to leave"
    if not people.uncordon_all():
        return "machines are cordoned"
    if waits:
        return f"{waits[0]} waits for its job to be acknowledged"
    return next(filter(None, (_of_process(world, process) for process in world.processes)), "")


def _of_process(world: "World", process: Process) -> str:
    role = process.role
    if role is None:
        return "" if process.is_dead else f"{process.name} is not there"
    if process.writing or process.inbox or role.pending:
        return f"{process.name} is at work"
    timers = {KINDS[kind] for *_, kind, _ in role.timers if kind not in PERIODIC and HANDLER[kind] >= 0}
    if timers:
        return f"{process.name} has timers {sorted(timers)}"
    if isinstance(role, GlobalRole):
        return _of_global(world, process, role)
    if isinstance(role, LocalRole):
        return _of_local(world, process, role)
    return _of_worker(world, process, role) if isinstance(role, WorkerRole) else ""


def _is_dead(world: "World", master: int) -> bool:
    return world.masters[master].role is None


def _any_is_dead(world: "World") -> bool:
    return any(_is_dead(world, master) for master in range(len(world.masters)))


def _jobs_known(world: "World", role: GlobalRole | LocalRole | WorkerRole) -> list[int]:
    """Return the jobs that facts are about, but those of masters that never come back."""
    return [number for kind, number in role.facts.known
            if kind == JOB and not _is_dead(world, owner_of_job(number))]


def _of_global(world: "World", process: Process, role: GlobalRole) -> str:
    name = process.name
    if role.book.of_number:
        return f"{name} has open jobs: {_open_job(role)}"
    if role.tasks.counts.tasks_open or role.master.counts.queued:
        return f"{name} has {role.tasks.counts.tasks_open} open rows, {role.master.counts.queued} queued"
    if _jobs_known(world, role):
        return f"{name} knows of jobs {_jobs_known(world, role)}"
    versions = {other.role.queues.version for other in world.masters if isinstance(other.role, GlobalRole)}
    if len(versions) > 1:
        return f"global masters have versions {sorted(versions)} of the queues"
    if problem := _held_back(role.master.holding.holder, role.master.holding.wanted) or _held(
        world, role.master.fleet, role.master.listed
    ):
        return f"{name} {problem}"
    keeps = (role.touched, role.asked, role.walks, +role.own_shapes.uses, role.admission.lanes.of,
             *(process.disk.get(table) for table in ("task", "job", "cancel")))
    return f"{name} keeps something of tasks: {keeps}" if any(keeps) else ""


def _open_job(role: GlobalRole) -> str:
    job = next(iter(role.book.of_number.values()))
    places, rows = job.places, role.jobs.row[job.places]
    phases = [role.master.task[row]["phase"].item() if row != NOBODY else None for row in rows.tolist()]
    return f"job {job.number}, client {job.stored.client}, states {role.jobs.state[places].tolist()}, phases {phases}"


def _held(world: "World", fleet: FleetState, there: np.ndarray) -> str:
    """Say that the books of a master have tasks on machines that are *there*, where nothing may be left of any."""
    free, capacity = (amounts[:, : there.size][:, there] for amounts in (fleet.free, fleet.capacity))
    is_held = not _any_is_dead(world) and (free != capacity).any()
    return f"has {free.tolist()} free, of {capacity.tolist()}" if is_held else ""


def _held_back(*tables: np.ndarray) -> str:
    """Say that machines are held back for somebody, by any of these."""
    return "has machines held back" if any((table != NOBODY).any() for table in tables) else ""


def _of_local(world: "World", process: Process, role: LocalRole) -> str:
    name = process.name
    speaks = [each for each in world.locals
              if isinstance(each.role, LocalRole) and each.role.cluster == role.cluster
              and each.role.local.standing.active]
    if len(speaks) != 1:
        return f"{len(speaks)} speak for cluster {role.cluster}"
    if process in speaks:
        for row in role.local.rows.row[: role.local.rows.counts.rows_ever]:
            if _is_used(role.local.rows.first, role.local.rows.row, row) and not _is_dead(world, int(row["owner"])):
                return f"{name} keeps task {row['task']} in state {row['state']} on machine {row['machine']}"
        if problem := _held_back(role.local.machine["held_by"]) or _held(
            world, role.local.fleet, role.local.machine["state"] == LISTED
        ):
            return f"{name} {problem}"
    if _jobs_known(world, role):
        return f"{name} knows of jobs {_jobs_known(world, role)}"
    return f"{name} has questions" if role.questions else ""


def _is_used(first: np.ndarray, rows: np.ndarray, row: np.void) -> bool:
    """Whether a row is in the list of its machine."""
    number = int(first[row["machine"]]) if row["machine"] != NOBODY else NOBODY
    while number != NOBODY:
        if rows[number] is row or (rows[number]["task"] == row["task"] and rows[number]["attempt"] == row["attempt"]):
            return True
        number = int(rows[number]["next"])
    return False


def _of_worker(world: "World", process: Process, role: WorkerRole) -> str:
    name, machine = process.name, process.machine
    number = int(role.workers.rows.first[role.number])
    while number != NOBODY:
        row = role.workers.rows.row[number]
        if not _is_dead(world, int(row["owner"])):
            return f"{name} keeps task {row['task']} in state {row['state']}"
        number = int(row["next"])
    free = [role.workers.free[resource, role.number] for resource in range(len(role.join.capacity))]
    if free != list(role.join.capacity) and not _any_is_dead(world):
        return f"{name} believes that {free} are free"
    if role.halting or role.alive:
        return f"{name} has attempts: {role.alive}"
    if _jobs_known(world, role):
        return f"{name} knows of jobs {_jobs_known(world, role)}"
    if machine is None or machine.agent is None:
        return f"{name} has no agent"
    kept = [key for key in machine.agent.ledger.rows if not _is_dead(world, world.layout.owner_of(key.task))]
    return f"the agent of {name} keeps {kept[0]}" if kept else ""


# -- outcomes ----------------------------------------------------------------------------------------------------------


def check_outcomes(world: "World", people: People) -> None:
    """Check that every job that was acknowledged has ended once, and as agents say. Raises BrokenError."""
    found: dict[str, list[tuple[str, int]]] = {}
    for process in world.masters:
        if process.role is None:
            continue
        world.started(process)
        for number, body in process.disk.get("ended", {}).items():
            stored, _, rows, events = read_ended(body)
            found.setdefault(stored.client, []).append((process.name, int(number)))
            if next(name for name, job in world.watch.jobs.items() if job.client == stored.client) \
                    not in world.watch.forgiven:
                _check_job(world, stored.client, rows, events)
    for client, jobs in found.items():
        if len(jobs) > 1 or people.told.get(client, jobs[0]) != jobs[0]:
            raise BrokenError(f"{client} has jobs {jobs}, and was told of {people.told.get(client)}")
    if world.watch.alive and not _any_is_dead(world):
        raise BrokenError(f"there runs {world.watch.alive}")


def _check_job(world: "World", client: str, rows: np.ndarray, events: list[Happening]) -> None:
    job = next(job for job in world.case.jobs if job.client == client)
    name = int(job.spec.stages[0].command[1])
    for index, row in enumerate(rows):
        if row["state"] != SUBMISSION_ENDED or not row["outcome"]:
            raise BrokenError(f"task {(name, index)} of a job that is over is in state {row['state']}")
        _check_task(world, (name, index), row)
        _check_beginnings(world, (name, index), int(row["attempts"]), events)


def _check_beginnings(world: "World", task: Task, attempts: int, events: list[Happening]) -> None:
    """Check that the history has each beginning; some that it has may not have been, if nobody knows."""
    told = [event.nth for event in events if event.task == task[1] and event.what == BEGAN]
    times = world.watch.beginnings.times[task]
    if len(told) < times:
        raise BrokenError(f"task {task} has begun {times} times, its history says {len(told)}")
    if sorted(told) != list(range(1, attempts + 1)):
        raise BrokenError(f"task {task} has {attempts} attempts, its history numbers them {told}")


def _check_task(world: "World", task: Task, row: np.void) -> None:
    watch, outcome = world.watch, OUTCOMES[int(row["outcome"])]
    where, when = watch.finished.get(task, ("", 0.0))
    if row["outcome"] == OUTCOME_FINISHED and not where:
        raise BrokenError(f"task {task} is FINISHED, and never came to a good end")
    key = Key(int(row["number"]), int(row["attempt"]))
    if row["outcome"] == OUTCOME_FINISHED and key not in watch.good:
        raise BrokenError(f"task {task} is FINISHED by {key}, which did not come to a good end")
    if row["outcome"] != OUTCOME_FINISHED and where and watch.gone.get(where, ALWAYS) < when:
        raise BrokenError(f"task {task} came to a good end on {where} at {when:.4f}, and is {outcome}")
    codes = watch.failed.get(task, [])
    if FAILURE[row["reason"]] and int(row["code"]) not in codes:
        raise BrokenError(f"task {task} is {outcome} with code {row['code']}, agents saw {codes}")
    if row["failed"] > min(len(codes), watch.stage[task].retries + 1):
        raise BrokenError(f"task {task} has failed {row['failed']} times, agents saw {codes}")
