"""The service of a global master: implements `api.service.Service` over its role.

What changes anything goes into the role, and is answered when it is on disk. What is only read is read from the tables
of the role, or, of jobs that have ended, from the store.
"""
import asyncio
import math
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from msgspec import json, msgpack, structs

from subak.errors import InputError, StoreUnfitError
from subak.federation.megha.topology import speaker
from subak.federation.messages import LOCAL_MASTER, NOBODY
from subak.live.api.errors import (
    InvalidError,
    NotFoundError,
    NotOwnerError,
    RefusedError,
    ServiceError,
    UnavailableError,
)
from subak.live.api.gate import Gate
from subak.live.api.models import (
    STANDS,
    TASK_ENDED,
    TASK_RUNNING,
    Event,
    Explanation,
    FederationView,
    Health,
    JobView,
    LogChunk,
    MachineView,
    MadeToken,
    MasterView,
    NewPerson,
    Outcome,
    Page,
    Plan,
    QueueView,
    Stream,
    TaskState,
    TaskView,
    TokenView,
)
from subak.live.api.people import made, revoked, tokens_of
from subak.live.api.service import JobFilter, OfJob
from subak.live.config import FederationFile
from subak.live.jobfile.spec import JobSpec
from subak.live.role.base import Role
from subak.live.role.facts import MACHINE, Fact, MachineFact, read_machine
from subak.live.role.frames import LOGS, TAIL, Answer, Ask
from subak.live.role.global_master.book import head_of
from subak.live.role.global_master.global_role import Answered, Changed, Ended, GlobalRole, NoNumbersError
from subak.live.role.global_master.rows import read_ended
from subak.live.role.layout import cluster_of_local, number_of_job
from subak.live.role.removal import REMOVE, settle_removal
from subak.live.role.waits import Waits
from subak.live.service.changing import heard_by_both, refusals, removed_view
from subak.live.service.explaining import explanation_of
from subak.live.service.listing import chosen, numbers_below
from subak.live.service.metrics import text_of
from subak.live.service.planning import new_queues, plan_of
from subak.live.service.resources import free_of, machine_view, queue_views, running_on, total_of
from subak.live.service.seeing import seen_by
from subak.live.service.views import PART, STATES, Known, Tally, ended_job, event_view, open_job, task_view
from subak.live.service.waiting import Waiting, never_fit
from subak.live.store.checking import StoreError
from subak.live.store.sqlite import SqliteStore

ASK_S = 10.0  # that a machine has to answer
SUBMIT_S = 30.0  # that the disk has to take a job
NUMBER_S, NUMBER_POLL_S = 2.0, 0.01  # that a job waits for a number, and looks again
SERIAL = re.compile("[0-9]{1,18}")  # of a job, behind the name of its master
POLL_S = 0.1  # between two looks at what an attempt has written
ENDED_KEPT = 256  # jobs that have ended, as they were read last
ENDED_TASKS_KEPT = 1_000_000  # that they have together at most, but for the last


class Driver(Protocol):
    """Who calls the role."""

    role: Role
    problem: str  # why the disk takes nothing, or nothing
    when_written: list["asyncio.Future[None]"]  # who waits until what the role was told is on disk
    wake: asyncio.Event  # set: the role is called soon

    commits: Waits  # how long the disk took

    def held_s(self) -> float:
        """Return the longest that the event loop was held lately, in seconds."""


class GlobalMasterService:
    """See the head of the file."""

    def __init__(self, driver: Driver, store: SqliteStore, file: FederationFile, scheme: str = "http") -> None:
        """*scheme*: by which all global masters of the federation are asked."""
        self.driver, self.store, self.file, self.scheme = driver, store, file, scheme
        role = driver.role
        assert isinstance(role, GlobalRole)
        self.role, self.people = role, role.people
        self.gate = Gate(file.limits, {queue.name: queue.limits for queue in file.queue if queue.limits is not None})
        self.read: dict[int, tuple[Fact, MachineFact]] = {}  # machines, each as its fact said last
        self.answers: dict[int, asyncio.Future[Answer]] = {}
        self.asked = 0
        self.changes: dict[int, asyncio.Event] = {}  # by job that is open: set, and made anew, with every change
        self.ends: dict[int, asyncio.Event] = {}  # by job that is open: set when it has ended
        self.ended: dict[int, Known] = {}
        self.tasks_kept = 0  # of those
        self.ended_at: Mapping[int, tuple[float, int]] = {}  # by job, as far as is known without a look at the disk

    # -- what the role does --------------------------------------------------------------------------------------------

    def on_effect(self, effect: object) -> None:
        """Take in what a role has done."""
        if isinstance(effect, Changed):
            for number in effect.jobs:
                if number in self.changes:
                    self.changes.pop(number).set()
                job = self.role.book.of_number.get(number)
                if job is not None and job.has_ended and number in self.ends:
                    self.ends.pop(number).set()
        elif isinstance(effect, Ended):
            job = effect.job
            if job.number in self.ends:
                name = self.role.job_name(job.number)
                self._keep(job.number, ended_job(name, job.stored, job.spec, effect.rows, job.history.events))
                self.ends.pop(job.number).set()
        elif isinstance(effect, Answered):
            future = self.answers.pop(effect.answer.number, None)
            if future is not None and not future.done():
                future.set_result(effect.answer)

    async def _durable(self) -> None:
        """Wait until what was just told to the role is on disk."""
        done = asyncio.get_running_loop().create_future()
        self.driver.when_written.append(done)
        self.driver.wake.set()
        try:
            async with asyncio.timeout(SUBMIT_S):  # `wait_for` resumes a turn of the event loop later
                await done
        except (TimeoutError, StoreError) as error:
            raise UnavailableError(f"the disk does not take it: {self.driver.problem or error}; ask again, under the "
                                   "same key", retry_after_s=5) from None

    def forget(self, numbers: Sequence[int]) -> None:
        """Forget jobs that have ended."""
        for number in numbers:
            self._let_go(number)
        self.role.forget_ended(numbers)
        self.driver.wake.set()

    # -- finding -------------------------------------------------------------------------------------------------------

    def _number(self, id_: str) -> tuple[int, int]:
        """Return the number of a job, and the index of a task, NOBODY for the job itself."""
        job, _, index = id_.partition(".")
        name, _, serial = job.rpartition("-")
        masters = {master.name: number for number, master in self.file.masters().items()}
        if name not in masters:
            raise NotFoundError(f"there is no job {job}: this federation has no global master {name}")
        if name != self.role.name:
            self._not_owner(masters[name], f"job {job}")
        return number_of_job(self.role.number, int(serial)), int(index) if index else NOBODY

    def _not_owner(self, owner: int, what: str) -> None:
        master = self.file.masters()[owner]
        raise NotOwnerError(f"{what} is kept by {master.name}", owner=f"{self.scheme}://{master.http}")

    async def _known(self, id_: str) -> tuple[Known, int]:
        """Return a job, and the index of a task. Raises NotFoundError."""
        number, index = self._number(id_)
        name = id_.partition(".")[0]
        job = self.role.book.of_number.get(number)
        if job is not None:
            known = open_job(name, job, self.role.book, self.role.master)
        elif number in self.ended:
            known = self.ended[number]
        else:
            found = await asyncio.to_thread(self._on_disk, [number])
            if not found and number in self.role.ended:  # it ended just now, and is on its way to the disk
                await self._durable()
                found = await asyncio.to_thread(self._on_disk, [number])
            if not found:
                raise NotFoundError(f"there is no job {name}, or it ended so long ago that it was forgotten")
            known = self._keep(number, found[number])
        if index >= known.tasks:
            raise NotFoundError(f"job {name} has {known.tasks:,} tasks, from 0 on: there is no task {index}")
        return known if index == NOBODY else known.at(index), index

    def _on_disk(self, numbers: Sequence[int]) -> dict[int, Known]:
        """Return those jobs that have ended and are on disk. Called in another thread."""
        try:
            bodies = self.store.bodies("ended", numbers)
        except StoreUnfitError as error:
            raise ServiceError(str(error)) from None
        return {int(number): ended_job(self.role.job_name(int(number)), *read_ended(body))
                for number, body in bodies.items()}

    def _keep(self, number: int, known: Known) -> Known:
        """Keep a job that has ended for those who ask next."""
        self._let_go(number)
        self.ended[number] = known
        self.tasks_kept += known.tasks
        while len(self.ended) > 1 and (len(self.ended) > ENDED_KEPT or self.tasks_kept > ENDED_TASKS_KEPT):
            self._let_go(next(iter(self.ended)))
        return known

    def _let_go(self, number: int) -> None:
        """Keep a job no more, if it is kept."""
        known = self.ended.pop(number, None)
        self.tasks_kept -= known.tasks if known is not None else 0

    def _is_as_it_was(self, known: Known) -> bool:
        """Whether a job is still what was found: one that was open has not been closed, nor its places given away."""
        return known.job is None or self.role.book.of_number.get(known.job.number) is known.job

    def _machines(self) -> dict[int, MachineFact]:
        """Return all machines; a fact is decoded when it is looked at first, for there may be very many."""
        found = {}
        for number, fact in self.role.facts.of_kind(MACHINE).items():
            known = self.read.get(number)
            if known is None or known[0] is not fact:
                known = self.read[number] = fact, read_machine(fact.body)
            found[number] = known[1]
        return found

    def _names(self) -> dict[int, str]:
        return {number: machine.name for number, machine in self._machines().items()}

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def queue_of(self, path: str) -> str:
        """See `Service`."""
        return self.role.queues.of_job(path)

    async def belongs(self, id: str) -> OfJob:
        """See `Service`."""
        number, _ = self._number(id)
        job, head = self.role.book.of_number.get(number), self.role.heads.get(number)
        if job is not None:
            return OfJob(job.spec.queue, job.stored.submitter)
        if head is not None:
            return OfJob(head.queue, head.submitter)
        known, _ = await self._known(id)
        return OfJob(known.spec.queue, known.stored.submitter)

    async def submit(self, spec: JobSpec, client_id: str, is_strict: bool, user: str = "") -> JobView:
        """See `Service`."""
        if self.driver.problem:
            raise UnavailableError(f"no jobs are taken now: {self.driver.problem}", retry_after_s=5)
        spec = structs.replace(spec, queue=self.role.queues.of_job(spec.queue))
        before = self.role.kept.get(client_id)
        warnings: tuple[str, ...] = ()
        if before is None:
            self._owns(spec.queue)
            warnings = never_fit(self.role, spec)
            if is_strict and warnings:
                raise InvalidError("; ".join(warnings), field="resources")
        try:
            number = await self._numbered(spec, client_id, user)
        except InputError as error:
            raise InvalidError(str(error)) from None
        name = self.role.job_name(number)
        if before is not None:
            known, _ = await self._known(name)
            if known.stored.spec != json.encode(spec):
                raise RefusedError(f"the key {client_id} was used for job {name}, which is another one")
            if known.stored.submitter != user:
                raise RefusedError(f"the key {client_id} was used for job {name}, which another person submitted")
        await self._durable()
        view = await self.job(name)
        return structs.replace(view, warnings=warnings) if warnings else view

    async def _numbered(self, spec: JobSpec, client_id: str, user: str) -> int:
        """Let the role take a job, as soon as it may give a number."""
        until = time.monotonic() + NUMBER_S
        while True:
            if client_id not in self.role.kept:
                self.gate.check_use(user, spec.queue, spec.task_count, self.role.book.use)
            try:
                return self.role.submit(spec, client_id, time.time(), user)
            except NoNumbersError as error:
                if self.role.claims.problem or time.monotonic() >= until:
                    raise UnavailableError(f"no jobs are taken now: {error}") from None
            await asyncio.sleep(NUMBER_POLL_S)

    def _owns(self, path: str) -> None:
        """Raise NotOwnerError for a queue of another master: that one knows the keys of its jobs."""
        try:
            queue = self.role.queues.number(path)
        except InputError as error:
            raise InvalidError(str(error), field="queue") from None
        owner = self.role.queues.queues[queue].owner
        if owner != self.role.number:
            self._not_owner(owner, f"queue {path}")

    async def job(self, id: str) -> JobView:
        """See `Service`."""
        return await self._viewed(id, Waiting(self.role, self.file))

    async def specification(self, id: str) -> JobSpec:
        """See `Service`."""
        known, _ = await self._known(id)
        return known.spec

    async def _viewed(self, id: str, waiting: Waiting) -> JobView:
        """Return a job, with why it waits."""
        while True:
            known, _ = await self._known(id)
            tally = Tally(known)
            for part in known.parts():
                tally.add(part)
                if known.tasks > PART:
                    await asyncio.sleep(0)
            if self._is_as_it_was(known):
                view = tally.view()
                return view if view.state == "ended" else structs.replace(view, reason=waiting.reason(
                    known, [stage.counts.waiting for stage in view.stages], view.counts.backoff > 0))

    async def jobs(self, wanted: JobFilter, cursor: str, limit: int) -> Page[JobView]:
        """See `Service`."""
        below = int(cursor) if cursor.isdecimal() else 1 << 62
        items: list[JobView] = []
        waiting = Waiting(self.role, self.file)
        numbers = self._numbers_of(wanted.ids, below) if wanted.ids else numbers_below(self.role, below, wanted.state)
        async for part in chosen(numbers, lambda number: self._may_be(number, wanted)):
            await self._read_ahead(part[: limit - len(items) + 1])
            for number in part:
                try:
                    view = await self._viewed(self.role.job_name(number), waiting)
                except NotFoundError:
                    continue
                if _is_wanted(view.queue, view.name, view.user, wanted) and wanted.state in (None, view.state) and (
                        not wanted.ended_since or (view.ended is not None and view.ended >= wanted.ended_since)):
                    if len(items) == limit:
                        return Page(items=tuple(items), cursor=str(self._number(items[-1].id)[0]))
                    items.append(view)
        return Page(items=tuple(items))

    def _numbers_of(self, ids: Sequence[str], below: int) -> list[int]:
        """Return the numbers below another of those of the jobs that this master keeps, the latest first."""
        parts = (id.rpartition("-") for id in ids)
        numbers = {number_of_job(self.role.number, int(serial)) for name, _, serial in parts
                   if name == self.role.name and SERIAL.fullmatch(serial)}
        return sorted((number for number in numbers if number < below), reverse=True)

    def _may_be(self, number: int, wanted: JobFilter) -> bool:
        """Whether a job is of a name, a queue, a person and a state, as far as is known without its tasks."""
        job = self.role.book.of_number.get(number)
        if job is not None and wanted.state not in (None, self.role.book.state(job)):
            return False
        if self.ended_at.get(number, (math.inf, 0))[0] < wanted.ended_since:
            return False
        head = head_of(job) if job is not None else self.role.heads.get(number)
        return head is None or _is_wanted(head.queue, head.name, head.submitter, wanted)

    async def _read_ahead(self, numbers: Sequence[int]) -> None:
        """Read those jobs that have ended together."""
        missing = [number for number in numbers if number not in self.ended and number not in self.role.book.of_number]
        if len(missing) > 1:
            for number, known in (await asyncio.to_thread(self._on_disk, missing)).items():
                self._keep(number, known)

    async def wait(self, id: str, seen: int | None, timeout_s: float) -> JobView:
        """See `Service`."""
        number, _ = self._number(id)
        until, waited_for = time.monotonic() + timeout_s, self.ends if seen is None else self.changes
        while True:
            job, left = self.role.book.of_number.get(number), until - time.monotonic()
            if job is None or job.has_ended or (seen is not None and job.version != seen) or left <= 0:
                return await self.job(id)
            news = waited_for.setdefault(number, asyncio.Event())
            try:
                async with asyncio.timeout(left):
                    await news.wait()
            except TimeoutError:
                continue

    async def tasks(self, id: str, state: TaskState | None, outcome: Outcome, begun: bool, cursor: str, limit: int,
                    ) -> Page[TaskView]:
        """See `Service`."""
        known, _ = await self._known(id)
        first, names = int(cursor) if cursor.isdecimal() else 0, self._names()
        items: list[TaskView] = []
        for part in known.parts(first):
            here = np.ones(part.codes.size, bool) if state is None else part.codes == STATES.index(state)
            here &= part.ended_as(outcome) if outcome else True
            here &= part.rows["attempts"] > 0 if begun else True
            for index in (part.first + np.flatnonzero(here)).tolist():
                if len(items) == limit:
                    return Page(items=tuple(items), cursor=str(index))
                items.append(task_view(known, index, names))
            await asyncio.sleep(0)
            if not self._is_as_it_was(known):
                return await self.tasks(id, state, outcome, begun, cursor, limit)
        return Page(items=tuple(items))

    async def task(self, id: str) -> TaskView:
        """See `Service`."""
        known, index = await self._known(id)
        return task_view(known, index, self._names())

    async def cancel(self, id: str) -> JobView:
        """See `Service`."""
        number, index = self._number(id)
        await self._known(id)
        if number in self.role.book.of_number:
            self.role.cancel(number, None if index == NOBODY else index)
            await self._durable()
        return await self.job(id.partition(".")[0])

    async def preempt(self, id: str) -> TaskView:
        """See `Service`."""
        known, index = await self._known(id)
        if known.state(index) != TASK_RUNNING:
            raise RefusedError(f"task {id} {STANDS[known.state(index)]}: only one that is running can be preempted")
        row = known.row(index)
        await self._ask("preempt", int(row["machine"]), int(row["number"]))
        return await self.task(id)

    async def history(self, id: str, cursor: str, limit: int) -> Page[Event]:
        """See `Service`."""
        known, index = await self._known(id)
        first, names = int(cursor) if cursor.isdecimal() else 0, self._names()
        wanted = [number for number in range(first, len(known.events)) if index in (NOBODY, known.events[number].task)]
        items = tuple(event_view(known, number, names, self.role.queues) for number in wanted[:limit])
        return Page(items=items, cursor=str(wanted[limit]) if len(wanted) > limit else "")

    async def explain(self, id: str) -> Explanation:
        """See `Service`."""
        known, index = await self._known(id)
        return explanation_of(self.role, self.file, known, index, self._names())

    # -- output --------------------------------------------------------------------------------------------------------

    async def logs(
        self, id: str, stream: Stream, attempt: int, offset: int, limit: int, timeout_s: float, tail: int
    ) -> LogChunk:
        """See `Service`."""
        until = time.monotonic() + timeout_s
        while True:
            known, index = await self._known(id)
            last = int(known.row(index)["attempts"])
            attempt = attempt or last
            what, place = (TAIL, tail) if tail else (LOGS, offset)
            chunk, is_all = await self._read(known, index, attempt, f"{what} {stream}", place, limit)
            if is_all and not chunk.data and attempt < last:
                attempt, offset, tail = attempt + 1, 0, 0
                continue
            is_end = is_all and attempt >= last and known.state(index) == TASK_ENDED
            if chunk.data or is_end or time.monotonic() >= until:
                return structs.replace(chunk, is_end=is_end)
            await asyncio.sleep(POLL_S)

    async def _read(
        self, known: Known, index: int, attempt: int, words: str, place: int, limit: int
    ) -> tuple[LogChunk, bool]:
        """Return a part of what an attempt has written, and whether there will be no more behind it.

        Of an attempt before the last, what cannot be reached any more is no reason not to go on with the next.
        """
        last = int(known.row(index)["attempts"])
        begin = max(place, 0) if words.startswith(LOGS) else 0
        nothing = LogChunk(data=b"", attempt=attempt, offset=begin, next=begin, is_end=False)
        found = known.attempt_of(index, attempt) if 0 < attempt <= last else None
        if found is None:
            return nothing, attempt < last or known.state(index) == TASK_ENDED
        try:
            answer = await self._ask(words, found[0], int(known.row(index)["number"]), found[1], place, limit)
        except UnavailableError:
            if attempt < last:
                return nothing, True
            raise
        begin, data, is_all = msgpack.decode(answer.body, type=tuple[int, bytes, bool])
        return LogChunk(data=data, attempt=attempt, offset=begin, next=begin + len(data), is_end=False), is_all

    async def _ask(self, words: str, machine: int, task: int = 0, attempt: int = 0, offset: int = 0, size: int = 0,
                   ) -> Answer:
        """Ask the local master of a machine, or its worker."""
        self.asked += 1
        number = self.asked  # others ask while this waits
        future = self.answers[number] = asyncio.get_running_loop().create_future()
        if not self.role.ask(Ask(number, words, machine, task, attempt, offset, size)):
            del self.answers[number]
            raise UnavailableError("the local master of its cluster cannot be reached now")
        self.driver.wake.set()
        try:
            async with asyncio.timeout(ASK_S):
                answer = await future
        except TimeoutError:
            raise UnavailableError("its machine does not answer now") from None
        finally:
            self.answers.pop(number, None)
        if answer.problem:
            raise UnavailableError(answer.problem)
        return answer

    # -- the federation ------------------------------------------------------------------------------------------------

    async def queues(self, cursor: str, limit: int) -> Page[QueueView]:
        """See `Service`."""
        return _page(queue_views(self.role, self.file), lambda view: view.path, cursor, limit)

    async def machines(self, cluster: str, cursor: str, limit: int) -> Page[MachineView]:
        """See `Service`."""
        clusters = {number: each.name for number, each in self.file.clusters().items()}
        there = sorted((machine.name, number) for number, machine in self._machines().items()
                       if not machine.gone and cluster in ("", clusters.get(self.role.layout.cluster_of(number))))
        first = bisect_left(there, (cursor, -1))
        page, running, machines = there[first : first + limit], running_on(self.role), self._machines()
        behind = there[first + limit : first + limit + 1]
        return Page(items=tuple(machine_view(self.role, self.file, number, machines[number], running)
                                for _, number in page), cursor=behind[0][0] if behind else "")

    def _machine(self, name: str) -> tuple[int, MachineFact]:
        for number, machine in self._machines().items():
            if machine.name == name and not machine.gone:
                return number, machine
        raise NotFoundError(f"there is no machine {name}")

    async def machine(self, name: str) -> MachineView:
        """See `Service`."""
        return machine_view(self.role, self.file, *self._machine(name), running_on(self.role))

    async def cordon(self, name: str, on: bool) -> MachineView:
        """See `Service`."""
        await self._change("cordon" if on else "uncordon", name)
        return await self.machine(name)

    async def drain(self, name: str) -> MachineView:
        """See `Service`."""
        await self._change("drain", name)
        return await self.machine(name)

    async def remove(self, name: str) -> MachineView:
        """See `Service`."""
        before, (number, machine) = await self.machine(name), self._machine(name)
        version = self.role.facts.known[MACHINE, number].version
        with refusals():
            await self._ask(REMOVE + machine.identity, number, offset=version)
        settle_removal(self.role, number)
        self.driver.wake.set()
        return removed_view(self.role, self.file, number, before)

    async def _change(self, words: str, name: str) -> None:
        number, _ = self._machine(name)
        with heard_by_both(self.role, self.file, number, f"{words} of machine {name}"):
            await self._ask(words, number)

    async def plan(self, config: bytes) -> Plan:
        """See `Service`."""
        return plan_of(self.role, self.file, config)

    async def apply(self, config: bytes, version: int) -> Plan:
        """See `Service`."""
        if self.role.number != 0:
            self._not_owner(0, "the configuration")
        plan = plan_of(self.role, self.file, config)
        if version != plan.version:
            raise RefusedError(f"configuration {plan.version} is in force by now, not {version}: look at what would "
                               "change once more")
        self.role.apply(new_queues(self.role, self.file, config))
        await self._durable()
        return Plan(version=self.role.queues.version, changes=plan.changes, warnings=plan.warnings, applied=True)

    # -- people --------------------------------------------------------------------------------------------------------

    async def tokens(self, cursor: str, limit: int) -> Page[TokenView]:
        """See `Service`."""
        return tokens_of(self.people, cursor, limit)

    async def add_person(self, asked: NewPerson, by: str) -> MadeToken:
        """See `Service`."""
        token = made(self.people, asked, by, self.role.note_identity)
        await self._durable()
        return token

    async def revoke(self, name: str) -> Page[TokenView]:
        """See `Service`."""
        found = revoked(self.people, name, self.role.note_identity)
        await self._durable()
        if len(self.file.masters()) > 1 and not any(role == LOCAL_MASTER for role, _ in self.role.links):
            raise UnavailableError(f"tokens of {name} are revoked here; other global masters are told as soon as a "
                                   "local master can be reached")
        return found

    # -- masters -------------------------------------------------------------------------------------------------------

    async def masters(self) -> tuple[MasterView, ...]:
        """See `Service`."""
        role, views = self.role, []
        for number, master in self.file.masters().items():
            own = tuple(queue.path for queue in role.queues.queues if queue.owner == number and queue.path)
            views.append(MasterView(
                name=master.name, role="global", state="ready" if number == role.number else "unknown",
                address=f"{self.scheme}://{master.http}", queues=own,
                incarnation=int(role.master.counts.incarnation) if number == role.number else 0))
        for number, address in self.file.local_addresses().items():
            cluster = cluster_of_local(number)
            name = self.file.clusters()[cluster].name
            epoch = int(role.master.cluster[cluster]["epoch"])
            speaks = speaker(role.topology, cluster, epoch) == number
            there = (LOCAL_MASTER, number) in role.links
            views.append(MasterView(
                name=name if number == cluster else f"{name} standby",
                role="local" if speaks else "standby", state="ready" if there else "lost", address=address,
                cluster=name, epoch=epoch if speaks else 0,
                reason="" if there else "it cannot be reached from here"))
        return tuple(views)

    async def federation(self) -> FederationView:
        """See `Service`."""
        (capacity, used), (free, left_out) = total_of(self.role), free_of(self.role)
        return FederationView(
            name=self.file.name, version=self.role.queues.version, master=self.role.name,
            masters=await self.masters(), clusters=tuple(cluster.name for cluster in self.file.cluster),
            machines=sum(not machine.gone for machine in self._machines().values()), capacity=capacity, used=used,
            free=free, free_left_out=left_out)

    async def metrics(self) -> bytes:
        """See `Service`."""
        return await asyncio.to_thread(text_of, seen_by(self.role, self.file, await self.health(), self.driver.commits))

    async def health(self) -> Health:
        """See `Service`."""
        held_ms = round(1e3 * self.driver.held_s(), 1)
        if self.driver.problem:
            return Health(state="refusing", words=self.driver.problem, held_ms=held_ms)
        if not bool(self.role.master.cluster["known"].any()):
            return Health(state="starting", words="no local master has answered yet", held_ms=held_ms)
        return Health(state="ready", held_ms=held_ms)


def _is_wanted(queue: str, name: str, user: str, wanted: JobFilter) -> bool:
    """Whether a job of a queue, a name and a person is one of those."""
    return ((not wanted.queue or f"{queue}/".startswith(f"{wanted.queue}/"))
            and wanted.name in ("", name) and wanted.user in ("", user))


def _page(views: list[Any], key: Callable[[Any], str], cursor: str, limit: int) -> Page[Any]:
    """Return the part of a list that begins with the item whose key is the cursor."""
    keys = [key(view) for view in views]
    first = keys.index(cursor) if cursor in keys else 0
    rest = views[first:]
    return Page(items=tuple(rest[:limit]), cursor=key(rest[limit]) if len(rest) > limit else "")
