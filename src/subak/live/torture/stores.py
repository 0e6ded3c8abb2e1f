"""Loses stores of global masters, or restores old copies of them.

A store that is refused takes over by `adopt`, as an operator would let it. What it does not know any more is forgiven:
that jobs are gone, that what has finished runs again. Two things are not: two attempts of one task of a job run at
once, and two jobs have one number.
"""
from subak.live.role.store_claims import REFUSED_KEY, adopt
from subak.live.torture.case import STORES, Fault
from subak.live.torture.process import Process, write
from subak.live.torture.scene import Scene
from subak.live.torture.watch import BrokenError

RESTART_S = 0.05
ADOPTED_S = 0.3  # after which whoever runs it takes note


def begin(world: Scene, process: Process, fault: Fault) -> None:
    """Let a store be lost; or copy it, begin another incarnation, and put the copy back later."""
    if fault.kind == "lost":
        _replace(world, process, {})
        return
    copy = {table: dict(rows) for table, rows in process.disk.items()}
    world.kill(process)
    world.after(RESTART_S, lambda: world.start(process))
    world.after(RESTART_S + fault.seconds, lambda: _replace(world, process, copy))


def _replace(world: Scene, process: Process, disk: dict[str, dict[object, bytes]]) -> None:
    world.kill(process)
    process.disk = disk
    owner = world.masters.index(process)
    world.watch.forgiven |= {name for name, job in world.watch.jobs.items()
                             if job.at <= world.now and world.owner_of(job) == owner}
    world.replaced(process)
    world.after(RESTART_S, lambda: world.start(process))


def refused(world: Scene, process: Process, words: str) -> None:
    """End a global master whose store was refused, and let the store take over."""
    world.note(f"the store of {process.name} is refused: {words}")
    world.happened["store refused"] += 1
    if not any(fault.kind in STORES and process.name in fault.names for fault in world.case.faults):
        raise BrokenError(f"the store of {process.name}, which is the one in use, is refused: {words}")
    world.kill(process)
    world.after(ADOPTED_S, lambda: _adopt(world, process))


def _adopt(world: Scene, process: Process) -> None:
    numbers = process.disk.get("incarnation", {})
    if REFUSED_KEY not in numbers:  # another store was put there meanwhile
        return
    world.kill(process)
    _, writes = adopt(numbers, f"adopted at {world.now}")
    write(process, writes)
    world.happened["store adopted"] += 1
    world.start(process)
