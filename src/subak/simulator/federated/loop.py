"""The federated loop: messages, turns, timers and exits drive the roles.

One step is one event: (1) the earliest of a change of the fleet, an exit, a message and an arrival is taken, in this
order at equal times; (2) a message waits for its receiver, and is served; (3) the receiver's handler changes its own
state and posts answers; (4) effects on the executor begin and end attempts here, under the same rules as in a central
run; (5) the other answers travel.

What really runs is kept by this file alone, in the state of a central run: roles only have their beliefs. An attempt
that would oversubscribe a machine, or run a task twice at once, stops the run.
"""

import numpy as np

from subak.federation.messages import (
    ARRIVE,
    BEAT,
    BEGIN,
    CANCEL,
    CANCELLED,
    CHANGE,
    EXITED,
    GIVEN_UP,
    HALT,
    HANDLER,
    HAS_FAILED,
    NO_REASON,
    NOBODY,
    NOTED,
    PREEMPTED,
    RAN_TOO_LONG,
    READY,
    UPDATE,
    Outbox,
)
from subak.marks import Functions, call, inlined, noinline
from subak.placement.claims import (
    KEPT,
    OUTBOX_FULL,
    TASK_BLOCKED,
    TASK_FINISHED,
    TASK_GIVEN_UP,
    TASK_RUNNING,
    TASK_UNPLACEABLE,
    TASK_WAITING,
    VIOLATED_RULE,
    VIOLATING_ROLE,
    claim,
)
from subak.simulator.engine.attempts import (
    commit,
    drop_dead,
    forget_lost_events,
    lose,
    note_loss,
    note_waiting,
    stop,
)
from subak.simulator.engine.changes import apply_change
from subak.simulator.engine.heap import drop_first, first_time
from subak.simulator.engine.recorder import finish, pass_time
from subak.simulator.engine.state import (
    LOOP_LOSSES_FULL,
    LOOP_PAUSED,
    LOOP_TIMELINE_FULL,
    LOOP_UNREAD,
    TIMELINE_ARRIVALS,
    TIMELINE_ENDS,
    TIMELINE_LOST,
    TIMELINE_PREEMPTIONS,
    Simulation,
)
from subak.simulator.failures.planned import KILLED
from subak.simulator.federated.delay_line import is_empty
from subak.simulator.federated.heartbeats.beats import (
    UNSETTLED_MAX,
    measure_round,
)
from subak.simulator.federated.heartbeats.idle import HEAR, PASS_OVER
from subak.simulator.federated.network import (
    Network,
    beat_is_next,
    next_arrival,
    next_event_at,
    next_served,
    place_of,
    release_slot,
    settle_all,
    transmit,
)
from subak.simulator.federated.timeline import record_messages, turn_interval

HANDLE, NOTHING, MESSAGES_FULL, QUEUES_CHANGE = 10, 11, 12, 13  # beside the reasons for which a loop comes back
IDLE = 4  # of the services, behind those of the roles: what passes over heartbeats


@inlined
def advance(  # noqa: C901, PLR0911  (each event is one way out)
    sim: Simulation, net: Network, services: Functions, tables: np.ndarray, due: np.ndarray
) -> int:
    """Take the next event; return HANDLE with the message to handle in *due* (MESSAGE[1]), NOTHING, or why to stop."""
    drop_dead(sim)
    exit_, message = first_time(sim.events), next_event_at(net)
    arrival = next_arrival(sim, net)
    change = time_at(sim.changes.time, sim.counts.next_change)
    cancel = time_at(net.cancel_time, net.counts.next_cancel)
    time = min(exit_, message, arrival, change, cancel)
    if time > sim.clock.until or is_over(sim, net, time, arrival, change):
        if net.faults.on[0] and sim.counts.waiting_now + sim.counts.running_now == 0 and time <= sim.clock.until:
            sim.clock.now = max(net.idle.last_progress, sim.clock.accounted)  # what came after was patience
        record_messages(sim, net)
        return finish(sim, min(arrival, np.inf if net.counts.lively == 0 else min(exit_, message)))
    if time > net.idle.next_tree:
        return QUEUES_CHANGE
    if sim.counts.losses + sim.counts.running_now + 1 > sim.losses.task.size:  # one may begin again besides: `begin`
        return LOOP_LOSSES_FULL
    if net.counts.free < net.counts.margin:
        return MESSAGES_FULL
    room = sim.record.rows.shape[0] - sim.counts.rows_closed - 2
    if (time - sim.clock.boundary) / sim.clock.interval >= room:
        record_messages(sim, net)
        pass_time(sim, time)
        return LOOP_TIMELINE_FULL
    sim.counts.freed_now = 0
    sim.counts.arrived_now = 0
    sim.counts.ended_now = 0
    if change == time:
        return take_change(sim, net, time, due)
    if exit_ == time:
        return take_exit(sim, net, time, due)
    if arrival == time and message > time:
        return take_arrival(sim, net, time, due)
    if message > time:
        return take_cancel(sim, net, time, due)
    horizon = min(arrival, change, exit_, cancel, sim.clock.until, net.idle.next_tree)
    if net.beats.counts.is_on and net.beats.round.next_beat == time and pass_over(
        sim, net, services, tables, time, horizon, arrival
    ):
        return NOTHING
    return take_message(sim, net, horizon, due)


@inlined
def time_at(times: np.ndarray, place: int) -> float:
    """Return float64[place], inf behind the end."""
    return times[place] if place < times.size else np.inf


@inlined
def is_over(sim: Simulation, net: Network, time: float, arrival: float, change: float) -> bool:
    """Whether nothing more can happen that a task could notice: only timers are left, and they changed nothing."""
    if time == np.inf:
        return True  # nothing is left but services that nobody stops, and tasks that no machine is there for
    if net.counts.lively > 0 or arrival < np.inf:
        return False
    settled = sim.counts.waiting_now == 0 and sim.counts.running_now == 0
    if settled and net.faults.on[0] == 0:
        return True
    return (settled or change == np.inf) and time - net.idle.last_progress > net.idle.timeout


@inlined
def note_progress(sim: Simulation, net: Network, time: float) -> None:
    """Account for the time up to a change of what waits and runs."""
    if time >= sim.clock.boundary:
        record_messages(sim, net)
    pass_time(sim, time)
    net.idle.last_progress = time


@inlined
def to_role(due: np.ndarray, kind: int, to: int, task: int, machine: int) -> int:
    """Make the message of an event that is not one: an arrival, an exit, a change of the fleet."""
    row = due[0]
    row["kind"], row["reason"], row["to"], row["sender"] = kind, NO_REASON, to, NOBODY
    row["task"], row["machine"], row["count"], row["handle"] = task, machine, 0, NOBODY
    return HANDLE


@inlined
def take_arrival(sim: Simulation, net: Network, time: float, due: np.ndarray) -> int:
    """Let a task arrive at its submitter; where the next one to arrive has no place yet, come back for it."""
    if sim.counts.next_arrival == net.arrival.size:
        return LOOP_UNREAD
    task = net.arriving[sim.counts.next_arrival]
    note_progress(sim, net, time)
    sim.clock.now = time
    sim.counts.next_arrival += 1
    sim.counts.events += 1
    sim.record.current[TIMELINE_ARRIVALS] += 1
    if sim.claims.status[task] in (TASK_UNPLACEABLE, TASK_GIVEN_UP):
        return NOTHING
    sim.claims.status[task] = TASK_BLOCKED
    return to_role(due, ARRIVE, net.submitter[task] if net.submitter.size > 0 else 0, net.number[task], NOBODY)


@inlined
def take_message(sim: Simulation, net: Network, horizon: float, due: np.ndarray) -> int:
    """Let a message arrive at its receiver, or be handled; before *horizon* only other messages are due."""
    sim.clock.now, slot = next_served(net, horizon)
    sim.counts.events += 1
    if slot == NOBODY:
        return NOTHING
    due[0] = net.flight[slot]
    if sim.clock.now >= sim.clock.boundary:
        turn_interval(sim, net)
    net.handled[due[0]["kind"]] += 1
    release_slot(net, slot)
    return HANDLE


@inlined
def pass_over(
    sim: Simulation, net: Network, services: Functions, tables: np.ndarray, time: float, horizon: float, arrival: float
) -> bool:
    """Pass over the heartbeats from that at *time* on which change nothing; return whether there were any.

    Before *horizon* only messages are due. The messages of an interval are counted in it, so none is passed over that
    is under way when one ends; and the run ends with the timers that come after all else, so these are not either.
    """
    if not is_empty(net.line) or not beat_is_next(net) or (net.counts.lively == 0 and arrival == np.inf):
        return False
    beats, of = net.beats, net.beats.round
    if time >= sim.clock.boundary:
        sim.clock.now = time
        turn_interval(sim, net)
    if time >= of.binade_end or beats.counts.unsettled > UNSETTLED_MAX:
        settle_all(net)
        call(services, IDLE, tables[IDLE], time, HEAR)
        measure_round(beats, time)
    horizon = min(horizon, first_time(net.events), sim.clock.boundary if sim.clock.boundary > time else np.inf)
    count = call(services, IDLE, tables[IDLE], horizon, PASS_OVER)
    if count == 0:
        return False
    beats.counts.unsettled += count
    beats.counts.passed += count
    net.handled[BEAT] += count
    net.handled[UPDATE] += count * beats.counts.masters
    net.handled[NOTED] += count * beats.counts.masters
    sim.counts.events += count * beats.counts.events_a_round
    sim.clock.now = of.last + of.length
    return True


@inlined
def take_exit(sim: Simulation, net: Network, time: float, due: np.ndarray) -> int:
    """End an attempt whose run time is over, and tell its worker."""
    task, machine = sim.events.slot[0]["item"], sim.events.slot[0]["place"]
    drop_first(sim.events)
    note_progress(sim, net, time)
    sim.clock.now = time
    sim.counts.events += 1
    net.counts.lively -= 1
    reason = net.why[task] if net.why.size > 0 else NO_REASON
    if reason == NO_REASON:
        sim.record.current[TIMELINE_ENDS] += 1
    else:
        note_loss(sim, task, machine)
        net.failed[task] += 1
        net.failed_seconds[task] += time - sim.progress.start[task]
    stop(sim, task, machine)
    sim.step.is_freed[machine] = False
    sim.claims.status[task] = TASK_FINISHED if reason == NO_REASON else TASK_BLOCKED
    to_role(due, EXITED, machine, net.number[task], machine)
    due[0]["handle"], due[0]["attempt"] = net.handle[task], net.attempt[task]
    due[0]["reason"], due[0]["code"] = reason, net.planned.code[task] if reason == HAS_FAILED else 0
    return HANDLE


@noinline
def take_cancel(sim: Simulation, net: Network, time: float, due: np.ndarray) -> int:
    """Let a user cancel a task."""
    task = net.cancel_task[net.counts.next_cancel]
    note_progress(sim, net, time)
    sim.clock.now = time
    net.counts.next_cancel += 1
    sim.counts.events += 1
    if sim.claims.status[task] == TASK_UNPLACEABLE:
        return NOTHING
    return to_role(due, CANCEL, net.submitter[task], net.number[task], NOBODY)


@noinline
def take_change(sim: Simulation, net: Network, time: float, due: np.ndarray) -> int:
    """Let a machine leave, join or take another capacity; the operator tells its local master."""
    change = sim.counts.next_change
    machine = sim.changes.machine[change]
    note_progress(sim, net, time)
    sim.clock.now = time
    sim.counts.next_change += 1
    sim.counts.events += 1
    before = sim.counts.losses
    apply_change(sim, change)
    forget_lost_events(sim)
    for loss in range(before, sim.counts.losses):
        forget_exit(sim, net, sim.losses.task[loss])
    sim.step.is_freed[machine] = False
    to_role(due, CHANGE, NOBODY, NOBODY, machine)
    due[0]["count"], due[0]["shape"] = change, net.changed_to[change] if net.changed_to.size > 0 else NOBODY
    due[0]["epoch"] = 0  # nobody has been told yet
    due[0]["first"], due[0]["last"] = before, sim.counts.losses
    return HANDLE


@inlined
def next_instant(sim: Simulation, net: Network) -> float:
    """Return when the next event is, inf if there is none."""
    time = min(first_time(sim.events), next_event_at(net))
    time = min(time, next_arrival(sim, net))
    if sim.counts.next_change < sim.changes.time.size:
        time = min(time, sim.changes.time[sim.counts.next_change])
    time = min(time, time_at(net.cancel_time, net.counts.next_cancel))
    return float(time)


@inlined
def carry_out(sim: Simulation, net: Network, sender_role: int, out: Outbox) -> int:
    """Carry a handler's effects out, send its messages; return LOOP_PAUSED, or LOOP_BROKEN at the first broken rule."""
    for place in range(out.counts.posted):
        message = out.row[place]
        task = place_of(message["task"])
        if message["kind"] == READY:
            let_wait(sim, net, task)
        elif message["kind"] == BEGIN:
            net.handle[task], net.attempt[task] = message["handle"], message["attempt"]
            net.at_worker[task] += message["delay"]
            if sim.cut.size > 0:
                cut_short(sim, net, task, message["limit"])
            begin(sim, net, task, message["machine"])
        elif message["kind"] == GIVEN_UP:
            give_up(sim, net, task)
        elif message["kind"] == HALT:
            halt(sim, net, task, message["machine"], message["reason"])
        else:
            transmit(net, sim.clock.now, sender_role, message)
    out.counts.posted = 0
    if out.counts.overrun > 0:
        sim.claims.violation[VIOLATED_RULE], sim.claims.violation[VIOLATING_ROLE] = OUTBOX_FULL, sender_role
    return int(sim.claims.violation[VIOLATED_RULE]) != KEPT


@noinline
def carry_out_apart(sim: Simulation, net: Network, sender_role: int, out: Outbox) -> None:
    """Carry out what a role answers that was told something from outside; its code stands here once."""
    carry_out(sim, net, sender_role, out)


@inlined
def begin(sim: Simulation, net: Network, task: int, machine: int) -> None:
    """Run an attempt, if the machine really has what it asks and the task does not run already."""
    note_progress(sim, net, sim.clock.now)
    if may_forget(sim, net) and sim.claims.status[task] == TASK_FINISHED:
        run_again(sim, task)
    elif may_forget(sim, net) and sim.claims.status[task] == TASK_BLOCKED:  # that an attempt failed, likewise
        note_waiting(sim, task)
    if claim(sim.claims, sim.fleet, sim.tasks, task, machine):
        commit(sim)
        net.counts.lively += ends_by_itself(sim, task)


@inlined
def may_forget(sim: Simulation, net: Network) -> bool:
    """Whether the end of an attempt may have been lost with its machine: one failed, or left while it was told."""
    return bool(net.faults.on[0] or sim.counts.next_change > 0)


@inlined
def ends_by_itself(sim: Simulation, task: int) -> bool:
    """Whether the present attempt of a task is no service that nobody stops."""
    is_cut = sim.cut.size > 0 and sim.cut[task] >= 0.0
    return bool((sim.cut[task] if is_cut else sim.tasks.run_time[task]) < np.inf)


@noinline
def cut_short(sim: Simulation, net: Network, task: int, limit: float) -> None:
    """Note when, and why, the attempt that begins will end, if it will not finish: it fails, or runs for too long."""
    seconds, net.why[task] = sim.tasks.run_time[task], NO_REASON
    if net.failed[task] < net.planned.fails[task]:
        seconds, net.why[task] = net.planned.after[task], CANCELLED if net.planned.code[task] == KILLED else HAS_FAILED
    if limit < seconds:
        seconds, net.why[task] = limit, RAN_TOO_LONG
    sim.cut[task] = -1.0 if net.why[task] == NO_REASON else seconds


@noinline
def give_up(sim: Simulation, net: Network, task: int) -> None:
    """End a task that has not finished, and is not to be tried again."""
    note_progress(sim, net, sim.clock.now)
    if sim.claims.status[task] == TASK_WAITING:
        sim.counts.waiting_now -= 1
        sim.record.waiting_by_shape[sim.tasks.shape[task]] -= 1
    sim.claims.status[task] = TASK_GIVEN_UP


@noinline
def run_again(sim: Simulation, task: int) -> None:
    """Let a task wait whose end was lost with its machine before its submitter heard of it: so is the attempt."""
    loss = sim.counts.losses
    sim.counts.losses += 1
    sim.losses.task[loss], sim.losses.machine[loss] = task, sim.progress.machine[task]
    sim.losses.start[loss] = sim.progress.start[task]
    sim.losses.end[loss] = sim.progress.start[task] + sim.tasks.run_time[task]
    sim.record.current[TIMELINE_LOST] += 1
    note_waiting(sim, task)


@noinline
def halt(sim: Simulation, net: Network, task: int, machine: int, reason: int) -> None:
    """End an attempt before its time: its task waits again."""
    if sim.claims.status[task] == TASK_RUNNING and sim.progress.machine[task] == machine:
        note_progress(sim, net, sim.clock.now)
        lose(sim, task, machine)
        forget_lost_events(sim)
        sim.record.current[TIMELINE_PREEMPTIONS] += reason == PREEMPTED
        sim.step.is_freed[machine] = False
        forget_exit(sim, net, task)


@inlined
def forget_exit(sim: Simulation, net: Network, task: int) -> None:
    """Count the exit of a lost attempt off; that of a service nobody stops was never counted."""
    net.counts.lively -= ends_by_itself(sim, task)


@inlined
def let_wait(sim: Simulation, net: Network, task: int) -> None:
    """Count a task among the waiting from now on: it was submitted."""
    note_progress(sim, net, sim.clock.now)
    if sim.progress.attempts[task] == 0:  # what is tried again has been ready since before its first attempt
        sim.progress.ready[task] = sim.clock.now
    note_waiting(sim, task)


__all__ = ["HANDLE", "HANDLER", "LOOP_PAUSED", "NOTHING", "TASK_WAITING", "advance", "carry_out", "let_wait"]
