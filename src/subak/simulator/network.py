"""The network and what roles cost: every message takes time to travel, waits for its receiver, and is served.

A message that crosses the network arrives after a delay; its receiver serves one message at a time, in the order of
arrival, and what it answers leaves when the service is over. So a message is up to two events of the heap: it arrives,
and it has been served; the first suffices when the receiver is idle and nothing else happens meanwhile.

Sources: Megha section III (the parts of the allocation time), section V-B (0.5 ms); service times are parameters.
"""
from typing import NamedTuple

import numpy as np

from subak.federation.messages import CROSSES, HANDLER, KINDS, MESSAGE, NOBODY, ROLES, UPDATE, WORKER, Outbox
from subak.kernel import inlined
from subak.placement.random_fit import random_float
from subak.simulator.faults import Faults, build_faults, is_cut, surprise
from subak.simulator.heap import SIZE, Events, drop_first, insert, push_event

# place of an event of the heap: a machine (an attempt on it exits), or one of
ARRIVING, SERVED = -1, -2
# size
FREE, LIVELY, LOST, DUPLICATED, BEGUN = range(5)
CONSTANT, UNIFORM, EXPONENTIAL = range(3)  # laws of the delay
LAWS = ("constant", "uniform", "exponential")
LAW, MEAN, SPREAD = range(3)  # of `delay`
# timers that go on for ever, and what they send when there is no news, so that a run is not kept from ending by them
PERIODIC = np.array([name in ("BEAT", "CHECK", "TICK", "WATCH", "WAKE", "RETRY", "RESUBMIT",
                              "UPDATE", "NOTED", "ALIVE", "LEASE", "PULSE") for name in KINDS])
CHANGED, PATIENCE = range(2)  # of `calm`
# kinds whose travel and service are part of their task's allocation time
ON_PATH = np.array([name in ("SUBMIT", "LAUNCH", "REPARTITION", "PREEMPT", "REFUSED", "GO", "START",
                             "PROBE", "FETCH", "ASSIGN", "ENQUEUE", "DEAL") for name in KINDS])


class Network(NamedTuple):
    """Messages on their way, and the roles they go to. An address is a role's first address plus its number."""

    flight: np.ndarray  # MESSAGE[slot]
    sent: np.ndarray  # float64[slot], seconds
    life: np.ndarray  # int32[slot], the receiver's life in which it arrived, or that armed the timer
    slot: np.ndarray  # int32[slot], the free ones first
    size: np.ndarray  # int64[5]: FREE, LIVELY, LOST, DUPLICATED, BEGUN (whether first timers are armed)
    first: np.ndarray  # int64[role + 1], where the addresses of a role begin
    busy: np.ndarray  # float64[address], until when it serves
    worked: np.ndarray  # float64[address], seconds of service so far
    queued: np.ndarray  # float64[address], seconds that messages waited for it so far
    lives: np.ndarray  # int32[address], how often it was started; negative while it is down
    service: np.ndarray  # float64[kind], seconds
    part: np.ndarray  # float64[kind], seconds for each of the message's `count`
    delay: np.ndarray  # float64[3]: LAW, MEAN and SPREAD in seconds
    random: np.ndarray  # uint64[1]
    calm: np.ndarray  # float64[2], seconds: CHANGED when a task last began, ended or arrived; PATIENCE after it
    handled: np.ndarray  # int64[kind], messages
    handle: np.ndarray  # int32[task], the worker's row of the attempt that runs, to be said when it exits
    processing: np.ndarray  # float64[task], seconds of its allocation time in service at masters
    at_worker: np.ndarray  # float64[task], seconds waiting for and in service at workers
    communication: np.ndarray  # float64[task], seconds on the network
    faults: Faults


def build_network(roles: tuple[int, ...], tasks: int, slots: int, seed: int) -> Network:
    """Return an idle network of *roles* (how many of each of ROLES) with room for *slots* messages at once."""
    addresses = sum(roles)
    assert len(roles) == len(ROLES)
    return Network(
        flight=np.zeros(slots, MESSAGE), sent=np.zeros(slots), life=np.zeros(slots, np.int32),
        slot=np.arange(slots, dtype=np.int32), size=np.array([slots, 0, 0, 0, 0]),
        first=np.concatenate([[0], np.cumsum(roles)]).astype(np.int64),
        busy=np.zeros(addresses), worked=np.zeros(addresses), queued=np.zeros(addresses),
        lives=np.ones(addresses, np.int32),
        service=np.zeros(len(KINDS)), part=np.zeros(len(KINDS)), delay=np.zeros(3), calm=np.array([0.0, np.inf]),
        random=np.array([seed], np.uint64), handled=np.zeros(len(KINDS), np.int64),
        handle=np.full(tasks, NOBODY, np.int32),
        processing=np.zeros(tasks), at_worker=np.zeros(tasks), communication=np.zeros(tasks),
        faults=build_faults(),
    )


@inlined
def drawn_delay(net: Network) -> float:
    """Return how long the next message travels."""
    mean = net.delay[MEAN]
    if net.delay[LAW] == CONSTANT:
        return mean
    if net.delay[LAW] == UNIFORM:
        return mean + (2.0 * random_float(net.random) - 1.0) * net.delay[SPREAD]
    return -mean * np.log(1.0 - random_float(net.random))


@inlined
def enter(events: Events, net: Network, now: float, time: float, message: np.void) -> None:
    """Let a message arrive at *time*."""
    net.size[FREE] -= 1
    slot = net.slot[net.size[FREE]]
    net.flight[slot] = message
    net.sent[slot] = now
    if not PERIODIC[message["kind"]]:
        net.size[LIVELY] += 1
    push_event(events, time, slot, ARRIVING)


@inlined
def transmit(events: Events, net: Network, now: float, sender_role: int, message: np.void) -> None:
    """Send a message on its way: over the network, where faults befall it, or to its own sender."""
    if not CROSSES[message["kind"]]:
        net.life[net.slot[net.size[FREE] - 1]] = net.lives[net.first[HANDLER[message["kind"]]] + message["to"]]
        enter(events, net, now, now + message["delay"], message)
        return
    time = now + drawn_delay(net)
    if net.faults.on[0]:
        sender = net.first[sender_role] + message["sender"]
        receiver = net.first[HANDLER[message["kind"]]] + message["to"]
        if is_cut(net.faults, now, sender, receiver):
            net.size[LOST] += 1
            return
        lost, twice, late = surprise(net.faults, now, message["kind"] == UPDATE)
        if lost:
            net.size[LOST] += 1
            return
        time += late
        if twice >= 0.0:
            net.size[DUPLICATED] += 1
            enter(events, net, now, time + twice, message)
    enter(events, net, now, time, message)


@inlined
def transmit_all(events: Events, net: Network, now: float, sender_role: int, out: Outbox) -> None:
    """Send everything that a handler posted; effects on the executor are the caller's business."""
    for place in range(out.size[0]):
        transmit(events, net, now, sender_role, out.row[place])
    out.size[0] = 0


@inlined
def release_slot(net: Network, slot: int) -> None:
    """Forget a message that was handled or lost."""
    if not PERIODIC[net.flight[slot]["kind"]]:
        net.size[LIVELY] -= 1
    net.slot[net.size[FREE]] = slot
    net.size[FREE] += 1


@inlined
def note_path(net: Network, task: int, kind: int, role: int, waited: float, service: float, travelled: float) -> None:
    """Count the parts of a task's allocation time; what is left of it is framework queueing."""
    if task == NOBODY or not ON_PATH[kind]:
        return
    net.communication[task] += travelled
    if role == WORKER:
        net.at_worker[task] += waited + service
    else:
        net.processing[task] += service


@inlined
def serve(events: Events, net: Network, time: float, sequence: int, slot: int, horizon: float) -> float:
    """Let a message that arrives at *time* be served: return when it has been, or -1 if that is a later event's news.

    Before *horizon* nothing happens but what the heap holds.
    A receiver that is down loses it; timers and turns are lost with the life that they were armed in.
    """
    message = net.flight[slot]
    kind = message["kind"]
    role = HANDLER[kind]
    address = net.first[role] + message["to"]
    if net.lives[address] < 0 or (not CROSSES[kind] and net.life[slot] != net.lives[address]):
        net.size[LOST] += 1
        release_slot(net, slot)
        return -1.0
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
    if done == time or (done < horizon and (events.size[SIZE] == 0 or done < events.slot[0]["time"])):
        return done
    net.life[slot] = net.lives[address]
    insert(events, done, sequence, slot, SERVED)
    return -1.0


@inlined
def survives(net: Network, slot: int) -> bool:
    """Whether the receiver of a message has not been restarted while it served it."""
    message = net.flight[slot]
    alive: bool = net.lives[net.first[HANDLER[message["kind"]]] + message["to"]] == net.life[slot]
    if not alive:
        net.size[LOST] += 1
        release_slot(net, slot)
    return alive


@inlined
def next_served(events: Events, net: Network, horizon: float) -> tuple[float, int, int]:
    """Take one event off the heap; return (time, item, place): place SERVED for a message that can be handled now,
    ARRIVING when the event brought nothing to handle, else the machine on which the task `item` exits.
    """
    time, sequence = events.slot[0]["time"], events.slot[0]["sequence"]
    item, place = events.slot[0]["item"], events.slot[0]["place"]
    drop_first(events)
    if place == ARRIVING:
        done = serve(events, net, time, sequence, item, horizon)
        return (done, item, SERVED) if done >= 0.0 else (time, item, ARRIVING)
    if place == SERVED and not survives(net, item):
        return time, item, ARRIVING
    return time, item, place


__all__ = ["LAWS", "Network", "build_network", "next_served", "release_slot", "transmit", "transmit_all"]
