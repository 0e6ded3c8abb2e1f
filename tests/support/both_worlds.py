"""One small federation told in one way, and run in two: the simulator, and roles as processes run them.

A scenario is a job of stages on machines; what is asked of both is how each task ended, how often it was begun, when,
and where. Units: a core, a GB, a second. Roles begin their work at `BEGIN_S`, when all of them have met.
"""
import math
from dataclasses import dataclass, field

import numpy as np
from msgspec import msgpack

from subak.federation.megha.jobs import OUTCOMES
from subak.federation.messages import REASONS
from subak.federation.settings import Federation
from subak.live.jobfile.spec import Constraint, JobSpec, Metadata
from subak.live.jobfile.spec import Stage as LiveStage
from subak.live.role.global_master.book import ON_DISK, StoredJob
from subak.live.role.global_master.history import OUTCOME_WORDS
from subak.live.role.global_master.queues import QueueSetup
from subak.live.role.layout import Layout, Timing
from subak.live.torture.case import ROOMS, JobCase, MachineCase, Wish
from subak.live.torture.case import Case as LiveCase
from subak.live.torture.rest import unrest
from subak.live.torture.world import FIRST_CLOCK, World
from subak.simulator.engine.state import LOOP_DONE
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated
from subak.simulator.torture.torture import INTERVAL, Case, Stage, Terms, build, failures_of, next_event
from worlds import begin

NEVER = math.inf
BEGIN_S = 2.0
WORDS = {"": "", "FINISHED": "finished", "FAILED": "failed", "CANCELLED": "cancelled", "TIMED_OUT": "timed out",
         "LOST": "lost"}


@dataclass(frozen=True)
class Part:
    """A stage: *fails* attempts of each task fail, with exit code 7, before one finishes."""

    tasks: int = 1
    seconds: float = 1.0
    request: tuple[int, int] = (1, 0)
    after: tuple[int, ...] = ()
    gang: bool = False
    rack: str = ""
    fails: int = 0
    cancel_at: float = NEVER  # of all its tasks, after they arrived


@dataclass(frozen=True)
class Scenario:
    """A job, and the machines: cores, GB, rack."""

    parts: tuple[Part, ...]
    machines: tuple[tuple[int, int, str], ...] = ((1, 4, ""),)
    retries: int = 0
    backoff: float = 1.0
    wait_max: float = NEVER
    run_max: float = NEVER


@dataclass(frozen=True)
class Ended:
    """How a task ended; start is that of its last attempt, NaN where there was none."""

    outcome: str
    reason: str
    attempts: int
    code: int
    start: float = field(compare=False)
    machine: int = field(compare=False)


def simulated(scenario: Scenario) -> list[Ended]:
    """Run a scenario in the simulator, on a network without delay."""
    plain = Federation(global_masters=1, local_masters=1, delay=0.0, service_scale=0.0, heartbeat=1.0)
    tasks = [(number, 0.0, part.seconds) for number, part in enumerate(scenario.parts) for _ in range(part.tasks)]
    planned = [(part.fails, part.seconds, part.cancel_at) for part in scenario.parts for _ in range(part.tasks)]
    stages = [Stage(0, part.request, list(part.after), rack=part.rack, gang=part.gang) for part in scenario.parts]
    case = Case(
        seed=1, machines=[(cores, memory) for cores, memory, _ in scenario.machines],
        racks=[rack for *_, rack in scenario.machines], absent=[], changes=[], queues=["a"], stages=stages, tasks=tasks,
        settings=plain, plan=None, planned=planned,
        terms=Terms(scenario.retries, 30_000, scenario.backoff, scenario.wait_max, scenario.run_max))
    opened = open_federated(*build(case), MEGHA, plain, 1, INTERVAL, NEVER, compiled=False, failures=failures_of(case))
    while next_event(opened)[0] != LOOP_DONE:
        pass
    ending, sim = opened.roles.jobs.ending, opened.simulation
    return [Ended(WORDS[OUTCOMES[ending["outcome"][task]]], REASONS[ending["reason"][task]],
                  int(sim.progress.attempts[task]), int(ending["code"][task]), float(sim.progress.start[task]),
                  int(sim.progress.machine[task])) for task in range(len(tasks))]


def by_nodes(scenario: Scenario) -> list[Ended]:
    """Run a scenario with roles: two global masters, a local master with its standby, a worker for each machine."""
    stages = tuple(LiveStage(
        name=f"s{number}", command=("job", "0", str(number)), tasks=part.tasks, gang=part.gang,
        depends_on=tuple(f"s{before}" for before in part.after),
        resources={"cpu": 1000 * part.request[0], "memory": 1024 * part.request[1]},
        constraints=(Constraint("rack", "=", part.rack),) if part.rack else (), retries=scenario.retries,
        backoff_s=scenario.backoff, wait_limit_s=None if scenario.wait_max == NEVER else scenario.wait_max,
        time_limit_s=None if scenario.run_max == NEVER else scenario.run_max, grace_s=0.1,
    ) for number, part in enumerate(scenario.parts))
    planned = tuple(((part.seconds, 7),) * part.fails + ((part.seconds, 0),)
                  for part in scenario.parts for _ in range(part.tasks))
    indices = [index for index, part in enumerate([each for each in scenario.parts for _ in range(each.tasks)])
               if part.cancel_at < NEVER]
    every = [part for part in scenario.parts for _ in range(part.tasks)]
    case = LiveCase(
        1, Layout(2, 1, ("cpu", "memory"), True, ROOMS), Timing(),
        tuple(MachineCase(0, (1000 * cores, 1024 * memory), rack, False) for cores, memory, rack in scenario.machines),
        (QueueSetup("a", 1),), "round-robin",
        (JobCase(BEGIN_S, "client", JobSpec(Metadata("job"), "a", stages), planned),),
        tuple(Wish(BEGIN_S + every[index].cancel_at, "cancel", 0, index) for index in indices), (), (), 0.0, 0.0, 0.0,
        0.0)
    world = World(case)
    people = begin(world)
    world.until(BEGIN_S + 1.0)
    while unrest(world, people):
        assert world.now < 600.0, unrest(world, people)
        world.until(world.now + 0.5)
    (body,) = world.masters[1].disk["ended"].values()
    _, rows, *_ = msgpack.decode(body, type=tuple[StoredJob, bytes, list])
    places = {machine.process.peer[1]: number for number, machine in enumerate(world.machines.all)}
    return [Ended(OUTCOME_WORDS[row["outcome"]], REASONS[row["reason"]], int(row["attempts"]), int(row["code"]),
                  float(row["started"]) - FIRST_CLOCK - BEGIN_S if row["attempts"] else math.nan,
                  places.get(int(row["machine"]), -1)) for row in np.frombuffer(rows, ON_DISK)]


WORLDS = (simulated, by_nodes)
