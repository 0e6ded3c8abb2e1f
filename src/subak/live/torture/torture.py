"""Runs one case of live torture from beginning to end.

A case is drawn from its seed; a failure is shrunk by leaving faults, machines and jobs out as long as it still fails.
"""
import traceback
from collections import Counter
from dataclasses import dataclass, field

from subak.live.torture.case import Case, random_case, smaller
from subak.live.torture.faults import plan_faults
from subak.live.torture.growing import plan_growth
from subak.live.torture.people import People
from subak.live.torture.rest import check_outcomes, unrest
from subak.live.torture.watch import BrokenError
from subak.live.torture.world import World

LEASES_TO_REST = 90.0  # that are more than enough, for attempts of four leases that are tried again
STEP_S = 0.437  # no multiple of any period
SHRINKS_MAX = 150
KIND_LENGTH = 8  # characters of a failure that tell one kind from another
REQUIRED = (  # what must have happened in many cases
    "a machine is declared lost", "a machine left", "acknowledgement lost", "asked to drain", "asked to logs",
    "asked to preempt", "asked to uncordon", "an attempt ended: halted", "an attempt ended: lease lost",
    "an attempt ended: ran too long", "begun again after a good end that nobody heard of", "cancelled", "cut",
    "cut for a frame", "frame doubled", "frame lost", "full", "grown", "kill", "killed at a write: durable",
    "killed at a write: unsynced", "off", "part", "queues changed", "slow", "store adopted", "agent",
    "written to a full disk",
)


@dataclass
class Ending:
    """How a case ended: what is wrong, in words, or nothing; and what happened until then."""

    case: Case
    failure: str = ""
    seconds: float = 0.0
    steps: int = 0
    log: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)


def run_case(case: Case) -> Ending:
    """Run a case to its rest, or to the first rule that breaks."""
    world = World(case)
    ending = Ending(case)
    try:
        _run(world)
    except BrokenError as broken:
        ending.failure = str(broken)
    except Exception as error:  # whatever a role raises is a failure of it
        last = traceback.extract_tb(error.__traceback__)[-3:]
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(last))
        ending.failure = f"{type(error).__name__}: {error} ({where})"
    ending.seconds, ending.steps, ending.log = world.now, world.steps, world.log
    ending.happened = world.happened + world.watch.happened
    return ending


def _run(world: World) -> None:
    case = world.case
    for process in (*world.masters, *world.locals):
        world.start(process)
    for machine in case.machines:
        world.machines.add(machine)
    people = People(world)
    plan_faults(world)
    if case.growth is not None:
        plan_growth(world, case.growth)
    world.until(case.over_at)
    limit = case.over_at + LEASES_TO_REST * case.timing.lease
    while left := unrest(world, people):
        if world.now > limit:
            raise BrokenError(f"no rest: {left}")
        world.until(world.now + STEP_S)
    check_outcomes(world, people)


def shrink(case: Case, runs: int = SHRINKS_MAX) -> Ending:
    """Return the failure of the smallest case that still fails, found by leaving parts out, one after the other."""
    best, left, again = run_case(case), runs, True
    while again and left > 0:
        again = False
        for each in smaller(best.case):
            left -= 1
            if left <= 0:
                break
            ending = run_case(each)
            if ending.failure[:KIND_LENGTH] == best.failure[:KIND_LENGTH]:
                best, again = ending, True
                break
    return best


def missing(happened: Counter[str]) -> list[str]:
    """Return what has never happened, of all that should in many cases."""
    return [what for what in REQUIRED if not happened[what]]


def describe(case: Case) -> list[str]:
    """Say what a case is, a line for each part."""
    layout = case.layout
    lines = [f"seed {case.seed}: {layout.global_masters} global masters, {layout.clusters} clusters, standbys: "
             f"{layout.standby}, {case.timing}",
             f"queues {case.queues} in order {case.order}; loss {case.loss}, doubling {case.doubling}, lateness "
             f"{case.lateness}; over at {case.over_at}"]
    lines += [f"growth: {case.growth}"] if case.growth is not None else []
    for name in ("machines", "jobs", "wishes", "changes", "faults"):
        lines += [f"{name}: {each}" for each in getattr(case, name)]
    return lines


__all__ = ["Ending", "describe", "missing", "random_case", "run_case", "shrink"]
