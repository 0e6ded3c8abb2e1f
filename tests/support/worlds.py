"""Federations of live torture that tests drive by hand."""
from subak.live.torture.people import People


def begin(world):
    """Start every process of a world, which then have to meet, and return the people who ask things of it."""
    for process in (*world.masters, *world.locals):
        world.start(process)
    for machine in world.case.machines:
        world.machines.add(machine)
    return People(world)
