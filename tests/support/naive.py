"""The plain twins: the obvious slow version of what the kernels do, in lists and dictionaries, from the documentation.

Nothing here imports a kernel. Machines are rows of the fleet; amounts are whole units; scores are exact fractions
wherever the documented score is one.
"""
import math
from dataclasses import dataclass, field
from fractions import Fraction

NEVER = math.inf


# -- random numbers ----------------------------------------------------------------------------------------------------


class SplitMix64:
    """Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 17."""

    def __init__(self, seed):
        self.state = seed

    def word(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        return mixed ^ (mixed >> 31)

    def below(self, bound):
        """The top 53 bits, as a fraction of one, times the bound."""
        return (self.word() >> 11) * bound // 2**53


# -- small kernels -----------------------------------------------------------------------------------------------------


class SortedLanes:
    """Lanes as sorted lists."""

    def __init__(self, count, rank):
        self.rank = rank
        self.waiting = [[] for _ in range(count)]

    def push(self, lane, task):
        self.waiting[lane] = sorted([*self.waiting[lane], task], key=lambda one: (self.rank[one], one))

    def pop(self, lane):
        return self.waiting[lane].pop(0)

    def active(self):
        return {lane for lane, tasks in enumerate(self.waiting) if tasks}


def fitting_machines(free, request, allowed):
    """Rows of *free* (a list of amounts per machine, None where absent) that can take the request."""
    return [
        machine for machine, amounts in enumerate(free)
        if allowed[machine] and amounts is not None
        and all(have >= asked for have, asked in zip(amounts, request, strict=True))
    ]


def aligned(free, request, units):
    """request . free in natural amounts, exactly."""
    return sum(Fraction(unit) ** 2 * asked * have
               for unit, asked, have in zip(units, request, free, strict=True))


def costs_least(free, first, second, fitting):
    """The machine of *fitting* whose cost, its free amounts times both factors of each, is least; the first of equals.

    The factors are floats, and so is the cost: multiplied and added from the first resource to the last.
    """
    def cost(machine):
        total = 0.0
        for have, one, other in zip(free[machine], first, second, strict=True):
            total += have * one * other
        return total, machine

    return min(fitting, key=cost, default=-1)


def meets(constraint, value):
    """Whether an attribute's value (None where absent) meets a constraint, by the Google 2011 format document."""
    operator, wanted = constraint["operator"], constraint["value"] or ""
    if operator in ("=", "!="):
        return ((value or "") == wanted) == (operator == "=")
    try:
        have = float(value or 0)
    except ValueError:
        have = 0.0
    return {"<": have < float(wanted), ">": have > float(wanted),
            "<=": have <= float(wanted), ">=": have >= float(wanted)}[operator]


# -- the central simulator ---------------------------------------------------------------------------------------------


@dataclass
class Span:
    """What held between two instants."""

    begin: float
    end: float
    waiting: int
    running: int
    used: list
    capacity: list


@dataclass
class Twin:
    """The world of a central run, and what is recorded of it. Every list is by task or by machine."""

    units: list
    requests: list  # per task, whole units
    constraints: list  # per task
    arrival: list
    run_time: list
    expected: list
    priority: list
    stage: list
    parents: dict  # stage -> stages it waits for
    capacity: list  # per machine, None where absent
    first_capacity: list  # per machine, at time 0, there or not
    attributes: list  # per machine, a dictionary
    changes: list  # (time, machine, amounts or None), sorted by time
    random: SplitMix64
    status: list = field(init=False)
    start: list = field(init=False)
    finish: list = field(init=False)
    machine: list = field(init=False)
    ready: list = field(init=False)
    attempts: list = field(init=False)
    met: list = field(init=False)  # per task, whether each machine meets its constraints: neither ever changes
    losses: list = field(default_factory=list)  # (task, machine, start, end)
    spans: list = field(default_factory=list)
    ends: list = field(default_factory=list)  # (finish, sequence, task) of the running
    sequence: int = 0
    now: float = 0.0

    def __post_init__(self):
        count = len(self.arrival)
        self.status = ["NOT_ARRIVED"] * count
        self.start, self.finish = [None] * count, [None] * count
        self.machine, self.ready, self.attempts = [None] * count, list(self.arrival), [0] * count
        self.met = [[all(meets(one, has.get(one["attribute"])) for one in asked) for has in self.attributes]
                    for asked in self.constraints]
        for task in range(count):
            if not self.placeable(task):
                self.status[task] = "UNPLACEABLE"

    # what is asked of the world

    def with_status(self, status):
        return [task for task, has in enumerate(self.status) if has == status]

    def running_on(self, machine):
        return [task for task in self.with_status("RUNNING") if self.machine[task] == machine]

    def held(self, machine):
        running = self.running_on(machine)
        return [sum(self.requests[task][row] for task in running) for row in range(len(self.units))]

    def free(self, machine):
        if self.capacity[machine] is None:
            return None
        return [all_of - held for all_of, held in zip(self.capacity[machine], self.held(machine), strict=True)]

    def meets(self, task, machine):
        return self.met[task][machine]

    def holds(self, amounts, task):
        return amounts is not None and all(
            have >= asked for have, asked in zip(amounts, self.requests[task], strict=True))

    def fitting(self, task):
        return [machine for machine in range(len(self.capacity))
                if self.meets(task, machine) and self.holds(self.free(machine), task)]

    def placeable(self, task):
        """Whether some machine, at some time, is declared large enough."""
        declared = [*enumerate(self.capacity), *[(machine, amounts) for _, machine, amounts in self.changes]]
        return any(self.meets(task, machine) and self.holds(amounts, task) for machine, amounts in declared)

    def stage_ended(self, stage):
        return all(self.status[task] == "FINISHED" for task in range(len(self.stage)) if self.stage[task] == stage)

    def may_start(self, task):
        return all(self.stage_ended(parent) for parent in self.parents[self.stage[task]])

    # what happens in it

    def run(self, policy, until=NEVER):
        arrived_before = 0
        changes = list(self.changes)
        while True:
            time = self.next_time(arrived_before, changes)
            if time == NEVER or time > until:
                break
            self.note_span(time)
            self.now = time
            freed, arrived = [], []
            while changes and changes[0][0] <= time:
                self.change(changes.pop(0), freed, arrived)
            self.end_attempts(freed, arrived)
            if not freed:
                while arrived_before < len(self.arrival) and self.arrival[arrived_before] <= time:
                    self.arrive(arrived_before, arrived)
                    arrived_before += 1
            for task in arrived:
                self.status[task] = "WAITING"
            self.decide(policy, freed, arrived)
        if time < NEVER:
            self.note_span(until)
        return self

    def decide(self, policy, freed, arrived):
        if freed:
            policy.departed(self, list(dict.fromkeys(freed)))
        elif hasattr(policy, "passed"):
            policy.passed(self)
        if arrived:
            policy.arrived(self, sorted(arrived))

    def next_time(self, arrived_before, changes):
        times = [time for time, _, _ in self.ends] + self.arrival[arrived_before:arrived_before + 1]
        if times or self.with_status("WAITING"):  # else no task can notice what the fleet still does
            times += [time for time, _, _ in changes[:1]]
        return min(times, default=NEVER)

    def note_span(self, time):
        if time > self.now:
            there = [amounts for amounts in self.capacity if amounts is not None]
            held = [self.held(machine) for machine in range(len(self.capacity))]
            rows = range(len(self.units))
            self.spans.append(Span(
                self.now, time, len(self.with_status("WAITING")), len(self.with_status("RUNNING")),
                [sum(amounts[row] for amounts in held) for row in rows],
                [sum(amounts[row] for amounts in there) for row in rows],
            ))

    def change(self, change, freed, arrived):
        _, machine, amounts = change
        while self.running_on(machine) and (
            amounts is None
            or any(held > most for held, most in zip(self.held(machine), amounts, strict=True))
        ):
            task = max(self.running_on(machine), key=lambda one: (self.start[one], one))
            self.losses.append((task, machine, self.start[task], self.now))
            self.ends = [end for end in self.ends if end[2] != task]
            self.status[task] = "LOST"
            arrived.append(task)
        self.capacity[machine] = amounts
        freed.append(machine)

    def end_attempts(self, freed, arrived):
        for end in sorted(self.ends):
            if end[0] <= self.now:
                self.ends.remove(end)
                self.status[end[2]] = "FINISHED"
                freed.append(self.machine[end[2]])
        for task in self.with_status("BLOCKED"):
            if self.may_start(task):
                self.ready[task] = self.now
                arrived.append(task)

    def arrive(self, task, arrived):
        if self.status[task] == "UNPLACEABLE":
            return
        if self.may_start(task):
            arrived.append(task)
        else:
            self.status[task] = "BLOCKED"

    def begin(self, task, machine):
        assert self.status[task] == "WAITING"
        assert machine in self.fitting(task)
        self.status[task] = "RUNNING"
        self.start[task], self.finish[task] = self.now, self.now + self.run_time[task]
        self.machine[task] = machine
        self.attempts[task] += 1
        self.ends.append((self.finish[task], self.sequence, task))
        self.sequence += 1


def twin_of(workload, fleet, seed=1, kind=Twin):
    """The twin's world of the tables of a workload and a fleet."""
    names = [resource.name for resource in workload.resources]
    stages, tasks = workload.stages.to_dicts(), workload.tasks.to_dicts()
    of_task = [stages[task["stage"]] for task in tasks]
    machines = fleet.machines.to_dicts()
    attributes = [{} for _ in machines]
    for row in fleet.attributes.to_dicts():
        attributes[row["machine"]][row["attribute"]] = row["value"]
    estimates = [task.get("estimate") for task in tasks]
    return kind(
        units=[Fraction(resource.unit) for resource in workload.resources],
        requests=[[stage[name] for name in names] for stage in of_task],
        constraints=[stage["constraints"] or [] for stage in of_task],
        arrival=[task["arrival"] for task in tasks],
        run_time=[task["run_time"] for task in tasks],
        expected=[task["run_time"] if estimate is None else estimate
                  for task, estimate in zip(tasks, estimates, strict=True)],
        priority=[stage["priority"] for stage in of_task],
        stage=[task["stage"] for task in tasks],
        parents={row: stage["depends_on"] or [] for row, stage in enumerate(stages)},
        capacity=[[row[name] for name in names] if row["present"] else None for row in machines],
        first_capacity=[[row[name] for name in names] for row in machines],
        attributes=attributes,
        changes=[(row["time"], row["machine"], [row[name] for name in names] if row["present"] else None)
                 for row in fleet.changes.to_dicts()],
        random=SplitMix64(seed),
    )


# -- the schedulers ----------------------------------------------------------------------------------------------------

ORDERS = {
    "fifo": lambda world, task: (world.arrival[task], task),
    "shortest-first": lambda world, task: (world.expected[task], task),
    "priority": lambda world, task: (-world.priority[task], task),
}


def free_share(world, machine):
    """The free amounts, each as a fraction of the largest machine's at time 0, added."""
    largest = [max(1, *amounts) for amounts in zip(*world.first_capacity, strict=True)]
    return sum(Fraction(have, most) for have, most in zip(world.free(machine), largest, strict=True))


def alignment(world, task, machine):
    """Request times free, each as a fraction of the largest machine's at time 0, added."""
    largest = [max(1, *amounts) for amounts in zip(*world.first_capacity, strict=True)]
    return sum(Fraction(asked * have, most * most)
               for asked, have, most in zip(world.requests[task], world.free(machine), largest, strict=True))


PLACEMENTS = {
    "first-fit": lambda world, task: min(world.fitting(task), default=None),
    "last-fit": lambda world, task: max(world.fitting(task), default=None),
    "best-fit": lambda world, task: min(
        world.fitting(task), key=lambda machine: (free_share(world, machine), machine), default=None),
    "worst-fit": lambda world, task: min(
        world.fitting(task), key=lambda machine: (-free_share(world, machine), machine), default=None),
    "aligned-fit": lambda world, task: min(
        world.fitting(task), key=lambda machine: (-alignment(world, task, machine), machine), default=None),
}


class Ordered:
    """Whoever is first in order is asked first; without backfill nobody passes one who does not fit."""

    def __init__(self, order, placement, backfill):
        self.order, self.placement, self.backfill = ORDERS[order], PLACEMENTS[placement], backfill
        self.waiting = []

    def departed(self, world, freed):
        self.serve(world)

    def arrived(self, world, tasks):
        self.waiting += tasks
        self.serve(world)

    def serve(self, world):
        for task in sorted(self.waiting, key=lambda one: self.order(world, one)):
            machine = self.placement(world, task)
            if machine is not None:
                self.waiting.remove(task)
                world.begin(task, machine)
            elif not self.backfill:
                return


class Greedy:
    """First fit over the configurations, the most frequent first, else the shortest machine queue, ties drawn."""

    def __init__(self, world):
        capacity = world.first_capacity
        self.rows = sorted(range(len(capacity)), key=lambda row: (-capacity.count(capacity[row]), capacity[row], row))
        self.queue = {machine: [] for machine in self.rows}
        self.nobody = []

    def departed(self, world, freed):
        for machine in freed:
            while self.queue[machine] and machine in world.fitting(self.queue[machine][0]):
                world.begin(self.queue[machine].pop(0), machine)
            if self.queue[machine] and not world.holds(world.capacity[machine], self.queue[machine][0]):
                homeless, self.queue[machine] = self.queue[machine], []
                for task in homeless:
                    self.dispatch(world, task)
        homeless, self.nobody = self.nobody, []
        for task in homeless:
            self.dispatch(world, task)

    def arrived(self, world, tasks):
        for task in tasks:
            self.dispatch(world, task)

    def dispatch(self, world, task):
        fitting = set(world.fitting(task))
        for machine in self.rows:
            if machine in fitting and not self.queue[machine]:
                return world.begin(task, machine)
        able = [machine for machine in self.rows
                if world.meets(task, machine) and world.holds(world.capacity[machine], task)]
        if not able:
            return self.wait(world, self.nobody, task)
        shortest = min(len(self.queue[machine]) for machine in able)
        tied = [machine for machine in able if len(self.queue[machine]) == shortest]
        return self.wait(world, self.queue[tied[world.random.below(len(tied))]], task)

    @staticmethod
    def wait(world, queue, task):
        queue.append(task)
        queue.sort(key=lambda one: (world.arrival[one], one))


class Tetris:
    """The highest score over every waiting task and every machine, again and again."""

    def __init__(self, world, normalised=False):
        self.waiting = []
        self.natural = world.units
        self.weights = (1.0, 1.0)
        if normalised:
            largest = [max(1, *amounts) for amounts in zip(*world.first_capacity, strict=True)]
            self.natural = [Fraction(1, most) for most in largest]
            tasks = range(len(world.arrival))
            fullest = [max(amounts) for amounts in zip(*world.first_capacity, strict=True)]
            alignments = [aligned(fullest, world.requests[task], self.natural) for task in tasks]
            works = [self.work(world, task) for task in tasks if world.expected[task] < NEVER]
            means = (float(sum(alignments)) / len(tasks), float(sum(works)) / len(tasks))
            self.weights = tuple(1.0 / mean if mean > 0 else 1.0 for mean in means)

    def work(self, world, task):
        amount = sum(unit * asked for unit, asked in zip(self.natural, world.requests[task], strict=True))
        return world.expected[task] if world.expected[task] == NEVER else Fraction(world.expected[task]) * amount

    def departed(self, world, freed):
        self.serve(world)

    def arrived(self, world, tasks):
        self.waiting += tasks
        self.serve(world)

    def serve(self, world):
        while True:
            pairs = [(self.key(world, task, machine), task, machine)
                     for task in self.waiting for machine in world.fitting(task)]
            if not pairs:
                return
            _, task, machine = max(pairs)
            self.waiting.remove(task)
            world.begin(task, machine)

    def key(self, world, task, machine):
        """The score; then the shorter expected run time, the lower task, the better alignment, the lower machine."""
        alignment = aligned(world.free(machine), world.requests[task], self.natural)
        score = self.weights[0] * float(alignment) - self.weights[1] * float(self.work(world, task))
        return score, -world.expected[task], -task, alignment, -machine


def twin_run(workload, fleet, scheduler, seed=1, until=NEVER):
    """The finished twin of a run of the scheduler with this name, such as ``best-fit+backfill+priority``."""
    return run_of(twin_of(workload, fleet, seed), scheduler, until)


def run_of(world, scheduler, until=NEVER):
    """The finished run of a twin's world under the scheduler with this name."""
    name, *options = scheduler.split("+")
    if name == "greedy":
        return world.run(Greedy(world), until)
    if name == "tetris":
        return world.run(Tetris(world, "normalised" in options), until)
    orders = [option for option in options if option in ORDERS]
    return world.run(Ordered(orders[-1] if orders else "fifo", name, "backfill" in options), until)
