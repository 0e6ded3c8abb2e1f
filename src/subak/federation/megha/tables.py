"""Makes the tables of Megha's roles: empty, and sized for all that may be there at once.

Room that nobody uses costs nothing: tables are pages of zeros until they are written to, and rows are used again, the
lowest first. What a federation grows by while it runs is written into that room (admission.py).
"""
from typing import NamedTuple

import numpy as np

from subak.federation.megha.attempts import build_attempts, build_part
from subak.federation.megha.global_master.hold_back import build_holding
from subak.federation.megha.global_master.placement import Bins
from subak.federation.megha.global_master.queue_order import QueueOrder
from subak.federation.megha.global_master.state import (
    CLUSTER,
    GANG,
    TASK,
    GlobalMaster,
    GlobalTally,
    MasterCounts,
)
from subak.federation.megha.jobs import ASKED, ENDING, TERMS, Jobs
from subak.federation.megha.ledger import Ledger
from subak.federation.megha.local_master.state import (
    ABSENT,
    ASKER,
    LISTED,
    MACHINE,
    LocalMaster,
    LocalTally,
    Standing,
)
from subak.federation.megha.open_tasks import build_open_tasks
from subak.federation.megha.submitter import SUBMISSION, Submitter, SubmitterCounts
from subak.federation.megha.topology import Topology, records
from subak.federation.messages import NOBODY
from subak.fleet.state import FleetState
from subak.queues.lanes import build_lanes
from subak.workload.tasks import Stages


def build_jobs(places: int, stages: int, edges: int, gangs: int) -> Jobs:
    """Return room for tasks, a power of two of them, and for stages, the edges between them, and gangs; nothing known.

    The tasks of a stage are at places next to each other, and so are the stages of a job (admission.py).
    """
    graph = Stages(
        of_task=np.zeros(places, np.int32), left=np.zeros(stages, np.int32), waits=np.zeros(stages, np.int32),
        child_first=np.zeros(stages + 1, np.int64), child=np.zeros(edges, np.int32),
        task_first=np.zeros(stages + 1, np.int64), task=np.arange(places, dtype=np.int32),
    )
    return Jobs(
        number=np.full(places, NOBODY, np.int64), mask=places - 1, state=np.zeros(places, np.int8),
        row=np.full(places, NOBODY, np.int32), asked=np.zeros(places, ASKED), rank=np.zeros(places),
        shape=np.zeros(places, np.int32), gang=np.full(places, NOBODY, np.int32), gang_size=np.zeros(gangs, np.int32),
        gang_row=np.full(gangs, NOBODY, np.int32), gang_left=np.zeros(gangs, np.int32),
        gang_failed=np.zeros(gangs, np.bool_), ending=np.zeros(places, ENDING), terms=np.zeros(places, TERMS),
        given_up=np.zeros(stages, np.bool_), to_give_up=np.zeros(stages, np.int32), stages=graph,
    )


def build_submitter(
    number: int, rows: int, gangs: int, request: np.ndarray, constraint_set: np.ndarray, retry: float
) -> Submitter:
    """Return the submitter beside global master *number*, with so many rows of open tasks and of open gangs."""
    tasks = build_open_tasks(rows, gangs, request, constraint_set)
    return Submitter(number, tasks, np.zeros(rows, SUBMISSION), SubmitterCounts(incarnation_known=1), retry)


def build_global_master(  # noqa: PLR0913  (its parts)
    submitter: Submitter, topology: Topology, view: FleetState, *, own: np.ndarray, lanes: int, lane_span: np.ndarray,
    lane_places: int, queue_order: QueueOrder, bins: Bins, held: int, counted: int,
) -> GlobalMaster:
    """Return a global master in its first incarnation.

    *own*: its queues; *lanes*: room for lanes, *lane_span* as of `GlobalMaster`, *lane_places* how many places all
    spans have; *held*: room for attempts on all machines, of which it knows with preemption only, else 0; *counted*:
    of how many resources it counts what queues use, all of them or none.
    """
    rows, queues = submitter.tasks.number.size, len(lane_span)
    served = np.full(queues, NOBODY, np.int32)
    served[: len(own)] = own
    empty = build_lanes(lanes, rows, number=submitter.tasks.number)
    return GlobalMaster(
        number=submitter.number, fleet=view, held=build_attempts(view.free.shape[1] if held else 0, held),
        consumed=np.zeros((topology.local_masters, queues, counted), np.int64),
        total=np.zeros((queues, counted), np.int64),
        cluster=records(CLUSTER, known=np.ones(topology.local_masters)),
        listed=topology.machine["configuration"] != NOBODY, own=served,
        lanes=empty._replace(active=np.empty(lane_places, np.int32), contender=np.empty(lane_places, np.int32)),
        lane_span=lane_span.copy(), lane_size=np.zeros((queues, 3), np.int64), task=np.zeros(rows, TASK),
        gang=np.zeros(submitter.tasks.gangs.size, GANG), queue_order=queue_order, bins=bins,
        holding=build_holding(view, lanes), counts=MasterCounts(incarnation=1, own_queues=len(own)),
        tally=GlobalTally(),
    )


class ByMachine(NamedTuple):
    """Tables by machine as all local masters share them, and all standbys others: each touches its own cluster's."""

    books: FleetState
    machine: np.ndarray  # MACHINE[machine]
    first: np.ndarray  # int32[machine], as of `Attempts`


def build_by_machine(topology: Topology, books: FleetState) -> ByMachine:
    """Return the tables of machines on which nothing runs."""
    configuration = topology.machine["configuration"]
    machine = records(MACHINE, configuration=configuration, state=np.where(configuration != NOBODY, LISTED, ABSENT),
                      worker_incarnation=np.ones(configuration.size), held_by=np.full(configuration.size, NOBODY),
                      held_for=np.full(configuration.size, NOBODY))
    return ByMachine(books, machine, np.full(configuration.size, NOBODY, np.int32))


def build_local_master(number: int, topology: Topology, shared: ByMachine, rows: int, ledger: Ledger) -> LocalMaster:
    """Return the local master of a cluster, or its standby, with room for attempts."""
    asker = np.zeros(topology.global_masters, ASKER)
    asker["top"], asker["incarnation"], asker["over_first"] = NOBODY, 1, NOBODY
    return LocalMaster(
        number=number, cluster=number % topology.standbys, fleet=shared.books,
        rows=build_part(shared.first, rows), ledger=ledger, asker=asker, machine=shared.machine,
        standing=Standing(active=int(number < topology.standbys)), tally=LocalTally(),
    )
