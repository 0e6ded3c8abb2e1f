"""Takes a task from one phase to the next: it waits, waits again, or has ended; and sees that there is a turn."""
from subak.federation.megha.global_master.backlog import enqueue, say_done
from subak.federation.megha.global_master.gangs import enqueue_gang, give_gang_up
from subak.federation.megha.global_master.requests import is_settled
from subak.federation.megha.global_master.state import (
    PHASE_ENDED,
    PHASE_WAITING,
    GlobalMaster,
)
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import Rules, Topology
from subak.federation.messages import NO_REASON, NOBODY, PLACE, Outbox, post
from subak.fleet.state import LOG
from subak.marks import inlined, noinline


@inlined
def let_wait(master: GlobalMaster, topology: Topology, tasks: OpenTasks, task: int) -> None:
    """Let a task wait for its turn; one of a gang waits until all of the gang do."""
    master.task[task]["phase"] = PHASE_WAITING
    gang = tasks.gang[task]
    if gang == NOBODY:
        if is_settled(master, task):
            enqueue(master, tasks, task)
    else:
        master.gang[gang]["waiting"] += 1
        enqueue_gang(master, topology, tasks, gang)


@noinline
def conclude(
    master: GlobalMaster, topology: Topology, tasks: OpenTasks, task: int, reason: int, out: Outbox
) -> None:
    """End a task, and tell its submitter why."""
    me, gang = master.task[task], tasks.gang[task]
    if gang != NOBODY and me["phase"] not in (PHASE_WAITING, PHASE_ENDED):
        master.gang[gang]["waiting"] += 1
    me["phase"], me["reason"], me["doubted"] = PHASE_ENDED, reason, False
    say_done(master, tasks, task, out)
    if gang != NOBODY:
        enqueue_gang(master, topology, tasks, gang)


@noinline
def wait_again(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int, reason: int, out: Outbox
) -> None:
    """Let a task wait again whose attempt was refused or lost, its gang given up; one that is withdrawn has ended."""
    me = master.task[task]
    if me["withdrawn"] != NO_REASON:
        conclude(master, topology, tasks, task, me["withdrawn"], out)
        return
    me["reason"], me["phase"], me["doubted"] = reason, PHASE_WAITING, False  # so it is not given up with its gang
    gang = tasks.gang[task]
    if gang != NOBODY and not master.gang[gang]["failed"]:
        give_gang_up(master, topology, rules, tasks, gang, out)
    let_wait(master, topology, tasks, task)
    take_turn(master, out)


@inlined
def take_turn(master: GlobalMaster, out: Outbox) -> None:
    """See to it that there is a turn."""
    if master.counts.placing == 0:
        master.counts.placing = 1
        post(out, PLACE, master.number, master.number, NOBODY, NOBODY)


@inlined
def take_turn_if_news(master: GlobalMaster, out: Outbox) -> None:
    """Take a turn when something was freed in the view since the last round began."""
    if master.counts.queued > 0 and master.counts.scanned != master.fleet.freed_blocks[LOG]:
        take_turn(master, out)
