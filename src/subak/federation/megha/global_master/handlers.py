"""The handlers of a global master: places tasks on its view and lets local masters decide.

Rules:
- The view of a cluster is some past state of its local master, plus the master's own launches in flight.
- Queues are served in turns; within a queue the order decides. A task that fits nowhere steps behind all others, and
  is looked at again when something was freed in the view.
- A request is repeated, word for word, until it is answered; a task is placed anew only after it was refused or lost.
- All tasks of a gang are held before any starts; if one is refused, all are given up, and the gang waits again.
- A restarted global master places nothing before every local master has told it its whole state.

What each message does in each phase of a task: transitions.py.

Sources: Megha sections IV-A to IV-D and Algorithms 1 and 2; gangs and priorities are its section VIII.
"""
import numpy as np

from subak.federation.counts import told
from subak.federation.megha.global_master.backlog import (
    choose,
    lanes_of,
    leave_first,
    say_done,
    set_aside,
    wake_lanes,
)
from subak.federation.megha.global_master.gangs import (
    gang_is_settled,
    give_gang_up,
    give_up_if_in_part,
    member_held,
    note_ended_member,
    place_gang,
)
from subak.federation.megha.global_master.hold_back import (
    look_later,
    note_began,
    note_passed_over,
)
from subak.federation.megha.global_master.losses import LOSSES, end_attempt, may_be_lost
from subak.federation.megha.global_master.phases import conclude, let_wait, take_turn, take_turn_if_news, wait_again
from subak.federation.megha.global_master.preemption import find_victims, may_preempt
from subak.federation.megha.global_master.rebuild import settle_cluster, settle_doubts, settle_later
from subak.federation.megha.global_master.requests import (
    is_settled,
    launch_kind,
    leave,
    look_again,
    note_flight,
    post_request,
    request_launch,
    send_request,
)
from subak.federation.megha.global_master.search import find_machine
from subak.federation.megha.global_master.state import (
    NEVER_SEEN,
    PHASE_ENDED,
    PHASE_FLYING,
    PHASE_LEAVING,
    PHASE_RUNNING,
    PHASE_UNKNOWN,
    PHASE_WAITING,
    GlobalMaster,
    is_here,
)
from subak.federation.megha.global_master.view import (
    MISSING,
    NOTHING_NEW,
    begin_update,
    begin_whole,
    forget_flight,
    give_in_view,
    is_mine,
    size_in_view,
    take_in_view,
)
from subak.federation.megha.ledger import ENTRY_GAVE, ENTRY_GONE, ENTRY_SIZED, ENTRY_TOOK, Ledger, behind, ring_place
from subak.federation.megha.open_tasks import OpenTasks
from subak.federation.megha.topology import OFF, Rules, Topology, speaker
from subak.federation.messages import (
    ABANDON,
    ASK,
    CATCH_UP,
    CONCLUSIVE,
    GO,
    LAUNCHED,
    NO_REASON,
    NO_ROOM,
    NO_VICTIMS,
    NOBODY,
    NOTED,
    PREEMPT,
    PREEMPTION,
    REBUILD,
    REFUSED,
    REOPEN,
    STILL_HELD,
    UPDATE,
    WAITED_TOO_LONG,
    Outbox,
    is_filling,
    post,
)
from subak.fleet.feasible import NOWHERE
from subak.fleet.index import note_freed_block
from subak.fleet.state import LOG
from subak.marks import inlined, noinline


@inlined
def on_submit(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, message: np.void, out: Outbox
) -> None:
    """Let a task wait; one that has ended is said to be done again, any other is known already.

    What was handed to a former incarnation may have ended since: whether it is open yet, the submitter is asked.
    """
    task = message["row"]
    if not is_for_this_incarnation(master, tasks, message, out):
        return
    if message["reason"] != NO_REASON:
        on_ended_before(master, topology, tasks, task, message["reason"], out)
    elif master.task[task]["phase"] == PHASE_UNKNOWN:
        if is_settled(master, task):  # whatever was sent before left no trace
            end_attempt(master, tasks, task, True)
        if master.task[task]["withdrawn"] != NO_REASON:  # it was lost too often
            conclude(master, topology, tasks, task, master.task[task]["withdrawn"], out)
            return
        let_wait(master, topology, tasks, task)
        gang = tasks.gang[task]
        if gang != NOBODY and gang_is_settled(master, tasks, gang):
            give_up_if_in_part(master, topology, rules, tasks, gang, out)
        take_turn(master, out)
    elif master.task[task]["phase"] == PHASE_ENDED:
        say_done(master, tasks, task, out)


@noinline
def is_for_this_incarnation(master: GlobalMaster, tasks: OpenTasks, message: np.void, out: Outbox) -> bool:
    """Whether what a submitter says of an open task was said to this incarnation; else it is asked to say it again."""
    task = message["row"]
    if not is_here(master, tasks, task, message["task"], message["round"]):
        return False
    if message["incarnation"] == master.counts.incarnation:
        return True
    again = post(out, REBUILD, master.number, master.number, message["task"], NOBODY)
    again["row"], again["round"], again["incarnation"] = task, message["round"], master.counts.incarnation
    return False


@inlined
def on_withdraw(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, message: np.void, out: Outbox
) -> None:
    """End a task that is not wanted any more, wherever it is; one that waited too long only if it still waits."""
    if not is_for_this_incarnation(master, tasks, message, out):
        return
    task, me = message["row"], master.task[message["row"]]
    waits = me["phase"] in (PHASE_UNKNOWN, PHASE_WAITING)
    if me["phase"] == PHASE_ENDED:
        say_done(master, tasks, task, out)
    elif waits and is_settled(master, task):
        conclude(master, topology, tasks, task, message["reason"], out)
    elif waits or message["reason"] != WAITED_TOO_LONG:
        me["withdrawn"] = message["reason"]
        if me["phase"] == PHASE_UNKNOWN:
            let_wait(master, topology, tasks, task)
        elif me["phase"] not in (PHASE_WAITING, PHASE_LEAVING):
            leave(master, topology, rules, tasks, task, out)


@noinline
def on_ended_before(
    master: GlobalMaster, topology: Topology, tasks: OpenTasks, task: int, reason: int, out: Outbox
) -> None:
    """Note that a task has ended, as a former incarnation said; one that was placed again ends again."""
    phase = master.task[task]["phase"]
    master.task[task]["reason"] = reason
    if tasks.gang[task] == NOBODY and phase in (PHASE_UNKNOWN, PHASE_WAITING):
        master.task[task]["phase"] = PHASE_ENDED
    elif phase == PHASE_UNKNOWN:
        note_ended_member(master, topology, tasks, task)
        take_turn(master, out)
    if master.task[task]["phase"] == PHASE_ENDED:
        say_done(master, tasks, task, out)


@inlined
def on_place(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, now: float, out: Outbox
) -> int:
    """Place one task of the queue whose turn it is; return it, NOBODY if there is none. Megha Fig. 2, Algorithm 2.

    A turn in which more tasks were withdrawn than the outbox holds ends with the first of them; another follows.
    """
    master.counts.placing = 0
    queue = choose(master, topology, tasks, out)
    if queue == NOBODY and master.counts.queued > 0 and not is_filling(out):
        wake_lanes(master, tasks)
        queue = choose(master, topology, tasks, out)
    if is_filling(out):
        take_turn(master, out)
        return NOBODY
    if queue == NOBODY:
        return NOBODY
    lanes = lanes_of(master, queue)
    task = lanes.root[lanes.contender[0]]
    if place(master, topology, rules, tasks, task, out):
        leave_first(master, lanes, tasks)
    else:
        set_aside(lanes, tasks)
        note_passed_over(master.holding, rules, master.number, tasks.lane[task], now, out)
    take_turn(master, out)
    return int(tasks.number[task])


@inlined
def place(master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int, out: Outbox) -> bool:
    """Request a machine for a task (and all of its gang), by preemption where the rules allow it; return whether."""
    gang = tasks.gang[task]
    if gang != NOBODY:
        return place_gang(master, topology, rules, tasks, gang, out)
    machine = find_machine(master, topology, tasks, task)
    if machine != NOWHERE:
        note_flight(master, topology, tasks, task, machine)
        request_launch(master, topology, rules, tasks, task, launch_kind(master, topology, machine), NOBODY, out)
        return True
    if rules.preemption != OFF:
        return preempt(master, topology, rules, tasks, task, out)
    return False


@inlined
def preempt(master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, task: int, out: Outbox) -> bool:
    """Ask for the amounts of a queue in violation, if the task's queue is entitled to them; return whether."""
    if master.task[task]["tried"] > master.counts.beats:
        return False
    if not may_preempt(master, topology, rules, tasks, task):
        master.tally.share_used_up += 1
        return False
    machine, queue = find_victims(master, topology, rules, tasks, task)
    if machine == NOWHERE:
        return False
    master.tally.preemptions += 1
    note_flight(master, topology, tasks, task, machine)
    request_launch(master, topology, rules, tasks, task, PREEMPT, queue, out)
    return True


@inlined
def on_update(  # noqa: PLR0913, PLR0917  (a role, what all know, a message and what it carries)
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, now: float, message: np.void,
    ledger: Ledger, out: Outbox,
) -> None:
    """Bring the view up to what the message carries: a periodic update, or an answer with the state piggybacked.

    What it says besides, and what the state settles, is for when all of it has been applied: before, an attempt that is
    refused because its end was noted long ago would be one that never was.
    """
    cluster = message["sender"] % topology.standbys
    kind = message["repeats"] if message["kind"] == CATCH_UP else message["kind"]
    start = begin_update(master, cluster, now, message, ledger)
    if start == MISSING:
        ask(master, topology, cluster, out)
    elif start != NOTHING_NEW:
        version = apply_entries(master, topology, rules, tasks, now, ledger, start, message["last"], out)
        master.tally.entries_applied += version - start
        master.cluster[cluster]["seen"] = version
        if version < message["last"]:
            catch_up(master, kind, version, message, out)
            return
        if master.counts.doubts and not settle_doubts(master, topology, rules, tasks, out):
            settle_later(master, topology, cluster, tasks.counts.tasks_ever, tasks.counts.gangs_ever, out)
        settle_cluster(master, topology, rules, tasks, cluster, out)
    if kind == REFUSED:
        on_refused(master, topology, rules, tasks, message, out)
    elif kind == LAUNCHED and message["reason"] == STILL_HELD:
        on_launched(master, topology, tasks, message, out)
    elif kind == UPDATE:
        answer_heartbeat(master, rules, cluster, message, out)
    take_turn_if_news(master, out)


@noinline
def catch_up(master: GlobalMaster, kind: int, version: int, message: np.void, out: Outbox) -> None:
    """Go on with an update, or an answer of a *kind*, after this handler, from an entry on."""
    rest = post(out, CATCH_UP, message["sender"], master.number, message["task"], message["machine"])
    rest["repeats"], rest["row"], rest["round"] = kind, message["row"], message["round"]
    rest["attempt"], rest["reason"] = message["attempt"], message["reason"]
    rest["incarnation"], rest["epoch"] = message["incarnation"], message["epoch"]
    rest["first"], rest["last"], rest["count"] = version, message["last"], message["last"] - version


@inlined
def answer_heartbeat(master: GlobalMaster, rules: Rules, cluster: int, message: np.void, out: Outbox) -> None:
    """Tell the local master what has been seen, so that its updates stay short.

    Where tasks are preempted, every lane is tried again.
    """
    if message["epoch"] == master.cluster[cluster]["epoch"]:
        row = post(out, NOTED, master.number, message["sender"], NOBODY, NOBODY)
        row["seen"], row["epoch"] = master.cluster[cluster]["seen"], message["epoch"]
        row["incarnation"] = master.counts.incarnation
    master.counts.beats += 1
    if master.holding.search.differing > 0 and master.holding.search.watching == 0:
        look_later(master.holding, master.number, 0.0, out)
    if rules.preemption != OFF:
        master.counts.scanned = master.fleet.freed_blocks[LOG] - LOG - 1


@inlined
def ask(master: GlobalMaster, topology: Topology, cluster: int, out: Outbox) -> None:
    """Ask whoever speaks for a cluster for its whole state."""
    row = post(out, ASK, master.number, speaker(topology, cluster, master.cluster[cluster]["epoch"]), NOBODY, NOBODY)
    row["incarnation"], row["seen"] = master.counts.incarnation, NEVER_SEEN


@inlined
def apply_entries(  # noqa: PLR0913, PLR0917  (a role, what all know, a span of a ledger)
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, now: float, ledger: Ledger, first: int,
    last: int, out: Outbox,
) -> int:
    """Apply entries first .. last - 1 of a ledger, as far as there is room for what they lead to; return how far."""
    version, place = first, ring_place(ledger, first)
    while version < last and not is_filling(out):
        apply_entry(master, topology, rules, tasks, now, ledger.entry[place], out)
        version, place = version + 1, behind(ledger, place)
    return version


@inlined
def apply_entry(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, now: float, entry: np.void, out: Outbox
) -> None:
    """Apply one entry of a ledger to the view and to an own task."""
    kind = entry["kind"]
    if kind == ENTRY_TOOK:
        if take_in_view(master, topology, rules, tasks, entry):
            confirm(master, topology, rules, tasks, now, entry, out)
    elif kind in (ENTRY_GAVE, ENTRY_GONE):
        if kind == ENTRY_GAVE:
            give_in_view(master, topology, rules, tasks, entry)
        if is_mine(master, topology, tasks, entry):
            end(master, topology, rules, tasks, entry, out)
    elif kind == ENTRY_SIZED:
        size_in_view(master, topology, now, entry)
    else:
        begin_whole(master, topology, rules, tasks, topology.machine[entry["machine"]]["cluster"])


@inlined
def confirm(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, now: float, entry: np.void, out: Outbox
) -> None:
    """Note that the local master holds an own task's attempt."""
    task = entry["row"]
    phase = master.task[task]["phase"]
    master.task[task]["doubted"] = False
    if phase == PHASE_FLYING:
        if entry["held"]:
            member_held(master, topology, rules, tasks, task, now, out)
        else:
            master.task[task]["phase"] = PHASE_RUNNING
            note_began(master.fleet, master.holding, rules, master.number, tasks.lane[task], False, now, out)
    elif phase in (PHASE_UNKNOWN, PHASE_WAITING):
        if phase == PHASE_WAITING and tasks.gang[task] != NOBODY:
            master.gang[tasks.gang[task]]["waiting"] -= 1
        master.task[task]["attempt"], master.task[task]["machine"] = entry["attempt"], entry["machine"]
        master.task[task]["sent_epoch"] = master.cluster[topology.machine[entry["machine"]]["cluster"]]["epoch"]
        master.task[task]["phase"] = PHASE_RUNNING
        if entry["held"] or master.task[task]["withdrawn"] != NO_REASON:
            leave(master, topology, rules, tasks, task, out)


@inlined
def end(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, entry: np.void, out: Outbox
) -> None:
    """Note the end of an own task's attempt: the task has ended, or waits again, unless it was lost too often."""
    task, reason = entry["row"], entry["reason"]
    me = master.task[task]
    if me["phase"] == PHASE_ENDED:
        return
    if me["flying"]:
        forget_flight(master, topology, tasks, task)
    me["doubted"] = False
    if CONCLUSIVE[reason]:
        me["code"] = entry["code"]
        conclude(master, topology, tasks, task, reason, out)
        return
    end_attempt(master, tasks, task, reason in LOSSES)
    if me["phase"] not in (PHASE_UNKNOWN, PHASE_WAITING):
        master.tally.lost_attempts += 1
        me["preempted"] = told(me["preempted"], PREEMPTION[reason])
        wait_again(master, topology, rules, tasks, task, reason, out)


@inlined
def is_current(master: GlobalMaster, tasks: OpenTasks, message: np.void) -> bool:
    """Whether a message is about the last attempt of its task."""
    if not is_here(master, tasks, message["row"], message["task"], message["round"]):
        return False
    task = master.task[message["row"]]
    return bool(task["attempt"] == message["attempt"] and task["machine"] == message["machine"])


@inlined
def on_refused(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, message: np.void, out: Outbox
) -> None:
    """Give the amounts back in the view and let the task wait: the local master has refused, and will not launch it."""
    task = message["row"]
    if is_current(master, tasks, message) and master.task[task]["phase"] in (PHASE_FLYING, PHASE_LEAVING):
        if master.task[task]["flying"]:
            forget_flight(master, topology, tasks, task)
        master.tally.refusals += 1
        master.task[task]["refusals"] = told(master.task[task]["refusals"], 1)
        end_attempt(master, tasks, task, may_be_lost(master, tasks, task, message["reason"]))
        if message["reason"] == NO_VICTIMS:
            master.task[task]["tried"] = master.counts.beats + 1
        elif message["reason"] == NO_ROOM:
            close(master, topology, rules, message["machine"], out)
        wait_again(master, topology, rules, tasks, task, message["reason"], out)


@inlined
def close(master: GlobalMaster, topology: Topology, rules: Rules, machine: int, out: Outbox) -> None:
    """Ask nothing of a machine's cluster for a while: its local master cannot note more attempts."""
    cluster = topology.machine[machine]["cluster"]
    if not master.cluster[cluster]["closed"]:
        master.cluster[cluster]["closed"] = True
        post(out, REOPEN, master.number, master.number, NOBODY, machine)["delay"] = rules.retry


@inlined
def on_reopen(master: GlobalMaster, topology: Topology, message: np.void, out: Outbox) -> None:
    """Ask the cluster of a machine again: what was searched in vain meanwhile is searched anew."""
    cluster, masters = topology.machine[message["machine"]]["cluster"], topology.global_masters
    master.cluster[cluster]["closed"] = False
    for block in range(topology.block[cluster * masters], topology.block[(cluster + 1) * masters]):
        note_freed_block(master.fleet, block)
    take_turn_if_news(master, out)


@inlined
def on_launched(
    master: GlobalMaster, topology: Topology, tasks: OpenTasks, message: np.void, out: Outbox
) -> None:
    """Repeat what became of a gang to a local master that says it still holds one of its tasks."""
    task = message["row"]
    if is_current(master, tasks, message):
        if master.task[task]["phase"] == PHASE_RUNNING:
            post_request(master, topology, tasks, task, GO, NOBODY, out)
        elif master.task[task]["phase"] == PHASE_LEAVING:
            post_request(master, topology, tasks, task, ABANDON, NOBODY, out)


@inlined
def on_retry(
    master: GlobalMaster, topology: Topology, rules: Rules, tasks: OpenTasks, message: np.void, out: Outbox
) -> None:
    """Repeat a request that was not answered; for a lease at most while others of its gang are held for it.

    One whose local master was replaced is in doubt, and not repeated; its gang still waits for it no longer.
    """
    if not is_current(master, tasks, message):
        return
    task, kind, gang = message["row"], message["repeats"], tasks.gang[message["row"]]
    me = master.task[task]
    unanswered = me["phase"] == (PHASE_LEAVING if kind == ABANDON else PHASE_FLYING)
    if unanswered and kind != ABANDON and gang != NOBODY and message["count"] * rules.retry >= rules.lease:
        give_gang_up(master, topology, rules, tasks, gang, out)
    elif unanswered and (kind == ABANDON or me["flying"]):
        send_request(master, topology, rules, tasks, task, kind, message["victims"], message["count"] + 1, out)
    elif unanswered and gang != NOBODY:
        look_again(master, rules, tasks, task, kind, message["victims"], message["count"] + 1, out)
