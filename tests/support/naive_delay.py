"""The plain twin of delay scheduling: every machine is offered to every stage at every instant."""
import heapq
import math
from collections import namedtuple

Task = namedtuple("Task", "stage arrival seconds holders")  # holders: a set of machines
Stage = namedtuple("Stage", "after kind")  # the stage that it waits for or None; which slots it takes
Machine = namedtuple("Machine", "slots rack")  # slots of each kind; None: no rack


def level_of(task, machine, machines):
    """0 where the machine holds the input (or nobody does), 1 in the rack of one that does, else 2."""
    if not task.holders or machine in task.holders:
        return 0
    racks = {machines[each].rack for each in task.holders} - {None}
    return 1 if machines[machine].rack in racks else 2


class Run:
    def __init__(self, tasks, stages, machines, wait, factors=(1.0, 1.0, 1.0)):
        self.tasks, self.stages, self.machines, self.wait, self.factors = tasks, stages, machines, wait, factors
        self.free = [list(machine.slots) for machine in machines]
        self.waiting, self.started, self.ended = set(), {}, set()
        self.ends = []  # (time, sequence, task, machine)
        self.sequence = 0
        self.level = [0] * len(stages)
        self.since = [math.inf] * len(stages)
        self.now, self.arrived = -1.0, set()

    def factor_of(self, row, level):
        """Times as long a task takes at a level."""
        return self.factors[level]

    def go(self):
        """Return {task: (start, machine)}."""
        arrivals = sorted(range(len(self.tasks)), key=lambda row: (self.tasks[row].arrival, row))
        while True:
            wake = min((each for each in map(self.rise, {self.tasks[row].stage for row in self.waiting})
                        if each > self.now), default=math.inf)
            times = [wake, *(end[0] for end in self.ends[:1]), *(self.tasks[row].arrival for row in arrivals[:1])]
            self.now = min(times)
            if self.now == math.inf:
                return self.started
            freed = []
            while self.ends and self.ends[0][0] <= self.now:
                _, _, row, machine = heapq.heappop(self.ends)
                self.free[machine][self.stages[self.tasks[row].stage].kind] += 1
                self.ended.add(row)
                freed += [machine] if machine not in freed else []
                self.release()
            if not freed:
                while arrivals and self.tasks[arrivals[0]].arrival <= self.now:
                    self.arrived.add(arrivals.pop(0))
                self.release()
            order = [*freed, *(each for each in range(len(self.machines)) if each not in freed)]
            while any([self.fill(machine) for machine in order]):  # until all have declined, after the last start
                pass

    def fill(self, machine):
        """Offer a machine until nobody takes it; return whether anybody did."""
        count = len(self.started)
        while self.offer(machine):
            pass
        return len(self.started) > count

    def release(self):
        """Let tasks wait that have arrived, and whose stage waits for nobody."""
        for row in self.arrived - self.started.keys():
            after = self.stages[self.tasks[row].stage].after
            before = [other for other, task in enumerate(self.tasks) if task.stage == after]
            if after is None or self.ended.issuperset(before):
                self.waiting.add(row)

    def rise(self, stage):
        """When a stage may start more than it may now."""
        time = self.since[stage]
        for level in range(self.level[stage], 2):
            time += self.wait[level]
            if time > self.now:
                return time
        return math.inf

    def allowed(self, stage):
        time, found = min(self.since[stage], self.now), self.level[stage]
        for level in range(self.level[stage], 2):
            time += self.wait[level]
            found = level + 1 if self.now >= time else found
        return found

    def offer(self, machine):
        running = [0] * len(self.stages)
        for row in self.started.keys() - self.ended:
            running[self.tasks[row].stage] += 1
        for stage in sorted(range(len(self.stages)), key=lambda each: (running[each], each)):
            own = sorted(row for row in self.waiting if self.tasks[row].stage == stage)
            if not own or not self.free[machine][self.stages[stage].kind]:
                continue
            near = [(level_of(self.tasks[row], machine, self.machines), row) for row in own]
            fit = [each for each in near if each[0] <= self.allowed(stage)]
            if fit:
                # at home on this machine before at home everywhere; by number otherwise
                level = min(fit)[0]
                held = [row for each, row in fit if each == 0 and self.tasks[row].holders]
                return self.start(held[0] if level == 0 and held else self.first(stage, level, fit), machine, level)
            self.since[stage] = min(self.since[stage], self.now)
        return False

    def first(self, stage, level, fit):
        return min(row for each, row in fit if each == level)

    def start(self, row, machine, level):
        task = self.tasks[row]
        self.waiting.remove(row)
        self.started[row] = (self.now, machine)
        self.free[machine][self.stages[task.stage].kind] -= 1
        heapq.heappush(self.ends, (self.now + task.seconds * self.factor_of(row, level), self.sequence, row, machine))
        self.sequence += 1
        self.level[task.stage], self.since[task.stage] = level, math.inf
        return True
