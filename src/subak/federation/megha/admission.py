"""Admits jobs at run time: writes each into the tables of its submitter and global master.

A job takes places next to each other for its tasks, and for its stages and the edges between them; a task's number is
the job's, which no other ever has, above its place. What its tasks ask for is laid out there some at a time, however
many they are, before the first arrives. When nothing of a job is open any more its places, and lanes in which no other
job's tasks wait, are another's.
"""
import bisect
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from subak.errors import InputError
from subak.federation.megha.catalog import Numbers
from subak.federation.megha.global_master.state import GlobalMaster
from subak.federation.megha.jobs import SUBMISSION_ENDED, SUBMISSION_NEW, Jobs
from subak.federation.messages import NOBODY

LANES_FIRST = 4  # places for lanes that a queue has at first; twice as many whenever they are used up


class Spans:
    """Places of a table that are free, in spans of neighbours; the lowest are taken first, so memory is used again."""

    def __init__(self, places: int) -> None:
        self.size = places
        self.free = [(0, places)] if places else []  # (first, end), in order, no two of which touch

    def take(self, count: int, at: int | None = None) -> int | None:
        """Return the first of *count* places next to each other, if given those from *at* on; None where taken."""
        for number, (first, end) in enumerate(self.free):
            place = first if at is None else at
            if first <= place and place + count <= end:
                rest = [(first, place), (place + count, end)]
                self.free[number : number + 1] = [each for each in rest if each[0] < each[1]]
                return place
        return None

    def words(self) -> str:
        """Return in words how many places are free."""
        sizes = [end - first for first, end in self.free]
        largest = f", {max(sizes):,} of them next to each other" if len(sizes) > 1 else ""
        return f"{sum(sizes):,} of {self.size:,} are free{largest}"

    def give(self, first: int, count: int) -> None:
        """Let places be free again."""
        end = first + count
        number = bisect.bisect(self.free, (first, end))
        if number < len(self.free) and self.free[number][0] == end:
            end = self.free.pop(number)[1]
        if number and self.free[number - 1][1] == first:
            number -= 1
            first = self.free.pop(number)[0]
        if end > first:
            self.free.insert(number, (first, end))


@dataclass(frozen=True)
class StageAsked:
    """Tasks of a job that are alike."""

    tasks: int
    shape: int
    depends_on: tuple[int, ...] = ()  # stages of the job, by their places in it; each is before this one
    priority: int = 0
    gang: bool = False
    retries: int = 0
    losses_max: int = int(np.iinfo(np.int16).max)
    backoff: float = 0.0  # seconds, as the following
    wait_max: float = np.inf
    run_max: float = np.inf


@dataclass(frozen=True)
class JobAsked:
    """A job, in numbers."""

    queue: int
    stages: tuple[StageAsked, ...]
    rank: float  # its tasks are served in this order, within their queue


@dataclass(frozen=True, eq=False)
class Admitted:
    """A job, and where it is."""

    number: int  # of the job: no other ever has it, with any global master
    numbers: tuple[np.ndarray, ...]  # int64[task] of each stage
    places: int  # the first
    tasks: int
    stages: int  # the first
    edges: int  # the first
    edge_count: int
    gangs: tuple[int, ...]
    asked: JobAsked
    lanes: tuple[int, ...]  # of the stages


def keys_of(job: JobAsked) -> list[tuple[int, int, int]]:
    """Return in which lane tasks of each stage wait: by queue, shape, and size of the gang (0: by themselves)."""
    return [(job.queue, stage.shape, stage.tasks if stage.gang else 0) for stage in job.stages]


class Admission:
    """Who writes jobs into the tables of one submitter and of the global master beside it."""

    def __init__(self, jobs: Jobs, master: GlobalMaster, masters: int = 1) -> None:
        """*masters*: how many global masters there are, no two of which give a job, or a task, the same number.

        Jobs have room as `build_jobs` made it, nothing is admitted yet; the master has room for lanes.
        """
        self.jobs, self.master, self.masters = jobs, master, masters
        self.latest = master.number  # number of the job that was admitted last
        self.places, self.edges = Spans(jobs.number.size), Spans(jobs.stages.child.size)
        self.stages, self.gangs = Spans(jobs.stages.left.size), Spans(jobs.gang_size.size)
        self.lane_places = Spans(master.lanes.active.size)
        # by queue, shape and size of the gang
        self.lanes = Numbers[tuple[int, int, int]](master.lanes.root.size, "kinds of tasks of jobs that are open")
        self.jobs_with: Counter[tuple[int, int, int]] = Counter()  # how many stages that are open have each
        self.of_queue: dict[int, int] = {}  # lanes of each
        self.to_lay: dict[int, tuple[int, int]] = {}  # jobs with tasks that are not laid out: their queue, and how many

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def admit(self, job: JobAsked) -> Admitted:
        """Take places for a job, and return the numbers of its tasks, which may arrive when all are laid out.

        Raises InputError where there is no room, before anything is written.
        """
        return self._write(self.latest + self.masters, job, None)

    def restore(self, number: int, job: JobAsked, first: int) -> Admitted:
        """Write a job down that was admitted before the tables were made, with its number, at its places."""
        admitted = self._write(number, job, first)
        self.lay(admitted, 0, admitted.tasks)
        return admitted

    def _write(self, number: int, job: JobAsked, first: int | None) -> Admitted:
        lanes = self._take_lanes(job)
        try:
            taken = self._room_for(number, job, lanes, first)
        except InputError:
            self._leave_lanes(job)
            raise
        self.latest = max(self.latest, number)
        numbers, place, gangs = [], taken.places, iter(taken.gangs)
        for order, stage in enumerate(job.stages):
            places = slice(place, place + stage.tasks)
            self._write_stage(taken.stages + order, stage, places)
            if stage.gang:
                self._write_gang(next(gangs), stage.tasks)
            numbers.append(np.int64(number) * self.jobs.number.size + np.arange(places.start, places.stop))
            place += stage.tasks
        self._write_edges(job, taken)
        self.to_lay[number] = job.queue, taken.tasks
        return replace(taken, numbers=tuple(numbers))

    def lay(self, job: Admitted, first: int, end: int) -> None:
        """Lay out what the tasks of a job from *first* on, up to *end*, ask for; each of them once."""
        gangs, begin = iter(job.gangs), 0
        for order, (stage, numbers) in enumerate(zip(job.asked.stages, job.numbers, strict=True)):
            gang = next(gangs) if stage.gang else NOBODY
            own = slice(max(first - begin, 0), max(min(end - begin, stage.tasks), 0))
            if own.start < own.stop:
                places = slice(job.places + begin + own.start, job.places + begin + own.stop)
                self._lay_stage(job, order, gang, places)
                self.jobs.number[places] = numbers[own]
            begin += stage.tasks
        queue, left = self.to_lay.pop(job.number)
        if left > end - first:
            self.to_lay[job.number] = queue, left - (end - first)

    def _room_for(self, number: int, job: JobAsked, lanes: tuple[int, ...], place: int | None) -> Admitted:
        """Take the places that a job needs, or none; those of its tasks from *place* on."""
        tasks, edges = sum(stage.tasks for stage in job.stages), sum(len(stage.depends_on) for stage in job.stages)
        wanted = [("tasks", self.places, tasks), ("stages", self.stages, len(job.stages) + 1),
                  ("dependencies", self.edges, edges)]
        wanted += [("gangs", self.gangs, 1) for stage in job.stages if stage.gang]
        taken: list[tuple[Spans, int, int]] = []
        for what, spans, count in wanted:
            first = spans.take(count, place if spans is self.places else None) if count else 0
            if first is None:
                for others, own, size in taken:
                    others.give(own, size)
                raise InputError(f"job: there is no room for {count:,} more {what} of jobs that are open: "
                                 f"{spans.words()}; wait for some to end, cancel some, or raise [rooms] tasks in the "
                                 "file of the federation")
            taken.append((spans, first, count))
        places, stages, edge = (first for _, first, _ in taken[:3])
        gangs = tuple(first for _, first, _ in taken[3:])
        return Admitted(number, (), places, tasks, stages, edge, edges, gangs, job, lanes)

    def _write_stage(self, number: int, stage: StageAsked, places: slice) -> None:
        """Write down where the tasks of a stage are, and how many it waits for."""
        graph = self.jobs.stages
        graph.left[number], graph.waits[number] = stage.tasks, len(stage.depends_on)
        graph.task_first[number], graph.task_first[number + 1] = places.start, places.stop
        self.jobs.given_up[number] = False

    def _lay_stage(self, job: Admitted, order: int, gang: int, places: slice) -> None:
        """Lay out what tasks of a stage ask for."""
        jobs, stage = self.jobs, job.asked.stages[order]
        jobs.state[places], jobs.row[places], jobs.gang[places] = SUBMISSION_NEW, NOBODY, gang
        asked = jobs.asked[places]
        asked["queue"], asked["priority"], asked["owner"] = job.asked.queue, stage.priority, self.master.number
        asked["lane"] = job.lanes[order]
        jobs.rank[places], jobs.shape[places] = job.asked.rank, stage.shape
        jobs.ending[places] = np.zeros(1, jobs.ending.dtype)
        for name in ("retries", "losses_max", "backoff", "wait_max", "run_max"):
            jobs.terms[places][name] = getattr(stage, name)
        jobs.stages.of_task[places] = job.stages + order

    def _write_edges(self, job: JobAsked, taken: Admitted) -> None:
        """Write down which stages wait for which."""
        graph, edge = self.jobs.stages, taken.edges
        for number in range(len(job.stages)):
            graph.child_first[taken.stages + number] = edge
            for after, stage in enumerate(job.stages):
                if number in stage.depends_on:
                    graph.child[edge] = taken.stages + after
                    edge += 1
        graph.child_first[taken.stages + len(job.stages)] = edge

    def _write_gang(self, gang: int, tasks: int) -> None:
        """Let so many tasks start together."""
        jobs = self.jobs
        jobs.gang_size[gang], jobs.gang_left[gang] = tasks, tasks
        jobs.gang_row[gang], jobs.gang_failed[gang] = NOBODY, False

    def is_over(self, job: Admitted) -> bool:
        """Whether all tasks of a job have ended and none has a row any more."""
        places = slice(job.places, job.places + job.tasks)
        return bool((self.jobs.state[places] == SUBMISSION_ENDED).all() and (self.jobs.row[places] == NOBODY).all())

    def forget(self, job: Admitted) -> None:
        """Give the places of a job back that is over; what is still said of its tasks changes nothing."""
        self.jobs.number[job.places : job.places + job.tasks] = NOBODY
        self.places.give(job.places, job.tasks)
        self.stages.give(job.stages, len(job.numbers) + 1)
        if job.edge_count:
            self.edges.give(job.edges, job.edge_count)
        for gang in job.gangs:
            self.gangs.give(gang, 1)
        self._leave_lanes(job.asked)

    # -- lanes and queues ----------------------------------------------------------------------------------------------

    def _take_lanes(self, job: JobAsked) -> tuple[int, ...]:
        """Return the lanes of the stages of a job. Raises InputError where there are too few, and none is taken."""
        taken: list[int] = []
        try:
            for key in keys_of(job):
                taken.append(self.lane(*key))
        except InputError:
            self._leave_lanes(job, len(taken))
            raise
        return tuple(taken)

    def lane(self, queue: int, shape: int, gang: int) -> int:
        """Return the lane of one stage more of a queue and shape, whose tasks start in gangs of a size (0: alone)."""
        key = queue, shape, gang
        number, is_new = self.lanes.number(key)
        if is_new:
            try:
                self._widen(queue)
            except InputError:
                self.lanes.give_back(key)
                raise
            self.of_queue[queue] = self.of_queue.get(queue, 0) + 1
        self.jobs_with[key] += 1
        return number

    def _leave_lanes(self, job: JobAsked, stages: int | None = None) -> None:
        """Give the lanes of the first stages of a job back, of which no task is in one any more."""
        for key in keys_of(job)[:stages]:
            self.jobs_with[key] -= 1
            if not self.jobs_with[key]:
                del self.jobs_with[key]
                self.lanes.give_back(key)
                self.of_queue[key[0]] -= 1

    def _widen(self, queue: int) -> None:
        """Make place for one more lane of a queue: where its places are used up, twice as many are somewhere else."""
        master = self.master
        (first, end), count = master.lane_span[queue].tolist(), self.of_queue.get(queue, 0)
        if count < end - first:
            return
        places = max(LANES_FIRST, 2 * count)
        begin = self.lane_places.take(places)
        if begin is None:
            raise InputError(f"job: there is no room for {places:,} lanes of queue {queue}")
        for table in (master.lanes.active, master.lanes.contender):
            table[begin : begin + count] = table[first:end]
        master.lane_span[queue] = begin, begin + places
        if end > first:
            self.lane_places.give(first, end - first)

    def add_queue(self, queue: int) -> None:
        """Let a queue have its turn with this master, behind all others."""
        master, count = self.master, self.master.counts.own_queues
        if queue not in master.own[:count]:
            if count == master.own.size:
                raise InputError(f"queue: a global master may have {count:,} at most, and it has so many")
            master.own[count] = queue
            master.counts.own_queues += 1

    def remove_queue(self, queue: int) -> None:
        """Let a queue have no turn any more. Raises InputError while tasks of it are open, or have yet to be."""
        master, jobs, count = self.master, self.jobs, self.master.counts.own_queues
        if queue not in master.own[:count]:
            return
        known = (jobs.number != NOBODY) & (jobs.asked["queue"] == queue)
        left = int((known & ((jobs.state != SUBMISSION_ENDED) | (jobs.row != NOBODY))).sum())
        left += sum(tasks for of, tasks in self.to_lay.values() if of == queue)
        if left:
            raise InputError(f"queue: must be empty before it is removed, and {left:,} tasks of it have not ended")
        place = master.own[:count].tolist().index(queue)
        master.own[place : count - 1] = master.own[place + 1 : count]
        master.counts.own_queues -= 1
        if master.counts.next_queue > place:
            master.counts.next_queue -= 1
        if master.counts.next_queue >= master.counts.own_queues:
            master.counts.next_queue = 0
