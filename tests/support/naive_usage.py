"""The plain twin of usage that varies within a task's life: what a task holds changes once, where there is room."""
import math
from dataclasses import dataclass, field

from naive import Twin


@dataclass
class SwingTwin(Twin):
    """A world in which tasks hold `first` and from a part of their attempt on `then`; both are lists of amounts."""

    first: list = field(default_factory=list)
    then: list = field(default_factory=list)
    part: list = field(default_factory=list)

    def swing(self):
        """Begin, when it is known who could ever be placed."""
        self.requests = [list(amounts) for amounts in self.first]
        self.changed = [False] * len(self.first)
        return self

    def begin(self, task, machine):
        super().begin(task, machine)
        end, sequence, _ = self.ends.pop()
        if self.part[task] < math.inf and end < math.inf:
            end -= (1 - self.part[task]) * self.run_time[task]
        self.ends.append((end, sequence, task))

    def lost(self, task, arrived):
        self.losses.append((task, self.machine[task], self.start[task], self.now))
        self.status[task] = "LOST"
        self.requests[task], self.changed[task] = list(self.first[task]), False
        arrived.append(task)

    def change(self, change, freed, arrived):
        before = len(arrived)
        super().change(change, freed, arrived)
        for task in arrived[before:]:
            self.requests[task], self.changed[task] = list(self.first[task]), False

    def end_attempts(self, freed, arrived):
        while due := sorted(end for end in self.ends if end[0] <= self.now):
            self.ends.remove(due[0])
            task, machine = due[0][2], self.machine[due[0][2]]
            if self.changed[task] or self.part[task] == math.inf:
                self.status[task] = "FINISHED"
            elif self.has_room(task, machine):
                self.requests[task], self.changed[task] = list(self.then[task]), True
                self.ends.append((self.finish[task], self.sequence, task))
                self.sequence += 1
            else:
                self.first[task], self.part[task] = self.then[task], math.inf
                self.lost(task, arrived)
            freed.append(machine)
        super().end_attempts(freed, arrived)

    def has_room(self, task, machine):
        free = self.free(machine)
        return all(have + held >= asked for have, held, asked in
                   zip(free, self.requests[task], self.then[task], strict=True))
