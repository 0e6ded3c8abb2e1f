"""The plain twin of LoTES's bins: every set of jobs, one by one."""
import itertools
from fractions import Fraction

import numpy as np


def fitting_bins(capacity, request):
    """All sets of jobs that fit, as tuples; *request* is [resource, class], and every class asks for something."""
    most = [min(capacity[row] // column[row] for row in range(len(capacity)) if column[row]) for column in request.T]
    return {jobs for jobs in itertools.product(*(range(count + 1) for count in most))
            if (request @ np.array(jobs) <= capacity).all()}


def undominated_bins(capacity, request):
    """Those to which no job of any class can be added."""
    fitting = fitting_bins(capacity, request)
    classes = range(request.shape[1])
    return {jobs for jobs in fitting
            if not any(tuple(count + (each == more) for each, count in enumerate(jobs)) in fitting for more in classes)}


class LotesTwin:
    """The dispatcher of LoTES section 4.3 by scans over machines and queues, as a policy of naive.Twin."""

    SCORE_MIN = -64  # lower ones are as bad

    def __init__(self, world, plan, of_task, settings):
        """*of_task*: the plan's class of each task."""
        self.world, self.plan, self.settings, self.of_task = world, plan, settings, of_task
        configurations = plan.configurations
        self.known = range(len(configurations.machines))
        self.searches = self.looked = 0  # of arriving tasks; machines of the configurations looked through
        self.of_machine = [each if each >= 0 else len(self.known) for each in configurations.of_machine.tolist()]
        classes = plan.routes.shape[1]
        routes = plan.routes.tolist()  # [configuration][class]
        self.share = [[routes[j][k] for j in self.known] for k in range(classes)]
        self.share.append([1.0 / len(self.known)] * len(self.known))
        self.kind = [kind if self.has_home(task, kind) else classes for task, kind in enumerate(of_task)]
        self.top = max(self.SCORE_MIN, *(self.bin(machine, kind) for machine in range(len(self.of_machine))
                                         for kind in range(classes + 1)))
        self.queue = []

    def bin(self, machine, kind):
        row = self.plan.bin_of_machine[machine]
        return 0 if row < 0 or kind == self.plan.routes.shape[1] else int(self.plan.assignment.bins[row, kind])

    def has_home(self, task, kind):
        """Whether a machine's capacity of some devoted configuration holds it, constraints as the plan sees them."""
        world = self.world
        for j in self.known:
            if self.share[kind][j] > 0:
                capacity = self.plan.configurations.capacity[:, j].tolist()
                meets = any(world.meets(task, machine) for machine, each in enumerate(self.of_machine)
                            if each == j and world.capacity[machine] is not None)
                if meets and world.holds(capacity, task):
                    return True
        return False

    def value(self, machine, kind):
        """N - kappa."""
        running = sum(self.kind[task] == kind for task in self.world.running_on(machine))
        return self.bin(machine, kind) - running

    def score(self, machine, kind):
        return min(max(self.value(machine, kind), self.SCORE_MIN), self.top)

    def best(self, task, machines):
        """Of those that fit the highest score; ties to the earlier configuration, then the earlier machine."""
        fitting = set(self.world.fitting(task))
        return max((machine for machine in machines if machine in fitting), default=None,
                   key=lambda machine: (self.score(machine, self.kind[task]), -self.of_machine[machine], -machine))

    def chosen(self, kind):
        if self.settings.choice == "deficit":
            held = [sum(self.kind[task] == kind for machine, each in enumerate(self.of_machine) if each == j
                        for task in self.world.running_on(machine)) for j in range(len(self.known) + 1)]
            lacking = [share * (sum(held) + 1) - held[j] for j, share in enumerate(self.share[kind])]
            return lacking.index(max(lacking))
        drawn, total = self.world.random.below(2**53) / 2**53, 0.0
        possible = [j for j in self.known if self.share[kind][j] > 0]
        for j in possible:
            total += self.share[kind][j]
            if drawn < total:
                return j
        return possible[-1]

    def place(self, task):
        chosen = self.chosen(self.kind[task])
        machines = range(len(self.of_machine))
        mine = self.best(task, [machine for machine in machines if self.of_machine[machine] == chosen])
        if self.settings.fallback == "devoted":
            machines = [machine for machine in machines if self.serves(machine, self.kind[task])]
        self.searches += 1
        self.looked += len(machines) if mine is None else self.of_machine.count(chosen)
        return self.best(task, machines) if mine is None else mine

    def serves(self, machine, kind):
        """Whether the machine's configuration is devoted to the class; those that are like none serve all."""
        j = self.of_machine[machine]
        return j == len(self.known) or self.share[kind][j] > 0

    def work(self, task):
        """The mean run time of the task's class times its dominant request, by the largest machine's amounts."""
        if self.settings.order == "fifo":
            return 0
        largest = [max(1, *amounts) for amounts in zip(*self.world.first_capacity, strict=True)]
        asked = max(amount / most for amount, most in zip(self.world.requests[task], largest, strict=True))
        return asked if self.settings.order == "smallest" else asked * self.plan.classes.run_time[self.of_task[task]]

    def alike(self, task):
        """What tells tasks apart for a placement."""
        return tuple(self.world.requests[task]), sorted(map(str, self.world.constraints[task]))

    def arrived_in_turns(self, world, tasks):
        behind = [task for task in tasks for one in self.queue
                  if self.alike(one) == self.alike(task) and (world.arrival[one], one) < (world.arrival[task], task)]
        self.queue += tasks
        refused = []
        for task in sorted(tasks, key=lambda one: (self.work(one), world.arrival[one], one)):
            if task not in behind and self.alike(task) not in refused:
                machine = self.place(task)
                if machine is None:
                    refused.append(self.alike(task))
                else:
                    self.queue.remove(task)
                    world.begin(task, machine)

    def arrived(self, world, tasks):
        if self.settings.order != "fifo":
            self.arrived_in_turns(world, tasks)
            return
        for task in tasks:
            machine = self.place(task)
            if machine is None:
                self.queue.append(task)
            else:
                world.begin(task, machine)

    def departed(self, world, freed):
        for machine in sorted(freed, key=freed.index):
            while (task := self.next_for(machine)) is not None:
                self.queue.remove(task)
                world.begin(task, machine)

    def next_for(self, machine):
        """Classes by their value, ties to the earlier; in each the first waiting task that fits."""
        kinds = [kind for kind in range(len(self.share)) if self.serves(machine, kind)]
        for kind in sorted(kinds, key=lambda kind: -self.value(machine, kind)):
            fitting = [task for task in sorted(self.queue, key=lambda one: (self.work(one), one))
                       if self.kind[task] == kind
                       and machine in self.world.fitting(task)]
            if fitting:
                return fitting[0]
        return None


class FairLotesTwin(LotesTwin):
    """LoTES under DRF: the waiting job with the least dominant share goes first, ties to the first to arrive.

    Jobs have one shape each, so that a job is a leaf. A shape that found no machine is asked for again when it fits one
    that was freed.
    """

    def __init__(self, world, plan, of_task, settings):
        super().__init__(world, plan, of_task, settings)
        self.closed = set()
        self.arrival_of_job = {job: min(at for at, own in zip(world.arrival, world.stage, strict=True) if own == job)
                               for job in set(world.stage)}

    def shape(self, task):
        return tuple(self.world.requests[task])

    def share_of(self, task):
        """A job is its stage here: what its running tasks hold of what is there, of the resource it asks most of."""
        world = self.world
        there = [sum(amounts[row] for amounts in world.capacity) for row in range(len(world.units))]
        running = sum(world.stage[one] == world.stage[task] for one in world.with_status("RUNNING"))
        return running * max(Fraction(asked, most) for asked, most in zip(world.requests[task], there, strict=True))

    def arrived(self, world, tasks):
        self.queue += tasks
        self.serve()

    def departed(self, world, freed):
        for task in list(self.queue):
            if set(freed) & set(world.fitting(task)):
                self.closed.discard(self.shape(task))
        self.serve()

    def serve(self):
        while waiting := [task for task in self.queue if self.shape(task) not in self.closed]:
            task = min(waiting, key=lambda one: (
                self.share_of(one), self.arrival_of_job[self.world.stage[one]], self.world.stage[one], one))
            machine = self.place(task)
            if machine is None:
                self.closed.add(self.shape(task))
            else:
                self.queue.remove(task)
                self.world.begin(task, machine)
