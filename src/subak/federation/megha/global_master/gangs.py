"""Gangs: tasks that start together or not at all (Megha's section VIII names them as future work).

All of a gang are placed on the view at once, or none; each is requested and held; when all are held, all are told to
go. When one is refused, lost or preempted, the others are given up, and the gang waits again as a whole; tasks of it
that have ended stay ended.
"""
from subak.federation.megha.global_master.backlog import enqueue
from subak.federation.megha.global_master.search import (
    find_machine,
    launch_kind,
    note_flight,
    request_launch,
    send_request,
)
from subak.federation.megha.global_master.state import (
    PHASE_ENDED,
    PHASE_FLYING,
    PHASE_HELD,
    PHASE_LEAVING,
    PHASE_RUNNING,
    PHASE_WAITING,
    PLACING,
    REBUILDING,
    SCANNED,
    GlobalMaster,
)
from subak.federation.megha.global_master.view import forget_flight
from subak.federation.megha.layout import Layout, Rules
from subak.federation.messages import ABANDON, GO, NOBODY, PLACE, Outbox, post
from subak.fleet.feasible import NOWHERE
from subak.fleet.state import LOG
from subak.kernel import inlined, noinline
from subak.workload.tasks import Tasks


@inlined
def gang_of(layout: Layout, task: int) -> int:
    """Return the gang of a task, NOBODY where it starts by itself."""
    return int(layout.gang[task]) if layout.gang.size > 0 else NOBODY


@inlined
def let_wait(master: GlobalMaster, layout: Layout, tasks: Tasks, task: int) -> None:
    """Let a task wait for its turn; one of a gang waits until all of the gang do."""
    master.task[task]["phase"] = PHASE_WAITING
    gang = gang_of(layout, task)
    if gang == NOBODY:
        enqueue(master, layout, tasks, task)
    else:
        master.gang[gang]["waiting"] += 1
        enqueue_gang(master, layout, tasks, gang)


@noinline
def enqueue_gang(master: GlobalMaster, layout: Layout, tasks: Tasks, gang: int) -> None:
    """Put a gang of which all wait, or have ended, in the queue, by its first task that waits."""
    first, end = layout.gang_first[gang], layout.gang_first[gang + 1]
    if master.gang[gang]["waiting"] < end - first:
        return
    master.gang[gang]["failed"] = False
    master.gang[gang]["held"] = 0
    for place in range(first, end):
        if master.task[layout.gang_task[place]]["phase"] == PHASE_WAITING:
            enqueue(master, layout, tasks, layout.gang_task[place])
            return


@inlined
def place_gang(master: GlobalMaster, layout: Layout, rules: Rules, tasks: Tasks, gang: int, out: Outbox) -> bool:
    """Find a machine for every task of a gang and request them all, or leave the view as it was."""
    first, end = layout.gang_first[gang], layout.gang_first[gang + 1]
    freed = master.fleet.freed_blocks[LOG]
    for place in range(first, end):
        task = layout.gang_task[place]
        if master.task[task]["phase"] == PHASE_WAITING:
            machine = find_machine(master, layout, tasks, task)
            if machine == NOWHERE:
                take_back(master, layout, tasks, first, place)
                if master.word[SCANNED] == freed:  # what was only tried is no news
                    master.word[SCANNED] = master.fleet.freed_blocks[LOG]
                return False
            note_flight(master, layout, tasks, task, machine)
    for place in range(first, end):
        task = layout.gang_task[place]
        if master.task[task]["phase"] == PHASE_FLYING:
            master.gang[gang]["waiting"] -= 1
            kind = launch_kind(master, layout, master.task[task]["machine"])
            request_launch(master, layout, rules, task, kind, 1, out)
    return True


@inlined
def take_back(master: GlobalMaster, layout: Layout, tasks: Tasks, first: int, end: int) -> None:
    """Give back in the view what was taken for a gang that does not fit."""
    for place in range(first, end):
        task = layout.gang_task[place]
        if master.task[task]["phase"] == PHASE_FLYING:
            forget_flight(master, layout, tasks, task)
            master.task[task]["phase"] = PHASE_WAITING


@inlined
def member_held(master: GlobalMaster, layout: Layout, rules: Rules, task: int, out: Outbox) -> None:
    """Note that a task of a gang is held; when all are, they go. One that is held too late is given up."""
    gang = gang_of(layout, task)
    master.task[task]["phase"] = PHASE_HELD
    if master.gang[gang]["failed"]:
        leave(master, layout, rules, task, out)
        return
    master.gang[gang]["held"] += 1
    first, end = layout.gang_first[gang], layout.gang_first[gang + 1]
    for place in range(first, end):
        if master.task[layout.gang_task[place]]["phase"] not in (PHASE_HELD, PHASE_ENDED):
            return
    for place in range(first, end):
        member = layout.gang_task[place]
        if master.task[member]["phase"] == PHASE_HELD:
            master.task[member]["phase"] = PHASE_RUNNING
            send_request(master, layout, rules, member, GO, 0, out)


@noinline
def give_gang_up(master: GlobalMaster, layout: Layout, rules: Rules, gang: int, out: Outbox) -> None:
    """Give up every task of a gang that is requested, held or running."""
    master.gang[gang]["failed"] = True
    for place in range(layout.gang_first[gang], layout.gang_first[gang + 1]):
        member = layout.gang_task[place]
        if master.task[member]["phase"] in (PHASE_FLYING, PHASE_HELD, PHASE_RUNNING):
            leave(master, layout, rules, member, out)


@noinline
def give_up_if_in_part(master: GlobalMaster, layout: Layout, rules: Rules, gang: int, out: Outbox) -> None:
    """Give a gang up of which one waits while another is held or runs: that one was lost while nobody looked."""
    waits, goes_on = False, False
    for place in range(layout.gang_first[gang], layout.gang_first[gang + 1]):
        phase = master.task[layout.gang_task[place]]["phase"]
        waits |= phase == PHASE_WAITING
        goes_on |= phase in (PHASE_HELD, PHASE_RUNNING)
    if waits and goes_on and not master.gang[gang]["failed"]:
        give_gang_up(master, layout, rules, gang, out)


@inlined
def note_ended_member(master: GlobalMaster, layout: Layout, tasks: Tasks, task: int) -> None:
    """Note that a task of a gang ended in the master's former life."""
    master.task[task]["phase"] = PHASE_ENDED
    master.gang[gang_of(layout, task)]["waiting"] += 1
    enqueue_gang(master, layout, tasks, gang_of(layout, task))


@noinline
def leave(master: GlobalMaster, layout: Layout, rules: Rules, task: int, out: Outbox) -> None:
    """Give a task's attempt up; it is LEAVING until the local master has confirmed it."""
    master.task[task]["phase"] = PHASE_LEAVING
    send_request(master, layout, rules, task, ABANDON, 0, out)


@noinline
def wait_again(
    master: GlobalMaster, layout: Layout, rules: Rules, tasks: Tasks, task: int, reason: int, out: Outbox
) -> None:
    """Let a task wait again whose attempt was refused or lost; its gang is given up."""
    me = master.task[task]
    me["reason"], me["phase"] = reason, PHASE_WAITING  # so it is not given up with its gang
    gang = gang_of(layout, task)
    if gang != NOBODY and not master.gang[gang]["failed"]:
        give_gang_up(master, layout, rules, gang, out)
    let_wait(master, layout, tasks, task)
    take_turn(master, out)


@inlined
def take_turn(master: GlobalMaster, out: Outbox) -> None:
    """See to it that there is a turn."""
    if master.word[PLACING] == 0 and master.word[REBUILDING] == 0:
        master.word[PLACING] = 1
        post(out, PLACE, master.number, master.number, NOBODY, NOBODY)
