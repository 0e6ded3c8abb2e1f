"""Refuses impossible runs by their inputs, before anything is built or compiled."""
import numpy as np

from subak.errors import InputError
from subak.federation.settings import Federation, supported_by
from subak.fleet.speeds import refuse_speeds, stage_groups
from subak.fleet.table import Fleet
from subak.placement.schedulers import Scheduler
from subak.queues.fair_orders import refuse_collapsed
from subak.queues.orders import FAIR_ORDERS
from subak.queues.tree import TreeFile, changed, refuse_changes, tree_of_paths
from subak.resources import same_resources
from subak.simulator.failures.draws import refuse_plan
from subak.simulator.failures.plan import FailurePlan
from subak.simulator.federated.architectures import ARCHITECTURES
from subak.simulator.federated.fault_plan import FaultPlan, faults_of
from subak.simulator.federated.megha_setup import find_queues
from subak.simulator.federated.simulate import refuse_limits
from subak.simulator.recorded import refuse_unrecorded
from subak.workload.table import Workload


def refuse_inputs(
    workload: Workload, fleet: Fleet, scheduler: Scheduler, settings: Federation, faults: FaultPlan | None,
    queues: TreeFile | None, failures: FailurePlan | None = None,
) -> None:
    """Raise InputError for a workload, a fleet and settings with which no run of *scheduler* could begin.

    What only a plan for the machines tells is found when the run is prepared.
    """
    same_resources(workload.resources, fleet.resources, "workload and fleet")
    if workload.tasks.is_empty():
        raise InputError("workload: there must be at least one task to simulate, this one has 0")
    if failures is not None:
        refuse_plan(failures, workload)
    if scheduler.recorded:
        refuse_unrecorded(workload)
    if scheduler.architecture:
        _refuse_federation(workload, fleet, scheduler, settings, faults, queues)
        return
    if len(fleet.speeds):
        stage_groups(workload, fleet)
    if scheduler.order in FAIR_ORDERS:
        refuse_collapsed(scheduler.order, [resource.name for resource in workload.resources])
    if queues is not None:
        refuse_changes(queues, scheduler.name)
        tree_of_paths(workload.jobs["queue"].to_list(), queues)


def refuse_gangs(workload: Workload, scheduler: Scheduler, apart: bool, reclaims_per_hour: float) -> None:
    """Raise InputError for gangs under a scheduler that starts their tasks one by one, unless they may be *apart*.

    Places are taken back for one task at a time, and so of no gangs.
    """
    gangs = int(np.count_nonzero(workload.gang_sizes()))
    if gangs and reclaims_per_hour > 0 and scheduler.order in FAIR_ORDERS:
        raise InputError(f"reclaims_per_hour: takes places of one task for another, and {workload.provenance.name} has "
                         f"{gangs:,} gangs; it must be 0")
    if gangs and not scheduler.keeps_gangs and not apart:
        raise InputError(f"gangs: {scheduler.name} starts the tasks of a gang one by one, and "
                         f"{workload.provenance.name} has {gangs:,} gangs; first-fit, easy, conservative, fair "
                         "orders, tetris, greedy, lotes, central and megha start them together; apart (--gangs apart) "
                         "takes gangs apart, and says so")


def _refuse_federation(
    workload: Workload, fleet: Fleet, scheduler: Scheduler, settings: Federation, faults: FaultPlan | None,
    queues: TreeFile | None,
) -> None:
    refuse_speeds(workload, fleet, scheduler.name)
    architecture = ARCHITECTURES[scheduler.architecture]
    if queues is not None:
        refuse_limits(queues)
        if architecture.change_queues is None:
            refuse_changes(queues, scheduler.name)
    settings = architecture.settled(settings)
    order = architecture.machine_order(fleet, settings)
    if "shares" in supported_by(scheduler):
        for file in [queues] if queues is None else [queues, *(changed(queues, change) for change in queues.change)]:
            find_queues(workload, settings, file)
    if faults is not None and architecture.mends:
        first = np.concatenate([[0], np.cumsum(architecture.counts(fleet, settings, len(order)))])
        faults_of(faults, settings, first, order)
