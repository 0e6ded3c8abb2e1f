"""A federation's run in chunks: a task keeps its place as long as any role may name it.

Roles name a task by its number, which is used once: the last bits are the task's place in the tables by task, the
others its number in the workload, so that what goes by the number goes by the order of the workload. Rows of masters
and workers are used again as they are in memory (open_tasks.py, attempts.py); only the tables by task would grow.

A place is free again when its task has ended, its global master has confirmed that, and neither a message on its way
nor a row of a local master or a worker names it: from then on nobody says anything of it. A federation that needs more
places is opened anew with more, and takes on what it was, as one does that goes on from a checkpoint.
"""
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subak.federation.megha.global_master.state import TASK
from subak.federation.megha.jobs import ENDING, SUBMISSION_ENDED, SUBMISSION_NEW, Jobs
from subak.federation.megha.roles import Megha
from subak.federation.messages import NOBODY, RELEASE
from subak.federation.settings import Federation
from subak.fleet.table import Fleet
from subak.placement.claims import TASK_UNPLACEABLE
from subak.placement.schedulers import Scheduler
from subak.simulator.chunks.arrays import own_arrays, packed, take_on, unpacked
from subak.simulator.chunks.blocks import RESULT, results, with_results
from subak.simulator.chunks.rows import OF_TASKS
from subak.simulator.engine.run_loop import LoopResult
from subak.simulator.engine.setup import Terms, arriving
from subak.simulator.engine.state import Simulation
from subak.simulator.federated.architectures import ARCHITECTURES
from subak.simulator.federated.by_task import states_by_task
from subak.simulator.federated.fault_plan import FaultPlan
from subak.simulator.federated.megha_setup import asked_of, find_queues, ranks
from subak.simulator.federated.network import PLACE_BITS, PLACES_MASK, Network, held_slots, with_more_room
from subak.simulator.federated.simulate import SLOTS, Federated, Opened, broken_rule, open_federated
from subak.simulator.outcome import Outcome
from subak.workload.stored import StoredWorkload
from subak.workload.table import Workload

PARTS = ("processing", "at_worker", "communication")  # of the network, by task
STATES = ("refusals", "repartitioned", "preempted", "phase", "reason")  # of a task at its global master
FEDERATED_RESULT = np.dtype([
    *((name, RESULT[name]) for name in RESULT.names or ()), *((name, np.float64) for name in PARTS),
    *((name, np.int16) for name in STATES)])
BY_TASK = ("tasks", "progress", "claims", "stages")  # tables of a simulation that have a column by task
CHUNKS_AT_ONCE = 2  # of tasks there are places for at first


@dataclass(frozen=True)
class Inputs:
    """What a federation is opened with."""

    stored: StoredWorkload
    fleet: Fleet
    scheduler: Scheduler
    terms: Terms
    settings: Federation
    faults: FaultPlan | None

    def opened(self, places: int) -> Opened:
        """Return the federation at rest, with places for so many tasks, none of which has one.

        What is built for each task is built of as many copies of the first.
        """
        head, first = _without_gangs(self.stored.head), self.stored.part(0, 1).tasks
        copies = replace(head, tasks=first[np.zeros(places, np.uint32)])
        architecture, terms = ARCHITECTURES[self.scheduler.architecture], self.terms
        opened = open_federated(
            copies, self.fleet, architecture, architecture.settled(self.settings), terms.seed, terms.interval,
            terms.until, self.faults, terms.queues, in_full=False, of_stage=self.stored.of_stage, slots=SLOTS,
            hold_back_after=terms.hold_back_after)
        opened.network = opened.network._replace(arrival=np.zeros(0), arriving=np.zeros(0, np.int32))
        jobs: Jobs = opened.roles.jobs
        jobs.number[:] = NOBODY
        if jobs.stages.left.size:
            jobs.stages.left[:] = self.stored.of_stage
        return opened


class FederatedRun:
    """A run whose rows are places; see `Driven`."""

    kind = FEDERATED_RESULT

    def __init__(self, inputs: Inputs, chunk: int) -> None:
        self.inputs = inputs
        self.opened = inputs.opened(min(CHUNKS_AT_ONCE * chunk, inputs.stored.tasks))
        self.settings = self.opened.settings
        self.queues = find_queues(_without_gangs(inputs.stored.head), self.settings, inputs.terms.queues)
        self.arrived_before, self.last_arrival = 0, inputs.stored.last

    @property
    def simulation(self) -> Simulation:
        """The state of what really runs."""
        return self.opened.simulation

    @property
    def roles(self) -> Megha:
        """The roles."""
        roles: Megha = self.opened.roles
        return roles

    @property
    def number(self) -> np.ndarray:
        """int64[place], of its task in the workload; negative where there is none."""
        return self.roles.jobs.number >> PLACE_BITS

    @property
    def step(self) -> Callable[[int], int]:
        """What runs a number of events, and says why it came back."""
        return self.opened.step

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers in the workload of the tasks at some places."""
        return self.roles.jobs.number[rows] >> PLACE_BITS

    def ended(self) -> np.ndarray:
        """Return the places of tasks that nobody will name any more, in the order of the workload."""
        jobs, status = self.roles.jobs, self.simulation.claims.status
        is_over = (jobs.state == SUBMISSION_ENDED) & (jobs.row == NOBODY) | (status == TASK_UNPLACEABLE)
        is_over &= jobs.number != NOBODY
        is_over[self._named() & PLACES_MASK] = False
        places = np.flatnonzero(is_over)
        return places[np.argsort(jobs.number[places], kind="stable")]

    def _named(self) -> np.ndarray:
        """Return the numbers of tasks that messages on their way, and rows of attempts, name."""
        network, roles = self.opened.network, self.roles
        under_way = network.flight["task"][held_slots(network)]
        pools = [roles.workers.rows, *(local.rows for local in roles.locals), *(each.held for each in roles.masters)]
        rows = [pool.row[: pool.counts.rows_ever] for pool in pools]
        named = np.concatenate([under_way, *(each["task"][each["machine"] != NOBODY] for each in rows)])
        return named[named != NOBODY]

    def results(self, rows: np.ndarray) -> np.ndarray:
        """Return what became of the tasks at some places."""
        values = results(self.simulation, rows, self.kind)
        states = states_by_task(self.roles)[rows]
        for name in PARTS:
            values[name] = getattr(self.opened.network, name)[rows]
        for name in STATES:
            values[name] = states[name]
        return values

    def drop(self, rows: np.ndarray) -> None:
        """Let the places of tasks that ended be others'."""
        self.roles.jobs.number[rows] = NOBODY

    def read(self, begin: int, part: Workload) -> None:
        """Let the tasks from number *begin* on have the first free places."""
        free, count = np.flatnonzero(self.roles.jobs.number == NOBODY), len(part.tasks)
        if free.size < count:
            former, opened = own_arrays(self._state()), self.opened
            self._open_anew(2 * former["/1/number"].size + count, opened.network.slot.size, opened.changed, former)
            free = np.flatnonzero(self.roles.jobs.number == NOBODY)
        self._place(free[:count], begin, part)
        self.opened.network = self.opened.network._replace(
            arrival=part.tasks["arrival"].to_numpy(writable=True), arriving=free[:count].astype(np.int32))
        self.simulation.counts.next_arrival = 0
        self.arrived_before = begin
        list_stages(self.roles.jobs, self.opened.network, np.flatnonzero(self.roles.jobs.number != NOBODY))

    def _place(self, places: np.ndarray, begin: int, part: Workload) -> None:
        """Write what is known of the tasks of a part where the tables by task have them."""
        sim, network, jobs = self.simulation, self.opened.network, self.roles.jobs
        stage = part.tasks["stage"].to_numpy()
        fresh = arriving(self.opened.prepared, part, self.inputs.fleet, self.inputs.terms)
        for table, more in ((getattr(sim, name), getattr(fresh, name)) for name in BY_TASK):
            for name in OF_TASKS[type(table)]:
                if getattr(table, name).size:
                    getattr(table, name)[places] = getattr(more, name)
        asked = asked_of(part, self.queues, stage)
        jobs.rank[places] = ranks(part, self.settings, self.inputs.stored.of_stage)
        jobs.number[places] = (np.arange(begin, begin + places.size) << PLACE_BITS) + places
        jobs.asked[places], jobs.ending[places] = asked, np.zeros((), ENDING)
        given_up = jobs.given_up[stage] if jobs.given_up.size else np.zeros(places.size, np.bool_)
        jobs.state[places] = np.where(given_up, SUBMISSION_ENDED, SUBMISSION_NEW)
        network.submitter[places] = asked["owner"]
        for name in PARTS:
            getattr(network, name)[places] = 0.0

    # -- opened anew ---------------------------------------------------------------------------------------------------

    def kept(self) -> dict[str, np.ndarray]:
        """Return what another run like this one goes on from."""
        opened = self.opened
        sizes = {"places": self.roles.jobs.number.size, "slots": opened.network.slot.size, "changes": opened.changed}
        return {**packed(own_arrays(self._state())), **{name: np.array(size) for name, size in sizes.items()}}

    def go_on_from(self, kept: dict[str, np.ndarray]) -> None:
        """Be where another run was. Raises KeyError where anything is missing."""
        places, slots, changes = (int(kept[name]) for name in ("places", "slots", "changes"))
        self._open_anew(places, slots, changes, unpacked(kept))

    def _open_anew(self, places: int, slots: int, changes: int, arrays: dict[str, np.ndarray]) -> None:
        """Open the federation with so many places, and be where *arrays* say: after so many changes of queues.

        *slots*: messages on their way at once that there is room for.
        """
        self.opened = self.inputs.opened(places)
        for _ in range(changes):
            self.opened.change_queues_next()
        while self.opened.network.slot.size < slots:
            self.opened.network = with_more_room(self.opened.network)
        take_on(self._state(), arrays)

    def _state(self) -> tuple[Any, ...]:
        return self.simulation, self.opened.network, self.roles

    # -- in the end ----------------------------------------------------------------------------------------------------

    def broken(self) -> Exception:
        """Word the rule that a role broke."""
        return broken_rule(self.simulation)

    def outcome(self, result: LoopResult) -> Outcome:
        """Return the run, which has come to its end, of the tasks that have places."""
        federated = Federated(self.settings, self.opened.network, self.roles)
        return Outcome(self.opened.prepared, self.inputs.scheduler, self.inputs.terms.seed, result, federated)

    def outcome_of(self, whole: Outcome, part: Workload, values: np.ndarray) -> Outcome:
        """Return the run of some tasks; *values* are their results."""
        fresh = arriving(whole.prepared, part, self.inputs.fleet, self.inputs.terms)
        states, roles = np.zeros(values.size, TASK), self.roles
        for name in STATES:
            states[name] = values[name]
        asked = asked_of(part, self.queues, part.tasks["stage"].to_numpy())
        federated = Federated(
            self.settings, self.opened.network._replace(
                processing=values["processing"], at_worker=values["at_worker"], communication=values["communication"]),
            roles._replace(jobs=roles.jobs._replace(asked=asked)), states)
        return replace(whole, federated=federated, prepared=replace(
            whole.prepared, simulation=with_results(fresh, values)))


def list_stages(jobs: Jobs, network: Network, places: np.ndarray) -> None:
    """List the tasks at some places by stage, in the order of the workload, and let walks over a stage go on there.

    A task that a walk has come to waits, so that it is among them still; those before it may have gone.
    """
    stages = jobs.stages
    if stages.of_task.size == 0:
        return
    under_way = held_slots(network)
    walks = under_way[network.flight["kind"][under_way] == RELEASE]
    come_to = jobs.number[stages.task[network.flight["row"][walks]]]
    listed = places[np.lexsort((jobs.number[places], stages.of_task[places]))]
    stages.task[: listed.size] = listed
    stages.task_first[1:] = np.cumsum(np.bincount(stages.of_task[places], minlength=stages.left.size))
    for walk, number in zip(walks, come_to, strict=True):
        first, end = stages.task_first[network.flight["count"][walk] :][:2]
        network.flight["row"][walk] = first + np.searchsorted(jobs.number[listed[first:end]], number)


def _without_gangs(head: Workload) -> Workload:
    """Return a workload that says of nothing that it starts together: a stage that it says so of has one task."""
    return replace(head, stages=head.stages.drop("gang", strict=False))
