"""Tells a scheduler in a process of its own what happens, and does what it answers: the protocol of Batsim 3 and 4.

docs/policies.md has the messages. A task is a job of one machine. Amounts are whole numbers of the resources' units.
"""
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec
import numpy as np

from subak.errors import PolicyError, first_line
from subak.fleet.state import FREE_WHEN_ABSENT
from subak.fleet.table import Fleet
from subak.json_type import Json
from subak.placement.claims import TASK_FINISHED, TASK_RUNNING, claim
from subak.placement.schedulers import Scheduler
from subak.simulator.central.process import Process
from subak.simulator.engine.setup import Prepared
from subak.workload.table import Workload

WORKLOAD = "w0"  # as Batsim calls the first; it stands before the number of each job
PROFILE = "task"  # what all jobs are said to be like: a scheduler is not told what they do
UNHEARD = ("NOTIFY", "SET_JOB_METADATA")  # events that change nothing here
CONFIG = {"profiles-forwarded-on-submission": False, "dynamic-jobs-enabled": False, "dynamic-jobs-acknowledged": False,
          "profile-reuse-enabled": False, "forward-unknown-events": False, "redis-enabled": False}


class Event(msgspec.Struct):
    """What a scheduler decided."""

    type: str
    data: dict[str, Json] = {}
    timestamp: float = 0.0


class Answer(msgspec.Struct):
    """The line that answers a message."""

    events: list[Event]
    now: float = 0.0


class Conversation:
    """What is said in one run; a pair of hooks of the engine."""

    def __init__(self, prepared: Prepared, workload: Workload, fleet: Fleet, scheduler: Scheduler) -> None:
        self.sim, self.workload, self.fleet, self.scheduler = prepared.simulation, workload, fleet, scheduler
        self.process: Process | None = None
        self.running: list[set[int]] = [set() for _ in range(self.sim.fleet.machines)]  # tasks, by machine
        self.rejected: set[int] = set()
        self.capacity = self._capacities()
        self.stage = workload.tasks["stage"].to_numpy()
        self.constraints = workload.stages["constraints"].to_list()

    def __enter__(self) -> Self:
        """Return itself; the process starts with the first event."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        """Say that the simulation ends, or, after a fault, end the process."""
        if self.process is None:
            return
        try:
            if kind is None:
                self.process.ask(_line(self._now(), [_event(self._now(), "SIMULATION_ENDS", {})]))
                self.process.finish()
        except PolicyError as error:
            raise PolicyError(f"scheduler {self.scheduler.name} {error}") from None
        finally:
            self.process.kill()
            self.process.close()

    def last_words(self) -> str:
        """Return what the process said last, for use in a line."""
        return "" if self.process is None else self.process.last_words()

    # -- what happens --------------------------------------------------------------------------------------------------

    def on_arrival(self, *given: np.ndarray) -> None:
        """Tell of the tasks that wait now."""
        arrived = given[4]
        self._tell([self._submitted(int(task)) for task in arrived])

    def on_departure(self, *given: np.ndarray) -> None:
        """Tell of the tasks that ended on the machines that were freed, and of machines that left, came or changed."""
        freed = given[4]
        events = [self._completed(task, machine) for machine in map(int, freed)
                  for task in sorted(self.running[machine]) if self.sim.claims.status[task] != TASK_RUNNING]
        capacity = self._capacities(freed)
        changed = freed[(capacity != self.capacity[:, freed]).any(axis=0)]
        self.capacity[:, freed] = capacity
        self._tell([*events, *map(self._machine, changed.tolist())])

    def _submitted(self, task: int) -> dict[str, Json]:
        tasks, name = self.sim.tasks, _job(task)
        job: dict[str, Json] = {
            "id": name, "subtime": float(tasks.arrival[task]), "res": 1, "walltime": float(tasks.estimate[task]),
            "profile": PROFILE, "request": tasks.request[:, tasks.shape[task]].tolist(),
            "constraints": self.constraints[self.stage[task]]}
        return _event(self._now(), "JOB_SUBMITTED", {"job_id": name, "job": job})

    def _completed(self, task: int, machine: int) -> dict[str, Json]:
        self.running[machine].remove(task)
        ended = self.sim.claims.status[task] == TASK_FINISHED
        return _event(self._now(), "JOB_COMPLETED", {
            "job_id": _job(task), "job_state": "COMPLETED_SUCCESSFULLY" if ended else "COMPLETED_KILLED",
            "return_code": 0 if ended else 1, "alloc": str(machine)})

    def _machine(self, machine: int) -> dict[str, Json]:
        there = self.capacity[0, machine] != FREE_WHEN_ABSENT
        amounts = {"capacity": self.capacity[:, machine].tolist()} if there else {}
        return _event(self._now(), "NOTIFY", {
            "type": f"event_machine_{'available' if there else 'unavailable'}", "resources": str(machine), **amounts})

    def _begins(self) -> dict[str, Json]:
        """Return what is said first: the machines, and the names of the amounts."""
        attributes: list[dict[str, Json]] = [{} for _ in range(self.sim.fleet.machines)]
        for machine, name, value in self.fleet.attributes.iter_rows():
            attributes[machine][name] = value
        machines: list[Json] = [
            {"id": machine, "name": name, "state": "idle", "properties": attributes[machine], "zone_properties": {},
             "capacity": np.maximum(self.capacity[:, machine], 0).tolist()}
            for machine, name in enumerate(self.fleet.machines["machine"].to_list())]
        return _event(self._now(), "SIMULATION_BEGINS", {
            "nb_resources": len(machines), "nb_compute_resources": len(machines), "nb_storage_resources": 0,
            "allow_compute_sharing": self._is_shared(), "allow_storage_sharing": True, "config": CONFIG,
            "compute_resources": machines, "storage_resources": [],
            "workloads": {WORKLOAD: self.workload.provenance.name},
            "profiles": {WORKLOAD: {PROFILE: {"type": "delay", "delay": 0.0}}},
            "resources": [resource.name for resource in self.workload.resources],
            "units": [resource.unit for resource in self.workload.resources]})

    def _is_shared(self) -> bool:
        """Whether a machine could ever run two tasks at once."""
        least = self.sim.tasks.request.min(axis=1)
        return bool((self.fleet.capacity >= 2 * least[:, None]).all(axis=0).any())

    # -- what is answered ----------------------------------------------------------------------------------------------

    def _tell(self, events: list[dict[str, Json]]) -> None:
        """Send events, of which there may be none, and do what is answered."""
        if not events:
            return
        if self.process is None:
            self.process = Process(self.scheduler.command, self.scheduler.answer_timeout)
            self._ask([self._begins()])
            absent = np.flatnonzero(self.capacity[0] == FREE_WHEN_ABSENT).tolist()
            events = [*map(self._machine, absent), *events]
        self._ask(events)

    def _ask(self, events: list[dict[str, Json]]) -> None:
        assert self.process is not None
        line = self.process.ask(_line(self._now(), events))
        try:
            answer = msgspec.json.decode(line, type=Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._wrong(f"answered what is no message: {first_line(error)}") from None
        for event in answer.events:
            if not self._done(event):
                return  # the engine says which rule was broken

    def _done(self, event: Event) -> bool:
        """Do what was decided; return whether every rule was kept."""
        if event.type in UNHEARD:
            return True
        if event.type not in ("EXECUTE_JOB", "REJECT_JOB"):
            raise self._wrong(f"answered {event.type!a}, which is not supported; EXECUTE_JOB and REJECT_JOB are")
        task = self._task(event.data.get("job_id"))
        if event.type == "REJECT_JOB":
            self.rejected.add(task)
            return True
        if task in self.rejected:
            raise self._wrong(f"executes job {_job(task)}, which it rejected")
        machine = self._place(task, event.data.get("alloc"))
        if not claim(self.sim.claims, self.sim.fleet, self.sim.tasks, task, machine):
            return False
        self.running[machine].add(task)
        return True

    def _task(self, name: Json) -> int:
        head, _, number = str(name).rpartition("!")
        if head != WORKLOAD or not number.isdecimal() or int(number) >= self.sim.tasks.arrival.size:
            last = _job(self.sim.tasks.arrival.size - 1)
            raise self._wrong(f"names job {name!a:.60}, but jobs are {_job(0)} to {last}")
        return int(number)

    def _place(self, task: int, alloc: Json) -> int:
        text = str(alloc)
        if not text.isdecimal() or len(text) > len(str(2**32)):
            raise self._wrong(f"executes job {_job(task)} on {alloc!a:.60}; a job runs on one machine, such as \"7\"")
        return int(text)

    def _wrong(self, words: str) -> PolicyError:
        return PolicyError(words + self.last_words())

    def _now(self) -> float:
        return self.sim.clock.now

    def _capacities(self, of: Sequence[int] | slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return int32[resource, machine] of some machines, FREE_WHEN_ABSENT of those that are not there."""
        fleet = self.sim.fleet
        free, capacity = fleet.free[:, : fleet.machines][:, of], fleet.capacity[:, : fleet.machines][:, of]
        return np.where(free == FREE_WHEN_ABSENT, FREE_WHEN_ABSENT, capacity)


def _job(task: int) -> str:
    return f"{WORKLOAD}!{task}"


def _event(now: float, kind: str, data: dict[str, Json]) -> dict[str, Json]:
    return {"timestamp": now, "type": kind, "data": data}


def _line(now: float, events: list[dict[str, Json]]) -> bytes:
    return msgspec.json.encode({"now": now, "events": events})
