"""Jobs of any size: work for one is linear in its tasks, done in slices, and goes on after a restart."""
import asyncio
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from subak.federation.megha.jobs import OUTCOME_CANCELLED, SUBMISSION_ENDED
from subak.live.api.models import TASK_WAITING
from subak.live.api.service import JobFilter
from subak.live.jobfile.spec import JobSpec, Metadata, Stage
from subak.live.people.limits import PeopleLimits
from subak.live.process.held import SPAN_S, Held
from subak.live.role.base import SERVED_MAX, Put, PutLarge
from subak.live.role.frames import Answer
from subak.live.role.global_master.book import COMPRESSED_FROM, ON_DISK, Head
from subak.live.role.global_master.global_role import Answered, Ended
from subak.live.role.global_master.queues import QueueSetup
from subak.live.role.global_master.rows import read_ended
from subak.live.role.global_master.walks import STEP_ROWS, STEP_TASKS, Walks
from subak.live.role.layout import Layout, Rooms, Timing
from subak.live.service.listing import JOBS_AT_ONCE, READ_TOGETHER, numbers_below
from subak.live.service.service import GlobalMasterService
from subak.live.service.views import PART, Tally, ended_job, open_job, task_view
from subak.live.torture.case import Case
from subak.live.torture.world import World

ROOMS = Rooms(tasks=1 << 15, machines=64, shapes=8, configurations=8, queues=8)


def job_of(*tasks):
    """A job whose stages follow each other."""
    stages = tuple(Stage(f"s{number}", ("true",), tasks=count, resources={"cpu": 1},
                         depends_on=(f"s{number - 1}",) if number else ()) for number, count in enumerate(tasks))
    return JobSpec(Metadata("large"), "a", stages)


class Alone:
    """A global master with a local master, and no machine."""

    def __init__(self):
        case = Case(1, Layout(1, 1, ("cpu",), False, ROOMS), Timing(), (), (QueueSetup("a", 0),), "round-robin", (), (),
                    (), (), 0.0, 0.0, 0.0, 0.0)
        self.world, self.ended = World(case), []
        for process in (*self.world.masters, *self.world.locals):
            self.world.start(process)
        self.world.until(2.0)
        self.served, self.most, self.rows = 0, 0, 0
        self.watch()

    @property
    def role(self):
        return self.world.masters[0].role

    @property
    def disk(self):
        return self.world.masters[0].disk

    def watch(self):
        """Count what each call of the global master takes."""
        role = self.role
        plain = role.receive

        def receive(now, arrivals=()):
            before = role.handled
            ready = plain(now, arrivals)
            self.served += role.handled - before
            self.most = max(self.most, role.handled - before)
            self.rows += sum(len(each.keys) for each in ready.writes if isinstance(each, Put) and each.table == "task")
            self.ended += [effect for effect in ready.effects if isinstance(effect, Ended)]
            return ready
        role.receive = receive

    def submit(self, *tasks):
        job = self.role.submit(job_of(*tasks), "", 0.0)
        self.go_on()
        return job

    def go_on(self, seconds=0.0):
        """Call it now, and go on for a while."""
        self.world.call_soon(self.world.masters[0])
        self.world.until(self.world.now + seconds)


def cancelled(count):
    """Cancel *count* tasks; return how many messages that takes, rows written, and the most messages of a call."""
    alone = Alone()
    job = alone.submit(count)
    alone.go_on(5.0)
    alone.served = alone.rows = 0
    alone.role.cancel(job)
    alone.go_on(10.0)
    found = alone.role.book.of_number[job]
    assert found.has_ended and (alone.role.book.disk["outcome"][found.places] == OUTCOME_CANCELLED).all()
    return alone.served, alone.rows, alone.most


def test_a_cancel_is_linear_in_the_tasks():
    """It touched all tasks of the job for each that was given up: 10,000 took 33 s."""
    small, large = cancelled(1_000), cancelled(4_000)
    assert large[0] < 4 * small[0] * 1.1
    assert large[1] < 4 * small[1] * 1.1
    assert max(small[2], large[2]) <= SERVED_MAX + STEP_TASKS


def test_a_call_takes_some_tasks_of_a_job_and_small_jobs_do_not_wait():
    alone = Alone()
    role = alone.role
    large, small = (role.submit(job_of(tasks), "", 0.0) for tasks in (10_000, 3))
    arrived = [role.jobs.state[role.book.of_number[job].places] for job in (large, small)]
    alone.world.call(alone.world.masters[0])
    assert role.due() <= alone.world.now, "it is called again at once"
    alone.go_on(0.01)
    assert (arrived[1] > 0).all() and 0 < (arrived[0] > 0).sum() < 10_000
    alone.go_on(5.0)
    assert (arrived[0] > 0).all()


def test_a_cancel_goes_on_after_a_restart():
    """That it is wanted is on disk before the first of its tasks is cancelled."""
    alone = Alone()
    job = alone.submit(5 * STEP_TASKS, 10)
    alone.go_on(5.0)
    alone.role.cancel(job)
    alone.go_on(0.006)
    open_ = alone.role.book.of_number[job]
    assert 0 < open_.ended < open_.admitted.tasks
    alone.world.kill(alone.world.masters[0])
    alone.world.start(alone.world.masters[0])
    alone.watch()
    alone.go_on(10.0)
    assert [effect.job.number for effect in alone.ended] == [job]
    assert (alone.ended[0].rows["outcome"] == OUTCOME_CANCELLED).all()
    assert not any(alone.disk.get(table) for table in ("job", "task", "cancel"))
    _, spec, rows, _ = read_ended(alone.disk["ended"][job])
    assert spec == job_of(5 * STEP_TASKS, 10) and rows.size == 5 * STEP_TASKS + 10
    assert (rows["state"] == SUBMISSION_ENDED).all()
    assert alone.role.heads[job] == Head("a", "large")


def test_a_job_that_is_not_laid_out_yet_is_shown_as_it_is_and_not_as_a_former_one_at_its_places():
    alone = Alone()
    role = alone.role
    for table in (role.book.now, role.book.disk):
        table["state"], table["outcome"], table["attempts"], table["started"] = SUBMISSION_ENDED, 2, 3, 4.0
    job = role.book.of_number[role.submit(job_of(2 * STEP_ROWS, 7), "", 0.0)]
    assert job.laid == STEP_ROWS, "a submission takes as long for any job that is larger"
    role.cancel(job.number, 2 * STEP_ROWS + 3)
    view = shown(role, job)
    assert (view.state, view.counts.waiting) == ("waiting", 2 * STEP_ROWS + 7)
    alone.go_on(5.0)
    assert job.laid == job.admitted.tasks
    view = shown(role, job)
    assert (view.counts.waiting, view.counts.blocked, view.counts.cancelled) == (2 * STEP_ROWS, 6, 1)


def shown(role, job):
    """A job as people see it."""
    tally = Tally(open_job("g0-1", job, role.book, role.master))
    for part in tally.known.parts():
        tally.add(part)
    return tally.view()


def test_a_job_whose_tasks_have_not_all_arrived_is_shown_and_comes_back():
    alone = Alone()
    job = alone.submit(8 * STEP_TASKS)
    alone.go_on(0.005)
    role = alone.role
    assert 0 < role.tasks.counts.tasks_open < 8 * STEP_TASKS
    known = open_job("g0-1", role.book.of_number[job], role.book, role.master)
    tally = Tally(known)
    for part in known.parts():
        tally.add(part)
    assert tally.view().counts.waiting == 8 * STEP_TASKS and tally.view().state == "waiting"
    assert task_view(known, 8 * STEP_TASKS - 1, {}).state == TASK_WAITING
    alone.world.kill(alone.world.masters[0])
    alone.world.start(alone.world.masters[0])
    alone.go_on(5.0)
    assert alone.role.tasks.counts.tasks_open == 8 * STEP_TASKS


def test_the_last_rows_of_a_job_are_taken_some_at_a_time_also_after_a_restart(monkeypatch):
    """All of 1,000,000 in one call held the event loop for 170 ms."""
    alone, taken = Alone(), []
    count = 3 * STEP_ROWS - 7
    job = alone.submit(count)
    alone.go_on(5.0)
    before = alone.role.book.now["number"][alone.role.book.of_number[job].places].copy()
    alone.role.cancel(job)
    alone.go_on(5.0)
    for _ in range(2):  # there is no machine, so it has rows in lanes until it begins again
        alone.world.kill(alone.world.masters[0])
        alone.world.start(alone.world.masters[0])
        alone.watch()
        while not (found := alone.role.book.of_number[job]).kept:
            alone.go_on(0.0005)
            assert alone.world.now < 100.0
        assert STEP_ROWS <= found.kept < count and not alone.ended
    role = type(alone.role)
    plain = role.keep
    monkeypatch.setattr(role, "keep", lambda role, numbers: (taken.append(numbers.size), plain(role, numbers)))
    alone.world.kill(alone.world.masters[0])
    alone.world.start(alone.world.masters[0])
    alone.watch()
    alone.go_on(10.0)
    assert sum(taken) == count and max(taken) == STEP_ROWS
    (effect,) = alone.ended
    assert (effect.rows["number"] == before).all() and (effect.rows["outcome"] == OUTCOME_CANCELLED).all()
    assert not any(alone.disk.get(table) for table in ("job", "task", "cancel")) and not alone.role.walks


def test_many_rows_are_compressed_where_they_are_written():
    alone = Alone()
    job = alone.submit(COMPRESSED_FROM)
    alone.go_on(5.0)
    found = alone.role.book.of_number[job]
    assert alone.role.book.keep(found, COMPRESSED_FROM)
    rows, writes = alone.role.book.drop_of(found)
    (large,) = (each for each in writes if isinstance(each, PutLarge))
    body = large.body()
    assert len(body) < rows.nbytes / 10
    assert (read_ended(body)[2] == rows).all()


def test_walks_of_jobs_take_turns():
    walks, seen = Walks(), []
    for job in (1, 2):
        walks.add(job, np.arange(2 * STEP_TASKS) + 10_000 * job, seen.append)
        walks.add(job, np.array([job]), seen.append)
    walks.add(3, np.zeros(0, np.int64), seen.append)
    while walks:
        before = len(seen)
        walks.step()
        assert sum(part.size for part in seen[before:]) <= STEP_TASKS
    assert [int(part[0]) for part in seen] == [10_000, 20_000, 10_000 + STEP_TASKS, 20_000 + STEP_TASKS, 1, 2]
    walks.add(1, np.arange(5), seen.append)
    walks.forget(1)
    assert not walks


def test_parts_of_a_job_are_counted_as_the_whole():
    random = np.random.default_rng(1)
    rows = np.zeros(PART + 500, ON_DISK)
    rows["state"], rows["outcome"] = 5, random.integers(1, 6, rows.size)
    rows["attempts"], rows["started"], rows["ended"] = 1, random.random(rows.size) + 5, random.random(rows.size) + 9
    rows["outcome"][:7] = 1
    rows["outcome"][7] = 4
    spec = job_of(PART - 10, 510)
    tally = Tally(ended_job("g0-1", type("Stored", (), {"submitted": 0.0, "submitter": ""}), spec, rows, []))
    for part in tally.known.parts():
        tally.add(part)
    view = tally.view()
    words = ("finished", "failed", "cancelled", "timed_out", "lost")
    assert [getattr(view.counts, word) for word in words] == np.bincount(rows["outcome"])[1:].tolist()
    assert [getattr(view.stages[1].counts, word) for word in words] == np.bincount(
        rows["outcome"][PART - 10:])[1:].tolist()
    assert (view.state, view.outcome, view.started, view.ended) == (
        "ended", "timed out", rows["started"].min(), rows["ended"].max())


def test_how_long_the_event_loop_was_held():
    held = Held()
    held.until = SPAN_S
    held.note(1.0, 0.97)
    assert held.lately == pytest.approx(0.03)
    held.note(SPAN_S + 1.0, SPAN_S + 0.99)
    assert held.lately == pytest.approx(0.03), "the former span counts"
    held.note(2 * SPAN_S + 2.0, 2 * SPAN_S + 1.995)
    assert held.lately == pytest.approx(0.01)
    assert held.longest == pytest.approx(0.03)


async def listed(service, state):
    """List the jobs of a queue; return the names found, how many were looked at, and the most in one go."""
    looked, turns, plain = [], [0], service._may_be

    def may_be(number, wanted):
        looked.append(turns[0])
        return plain(number, wanted)

    async def others():
        while True:
            turns[0] += 1
            await asyncio.sleep(0)
    service._may_be = may_be
    task = asyncio.create_task(others())
    page = await service.jobs(JobFilter(queue="a", state=state), "", 10)
    task.cancel()
    service._may_be = plain
    return [view.id for view in page.items], len(looked), max(Counter(looked).values())


def test_a_list_looks_at_some_jobs_at_a_time_and_at_none_that_has_ended_for_one_that_runs():
    """All of 100,000 that have ended were sorted as a set and looked at in one go, 90 ms, whatever was asked for."""
    alone = Alone()
    job = alone.submit(3)
    ended = range(job + 1, job + 1 + 4 * JOBS_AT_ONCE)
    alone.role.ended.extend(ended)
    alone.role.heads.update(dict.fromkeys(ended, Head("b", "other")))
    name = alone.role.job_name(job)
    file = SimpleNamespace(limits=PeopleLimits(), queue=(), masters=lambda: {0: SimpleNamespace(name=alone.role.name)})
    service = GlobalMasterService(SimpleNamespace(role=alone.role), None, file)
    found, looked, most = asyncio.run(listed(service, None))
    assert (found, looked) == ([name], len(ended) + 1) and most <= JOBS_AT_ONCE
    assert asyncio.run(listed(service, "waiting")) == ([name], 1, 1)


def test_a_list_of_one_state_views_only_jobs_of_it_and_others_are_served_in_between():
    """Of 100,000 waiting jobs all were viewed to find those that run, 650 ms without a pause."""
    alone = Alone()
    numbers = []
    for _ in range(3):
        numbers += [alone.submit(2) for _ in range(READ_TOGETHER)]
        alone.go_on(1.0)
    alone.go_on(1.0)
    book = alone.role.book
    for number in numbers[5:50:15]:  # no machine is there: some tasks are taken to have begun
        book.now[["attempts", "started"]][book.of_number[number].places.start] = (1, 0.5)
    file = SimpleNamespace(limits=PeopleLimits(), queue=(), masters=lambda: {0: SimpleNamespace(name=alone.role.name)})
    service = GlobalMasterService(SimpleNamespace(role=alone.role), None, file)
    viewed, turns, plain = [], [0], service._viewed

    async def view(id, waiting):
        viewed.append(turns[0])
        return await plain(id, waiting)

    async def others():
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    async def pages(state):
        viewed.clear()
        task = asyncio.create_task(others())
        found = (await service.jobs(JobFilter(state=state), "", 1000)).items
        task.cancel()
        return [job.id for job in found]

    service._viewed = view
    every = asyncio.run(pages(None))
    assert len(every) == len(viewed) == len(numbers)
    assert max(Counter(viewed).values()) <= READ_TOGETHER
    of_state = {state: asyncio.run(pages(state)) for state in ("waiting", "running", "ended")}
    assert sorted(id for found in of_state.values() for id in found) == sorted(every)
    assert of_state["running"] == [alone.role.job_name(number) for number in numbers[5:50:15]][::-1]
    assert of_state["running"] == asyncio.run(pages("running"))
    assert len(viewed) == len(of_state["running"]), "no other was viewed"
    tasks = asyncio.run(service.tasks(of_state["running"][0], None, "", True, "", 10)).items
    assert [task.index for task in tasks] == [0], "the other has not begun"
    assert not asyncio.run(service.tasks(of_state["running"][0], None, "failed", False, "", 10)).items


def test_a_list_goes_on_below_its_cursor_in_the_order_of_numbers():
    alone = Alone()
    alone.role.ended.extend((7, 5, 9))
    alone.role.book.of_number[8] = None
    assert numbers_below(alone.role, 9, None) == [8, 7, 5]
    assert numbers_below(alone.role, 10, "ended") == [9, 8, 7, 5], "one that is open may have ended by its tasks"
    assert numbers_below(alone.role, 10, "running") == [8]


def test_a_task_is_shown_as_it_stood_when_its_place_is_another_jobs_by_now():
    alone = Alone()
    job = alone.submit(3)
    alone.go_on(1.0)
    role = alone.role
    known = open_job("g0-1", role.book.of_number[job], role.book, role.master).at(1)
    before = known.row(1).copy()
    role.book.now[role.book.of_number[job].places] = np.zeros(1, ON_DISK)
    assert known.row(1) == before != role.book.now[1]
    assert known.state(1) == TASK_WAITING


def service_of(known):
    """A service that finds these jobs, one after the other."""
    found = iter(known)
    service = GlobalMasterService.__new__(GlobalMasterService)
    service.role = SimpleNamespace(book=SimpleNamespace(of_number={}), forget_ended=lambda numbers: None)
    service.driver = SimpleNamespace(wake=asyncio.Event())
    service.ended, service.tasks_kept, service._names = {}, 0, dict

    async def find(id_):
        return next(found), -1
    service._known = find
    return service


def test_a_page_of_tasks_begins_anew_when_the_job_ended_meanwhile():
    """The places of one that was closed may be another's by the second part."""
    rows = np.zeros(PART + 5, ON_DISK)
    rows["state"], rows["outcome"] = SUBMISSION_ENDED, OUTCOME_CANCELLED
    stored = type("Stored", (), {"submitted": 0.0, "submitter": ""})
    ended = ended_job("g0-1", stored, job_of(rows.size), rows, [])
    closed = replace(ended, job=SimpleNamespace(number=1), look=lambda first, end: ended.look(0, end - first))
    page = asyncio.run(service_of([closed, ended]).tasks("g0-1", None, "", False, str(PART - 2), 10))
    assert [task.index for task in page.items] == list(range(PART - 2, PART + 5)) and not page.cursor
    page = asyncio.run(service_of([ended]).tasks("g0-1", None, "", False, "3", 2))
    assert [task.index for task in page.items] == [3, 4] and page.cursor == "5"


def test_tasks_of_jobs_that_are_kept_are_counted_once():
    service = service_of([])
    for number, tasks in ((1, 5), (2, 7), (1, 5)):
        service._keep(number, SimpleNamespace(tasks=tasks))
    assert service.tasks_kept == 12
    service.forget([1, 3])
    assert service.tasks_kept == 7 and list(service.ended) == [2]


def test_a_question_that_is_answered_takes_no_other_one_along():
    """Whoever followed both streams of a task waited ten seconds when one was answered before the other."""
    alone = Alone()
    file = SimpleNamespace(limits=PeopleLimits(), queue=(), masters=lambda: {0: SimpleNamespace(name=alone.role.name)})
    service = GlobalMasterService(SimpleNamespace(role=alone.role, wake=asyncio.Event()), None, file)
    asked = []
    service.role = SimpleNamespace(ask=lambda ask: asked.append(ask) or True)

    async def both():
        one, other = (asyncio.ensure_future(service._ask(f"logs {stream}", 0)) for stream in ("stdout", "stderr"))
        for place in (0, 1):
            while len(asked) < 2:
                await asyncio.sleep(0)
            service.on_effect(Answered(Answer(asked[place].number, b"%d" % place)))
            await asyncio.wait_for((one, other)[place], 5.0)
        return one.result().body, other.result().body

    assert asyncio.run(both()) == (b"0", b"1")
    assert service.answers == {}
