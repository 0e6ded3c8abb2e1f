"""Places gangs, whose tasks start together or not at all (future work in Megha's section VIII).

All of a gang are placed on the view at once, or none; each is requested and held; when all are held, all are told to
go. When one is refused, lost or preempted, the others are given up, and the gang waits again as a whole; tasks of it
that have ended stay ended.
"""
from subak.federation.megha.global_master.backlog import enqueue
from subak.federation.megha.global_master.hold_back import note_began
from subak.federation.megha.global_master.requests import (
    is_settled,
    launch_kind,
    leave,
    note_flight,
    request_launch,
    send_request,
)
from subak.federation.megha.global_master.search import find_machine
from subak.federation.megha.global_master.state import (
    PHASE_ENDED,
    PHASE_FLYING,
    PHASE_HELD,
    PHASE_RUNNING,
    PHASE_WAITING,
    GlobalMaster,
    phase_of,
)
from subak.federation.megha.global_master.view import forget_flight
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import Rules, Topology
from subak.federation.messages import GO, NOBODY, Outbox
from subak.fleet.feasible import NOWHERE
from subak.fleet.state import LOG
from subak.marks import inlined, noinline


@noinline
def gang_is_settled(master: GlobalMaster, tasks: OpenTasks, gang: int) -> bool:
    """Whether it is known what became of the last requests of all tasks of a gang."""
    task = tasks.gangs[gang]["first"]
    while task != NOBODY:
        if not is_settled(master, task):
            return False
        task = tasks.next[task]
    return True


@noinline
def enqueue_gang(master: GlobalMaster, topology: Topology, tasks: OpenTasks, gang: int) -> None:
    """Put a gang of which all wait, or have ended, in the queue, by its first task that waits."""
    if master.gang[gang]["waiting"] < tasks.gangs[gang]["size"] or not gang_is_settled(master, tasks, gang):
        return
    master.gang[gang]["failed"] = False
    task = tasks.gangs[gang]["first"]
    while task != NOBODY:
        if phase_of(master, tasks, task) == PHASE_WAITING:
            enqueue(master, tasks, task)
            return
        task = tasks.next[task]


@inlined
def place_gang(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, gang: int, out: Outbox
) -> bool:
    """Find a machine for every task of a gang and request them all, or leave the view as it was."""
    freed = master.fleet.freed_blocks[LOG]
    task = tasks.gangs[gang]["first"]
    while task != NOBODY:
        if phase_of(master, tasks, task) == PHASE_WAITING:
            machine = find_machine(master, topology, tasks, task)
            if machine == NOWHERE:
                take_back(master, topology, tasks, gang)
                if master.counts.scanned == freed:  # what was only tried is no news
                    master.counts.scanned = master.fleet.freed_blocks[LOG]
                return False
            note_flight(master, topology, tasks, task, machine)
        task = tasks.next[task]
    task = tasks.gangs[gang]["first"]
    while task != NOBODY:
        if phase_of(master, tasks, task) == PHASE_FLYING:
            master.gang[gang]["waiting"] -= 1
            kind = launch_kind(master, topology, master.task[task]["machine"])
            request_launch(master, topology, rules, tasks, task, kind, NOBODY, out)
        task = tasks.next[task]
    return True


@inlined
def take_back(master: GlobalMaster, topology: Topology, tasks: OpenTasks, gang: int) -> None:
    """Give back in the view what was taken for a gang that does not fit."""
    task = tasks.gangs[gang]["first"]
    while task != NOBODY:
        if phase_of(master, tasks, task) == PHASE_FLYING:
            forget_flight(master, topology, tasks, task)
            master.task[task]["phase"] = PHASE_WAITING
        task = tasks.next[task]


@inlined
def member_held(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int, now: float, out: Outbox
) -> None:
    """Note that a task of a gang is held; when all are, they go. One that is held too late is given up."""
    gang = tasks.gang[task]
    master.task[task]["phase"] = PHASE_HELD
    if master.gang[gang]["failed"]:
        leave(master, topology, rules, tasks, task, out)
        return
    member, missing = tasks.gangs[gang]["first"], tasks.gangs[gang]["size"]
    while member != NOBODY:
        missing -= phase_of(master, tasks, member) in (PHASE_HELD, PHASE_ENDED)
        member = tasks.next[member]
    if missing == 0:
        note_began(master.fleet, master.holding, rules, master.number, tasks.lane[task], True, now, out)
    member = tasks.gangs[gang]["first"]
    while missing == 0 and member != NOBODY:
        if phase_of(master, tasks, member) == PHASE_HELD:
            master.task[member]["phase"] = PHASE_RUNNING
            send_request(master, topology, rules, tasks, member, GO, NOBODY, 0, out)
        member = tasks.next[member]


@noinline
def give_gang_up(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, gang: int, out: Outbox
) -> None:
    """Give up every task of a gang that is requested, held or running."""
    master.gang[gang]["failed"] = True
    member = tasks.gangs[gang]["first"]
    while member != NOBODY:
        if phase_of(master, tasks, member) in (PHASE_FLYING, PHASE_HELD, PHASE_RUNNING):
            leave(master, topology, rules, tasks, member, out)
        member = tasks.next[member]


@noinline
def give_up_if_in_part(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, gang: int, out: Outbox
) -> None:
    """Give a gang up of which one waits while another is held or runs: that one was lost while nobody looked."""
    waits, goes_on = False, False
    member = tasks.gangs[gang]["first"]
    while member != NOBODY:
        phase = phase_of(master, tasks, member)
        waits |= phase == PHASE_WAITING
        goes_on |= phase in (PHASE_HELD, PHASE_RUNNING)
        member = tasks.next[member]
    if waits and goes_on and not master.gang[gang]["failed"]:
        give_gang_up(master, topology, rules, tasks, gang, out)


@inlined
def note_ended_member(master: GlobalMaster, topology: Topology, tasks: OpenTasks, task: int) -> None:
    """Note that a task of a gang ended in the master's former incarnation."""
    master.task[task]["phase"] = PHASE_ENDED
    master.gang[tasks.gang[task]]["waiting"] += 1
    enqueue_gang(master, topology, tasks, tasks.gang[task])
