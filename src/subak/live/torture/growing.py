"""Grows a federation while it runs: adds a global master, a cluster, or both.

As an operator would do it: each master is started again with the new file, one after the other; then those that are
new begin, and machines join them. Workers go on as they are.
"""
from functools import partial
from typing import TYPE_CHECKING

from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER
from subak.live.torture.case import Growth

if TYPE_CHECKING:
    from subak.live.torture.world import World

EACH_S = 0.1  # between two masters


def plan_growth(world: "World", growth: Growth) -> None:
    """Let a federation grow in its time."""
    world.at(growth.at, lambda: _begin(world, growth))


def _begin(world: "World", growth: Growth) -> None:
    world.note(f"the federation is to have {growth.layout.global_masters} global masters, {growth.layout.clusters} "
               "clusters")
    world.happened["grown"] += 1
    before, world.layout = world.layout, growth.layout
    for place, process in enumerate((*world.locals, *world.masters)):
        world.after(place * EACH_S, partial(_start_again, world, process.name))
    new = [world.add_master(LOCAL_MASTER, number) for number in growth.layout.locals if number not in before.locals]
    new += [world.add_master(GLOBAL_MASTER, number)
            for number in range(before.global_masters, growth.layout.global_masters)]
    then = (len(world.locals) + len(world.masters)) * EACH_S
    for process in new:
        world.after(then, partial(world.start, process))
    for machine in growth.machines:
        world.after(then, partial(world.machines.add, machine))


def _start_again(world: "World", name: str) -> None:
    """Start a master again, unless it is not there: it comes back with the new file."""
    process = world.process(name)
    if process.role is not None:
        world.kill(process)
        world.start(process)
