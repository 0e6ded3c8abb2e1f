"""The plain twin of a run in which tasks share CPU, from the documentation: lists, and every task looked at."""
import math
from dataclasses import fields
from itertools import pairwise

from naive import NEVER, Twin, run_of, twin_of
from subak.placement.claims import STATUSES


class SharedTwin(Twin):
    """A world whose machines promise more CPU than they have; each gives its tasks the same part of what they want."""

    def set_up(self, physical, of_change, row):
        """*physical* is the CPU of each machine, *of_change* that from each change on, *row* the CPU's."""
        self.physical, self.of_change, self.row = list(physical), list(of_change), row
        self.pace, self.since = [1.0] * len(physical), [0.0] * len(physical)
        self.left = [None] * len(self.arrival)
        self.touched, self.began = [], []  # machines; tasks in the order of their starts
        return self

    def wants(self, task):
        return self.requests[task][self.row]

    def touch(self, machine):
        if machine not in self.touched:
            self.touched.append(machine)

    def begin(self, task, machine):
        super().begin(task, machine)
        self.left[task] = self.run_time[task]
        if self.wants(task):
            self.began = [other for other in self.began if other != task] + [task]
            self.touch(machine)

    def end_attempts(self, freed, arrived):
        ending = [task for time, _, task in sorted(self.ends) if time <= self.now]
        super().end_attempts(freed, arrived)
        for task in filter(self.wants, ending):
            self.touch(self.machine[task])

    def change(self, change, freed, arrived):
        super().change(change, freed, arrived)
        self.physical[change[1]] = self.of_change.pop(0)
        self.touch(change[1])

    def decide(self, policy, freed, arrived):
        super().decide(policy, freed, arrived)
        for machine in self.touched:
            self.share(machine)
        self.touched = []

    def share(self, machine):
        there = [task for task in self.began if self.status[task] == "RUNNING" and self.machine[task] == machine]
        wanted = sum(self.wants(task) for task in there)
        before, pace = self.pace[machine], min(1.0, self.physical[machine] / wanted) if wanted else 1.0
        if before == pace == 1.0:
            return
        for task in there:
            self.left[task] -= before * (self.now - max(self.since[machine], self.start[task]))
            self.finish[task] = self.now + self.left[task] / pace
            self.ends = [end for end in self.ends if end[2] != task] + [(self.finish[task], self.sequence, task)]
            self.sequence += 1
        self.pace[machine], self.since[machine] = pace, self.now


def shared_run(workload, fleet, scheduler, times, seed=1, until=NEVER):
    """The finished twin of a run with ``interference=times``."""
    row = [resource.name for resource in workload.resources].index("cpu")
    real = twin_of(workload, fleet, seed)

    def promised(amounts):
        return amounts and [math.floor(amount * times) if each == row else amount
                            for each, amount in enumerate(amounts)]

    values = {field.name: getattr(real, field.name) for field in fields(Twin) if field.init}
    values |= {"capacity": list(map(promised, real.capacity)),
               "first_capacity": list(map(promised, real.first_capacity)),
               "changes": [(time, machine, promised(amounts)) for time, machine, amounts in real.changes]}
    of_change = fleet.changes["cpu"].to_list()
    world = SharedTwin(**values).set_up(fleet.machines["cpu"].to_list(), of_change, row)
    return run_of(world, scheduler, until)


def work_had(outcome, workload, fleet):
    """Per attempt (task, start) the seconds at full pace that it had, told from who ran where and when, no more."""
    changes = fleet.changes.select("time", "machine", "cpu").rows()
    sim, wants = outcome.simulation, [workload.stages["cpu"][stage] for stage in workload.tasks["stage"].to_list()]
    order, end = outcome.prepared.machine_order, outcome.loop_result.end
    spans = {}  # machine -> (begin, end, task) of every attempt that wants CPU
    for task, began in enumerate(sim.progress.start.tolist()):
        if STATUSES[sim.claims.status[task]] in ("RUNNING", "FINISHED") and wants[task]:
            until = float(sim.interference.end[task])
            machine = int(order[sim.progress.machine[task]])
            spans.setdefault(machine, []).append((began, end if math.isnan(until) else until, task))
    for part in outcome.loop_result.losses:
        for task, place, began, until in part.T.tolist():
            if wants[int(task)]:
                spans.setdefault(int(order[int(place)]), []).append((began, until, int(task)))
    had = {}
    for machine, there in spans.items():
        later = ((time, cpu) for time, where, cpu in changes if where == machine)
        steps = [(0.0, fleet.machines["cpu"][machine]), *later]
        cuts = sorted({edge for span in there for edge in span[:2]} | {time for time, _ in steps})
        for begin, until in pairwise(cuts):
            physical = [cpu for time, cpu in steps if time <= begin][-1]
            running = [(task, first) for first, last, task in there if first <= begin and until <= last]
            wanted = sum(wants[task] for task, _ in running)
            for each in running:
                had[each] = had.get(each, 0.0) + min(1.0, physical / wanted) * (until - begin)
    return had
