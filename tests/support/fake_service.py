"""A service in memory: one global master with a few machines, on which a handful of commands end as they would.

`true`, `false`, `echo WORDS`, `exit CODE` end at once; whatever else runs until `finish` says so. Tasks take amounts on
machines and give them back, stages wait for stages, gangs start together, what fails is tried again: all states are
those that were reached.
"""
import asyncio
import time
import tomllib
from collections import Counter
from contextlib import suppress

import msgspec

from subak.live.api import models
from subak.live.api.errors import InvalidError, NotFoundError, NotOwnerError, RefusedError, UnavailableError
from subak.live.api.gate import Gate
from subak.live.api.models import (
    TASK_BLOCKED,
    TASK_ENDED,
    TASK_RUNNING,
    TASK_WAITING,
    Change,
    Event,
    Explanation,
    FederationView,
    Free,
    Health,
    JobView,
    LogChunk,
    MachineView,
    MasterView,
    Page,
    Plan,
    QueueView,
    Shortage,
    StageView,
    TaskCounts,
    TaskView,
)
from subak.live.api.people import made, revoked, tokens_of
from subak.live.api.service import OfJob
from subak.live.jobfile.quantities import print_amount
from subak.live.jobfile.spec import QUEUE, TASKS
from subak.live.people.identity import People

MACHINES = (("m0", "west"), ("m1", "west"), ("m2", "east"))
CAPACITY = {"cpu": 4000, "memory": 8192, TASKS: 12}
OPERATORS = {"=": str.__eq__, "!=": str.__ne__}


class FakeTask:
    """A task, and what it has written."""

    def __init__(self, job, index, stage):
        self.job, self.index, self.stage = job, index, stage
        self.id = f"{job.id}.{index}"
        self.state = TASK_BLOCKED if stage.depends_on else TASK_WAITING
        self.outcome = self.reason = self.machine = self.signal = ""
        self.attempts = self.failures = self.preempted = 0
        self.exit_code = self.started = self.ended = None
        self.preempted_by = self.preempted_why = ""
        self.written = []  # by attempt and stream

    def view(self):
        return TaskView(
            id=self.id, job=self.job.id, index=self.index, stage=self.stage.name, queue=self.job.spec.queue,
            state=self.state, outcome=self.outcome, reason=self.reason, machine=self.machine, attempts=self.attempts,
            exit_code=self.exit_code, signal=self.signal, preempted=self.preempted, submitted=self.job.submitted,
            started=self.started, ended=self.ended)


def lacking(stage):
    """Return which of a stage's amounts no machine has."""
    return [f"it asks for {name} {print_amount(name, amount)}, the largest machine has "
            f"{name} {print_amount(name, CAPACITY.get(name, 0))}"
            for name, amount in stage.resources.items() if amount > CAPACITY.get(name, 0)]


class FakeJob:
    """A job, its tasks and what happened to them."""

    def __init__(self, id, spec, user=""):
        self.user = user
        self.id, self.spec, self.version, self.submitted = id, spec, 1, time.time()
        self.events = []
        self.tasks = []
        for stage in spec.stages:
            self.tasks += [FakeTask(self, len(self.tasks) + number, stage) for number in range(stage.tasks)]

    @property
    def is_over(self):
        return all(task.state == TASK_ENDED for task in self.tasks)

    def waits(self):
        stages = [task.stage for task in self.tasks if task.state == TASK_WAITING]
        if not stages:
            return ""
        large = lacking(stages[0])
        return f"no machine is large enough: {large[0]}" if large else "waits for machines"

    def counts(self, stage=None):
        counted = dict.fromkeys(TaskCounts.__struct_fields__, 0)
        for task in self.tasks:
            if stage is None or task.stage is stage:
                counted[(task.outcome if task.state == TASK_ENDED else task.state).replace(" ", "_")] += 1
        return TaskCounts(**counted)

    def view(self):
        began = [task.started for task in self.tasks if task.started is not None]
        bad = [task for task in self.tasks if task.outcome not in ("", models.FINISHED)]
        state = "ended" if self.is_over else "running" if began else "waiting"
        return JobView(
            id=self.id, name=self.spec.metadata.name, queue=self.spec.queue, state=state, version=self.version,
            outcome="" if not self.is_over else bad[0].outcome if bad else models.FINISHED,
            reason=(bad[0].reason if bad else "") if self.is_over else self.waits(), tasks=len(self.tasks),
            counts=self.counts(), user=self.user,
            stages=tuple(StageView(name=stage.name, tasks=stage.tasks, depends_on=stage.depends_on, gang=stage.gang,
                                   request=stage.resources, counts=self.counts(stage)) for stage in self.spec.stages),
            labels=self.spec.metadata.labels, submitted=self.submitted, started=min(began, default=None),
            ended=max(task.ended for task in self.tasks) if self.is_over else None)

    def tell(self, id, what, why="", task=None):
        self.version += 1
        self.events.append(Event(number=len(self.events), at=time.time(), id=id, what=what, why=why,
                                 machine=task.machine if task else "", attempt=task.attempts if task else 0))


class FakeService:
    """The global master *name*; *addresses* are those of the others, by name, which keep jobs of their own."""

    def __init__(self, name="g0", addresses=None, queues=None):
        self.name, self.addresses = name, addresses if addresses is not None else {}
        self.queue_owner = queues if queues is not None else {}  # of queues that others keep
        self.jobs_by_id, self.by_client_id = {}, {}
        self.weights, self.version = {"": 1.0, "research": 2.0, "research/ada": 1.0, "web": 1.0}, 1
        self.is_full = False
        self.people, self.gate = People(), Gate()
        self.attributes = {name: {"kernel": "6", "zone": cluster} for name, cluster in MACHINES}
        self.cordoned, self.draining, self.lost, self.removed = set(), set(), set(), set()
        self.used = {name: dict.fromkeys(CAPACITY, 0) for name, _ in MACHINES}
        self.news = asyncio.Condition()
        self.calls = []  # the names of what was asked, in order

    # -- what the federation does ------------------------------------------------------------------------------------

    def _misses(self, machine, stage):
        """Return which tests a machine fails for a task of a stage, as (test, what)."""
        if machine in self.lost:
            return [(models.TEST_UNREACHABLE, "")]
        if machine in self.cordoned:
            return [(models.TEST_CORDONED, "")]
        failed = [(models.TEST_CONSTRAINT, f"{each.attribute} {each.operator} {each.value}")
                  for each in stage.constraints
                  if not OPERATORS[each.operator](self.attributes[machine].get(each.attribute, ""), each.value)]
        return failed or [(models.TEST_RESOURCE, resource) for resource, amount in _asked(stage).items()
                          if self.used[machine].get(resource, 0) + amount > CAPACITY.get(resource, 0)]

    def _turn(self):
        """Start what can be started, until nothing can."""
        while any(self._start(task) for job in self.jobs_by_id.values() for task in job.tasks
                  if task.state == TASK_WAITING):
            pass

    def _start(self, task):
        together = [each for each in task.job.tasks if each.stage is task.stage] if task.stage.gang else [task]
        placed = []
        for each in together:
            machine = next((name for name, _ in MACHINES if not self._misses(name, each.stage)), None)
            if machine is None:
                for other in placed:
                    self._give(other)
                return False
            each.machine = machine
            for resource, amount in _asked(each.stage).items():
                self.used[machine][resource] += amount
            placed.append(each)
        for each in placed:
            self._begin(each)
        return True

    def _give(self, task):
        for resource, amount in _asked(task.stage).items():
            self.used[task.machine][resource] -= amount

    def _begin(self, task):
        task.state, task.reason, task.attempts = TASK_RUNNING, "", task.attempts + 1
        task.started = time.time()
        task.written.append({"stdout": b"", "stderr": b""})
        task.job.tell(task.id, "started", task=task)
        word, *rest = task.stage.command
        if word == "echo":
            task.written[-1]["stdout"] += (" ".join(rest) + "\n").encode()
        if word in ("true", "echo", "false", "exit"):
            self._end(task, int(rest[0]) if word == "exit" else int(word == "false"))

    def _end(self, task, code):
        self._give(task)
        task.exit_code = code
        if code and task.failures < task.stage.retries:
            task.failures += 1
            task.state = TASK_WAITING
            task.job.tell(task.id, "failed", f"exit code {code}; it is tried again", task)
            return
        task.job.tell(task.id, "ended", f"exit code {code}", task)
        self._over(task, models.FAILED if code else models.FINISHED, f"exit code {code}" if code else "")

    def _over(self, task, outcome, reason):
        task.state, task.outcome, task.reason, task.ended = TASK_ENDED, outcome, reason, time.time()
        for other in task.job.tasks:
            if other.state == TASK_BLOCKED and task.stage.name in other.stage.depends_on:
                if outcome != models.FINISHED:
                    self._over(other, models.CANCELLED, f"stage {task.stage.name} did not finish")
                elif all(each.outcome == models.FINISHED for each in task.job.tasks
                         if each.stage.name in other.stage.depends_on):
                    other.state = TASK_WAITING
                    task.job.tell(other.id, "released", task=other)

    async def _tell_all(self):
        self._turn()
        async with self.news:
            self.news.notify_all()

    # -- what a test does ---------------------------------------------------------------------------------------------

    async def finish(self, id, code=0):
        self._end(self._task(id), code)
        await self._tell_all()

    async def write(self, id, data, stream="stdout"):
        self._task(id).written[-1][stream] += data
        await self._tell_all()

    # -- the service --------------------------------------------------------------------------------------------------

    def _job(self, id):
        id = id.partition(".")[0]
        if id in self.jobs_by_id:
            return self.jobs_by_id[id]
        owner = id.rpartition("-")[0]
        if owner in self.addresses and owner != self.name:
            raise NotOwnerError(f"job {id} is kept by {owner}", owner=self.addresses[owner])
        raise NotFoundError(f"there is no job {id}")

    def _task(self, id):
        job, index = self._job(id), int(id.partition(".")[2])
        if index >= len(job.tasks):
            raise NotFoundError(f"job {job.id} has no task {index}")
        return job.tasks[index]

    def _too_large(self, spec):
        return tuple(f"it can never run: {words}" for stage in spec.stages for words in lacking(stage))

    def queue_of(self, path):
        return next(path for path in self.weights if path) if path == QUEUE and QUEUE not in self.weights else path

    async def belongs(self, id):
        job = self._job(id)
        return OfJob(job.spec.queue, job.user)

    async def tokens(self, cursor, limit):
        return tokens_of(self.people, cursor, limit)

    async def add_person(self, asked, by):
        return made(self.people, asked, by, self.people.note)

    async def revoke(self, name):
        return revoked(self.people, name, self.people.note)

    async def submit(self, spec, client_id, is_strict=False, user=""):
        self.calls.append("submit")
        spec = msgspec.structs.replace(spec, queue=self.queue_of(spec.queue))
        if client_id in self.by_client_id:
            job, before = self.by_client_id[client_id]
            if before != spec or job.user != user:
                raise RefusedError(f"{client_id} was used for job {job.id}, which is another", field="Idempotency-Key")
            return job.view()
        owner = self.queue_owner.get(spec.queue, self.name)
        if owner != self.name:
            raise NotOwnerError(f"queue {spec.queue} is kept by {owner}", owner=self.addresses[owner])
        if self.is_full:
            raise UnavailableError("the disk is full; no job is taken until there is room", retry_after_s=1)
        if spec.queue not in self.weights:
            raise InvalidError(f"queue: there is no queue {spec.queue!r}", field="queue")
        warnings = self._too_large(spec)
        if is_strict and warnings:
            raise InvalidError("; ".join(warnings), field="resources")
        job = FakeJob(f"{self.name}-{len(self.jobs_by_id)}", spec, user)
        self.jobs_by_id[job.id], self.by_client_id[client_id] = job, (job, spec)
        job.tell(job.id, "submitted")
        view = msgspec.structs.replace(job.view(), warnings=warnings)
        await self._tell_all()
        return view

    async def job(self, id):
        return self._job(id).view()

    async def jobs(self, wanted, cursor, limit):
        views = [job.view() for job in reversed(self.jobs_by_id.values()) if not wanted.ids or job.id in wanted.ids]
        return _page([view for view in views if (not wanted.name or view.name == wanted.name)
                      and wanted.user in ("", view.user)
                      and (wanted.state is None or view.state == wanted.state)
                      and (not wanted.ended_since or (view.ended or 0) >= wanted.ended_since)
                      and (not wanted.queue or f"{view.queue}/".startswith(f"{wanted.queue}/"))], cursor, limit)

    async def specification(self, id):
        return self._job(id).spec

    async def wait(self, id, seen, timeout_s):
        job = self._job(id)
        async with self.news:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait_for(
                    lambda: job.is_over or (seen is not None and job.version != seen)), timeout_s)
        return job.view()

    async def tasks(self, id, state, outcome, begun, cursor, limit):
        views = [task.view() for task in self._job(id).tasks]
        return _page([view for view in views if state in (None, view.state) and outcome in ("", view.outcome)
                      and (view.attempts or not begun)],
                     cursor, limit)

    async def task(self, id):
        return self._task(id).view()

    async def logs(self, id, stream, attempt, offset, limit, timeout_s, tail):
        task = self._task(id)
        attempt = attempt or task.attempts
        before = task.written[min(attempt, len(task.written)) - 1][stream] if task.written else b""
        offset = max(0, len(before) + offset) if offset < 0 else offset
        if tail:
            offset = len(before) - len(b"".join(before.splitlines(keepends=True)[-tail:]))

        def after():
            """What follows: of the attempt, else of the next."""
            if attempt < task.attempts and offset >= len(task.written[attempt - 1][stream]):
                return attempt + 1, 0, task.written[attempt][stream]
            return attempt, offset, task.written[attempt - 1][stream][offset:] if 0 < attempt <= task.attempts else b""

        async with self.news:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait_for(lambda: after()[2] or task.state == TASK_ENDED), timeout_s)
        attempt, offset, left = after()
        data = left[:limit]
        return LogChunk(data=data, attempt=attempt, offset=offset, next=offset + len(data),
                        is_end=task.state == TASK_ENDED and attempt >= task.attempts and data == left)

    async def cancel(self, id):
        job = self._job(id)
        for task in [self._task(id)] if "." in id else job.tasks:
            if task.state != TASK_ENDED:
                if task.state == TASK_RUNNING:
                    self._give(task)
                self._over(task, models.CANCELLED, "cancelled by its user")
                job.tell(task.id, "cancelled", "by its user", task)
        await self._tell_all()
        return job.view()

    def _vacate(self, task, by, why):
        self._give(task)
        task.state, task.preempted, task.preempted_by, task.preempted_why = TASK_WAITING, task.preempted + 1, by, why
        task.job.tell(task.id, "preempted", why, task)

    async def preempt(self, id):
        task = self._task(id)
        if task.state != TASK_RUNNING:
            raise RefusedError(f"task {id} does not run: it is {task.state}")
        self._vacate(task, "operator", "it was asked for")
        view = task.view()
        await self._tell_all()
        return view

    async def explain(self, id):
        task = self._task(id)
        large = lacking(task.stage) if task.state == TASK_WAITING else []
        words = f"it waits: no machine is large enough: {large[0]}" if large else f"the task is {task.state}"
        return Explanation(
            task=id, state=task.state, words=task.reason or words,
            shortages=tuple(self._shortages(task)), preempted_by=task.preempted_by, preempted_why=task.preempted_why)

    def _shortages(self, task):
        if task.state == TASK_BLOCKED:
            for name in task.stage.depends_on:
                yield Shortage(test=models.TEST_STAGE, what=name, words=f"stage {name} has not finished")
        if task.state == TASK_WAITING:
            found = [(cluster, miss) for name, cluster in MACHINES for miss in self._misses(name, task.stage)]
            for cluster, (test, what) in dict.fromkeys(found):
                of = sum(each == cluster for _, each in MACHINES)
                count = found.count((cluster, (test, what)))
                yield Shortage(test=test, what=what, cluster=cluster, machines=count, of=of,
                               words=f"{count} of {of} machines of {cluster}: {test} {what}".rstrip())

    async def history(self, id, cursor, limit):
        job = self._job(id)
        if "." in id:
            self._task(id)
        return _page([event for event in job.events if "." not in id or event.id == id], cursor, limit)

    async def queues(self, cursor, limit):
        return _page([self._queue(path) for path in self.weights], cursor, limit)

    def _queue(self, path):
        tasks = [task for job in self.jobs_by_id.values() for task in job.tasks
                 if not path or f"{job.spec.queue}/".startswith(f"{path}/")]
        running = [task for task in tasks if task.state == TASK_RUNNING]
        used = {name: sum(_asked(task.stage).get(name, 0) for task in running) for name in CAPACITY}
        share = max(used[name] / (amount * len(MACHINES)) for name, amount in CAPACITY.items())
        return QueueView(path=path, weight=self.weights[path], guarantee=1.0 if not path else 0.25, owner=self.name,
                         dominant_share=share, used=used, running=len(running), jobs=len({task.job for task in tasks}),
                         waiting=sum(task.state == TASK_WAITING for task in tasks))

    async def machines(self, cluster, cursor, limit):
        return _page([self._machine(name) for name, its in MACHINES
                      if cluster in ("", its) and name not in self.removed], cursor, limit)

    def _machine(self, name):
        cluster = dict(MACHINES).get(name)
        if cluster is None or name in self.removed:
            raise NotFoundError(f"there is no machine {name}")
        running = [task for job in self.jobs_by_id.values() for task in job.tasks
                   if task.machine == name and task.state == TASK_RUNNING]
        return MachineView(name=name, cluster=cluster, state="lost" if name in self.lost else "ready",
                           cordoned=name in self.cordoned, draining=name in self.draining, capacity=CAPACITY,
                           used=self.used[name], attributes=self.attributes[name], tasks=len(running))

    async def machine(self, name):
        return self._machine(name)

    async def cordon(self, name, on):
        self._machine(name)
        (self.cordoned.add if on else self.cordoned.discard)(name)
        if not on:
            self.draining.discard(name)
        await self._tell_all()
        return self._machine(name)

    async def drain(self, name):
        self._machine(name)
        self.cordoned.add(name)
        self.draining.add(name)
        for job in self.jobs_by_id.values():
            for task in job.tasks:
                if task.machine == name and task.state == TASK_RUNNING:
                    self._vacate(task, "operator", f"machine {name} is drained")
        await self._tell_all()
        return self._machine(name)

    async def remove(self, name):
        view = self._machine(name)
        if name not in self.lost:
            raise RefusedError(f"machine {name} is not lost")
        self.removed.add(name)
        await self._tell_all()
        return msgspec.structs.replace(view, state="absent", reason="removed")

    def _planned(self, config):
        try:
            asked = msgspec.convert(tomllib.loads(config.decode()).get("queues", {}), dict[str, float])
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise InvalidError(f"configuration: {error}", field="body") from None
        wanted = {"": 1.0, **asked}
        changes = [Change(kind="add", what=f"queue {path}", after=f"{weight:g}")
                   for path, weight in wanted.items() if path not in self.weights]
        changes += [Change(kind="change", what=f"queue {path}: weight", before=f"{self.weights[path]:g}",
                           after=f"{weight:g}")
                    for path, weight in wanted.items() if self.weights.get(path, weight) != weight]
        changes += [Change(kind="remove", what=f"queue {path}", before=f"{self.weights[path]:g}")
                    for path in self.weights if path not in wanted]
        return wanted, tuple(changes)

    async def plan(self, config):
        return Plan(version=self.version, changes=self._planned(config)[1])

    async def apply(self, config, version):
        wanted, changes = self._planned(config)
        if version != self.version:
            raise RefusedError(f"version: configuration {self.version} is in force by now, not {version}",
                               field="version")
        self.weights, self.version = wanted, self.version + 1
        return Plan(version=self.version, changes=changes, applied=True)

    async def masters(self):
        names = {self.name: "", **self.addresses}
        return tuple(MasterView(name=name, role="global", state="ready", address=address)
                     for name, address in sorted(names.items()))

    async def federation(self):
        return FederationView(name="fake", version=self.version, master=self.name, masters=await self.masters(),
                              clusters=("east", "west"), machines=len(MACHINES), free=tuple(self._free()))

    def _free(self):
        machines = [self._machine(name) for name, _ in MACHINES if name not in self.removed]
        left = Counter(tuple((name, amount - machine.used.get(name, 0)) for name, amount in machine.capacity.items())
                       for machine in machines if machine.state == "ready" and not machine.cordoned)
        return [Free(amounts=dict(each), machines=count) for each, count in left.items()]

    async def metrics(self):
        return f"# TYPE subak_ready gauge\nsubak_ready {float(not self.is_full)}\n# EOF\n".encode()

    async def health(self):
        return Health(state="refusing", words="the disk is full") if self.is_full else Health(state="ready")


def _asked(stage):
    return stage.resources | {TASKS: 1}


def _page(items, cursor, limit):
    if cursor and not (cursor.isdecimal() and cursor.isascii() and int(cursor) <= len(items)):
        raise InvalidError("cursor: must be what the last page said", field="cursor")
    first = int(cursor or 0)
    return Page(items=tuple(items[first:first + limit]),
                cursor=str(first + limit) if first + limit < len(items) else "")
