"""The twin of backfilling for logs: rigid jobs on nodes that are alike, by counts of nodes over time.

It says what naive_backfill.py says, which is too slow for a log, and knows neither tasks nor machines.
"""
import heapq
import math
from bisect import bisect_left, bisect_right
from typing import NamedTuple

LONGER = 1.0  # s: an estimate that proves too short is at least this before it is doubled


class Job(NamedTuple):
    arrival: float
    nodes: int
    run: float
    estimate: float


class Profile:
    """How many nodes are free from when on."""

    def __init__(self, nodes):
        self.times, self.free = [-math.inf], [nodes]

    def cut(self, time):
        place = bisect_left(self.times, time)
        if place == len(self.times) or self.times[place] != time:
            self.times.insert(place, time)
            self.free.insert(place, self.free[place - 1])
        return place

    def add(self, begin, end, nodes):
        if begin < end:
            first = self.cut(begin)
            last = self.cut(end) if end < math.inf else len(self.times)
            for place in range(first, last):
                self.free[place] += nodes

    def forget(self, now):
        """Drop what is over."""
        place = bisect_right(self.times, now) - 1
        del self.times[:place], self.free[:place]

    def room(self, begin, end):
        first = bisect_right(self.times, begin) - 1
        last = max(bisect_left(self.times, end), first + 1)
        return min(self.free[first:last])

    def earliest(self, now, seconds, nodes):
        """The first time from which so many nodes are free for so long."""
        place = bisect_right(self.times, now) - 1
        begin = now if self.free[place] >= nodes else None
        while True:
            following = self.times[place + 1] if place + 1 < len(self.times) else math.inf
            if begin is not None and following >= begin + seconds:
                return begin
            place += 1
            if place == len(self.times):
                return math.inf
            if self.free[place] < nodes:
                begin = None
            elif begin is None:
                begin = self.times[place]


def expected_end(begin, seconds):
    return max(begin + seconds, math.nextafter(begin, math.inf))


class OnePool:
    """A run: `starts` has the start of each job; *rule* is easy or conservative."""

    def __init__(self, jobs, nodes, rule):
        self.jobs, self.nodes, self.rule = jobs, nodes, rule
        self.starts = [math.nan] * len(jobs)
        self.now, self.news = 0.0, False
        self.profile = Profile(nodes)
        self.waiting = []  # in the order of arrival
        self.until = {}  # of each that runs, when it is expected to end
        self.reserved = {}  # when each begins that has a reservation
        self.ends = []  # a heap
        self.head = None

    def run(self):
        arrived = 0
        while arrived < len(self.jobs) or self.ends:
            comes = self.jobs[arrived].arrival if arrived < len(self.jobs) else math.inf
            self.now = min(comes, self.ends[0][0] if self.ends else math.inf)
            self.profile.forget(self.now)
            if self.ends and self.ends[0][0] <= self.now:
                self.note(self.take_ended())
                self.serve()
                continue
            self.note([])
            if self.news:
                self.serve()
            while arrived < len(self.jobs) and self.jobs[arrived].arrival <= self.now:
                if self.jobs[arrived].nodes <= self.nodes:
                    self.waiting.append(arrived)
                arrived += 1
            self.serve()
        return self.starts

    def take_ended(self):
        ended = []
        while self.ends and self.ends[0][0] <= self.now:
            ended.append(heapq.heappop(self.ends)[1])
        return ended

    def note(self, ended):
        late = False
        for job in ended:
            until = self.until.pop(job)
            self.news |= until > self.now
            late |= until < self.now
            self.profile.add(self.now, until, self.jobs[job].nodes)
        overdue = [job for job, until in self.until.items() if until <= self.now]
        if not overdue and not late:
            return
        self.reserved, self.head, self.news = {}, None, True
        for job in overdue:
            longer = max(self.jobs[job].estimate, LONGER)
            while self.starts[job] + longer <= self.now:
                longer *= 2
            self.until[job] = self.starts[job] + longer
        self.profile = Profile(self.nodes)
        for job, until in self.until.items():
            self.profile.add(-math.inf, until, -self.jobs[job].nodes)

    def serve(self):
        if self.rule == "easy":
            self.serve_head()
            for job in list(self.waiting):
                if job != self.head:
                    self.start(job)
        else:
            while self.keep_reservations() and self.news:
                pass
        self.news = False

    def serve_head(self):
        for job in list(self.waiting):
            if job == self.head and self.reserved[job] > self.now and not self.news:
                return
            self.release(self.head)
            self.head = None
            if not self.start_or_reserve(job):
                self.head = job
                return

    def keep_reservations(self):
        moved = False
        for job in list(self.waiting):
            before = self.reserved.get(job, math.inf)
            if self.news or before == math.inf or before <= self.now:
                after = self.now if self.start_or_reserve(job) else self.reserved[job]
                moved |= after < before < math.inf
        return moved

    def release(self, job):
        if job in self.reserved:
            begin = self.reserved.pop(job)
            self.profile.add(begin, expected_end(begin, self.jobs[job].estimate), self.jobs[job].nodes)

    def start_or_reserve(self, job):
        self.release(job)
        each = self.jobs[job]
        begin = self.profile.earliest(self.now, each.estimate, each.nodes)
        if begin <= self.now and self.start(job):
            return True
        self.reserved[job] = begin
        self.profile.add(begin, expected_end(begin, each.estimate), -each.nodes)
        return False

    def start(self, job):
        each = self.jobs[job]
        if self.profile.room(self.now, self.now + each.estimate) < each.nodes:
            return False
        self.waiting.remove(job)
        self.starts[job], self.until[job] = self.now, expected_end(self.now, each.estimate)
        self.profile.add(self.now, self.until[job], -each.nodes)
        heapq.heappush(self.ends, (self.now + each.run, job))
        return True
