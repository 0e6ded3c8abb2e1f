"""Injects the faults of a case into a world, then restores everything that ever comes back."""
from typing import TYPE_CHECKING

from subak.federation.messages import NOBODY
from subak.live.role.worker.worker_role import WorkerRole
from subak.live.torture import stores
from subak.live.torture.case import NEVER, STORES, Fault
from subak.live.torture.process import Process

if TYPE_CHECKING:
    from subak.live.torture.world import World

JOINED_S = 0.2  # after which it is looked again whether all machines have joined
SLOW_S = 0.3  # that a write takes on a slow disk


def plan_faults(world: "World") -> None:
    """Let everything that a case says go wrong do so in its time."""
    for fault in world.case.faults:
        world.at(fault.at, lambda fault=fault: _begin(world, fault))  # type: ignore[misc]
    world.at(world.case.over_at, lambda: _end_all(world))


def _begin(world: "World", fault: Fault) -> None:
    world.note(f"{fault.kind} {', '.join(fault.names)} for {fault.seconds:g} s")
    world.happened[fault.kind] += 1
    names = frozenset(fault.names)
    if fault.kind in ("cut", "part"):
        begin = world.network.hold_apart if fault.kind == "cut" else world.network.part
        begin(names, 1)
        world.after(fault.seconds, lambda: begin(names, -1))
        return
    process = world.process(fault.names[0])
    if fault.kind in STORES:
        stores.begin(world, process, fault)
    elif fault.kind == "full":
        process.full += 1
        world.after(fault.seconds, lambda: _free(process))
    elif fault.kind == "slow":
        process.slow += SLOW_S
        world.after(fault.seconds, lambda: _hasten(process))
    elif fault.kind == "trap":
        process.trap = "durable" if fault.durable else "unsynced"
        world.after(2.0, lambda: _revive(world, process))
    elif fault.kind == "agent" and process.machine is not None:
        world.machines.kill_agent(process.machine)
    else:
        _stop(world, process, fault)


def _stop(world: "World", process: Process, fault: Fault) -> None:
    """Kill a process, or switch a machine off, and let it come back, if it ever does."""
    if fault.seconds == NEVER and not _all_have_joined(world):
        world.after(JOINED_S, lambda: _stop(world, process, fault))
        return
    process.is_dead |= fault.seconds == NEVER
    if fault.kind == "off" and process.machine is not None:
        world.machines.switch_off(process.machine)
    else:
        world.kill(process)
    if fault.seconds != NEVER:
        world.after(fault.seconds, lambda: _revive(world, process))


def _all_have_joined(world: "World") -> bool:
    """Whether all machines are known to all local masters: none can join when one of the two never comes back."""
    return all(isinstance(machine.process.role, WorkerRole) and int(machine.process.role.me["configuration"]) != NOBODY
               for machine in world.machines.all if not machine.process.is_dead)


def _revive(world: "World", process: Process) -> None:
    """Start a process again, unless it is one of those that never come back."""
    process.trap = ""
    if process.is_dead:
        return
    if process.machine is not None:
        world.machines.switch_on(process.machine)
    else:
        world.start(process)


def _free(process: Process) -> None:
    process.full = max(0, process.full - 1)


def _hasten(process: Process) -> None:
    process.slow = max(0.0, process.slow - SLOW_S)


def _end_all(world: "World") -> None:
    """Let all be well again, and everything come back that does."""
    world.note("nothing goes wrong any more")
    world.loss = world.doubling = world.lateness = 0.0
    world.network.apart.clear()
    for process in world.processes:
        process.full, process.slow = 0, 0.0
        _revive(world, process)
