"""A plain twin of Dodoor on fleets that do not change, with masters that cost nothing and a constant delay: a heap."""
import heapq
from collections import deque

from subak.federation.batches.membership import build_membership, draw_one


def starts(simulation, batches, settings, seed):
    """Return [(start, machine)] of each task, as the rules of sampling/dodoor.py say it."""
    return _Twin(simulation, batches, settings, seed).run()


class _Twin:
    def __init__(self, simulation, batches, settings, seed):
        self.tasks, self.fleet, self.batches, self.settings = simulation.tasks, simulation.fleet, batches, settings
        self.members = build_membership(self.fleet, self.tasks, 0, seed)  # what draws is Sparrow's, tested there
        workers = range(self.fleet.machines)
        self.capacity = [[int(each) for each in self.fleet.capacity[:, worker]] for worker in workers]
        self.room = [list(each) for each in self.capacity]
        self.none = [0.0] * (len(self.capacity[0]) + 1)
        self.held, self.told, self.stored = ([list(self.none) for _ in workers] for _ in range(3))
        self.known = [[list(self.none) for _ in workers]] * settings.global_masters
        self.unreported, self.queue = [[] for _ in self.known], [deque() for _ in workers]
        self.every, self.heard = max(round(settings.push_ratio * self.fleet.machines), 1), 0
        self.heap, self.posted, self.now = [], 0, 0.0
        self.found = [(-1.0, -1)] * self.tasks.arrival.size

    def run(self):
        for batch in range(self.batches.estimate.size):
            first = self.batches.task[self.batches.first[batch]]
            self.at(float(self.tasks.arrival[first]) + self.settings.delay, self.submit, batch)
        while self.heap:
            self.now, _, handle, what = heapq.heappop(self.heap)
            handle(*what)
        return self.found

    def at(self, time, handle, *what):
        self.posted += 1
        heapq.heappush(self.heap, (time, self.posted, handle, what))

    def send(self, handle, *what):
        self.at(self.now + self.settings.delay, handle, *what)

    def asked(self, task):
        batch = self.batches.of_task[task]
        amounts = self.tasks.request[:, self.batches.shape[batch]]
        return [float(each) for each in amounts] + [float(self.batches.estimate[batch])]

    def changed(self, load, task, sign):
        return [before + sign * more for before, more in zip(load, self.asked(task), strict=True)]

    # -- schedulers ----------------------------------------------------------------------------------------------------

    def submit(self, batch):
        scheduler, nobody = self.batches.scheduler[batch], 0 * self.fleet.allowed[0]
        for task in self.batches.task[self.batches.first[batch] : self.batches.first[batch + 1]]:
            first, second = (draw_one(self.members, self.batches.shape[batch], 0, self.members.workers, nobody)
                             for _ in range(2))
            worker = second if self.score(self.known[scheduler], task, first, second) > 0 else first
            self.send(self.enqueue, worker, task)
            self.unreported[scheduler].append((worker, task))
            if len(self.unreported[scheduler]) == self.settings.report_tasks:
                self.send(self.add, self.unreported[scheduler])
                self.unreported[scheduler] = []

    def score(self, load, task, first, second):
        def share(one, other):
            return (one - other) / (one + other) if one + other > 0 else 0.0

        def of(worker):
            parts = zip(self.asked(task), load[worker], self.capacity[worker], strict=False)
            return sum(size * done / (most * most) for size, done, most in parts if most > 0)
        weight = self.settings.duration_weight
        return (1 - weight) * share(of(first), of(second)) + weight * share(load[first][-1], load[second][-1])

    def loads(self, scheduler, load):
        self.known[scheduler] = load

    # -- the data store ------------------------------------------------------------------------------------------------

    def add(self, decisions):
        for worker, task in reversed(decisions):
            self.stored[worker] = self.changed(self.stored[worker], task, 1.0)
        before, self.heard = self.heard, self.heard + len(decisions)
        if self.heard // self.every != before // self.every:
            for scheduler in range(len(self.known)):
                self.send(self.loads, scheduler, [list(each) for each in self.stored])

    def set(self, worker):
        self.stored[worker] = self.told[worker]

    # -- workers -------------------------------------------------------------------------------------------------------

    def enqueue(self, worker, task):
        self.held[worker] = self.changed(self.held[worker], task, 1.0)
        self.queue[worker].append(task)
        self.begin(worker)

    def begin(self, worker):
        queue = self.queue[worker]
        while queue and all(free >= size for free, size in zip(self.room[worker], self.asked(queue[0]), strict=False)):
            task = queue.popleft()
            self.take(worker, task, 1)
            self.found[task] = (self.now, worker)
            self.at(self.now + float(self.tasks.run_time[task]), self.exit, worker, task)

    def take(self, worker, task, sign):
        self.room[worker] = [free - sign * int(size) for free, size in zip(self.room[worker], self.asked(task),
                                                                           strict=False)]

    def exit(self, worker, task):
        self.take(worker, task, -1)
        is_idle = self.room[worker] == self.capacity[worker] and not self.queue[worker]
        self.held[worker] = self.none if is_idle else self.changed(self.held[worker], task, -1.0)
        self.told[worker] = self.held[worker]
        self.send(self.set, worker)
        self.begin(worker)
