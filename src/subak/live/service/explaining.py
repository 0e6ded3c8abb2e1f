"""Explains why a task is in its state, from the view by which it is placed."""
from collections.abc import Iterator, Mapping

import numpy as np

from subak.federation.messages import LOCAL_MASTER, NOBODY
from subak.fleet.shortage import Shortage as Found
from subak.fleet.shortage import shortage
from subak.fleet.state import LOG
from subak.live.api.models import (
    HAS_FINISHED,
    STANDS,
    TASK_BACKOFF,
    TASK_BLOCKED,
    TASK_ENDED,
    TASK_WAITING,
    Explanation,
    Shortage,
)
from subak.live.config import FederationFile
from subak.live.jobfile.quantities import print_amount
from subak.live.role.facts import MACHINE, read_machine
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.role.layout import serial_of_job
from subak.live.service.views import PREEMPTIONS, Known, preempted_by, words_of
from subak.live.service.waiting import too_large


def explanation_of(
    role: GlobalRole, file: FederationFile, known: Known, index: int, machines: Mapping[int, str]
) -> Explanation:
    """Return why a task stands as it stands."""
    state = known.state(index)
    shortages = tuple(_shortages(role, file, known, index))
    preempted = [event for event in known.events if event.task == index and event.why in PREEMPTIONS]
    by, why = preempted_by(preempted[-1], role.queues) if preempted else ("", "")
    words = _words(role, known, index, shortages, machines)
    return Explanation(
        task=f"{known.id}.{index}", state=state,  # type: ignore[arg-type]
        words=words, shortages=shortages, preempted_by=by, preempted_why=why)


def _words(role: GlobalRole, known: Known, index: int, shortages: tuple[Shortage, ...], machines: Mapping[int, str],
           ) -> str:
    state = known.state(index)
    if state == TASK_ENDED:
        words = words_of(known, index)
        return f"it has ended: {words}" if words else HAS_FINISHED
    if state == TASK_WAITING:
        last = words_of(known, index)
        why = too_large(role, known.stage_of(index)) or (shortages[0].words if shortages else "")
        return (f"it waits: {why}" if why else "it waits for its turn") + (
            f"; before, {last}" if last else "")
    if shortages:
        return shortages[0].words
    machine = machines.get(int(known.row(index)["machine"]), "")
    return f"it {STANDS[state]}" + (f" on {machine}" if machine else "")


def _shortages(role: GlobalRole, file: FederationFile, known: Known, index: int) -> Iterator[Shortage]:
    state, stage = known.state(index), known.stage_of(index)
    if state == TASK_BLOCKED:
        for name in stage.depends_on:
            yield Shortage(test="stage", what=name, words=f"stage {name}, which it depends on, has not finished")
    elif state == TASK_BACKOFF:
        yield Shortage(test="backoff", words="its last attempt failed; it is tried again after a while")
    elif state == TASK_WAITING:
        yield from _places(role, file, known, index)


def _places(role: GlobalRole, file: FederationFile, known: Known, index: int) -> Iterator[Shortage]:
    """Yield what is missing in each cluster for a task that waits."""
    stage = known.stage_of(index)
    shape = known.stored.shapes[known.spec.stages.index(stage)]
    fits_somewhere = False
    mine = list(_held_for_it(role, known, index))
    yield from mine
    for cluster, entry in file.clusters().items():
        first = role.layout.machine_of(cluster)
        found = shortage(role.master.fleet, role.shapes, shape, first, first + role.layout.machines_each)
        fits_somewhere |= found.fits > 0
        if not any((LOCAL_MASTER, number) in role.links for number in role.layout.masters_of(cluster)):
            yield Shortage(test="unreachable", cluster=entry.name, words=f"cluster {entry.name} cannot be reached")
            continue
        if found.held and not mine:
            yield _held_for_others(role, file, cluster, entry.name, found)
        if not found.fits:
            yield from _of_cluster(role, entry.name, shape, found, _cordoned(role, first))
    if stage.gang:
        yield Shortage(test="gang", words=f"it starts together with {stage.tasks - 1:,} others, all at once")
    elif fits_somewhere and role.master.counts.scanned == role.master.fleet.freed_blocks[LOG]:
        yield Shortage(test="order", words="there is room, and others of its federation are served before it")


def _held_for_it(role: GlobalRole, known: Known, index: int) -> Iterator[Shortage]:
    """Yield that machines are held back for a task, if any are."""
    holding = role.master.holding
    rows = np.flatnonzero(role.tasks.number[: role.tasks.counts.tasks_ever] == known.row(index)["number"])
    if holding.search.for_lane in role.tasks.lane[rows]:
        count = int((holding.wanted != NOBODY).sum())
        yield Shortage(test="held-back", machines=count, words=f"{count} machines are held back for it, or for "
                       "what stands before it, until there is room for it")


def _held_for_others(role: GlobalRole, file: FederationFile, cluster: int, name: str, found: Found) -> Shortage:
    """Return that machines of a cluster have room, and are held back for others; for how long the first one is."""
    holding, first, masters = role.master.holding, role.layout.machine_of(cluster), file.masters()
    told = first + np.flatnonzero(holding.held_for[first : first + role.layout.machines_each] != NOBODY)
    whom = "another"  # of this master, whom no local master has told of yet
    if told.size:
        task = int(holding.held_for[told[0]])
        master = masters.get(role.layout.owner_of(task))
        whom = f"{master.name if master else 'another'}-{serial_of_job(role.layout.job_of(task))}"
        whom += f" for {role.now - holding.held_at[told[0]]:.0f} s"
    return Shortage(
        test="held-back", cluster=name, machines=found.held, of=found.machines,
        words=f"{found.held} of {found.machines} machines of {name} have room, and are held back for {whom}")


def _cordoned(role: GlobalRole, first: int) -> int:
    """Return how many machines of the cluster whose first is this one are cordoned."""
    facts = (role.facts.known.get((MACHINE, number)) for number in range(first, first + role.layout.machines_each))
    machines = [read_machine(fact.body) for fact in facts if fact is not None]
    return sum(machine.cordoned and not machine.gone for machine in machines)


def _of_cluster(role: GlobalRole, name: str, shape: int, found: Found, cordoned: int) -> Iterator[Shortage]:
    """Yield why a task fits on no machine of a cluster; *cordoned* ones are none that it could fit on."""
    if cordoned:
        of = found.machines + cordoned
        yield Shortage(test="cordoned", cluster=name, machines=cordoned, of=of,
                       words=f"{cordoned} of {of} machines of {name} are cordoned")
    elif found.machines == 0:
        yield Shortage(test="unreachable", cluster=name, words=f"cluster {name} has no machine that takes tasks now")
    if found.constraints:
        yield Shortage(test="constraint", cluster=name, machines=found.constraints, of=found.machines,
                       words=f"{found.constraints} of {found.machines} machines of {name} do not meet its constraints")
    for number, resource in enumerate(role.layout.resources):
        asked = f"{print_amount(resource, int(role.shapes.request[number, shape]))} {resource}"
        if found.too_small[number]:
            yield Shortage(test="resource", cluster=name, what=resource, machines=found.too_small[number],
                           of=found.machines, words=f"{found.too_small[number]} of {found.machines} machines of {name} "
                           f"have less than {asked} even when they are empty")
        full = found.too_full[number]
        if full:
            yield Shortage(test="resource", cluster=name, what=resource, machines=full, of=found.machines,
                           words=f"{full} of {found.machines} machines of {name} have less than {asked} free now")
