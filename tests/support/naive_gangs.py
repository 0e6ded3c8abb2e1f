"""The plain twin of gangs beside single tasks: whole or not at all, and first at each instant."""
import copy

from naive import ORDERS, Greedy, Tetris, Twin, aligned
from naive_lotes import LotesTwin


class GangTwin(Twin):
    """A world in which a stage may be a gang; a policy says in which order gangs go, and where a task of one does."""

    def with_gangs(self, sizes):
        """*sizes*: of each stage how many tasks start together, 0 where each starts by itself."""
        self.members = {stage: [task for task, own in enumerate(self.stage) if own == stage]
                        for stage, size in enumerate(sizes) if size > 1}
        self.waiting = []  # gangs that are complete, by their stages
        for tasks in self.members.values():
            if self.most_at_once(tasks[0]) < len(tasks):
                for task in tasks:
                    self.status[task] = "UNPLACEABLE"
        return self

    def most_at_once(self, task):
        """With the most that each machine ever has of each resource."""
        count = 0
        for machine, first in enumerate(self.capacity):
            had = [first, *[amounts for _, changed, amounts in self.changes if changed == machine]]
            most = [max(column) for column in zip(*[amounts for amounts in had if amounts is not None], strict=True)]
            if most and self.meets(task, machine):
                count += self.copies(most, task)
        return count

    def copies(self, amounts, task):
        """How many of a task would fit."""
        return min(int(amount // asked) for amount, asked in zip(amounts, self.requests[task], strict=True) if asked)

    def lose_gangs(self, freed, arrived):
        for task in [task for task in arrived if self.attempts[task] > 0]:
            for other in self.members.get(self.stage[task], []):
                if self.status[other] == "RUNNING":
                    self.losses.append((other, self.machine[other], self.start[other], self.now))
                    self.ends = [end for end in self.ends if end[2] != other]
                    self.status[other] = "WAITING"
                    freed.append(self.machine[other])
                    arrived.append(other)

    def decide(self, policy, freed, arrived):
        self.lose_gangs(freed, arrived)
        came = {self.stage[task] for task in arrived if self.stage[task] in self.members}
        complete = {stage for stage in came if self.is_complete(stage)}
        self.waiting += complete
        self.serve(policy, freed, complete)
        super().decide(policy, freed, [task for task in arrived if self.stage[task] not in self.members])

    def is_complete(self, stage):
        return all(self.status[task] in ("WAITING", "FINISHED") for task in self.members[stage])

    def alike(self, stage):
        """Gangs that are alike wait in line: what tells their tasks apart, and how many there are."""
        task = self.members[stage][0]
        return tuple(self.requests[task]), frozenset(map(str, self.constraints[task])), len(self.members[stage])

    def serve(self, policy, freed, complete):
        def order(stage):
            return policy.order(self, self.members[stage][0])

        def first(kind):
            return min((stage for stage in self.waiting if self.alike(stage) == kind), key=order)

        asked = {kind for kind in map(self.alike, self.waiting)
                 if first(kind) in complete or set(freed) & set(self.fitting(self.members[first(kind)][0]))}
        while asked:
            stage = min(map(first, asked), key=order)
            if self.starts(policy, stage):
                self.waiting.remove(stage)
            else:
                asked.discard(self.alike(stage))
            asked &= set(map(self.alike, self.waiting))

    def starts(self, policy, stage):
        waiting = [task for task in self.members[stage] if self.status[task] == "WAITING"]
        room = [self.copies(self.free(machine), waiting[0]) for machine in self.fitting(waiting[0])]
        if sum(room) < len(waiting):
            return False
        names = ("status", "attempts", "start", "finish", "machine", "ends", "sequence")
        before = copy.deepcopy({name: getattr(self, name) for name in names})
        for task in waiting:
            machine = policy.place_of_gang(self, task)
            if machine is None:
                vars(self).update(before)
                return False
            self.begin(task, machine)
        return True


class GangGreedy(Greedy):
    order = staticmethod(ORDERS["fifo"])

    def place_of_gang(self, world, task):
        fitting = world.fitting(task)
        return next((machine for machine in self.rows if machine in fitting), None)


class GangTetris(Tetris):
    order = staticmethod(ORDERS["shortest-first"])

    def place_of_gang(self, world, task):
        return max(world.fitting(task), default=None, key=lambda machine: (
            aligned(world.free(machine), world.requests[task], self.natural), -machine))


class GangLotes(LotesTwin):
    order = staticmethod(ORDERS["fifo"])

    def place_of_gang(self, world, task):
        return self.place(task)
