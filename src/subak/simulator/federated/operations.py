"""Operations from outside: roles start, crash and restart, and machines change."""

import numpy as np

from subak.federation.messages import (
    BOOT,
    CHANGE,
    LOCAL_MASTER,
    NOBODY,
    POWER_OFF,
    RECONFIGURE,
    RESTART,
    SUBMITTER,
    WORKER,
    Outbox,
)
from subak.marks import Functions, call, inlined, noinline
from subak.simulator.engine.state import Simulation
from subak.simulator.failures.faults import ACTION_CRASH, ACTION_RESTART
from subak.simulator.federated.heartbeats.idle import HEAR
from subak.simulator.federated.loop import IDLE, carry_out_apart, next_instant, to_role
from subak.simulator.federated.network import Network, settle_all, touch


@inlined
def serve(services: Functions, tables: np.ndarray, role: int, now: float) -> int:
    """Hand the message that is due to a role; return the task that a global master's turn placed, or NOBODY."""
    return call(services, role, tables[role], now, 1)


@inlined
def order(
    net: Network, services: Functions, tables: np.ndarray, due: np.ndarray, now: float, address: int, kind: int
) -> int:
    """Tell a role that it begins, or has lost its machine; return its role."""
    role = role_of(net, address)
    number = address - net.first[role]
    to_role(due, kind, number, NOBODY, number if role == WORKER else NOBODY)
    serve(services, tables, role, now)
    due[0]["kind"] = NOBODY
    return role


@inlined
def role_of(net: Network, address: int) -> int:
    """Return the role at an address."""
    role = SUBMITTER
    while net.first[role + 1] <= address:
        role += 1
    return role


@noinline
def boot_all(
    sim: Simulation, net: Network, services: Functions, tables: np.ndarray, due: np.ndarray, out: Outbox
) -> None:
    """Let every role begin: each local master, its standby behind it, then the workers."""
    clusters, masters = net.counts.clusters, net.first[WORKER] - net.first[LOCAL_MASTER]
    for cluster in range(clusters):
        for number in range(cluster, masters, clusters):
            order(net, services, tables, due, sim.clock.now, net.first[LOCAL_MASTER] + number, BOOT)
            carry_out_apart(sim, net, LOCAL_MASTER, out)
    for address in range(net.first[WORKER], net.first[WORKER + 1]):
        order(net, services, tables, due, sim.clock.now, address, BOOT)
        carry_out_apart(sim, net, WORKER, out)


@noinline
def change_machine(
    sim: Simulation, net: Network, services: Functions, tables: np.ndarray, due: np.ndarray, out: Outbox
) -> None:
    """Tell a machine's local master of the operator's change, and the standby; then carry it out at its worker."""
    machine, now, is_there = due[0]["machine"], sim.clock.now, due[0]["shape"] != NOBODY
    address = net.first[WORKER] + machine
    if not is_there:
        net.incarnation[address] = -abs(net.incarnation[address])
    elif not net.is_there[machine]:
        net.incarnation[address] = abs(net.incarnation[address]) + 1
    net.is_there[machine] = is_there
    masters = net.first[WORKER] - net.first[LOCAL_MASTER]
    for number in range(net.cluster[machine], masters, net.counts.clusters):
        due[0]["to"] = number
        touch(net, net.first[LOCAL_MASTER] + number)
        serve(services, tables, LOCAL_MASTER, now)
        carry_out_apart(sim, net, LOCAL_MASTER, out)
    due[0]["kind"], due[0]["to"] = RECONFIGURE, machine
    serve(services, tables, WORKER, now)
    carry_out_apart(sim, net, WORKER, out)
    due[0]["kind"] = CHANGE


@noinline
def catch_up(sim: Simulation, net: Network, services: Functions, tables: np.ndarray) -> None:
    """Account for the heartbeats that were passed over, so that whoever looks at the roles sees none missing."""
    if net.beats.counts.is_on:
        settle_all(net)
        call(services, IDLE, tables[IDLE], sim.clock.now, HEAR)


@noinline
def apply_faults(
    sim: Simulation, net: Network, services: Functions, tables: np.ndarray, due: np.ndarray, out: Outbox
) -> None:
    """Crash or restart what the plan says is due before the next event."""
    faults = net.faults
    while faults.next[0] < faults.time.size and faults.time[faults.next[0]] <= next_instant(sim, net):
        action = faults.next[0]
        faults.next[0] += 1
        if faults.time[action] > sim.clock.until:
            continue
        sim.clock.now = max(sim.clock.now, faults.time[action])
        address = faults.address[action]
        if faults.action[action] == ACTION_CRASH and net.incarnation[address] > 0:
            net.incarnation[address] = -net.incarnation[address]
            if role_of(net, address) == WORKER:
                order(net, services, tables, due, sim.clock.now, address, POWER_OFF)
                carry_out_apart(sim, net, WORKER, out)
        elif faults.action[action] == ACTION_RESTART and net.incarnation[address] < 0 and can_restart(net, address):
            net.incarnation[address] = -net.incarnation[address] + 1
            net.busy[address] = sim.clock.now
            carry_out_apart(sim, net, order(net, services, tables, due, sim.clock.now, address, RESTART), out)


@inlined
def can_restart(net: Network, address: int) -> bool:
    """Whether a role's machine is there."""
    machine = address - net.first[WORKER]
    return not 0 <= machine < net.is_there.size or bool(net.is_there[machine])
