"""DRF with gangs, first fit and machines that are held back, plainly: from instant to instant, shares as fractions."""
import math
from fractions import Fraction


class Twin:
    """*jobs* are (name, arrival, request, run times, is a gang); *machines* are amounts; nothing is lost.

    A job arrives at once, and its gang is all of it. *after*: seconds from which on machines are held back.
    """

    def __init__(self, jobs, machines, after=math.inf):
        self.machines, self.after = machines, after
        self.total = [sum(each) for each in zip(*machines, strict=True)]
        self.free = [list(each) for each in machines]
        self.least = [min(each) for each in zip(*(job[2] for job in jobs), strict=True)]
        self.arrivals = sorted(jobs, key=lambda job: job[1])
        self.running, self.waiting, self.started = [], {}, {}  # running: (end, job, machine)
        self.closed, self.capped = set(), set()  # requests, and gangs, that did not fit when they last had their turns
        self.since, self.first, self.look = {}, {}, math.inf  # passed over since when, and whose
        self.held, self.times, self.held_for = set(), 0, None

    def starts(self):
        """Return the start of each task, by (job, index), of those that ever start."""
        while self.arrivals or self.running:
            now = min([end for end, _, _ in self.running] + [job[1] for job in self.arrivals[:1]])
            freed = set()
            for end, job, machine in [one for one in self.running if one[0] == now]:
                self.running.remove((end, job, machine))
                self.free[machine] = [have + asked for have, asked in zip(self.free[machine], job[2], strict=True)]
                freed.add(machine)
            if now >= self.look:
                self.hold_back(now)
            self.open(freed)
            if freed:
                self.capped = set()
            while self.arrivals and self.arrivals[0][1] == now:
                job = self.arrivals.pop(0)
                if self.chosen(job[2], len(job[3]) if job[4] else 1, 1):  # else it never starts
                    self.waiting[job] = list(range(len(job[3])))
            while not self.is_full() and (
                heads := [job for job, tasks in self.waiting.items()
                          if tasks and job[2] not in self.closed and job not in self.capped]
            ):
                self.serve(min(heads, key=lambda job: (self.share(job), *order(job))), now)
        return self.started

    def is_full(self):
        """Whether less is free of everything than anybody asks for: nobody has a turn then, and nobody misses one."""
        return all(sum(have) < least for have, least in zip(zip(*self.free, strict=True), self.least, strict=True))

    def serve(self, job, now):
        """Let a job have its turn."""
        together = list(self.waiting[job]) if job[4] else self.waiting[job][:1]
        what = job if len(together) > 1 else job[2]
        is_it = what == self.held_for
        places = placed(job[2], len(together), self.free, set() if is_it else self.held)
        if places is None:
            self.since[what] = max(self.since[what], job[1]) if what in self.since else now
            self.first.setdefault(what, job)
            if not self.held:
                self.look = min(self.look, self.since[what] + self.after)
            (self.capped if what is job else self.closed).add(what)
            return
        for task, machine in zip(together, places, strict=True):
            self.free[machine] = [have - asked for have, asked in zip(self.free[machine], job[2], strict=True)]
            self.running.append((now + job[3][task], job, machine))
            self.waiting[job].remove(task)
            self.started[job[0], task] = now
        if what is job or not is_it:
            self.since.pop(what, None), self.first.pop(what, None)
        if is_it:
            self.release()

    def share(self, job):
        """What a job's running tasks hold of what is there, of the resource it asks most of."""
        count = sum(one is job for _, one, _ in self.running)
        return count * max(Fraction(asked, have) for asked, have in zip(job[2], self.total, strict=True))

    def open(self, machines):
        """Let requests have turns again that fit one of some machines."""
        self.closed = {request for request in self.closed if not any(fits(self.free[one], request) for one in machines)}

    def release(self):
        """Let others use the machines that are held back."""
        self.open(self.held)
        self.held, self.held_for, self.capped, self.look = set(), None, set(), -math.inf

    def hold_back(self, now):
        """Hold machines back for who has been passed over longest, where that is long enough."""
        former, times = self.held_for, self.times + 1
        while (what := self.longest()) is not None and self.since[what] + self.after <= now:
            request, count = (what[2], len(self.waiting[what])) if what in self.waiting else (what, 1)
            machines = self.chosen(request, count, count << min(times, 4) if what == former else count)
            if machines:
                if self.held:
                    self.release()
                self.held, self.held_for, self.look = machines, what, now + self.after
                self.times = times if what == former else 0
                return
            self.since.pop(what), self.first.pop(what)
        if self.held:
            self.release()
        self.look = math.inf if what is None else self.since[what] + self.after

    def longest(self):
        """The gang, or the request, that has been passed over longest; None if there is none."""
        known = [what for what in self.capped | self.closed if what in self.since]
        return min(known, key=lambda what: (self.since[what], order(self.first[what]))) if known else None

    def chosen(self, request, count, wanted):
        """The machines with most room now that could hold so many when idle; none where all together could not."""
        room = [min(copies(each, request), count) for each in self.machines]
        now = [min(copies(each, request), count) for each in self.free]
        if sum(room) < count:
            return set()
        machines = set()
        for machine in sorted(range(len(room)), key=lambda machine: (-now[machine], machine)):
            if room[machine] > 0 and sum(room[one] for one in machines) < wanted:
                machines.add(machine)
        return machines


def order(job):
    return job[1], len(job[0]), job[0]


def copies(free, request):
    return min(have // asked for have, asked in zip(free, request, strict=True) if asked)


def fits(free, request):
    return all(asked <= have for asked, have in zip(request, free, strict=True))


def placed(request, count, free, without):
    """The first machines that fit so many, one after the other, but for some; None where they do not."""
    left, places = [list(each) for each in free], []
    for _ in range(count):
        found = (number for number, have in enumerate(left) if number not in without and fits(have, request))
        machine = next(found, None)
        if machine is None:
            return None
        left[machine] = [have - asked for have, asked in zip(left[machine], request, strict=True)]
        places.append(machine)
    return places
