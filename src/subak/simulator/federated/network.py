"""The network: every message takes time to travel, queues for its receiver, and is served.

A message that crosses the network arrives after a delay; its receiver serves one message at a time, in the order of
arrival, and what it answers leaves when the service is over. So a message is up to two events: it arrives, and it has
been served; the first suffices when the receiver is idle and nothing else happens meanwhile. Messages that cross the
network wait for their arrival in a line, where they come in order, which a constant delay sees to; so do the timers of
heartbeats, where some may be passed over. All others, timers and what is being served, are in a heap of their own,
apart from the much larger one of the attempts that run.

Sources: Megha section III (the parts of the allocation time), section V-B (0.5 ms); service times are parameters.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.messages import (
    ASSIGN,
    BEAT,
    CROSSES,
    DEAL,
    ENQUEUE,
    FETCH,
    GLOBAL_MASTER,
    HANDLER,
    KINDS,
    LOCAL_MASTER,
    MESSAGE,
    NOBODY,
    ON_PATH,
    PERIODIC,
    ROLES,
    SUBMIT,
    UPDATE,
    WORKER,
)
from subak.marks import inlined, noinline
from subak.placement.fits.random_fit import random_float
from subak.records import Numbers
from subak.simulator.engine.heap import SEQUENCE, SIZE, Events, build_events, insert
from subak.simulator.engine.state import FIRST_RESOURCE, Simulation
from subak.simulator.failures.faults import (
    REPLAY,
    Faults,
    build_faults,
    is_cut,
    message_fault,
    old_message,
    timer_delay,
)
from subak.simulator.failures.planned import Planned, nothing_planned
from subak.simulator.federated.delay_line import (
    TAKEN,
    DelayLine,
    all_events,
    build_line,
    event_at,
    first_time_of,
    is_empty,
    join,
    line_is_first,
    may_join,
    take_first,
    with_longer_line,
)
from subak.simulator.federated.heartbeats.beats import (
    TOUCHED,
    Beats,
    build_beats,
    join_beats,
    may_join_beats,
    settle,
    take_beat,
    timers,
)

ARRIVING, SERVED = range(2)  # place of an event of the network; its item is the message's slot
CONSTANT, UNIFORM, EXPONENTIAL = range(3)  # laws of the delay
PLACE_BITS = 32  # of a task's number: its place in tables by task; where all have places, the number is the place
PLACES_MASK = (1 << PLACE_BITS) - 1
LAWS = ("constant", "uniform", "exponential")
# columns that are looked at together lie together: most are not in the processor's cache any more when they are
ADDRESS = np.dtype([("busy", np.float64), ("worked", np.float64), ("queued", np.float64), ("incarnation", np.int32),
                    ("owed", np.int32)], align=True)
RUNNING = np.dtype([("attempt", np.int64), ("handle", np.int32)], align=True)


class NetworkCounts(Numbers):
    """How many messages and slots there are, and where the network is."""

    free: int  # slots
    lively: int  # messages, services and attempts but for timers that go on for ever, and what these send without news:
    # a run is not kept from ending by them
    lost: int
    duplicated: int
    begun: int
    margin: int  # slots that must be free before a message is handled
    driven: int  # whether roles are told that they begin, or their machine changes
    clusters: int
    next_cancel: int  # the cancellation that comes next


class Delay(Numbers):
    """How long a message is on its way."""

    law: int  # one of LAWS
    mean: float  # seconds
    spread: float  # seconds


class Waits(Numbers):
    """Instants that a run which does nothing goes by, in seconds."""

    last_progress: float  # when a task last began, ended or arrived
    timeout: float  # after it
    next_tree: float  # when the queues change next


class Network(NamedTuple):
    """Messages on their way, and the roles they go to. An address is a role's first address plus its number."""

    events: Events  # its count of sequence numbers is the line's too
    line: DelayLine
    beats: Beats
    flight: np.ndarray  # MESSAGE[slot]
    sent: np.ndarray  # float64[slot], seconds
    armed_in: np.ndarray  # int32[slot], the receiver's incarnation in which it arrived, or that armed the timer
    slot: np.ndarray  # int32[slot], the free ones first
    counts: NetworkCounts
    first: np.ndarray  # int64[role + 1], where the addresses of a role begin
    busy: np.ndarray  # float64[address], until when it serves
    worked: np.ndarray  # float64[address], seconds of service so far
    queued: np.ndarray  # float64[address], seconds that messages waited for it so far
    incarnation: np.ndarray  # int32[address], how often it was started; negative while it is down
    owed: np.ndarray  # int32[address], rounds of heartbeats that were passed over and are not accounted for; or TOUCHED
    service: np.ndarray  # float64[kind], seconds
    part: np.ndarray  # float64[kind], seconds for each of the message's `count`
    delay: Delay
    random: np.ndarray  # uint64[1]
    idle: Waits
    handled: np.ndarray  # int64[kind], messages
    recorded: np.ndarray  # int64[column of the timeline], messages that it has, where it counts any
    arrival: np.ndarray  # float64[arrival], seconds, of the tasks that come, in order
    arriving: np.ndarray  # int32[arrival], their places
    number: np.ndarray  # int64[task], by which messages name the task at a place (PLACE_BITS)
    attempt: np.ndarray  # int64[task], number of the attempt that runs
    handle: np.ndarray  # int32[task], the worker's row of the attempt that runs, to be said when it exits
    processing: np.ndarray  # float64[task], seconds of its allocation time in service at masters
    at_worker: np.ndarray  # float64[task], seconds waiting for and in service at workers
    communication: np.ndarray  # float64[task], seconds on the network
    batch: np.ndarray  # int32[task], tasks that were submitted in one message with it
    submitter: np.ndarray  # int32[task], to whom it arrives; empty: to the only one
    cluster: np.ndarray  # int32[machine], where roles are driven
    is_there: np.ndarray  # bool[machine], as the operator last said
    changed_to: np.ndarray  # int32[change], the configuration a machine changes to, NOBODY: it leaves; where driven
    planned: Planned
    why: np.ndarray  # int8[task], for which reason the present attempt ends; empty where all finish
    failed: np.ndarray  # int16[task], attempts that ended by themselves without finishing; likewise
    failed_seconds: np.ndarray  # float64[task], for which these had run; likewise
    cancel_time: np.ndarray  # float64[cancellation], seconds, sorted
    cancel_task: np.ndarray  # int32[cancellation]
    faults: Faults


def build_network(roles: tuple[int, ...], tasks: int, slots: int, seed: int) -> Network:
    """Return an idle network of *roles* (how many of each of ROLES) with room for *slots* messages at once."""
    assert len(roles) == len(ROLES)
    address, running = np.zeros(sum(roles), ADDRESS), np.zeros(max(tasks, 2), RUNNING)  # a column of one: another type
    address["incarnation"], address["owed"], running["handle"] = 1, TOUCHED, NOBODY
    return Network(
        events=build_events(slots), line=build_line(slots), beats=build_beats(roles[LOCAL_MASTER]),
        flight=np.zeros(slots, MESSAGE), sent=np.zeros(slots), armed_in=np.zeros(slots, np.int32),
        slot=_from_last(0, slots), counts=NetworkCounts(free=slots),
        first=np.concatenate([[0], np.cumsum(roles)]).astype(np.int64),
        busy=address["busy"], worked=address["worked"], queued=address["queued"], incarnation=address["incarnation"],
        owed=address["owed"], service=np.zeros(len(KINDS)), part=np.zeros(len(KINDS)), delay=Delay(),
        idle=Waits(timeout=np.inf, next_tree=np.inf),
        random=np.array([seed], np.uint64), handled=np.zeros(len(KINDS), np.int64),
        recorded=np.zeros(FIRST_RESOURCE, np.int64),
        arrival=np.zeros(0), arriving=np.zeros(0, np.int32), number=np.arange(tasks),
        attempt=running["attempt"], handle=running["handle"],
        processing=np.zeros(tasks), at_worker=np.zeros(tasks), communication=np.zeros(tasks),
        batch=np.ones(tasks, np.int32), submitter=np.zeros(0, np.int32),
        cluster=np.zeros(0, np.int32), is_there=np.zeros(0, np.bool_), changed_to=np.zeros(0, np.int32),
        planned=nothing_planned(), why=np.zeros(0, np.int8), failed=np.zeros(0, np.int16), failed_seconds=np.zeros(0),
        cancel_time=np.zeros(0), cancel_task=np.zeros(0, np.int32),
        faults=build_faults(),
    )


def with_more_room(net: Network) -> Network:
    """Return a network with twice the slots, on which everything is on its way as before."""
    slots = net.slot.size

    def longer(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array, np.zeros(slots, array.dtype)])

    slot = np.concatenate([net.slot[: net.counts.free], _from_last(slots, 2 * slots),
                           net.slot[net.counts.free :]])
    net.counts.free += slots
    return net._replace(
        events=net.events._replace(slot=longer(net.events.slot)), line=with_longer_line(net.line, 2 * slots),
        flight=longer(net.flight), sent=longer(net.sent), armed_in=longer(net.armed_in), slot=slot)


def _from_last(first: int, end: int) -> np.ndarray:
    """Return int32[slot]: free slots, of which the last here, the first of all, is taken first."""
    return np.arange(first, end, dtype=np.int32)[::-1].copy()


def held_slots(net: Network) -> np.ndarray:
    """Return int64[message], the slots of all messages, in no order of time."""
    is_held = np.ones(net.slot.size, np.bool_)
    is_held[net.slot[: net.counts.free]] = False  # what stands behind these has been free, and may be so again
    return np.flatnonzero(is_held)


def on_the_way(net: Network) -> np.ndarray:
    """Return int32[message], the slots of all messages, that of the next event first."""
    others, beats = all_events(net.line, net.events), timers(net.beats)
    is_beat = beats.size > 0 and beat_is_next(net)
    return np.concatenate([each["item"] for each in ([beats, others] if is_beat else [others, beats])])


@inlined
def place_of(number: int) -> int:
    """Return where the tables by task have the task of a number."""
    return number & PLACES_MASK


@inlined
def next_arrival(sim: Simulation, net: Network) -> float:
    """Return when the next task arrives, inf if none does; it may be one that has no place yet."""
    arrival = sim.counts.next_arrival
    return float(net.arrival[arrival]) if arrival < net.arrival.size else sim.clock.unread_from


@inlined
def next_event_at(net: Network) -> float:
    """Return when the earliest event of the network is, inf if there is none."""
    return float(min(net.beats.round.next_beat, first_time_of(net.line, net.events)))


@inlined
def drawn_delay(net: Network) -> float:
    """Return how long the next message travels."""
    mean = net.delay.mean
    if net.delay.law == CONSTANT:
        return mean
    if net.delay.law == UNIFORM:
        return mean + (2.0 * random_float(net.random) - 1.0) * net.delay.spread
    return -mean * np.log(1.0 - random_float(net.random))


@inlined
def enter(net: Network, now: float, time: float, message: np.void) -> None:
    """Let a message arrive at *time*."""
    net.counts.free -= 1
    slot = net.slot[net.counts.free]
    net.flight[slot] = message
    net.sent[slot] = now
    if not PERIODIC[message["kind"]]:
        net.counts.lively += 1
    sequence = net.events.size[SEQUENCE]
    net.events.size[SEQUENCE] += 1
    if CROSSES[message["kind"]] and may_join(net.line, time):
        join(net.line, time, sequence, slot, ARRIVING)
    elif message["kind"] == BEAT and net.beats.counts.is_on and may_join_beats(net.beats, time):
        join_beats(net.beats, time, sequence, slot, message["to"])
    else:
        insert(net.events, time, sequence, slot, ARRIVING)


@inlined
def transmit(net: Network, now: float, sender_role: int, message: np.void) -> None:
    """Send a message on its way: over the network, where faults befall it, or to its own sender."""
    if not CROSSES[message["kind"]]:
        address = net.first[HANDLER[message["kind"]]] + message["to"]
        net.armed_in[net.slot[net.counts.free - 1]] = net.incarnation[address]
        enter(net, now, now + timer_delay(net.faults, message["delay"]), message)
        return
    time = now + drawn_delay(net)
    if net.faults.on[0]:
        sender = net.first[sender_role] + message["sender"]
        receiver = net.first[HANDLER[message["kind"]]] + message["to"]
        if is_cut(net.faults, now, sender, receiver):
            net.counts.lost += 1
            return
        if net.faults.rate[REPLAY] > 0.0:
            again = old_message(net.faults, now, message)
            if again >= 0:
                net.counts.duplicated += 1
                enter(net, now, time, net.faults.past[again])
        lost, twice, late = message_fault(net.faults, now, message["kind"] == UPDATE)
        if lost:
            net.counts.lost += 1
            return
        time += late
        if twice >= 0.0:
            net.counts.duplicated += 1
            enter(net, now, time + twice, message)
    enter(net, now, time, message)


@inlined
def release_slot(net: Network, slot: int) -> None:
    """Forget a message that was handled or lost."""
    if not PERIODIC[net.flight[slot]["kind"]]:
        net.counts.lively -= 1
    net.slot[net.counts.free] = slot
    net.counts.free += 1


@inlined
def note_path(net: Network, task: int, kind: int, role: int, waited: float, service: float, travelled: float) -> None:
    """Count the parts of a task's allocation time; what is left of it is framework queueing."""
    if task == NOBODY or not ON_PATH[kind]:
        return
    place = place_of(task)
    net.communication[place] += travelled
    if role == WORKER:
        net.at_worker[place] += waited + service
    else:
        net.processing[place] += service


@inlined
def note_batch(net: Network, message: np.void) -> None:
    """Count what came before a task of a batch was bound: the messages on the way to it, and its reservation's wait."""
    kind, task = message["kind"], message["task"]
    if kind == ASSIGN:
        net.communication[task] += message["travelled"]
        net.at_worker[task] += message["delay"]
        net.processing[task] += net.service[SUBMIT] + net.part[SUBMIT] * net.batch[task] + net.service[FETCH]
    elif kind in (DEAL, ENQUEUE):
        net.communication[task] += message["travelled"]
        net.processing[task] += net.service[SUBMIT] + net.part[SUBMIT] * net.batch[task]


@inlined
def touch(net: Network, address: int) -> None:
    """Let something arrive at a role: what was passed over there comes first."""
    if net.owed[address] > 0:
        settle(net.beats, net.owed, net.busy, net.worked, net.queued, address)
    net.owed[address] = TOUCHED


@noinline
def settle_all(net: Network) -> None:
    """Account for all that was passed over."""
    for address in range(net.first[GLOBAL_MASTER], net.first[WORKER]):
        if net.owed[address] > 0:
            settle(net.beats, net.owed, net.busy, net.worked, net.queued, address)
    net.beats.counts.unsettled = 0


@inlined
def serve(net: Network, time: float, sequence: int, slot: int, horizon: float) -> float:
    """Let a message that arrives at *time* be served: return when it has been, or -1 if that is a later event's news.

    Before *horizon* nothing happens but what the network holds.
    A receiver that is down loses it; timers and turns are lost with the incarnation that they were armed in.
    """
    message = net.flight[slot]
    kind = message["kind"]
    role = HANDLER[kind]
    address = net.first[role] + message["to"]
    if net.incarnation[address] < 0 or (not CROSSES[kind] and net.armed_in[slot] != net.incarnation[address]):
        net.counts.lost += 1
        release_slot(net, slot)
        return -1.0
    touch(net, address)
    service = net.service[kind] + net.part[kind] * message["count"]
    began = max(time, net.busy[address])
    done = began + service
    net.busy[address] = done
    net.worked[address] += service
    net.queued[address] += began - time
    travelled = time - net.sent[slot] if CROSSES[kind] else 0.0
    note_path(net, message["task"], kind, role, began - time, service, travelled)
    if message["task"] == NOBODY:
        message["travelled"] += travelled
    if done == time or done < min(horizon, next_event_at(net)):
        return done
    net.armed_in[slot] = net.incarnation[address]
    insert(net.events, done, sequence, slot, SERVED)
    return -1.0


@inlined
def survives(net: Network, slot: int) -> bool:
    """Whether the receiver of a message has not been restarted while it served it."""
    message = net.flight[slot]
    alive: bool = net.incarnation[net.first[HANDLER[message["kind"]]] + message["to"]] == net.armed_in[slot]
    if not alive:
        net.counts.lost += 1
        release_slot(net, slot)
    return alive


@inlined
def take_next(net: Network) -> tuple[float, int, int, int]:
    """Take the earliest event; return its time, sequence number, item and place."""
    if not beat_is_next(net):
        return take_first(net.line, net.events)
    beat = event_at(net.beats.line, net.beats.line.size[TAKEN])
    time, sequence, slot = beat["time"], beat["sequence"], beat["item"]
    take_beat(net.beats)
    return time, sequence, slot, ARRIVING


@inlined
def beat_is_next(net: Network) -> bool:
    """Whether the earliest event is a heartbeat's timer."""
    beat, other = net.beats.round.next_beat, first_time_of(net.line, net.events)
    if beat != other or beat == np.inf:
        return bool(beat < other)
    return bool(event_at(net.beats.line, net.beats.line.size[TAKEN])["sequence"] < sequence_of_next(net))


@noinline
def sequence_of_next(net: Network) -> int:
    """Return the sequence number of the earliest event but for heartbeats' timers."""
    line, events = net.line, net.events
    if is_empty(line) or (events.size[SIZE] > 0 and not line_is_first(line, events)):
        return int(events.slot[0]["sequence"])
    return int(event_at(line, line.size[TAKEN])["sequence"])


@inlined
def next_served(net: Network, horizon: float) -> tuple[float, int]:
    """Take one event off the network; return its time and the slot of the message to handle, NOBODY for none."""
    time, sequence, slot, place = take_next(net)
    if place == ARRIVING:
        done = serve(net, time, sequence, slot, horizon)
        return (done, slot) if done >= 0.0 else (time, NOBODY)
    return (time, slot) if survives(net, slot) else (time, NOBODY)


__all__ = ["LAWS", "Network", "build_network", "next_served", "on_the_way", "release_slot", "transmit"]
