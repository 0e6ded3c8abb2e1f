"""The plain twin of LoTES's bins: every set of jobs, one by one."""
import itertools

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
        self.world, self.plan, self.settings = world, plan, settings
        configurations = plan.configurations
        self.known = range(len(configurations.machines))
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
        return self.best(task, machines) if mine is None else mine

    def arrived(self, world, tasks):
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
        j, nowhere = self.of_machine[machine], len(self.known)
        kinds = [kind for kind in range(len(self.share)) if j == nowhere or self.share[kind][j] > 0]
        for kind in sorted(kinds, key=lambda kind: -self.value(machine, kind)):
            fitting = [task for task in sorted(self.queue) if self.kind[task] == kind
                       and machine in self.world.fitting(task)]
            if fitting:
                return fitting[0]
        return None
