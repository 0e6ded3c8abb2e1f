"""How a global master comes back: it keeps nothing but the number of its life, and rebuilds the rest.

The view comes from the local masters, who tell their whole state to a new life and heed the former one no more; tasks
that run are learnt from there, those that wait from the submitter. Nothing is placed before every local master has
answered, so nothing that runs is placed again. A whole state also settles doubts in between: own tasks that a local
master does not hold have been lost with it.

Source: Megha section IV-D: global masters are stateless.
"""
from subak.federation.megha.global_master.backlog import lanes_of
from subak.federation.megha.global_master.gangs import give_up_if_in_part, take_turn, wait_again
from subak.federation.megha.global_master.state import (
    DOUBTS,
    LIFE,
    LOST_ATTEMPTS,
    NEVER_SEEN,
    NEXT_EXTERNAL,
    NEXT_INTERNAL,
    NEXT_QUEUE,
    PHASE_UNKNOWN,
    PLACING,
    QUEUED,
    REBUILDING,
    GlobalMaster,
)
from subak.federation.megha.global_master.view import begin_whole
from subak.federation.megha.layout import Layout, Rules
from subak.federation.messages import ASK, NOBODY, REBUILD, UNKNOWN, WAKE, Outbox, post
from subak.fleet.state import BLOCK
from subak.kernel import inlined, noinline
from subak.queues.lanes import ACTIVE_LANES, CONTENDERS, drop_top, pop
from subak.workload.tasks import Tasks


@inlined
def settle_doubts(
    master: GlobalMaster, layout: Layout, rules: Rules, tasks: Tasks, out: Outbox
) -> None:
    """Let own tasks wait again that a local master, in its whole state, does not hold."""
    master.word[DOUBTS] = 0
    for task in range(master.task.size):
        if master.task[task]["doubted"] and layout.queue[layout.task[task]["queue"]]["owner"] == master.number:
            if master.listed[master.task[task]["machine"]]:
                master.task[task]["doubted"] = False
                master.tally[LOST_ATTEMPTS] += 1
                wait_again(master, layout, rules, tasks, task, UNKNOWN, out)
            else:
                master.word[DOUBTS] = 1


@inlined
def restart(master: GlobalMaster, layout: Layout, rules: Rules, tasks: Tasks, out: Outbox) -> None:
    """Begin a new life with nothing: ask the local masters for their state, and the submitter for its tasks."""
    forget_everything(master, layout, rules, tasks)
    master.word[LIFE] += 1
    master.word[REBUILDING] = 1
    post(out, REBUILD, master.number, 0, NOBODY, NOBODY)
    on_wake(master, layout, rules, out)


@noinline
def on_wake(master: GlobalMaster, layout: Layout, rules: Rules, out: Outbox) -> None:
    """Ask every local master that has not answered, and its standby; look again later."""
    if master.word[REBUILDING] == 0:
        return
    for cluster in range(layout.local_masters):
        if not is_known(master, layout, cluster):
            for instance in range(2 if rules.standby else 1):
                number = cluster + layout.local_masters * instance
                row = post(out, ASK, master.number, number, NOBODY, NOBODY)
                row["attempt"], row["seen"] = master.word[LIFE], NEVER_SEEN
    row = post(out, WAKE, master.number, master.number, NOBODY, NOBODY)
    row["delay"] = min(rules.retry, rules.lease)


@noinline
def is_known(master: GlobalMaster, layout: Layout, cluster: int) -> bool:
    """Whether a cluster has told its whole state, and what runs on each of its machines."""
    if master.cluster[cluster]["seen"] == NEVER_SEEN:
        return False
    masters = layout.global_masters
    for machine in range(layout.block[cluster * masters] * BLOCK, layout.block[(cluster + 1) * masters] * BLOCK):
        if not master.listed[machine]:
            return False
    return True


@inlined
def finish_rebuild(master: GlobalMaster, layout: Layout, rules: Rules, tasks: Tasks, out: Outbox) -> None:
    """Begin to place again once every local master has told its whole state, and every worker has reported to it; gangs
    that start in part are given up.
    """
    if master.word[REBUILDING] == 0:
        return
    for cluster in range(layout.local_masters):
        if not is_known(master, layout, cluster):
            return
    master.word[REBUILDING] = 0
    for gang in range(master.gang.size):
        owner = layout.queue[layout.task[layout.gang_task[layout.gang_first[gang]]]["queue"]]["owner"]
        if owner == master.number:
            give_up_if_in_part(master, layout, rules, gang, out)
    take_turn(master, out)


@inlined
def forget_everything(master: GlobalMaster, layout: Layout, rules: Rules, tasks: Tasks) -> None:
    """Lose what only memory held."""
    for queue in range(master.queue_first[master.number], master.queue_first[master.number + 1]):
        lanes = lanes_of(master, layout, queue)
        while lanes.size[CONTENDERS] > 0:
            drop_top(lanes, tasks.rank)
        while lanes.size[ACTIVE_LANES] > 0:
            pop(lanes, tasks.rank, lanes.active[0])
    for task in range(master.task.size):
        if layout.queue[layout.task[task]["queue"]]["owner"] == master.number:
            forget_task(master, task)
    for gang in range(master.gang.size):
        if layout.queue[layout.task[layout.gang_task[layout.gang_first[gang]]]["queue"]]["owner"] == master.number:
            master.gang[gang]["waiting"], master.gang[gang]["held"], master.gang[gang]["failed"] = 0, 0, False
    for cluster in range(layout.local_masters):
        row = master.cluster[cluster]
        row["seen"], row["epoch"], row["numbers"] = NEVER_SEEN, 0, 0
        begin_whole(master, layout, rules, tasks, cluster)
    for word in (NEXT_QUEUE, NEXT_INTERNAL, NEXT_EXTERNAL, PLACING, REBUILDING, DOUBTS, QUEUED):
        master.word[word] = 0
    master.word[NEXT_QUEUE] = master.queue_first[master.number]


@inlined
def forget_task(master: GlobalMaster, task: int) -> None:
    """Know nothing of a task."""
    master.task[task]["phase"] = PHASE_UNKNOWN
    master.task[task]["attempt"], master.task[task]["machine"], master.task[task]["sent_epoch"] = 0, NOBODY, 0
    master.task[task]["queued"], master.task[task]["flying"], master.task[task]["doubted"] = False, False, False
