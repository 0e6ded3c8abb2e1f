"""Parts of Hawk and Eagle that look at less than all there is, against twins that look at everything."""
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from subak.federation.batches.membership import Membership
from subak.federation.batches.reservations import append, build_reservations, new_row, rejoin, skip_tasks, unlink
from subak.federation.messages import ENQUEUE, NOBODY, build_outbox, post
from subak.federation.sampling import central_scheduler, eagle, hawk
from subak.federation.sampling.central_scheduler import (
    OVER,
    SENT,
    Central,
    list_candidates,
    on_long_begun,
    sink,
    take_off,
    waiting_time,
)
from subak.federation.sampling.eagle import Sharing, has_room, shortest

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))
TASK = 7  # any
WORKER = 0


# -- who waits least ---------------------------------------------------------------------------------------------------


@st.composite
def centrals(draw):
    """Workers of which some run long tasks, many of them alike; a few could hold nothing."""
    workers = draw(st.integers(1, 12))

    def column(values):
        return np.array(draw(st.lists(st.sampled_from(values), min_size=workers, max_size=workers)), np.float64)

    running = column([0.0, 0.0, 1.0])
    central = Central(
        number=3, long_tasks=column([0, 1, 2]).astype(np.int32), work=column([0.0, 5.0, 5.0, 90.0]), running=running,
        running_work=column([0.0, 5.0]), running_since=running * column([1.0, 4.0]), share=np.zeros(1),
        begun=np.full(1, SENT), sent_to=np.zeros(1, np.int32), waiting=np.zeros(workers),
        worker=np.zeros(workers, np.int32))
    able = column([1, 1, 1, 0]) > 0
    return central, able, draw(st.integers(0, workers - 1))


def membership(able, general):
    packed = np.packbits(np.pad(able, (0, -len(able) % 64)), bitorder="little").view("<u8")[None, :]
    return Membership(packed, np.array([able.sum()]), np.array([able[general:].sum()]), general, len(able),
                      np.zeros(1, np.uint64), np.zeros(len(able), np.int32), np.zeros(len(able), np.int64),
                      np.zeros(1, np.int64))


@quick
@given(case=centrals(), tasks=st.integers(1, 15), estimate=st.sampled_from([0.0, 3.0]), now=st.sampled_from([4.0, 8.0]))
def test_as_many_workers_as_there_are_tasks_suffice(case, tasks, estimate, now):
    central, able, general = case
    first = general if able[general:].any() else 0
    waiting = {worker: waiting_time(central, worker, now) for worker in range(first, len(able)) if able[worker]}
    long_tasks = central.long_tasks.tolist()
    expected = []
    for _ in range(tasks if waiting else 0):  # whoever waits least of all of them
        expected.append(min(waiting, key=lambda worker: (waiting[worker], long_tasks[worker], worker)))
        waiting[expected[-1]] += estimate
        long_tasks[expected[-1]] += 1
    size = list_candidates(central, membership(able, general), 0, now, tasks)
    assert size == min(tasks, len(waiting))
    found = []
    for _ in expected:
        found.append(int(central.worker[0]))
        central.waiting[found[-1]] += estimate
        central.long_tasks[found[-1]] += 1
        sink(central, 0, size, True)
    assert found == expected


def busy(work):
    """Return a central scheduler that has sent each worker a long task of so many seconds, of which none has begun."""
    nothing = np.zeros(len(work))
    return Central(3, np.ones(len(work), np.int32), np.array(work, np.float64), nothing.copy(), nothing.copy(),
                   nothing.copy(), np.ones(2), np.full(2, SENT), np.zeros(2, np.int32), nothing.copy(),
                   np.zeros(len(work), np.int32))


@pytest.mark.parametrize("seed", range(20))
def test_those_that_wait_least_of_many_are_candidates(seed):
    work = np.random.default_rng(seed).permutation(40) + 1.0
    central = busy(work)
    size = list_candidates(central, membership(np.ones(40, np.bool_), 0), 0, 0.0, 6)
    assert sorted(work[central.worker[:size]]) == [1, 2, 3, 4, 5, 6]
    assert work[central.worker[0]] == 1


def test_the_account_of_a_worker_is_of_its_long_tasks_as_they_come_begin_and_end():
    """Two tasks of 10 s, each of half of the worker: one begins at 2 s, the other at 6 s; then the first ends."""
    central = busy([10.0])
    central.long_tasks[0], central.share[:] = 2, 0.5
    batches = SimpleNamespace(estimate=np.array([10.0]))
    begun = {"task": 0, "sender": 0, "batch": 0}
    assert waiting_time(central, 0, 0.0) == waiting_time(central, 0, 99.0) == 10.0
    on_long_begun(central, batches, begun, 2.0)
    assert [waiting_time(central, 0, now) for now in (0.0, 2.0, 4.0, 12.0, 99.0)] == [10.0, 10.0, 9.0, 5.0, 5.0]
    on_long_begun(central, batches, begun, 3.0)  # said again: nothing new
    on_long_begun(central, batches, begun | {"task": 1, "sender": 5}, 3.0)  # it was not sent there
    on_long_begun(central, batches, begun | {"task": 1}, 6.0)
    assert [waiting_time(central, 0, now) for now in (6.0, 8.0, 99.0)] == [8.0, 6.0, 0.0]
    take_off(central, batches, 0, 0)
    assert [waiting_time(central, 0, now) for now in (6.0, 8.0, 99.0)] == [5.0, 4.0, 0.0]
    assert central.begun[0] == OVER
    take_off(central, batches, 1, 0)
    assert (central.work[0], central.running[0], central.running_work[0], central.running_since[0]) == (0, 0, 0, 0)


def test_a_task_that_came_back_before_it_began_was_not_running():
    central = busy([20.0])
    central.long_tasks[0] = 2
    batches = SimpleNamespace(estimate=np.array([10.0]))
    on_long_begun(central, batches, {"task": 0, "sender": 0, "batch": 0}, 0.0)
    take_off(central, batches, 1, 0)
    assert (central.work[0], central.running[0], central.running_work[0], central.long_tasks[0]) == (10, 1, 10, 1)
    assert waiting_time(central, 0, 4.0) == 6.0


# -- what waits behind tasks -------------------------------------------------------------------------------------------


def rows_of(queues):
    number, found = int(queues.head[WORKER]), []
    while number != NOBODY:
        found.append(number)
        number = int(queues.row[number]["next"])
    return found


@quick
@given(steps=st.lists(st.tuples(st.sampled_from(["task", "reservation", "leave", "return", "look"]),
                                st.integers(0, 20)), max_size=40))
@example(steps=[("reservation", 0), ("leave", 0), ("task", 0), ("look", 0), ("return", 0)])
def test_tasks_that_were_passed_are_not_looked_at_again(steps):
    queues = build_reservations(1, 64)
    away = []  # reservations that may return to their places
    for now, (step, choice) in enumerate(steps):
        held = rows_of(queues)
        if step in ("task", "reservation"):
            number = new_row(queues)
            queues.row[number]["task"] = TASK if step == "task" else NOBODY
            queues.row[number]["since"] = now
            append(queues, WORKER, number)
        elif step == "leave" and held:
            place = choice % len(held)
            unlink(queues, WORKER, held[place - 1] if place else NOBODY, held[place])
            if queues.row[held[place]]["task"] == NOBODY:
                away.append(held[place])
        elif step == "return" and away:
            rejoin(queues, WORKER, away.pop(choice % len(away)))
        held = rows_of(queues)
        tasks = [queues.row[number]["task"] != NOBODY for number in held]
        lead = tasks.index(False) if False in tasks else len(held)
        passed = queues.passed[WORKER]
        assert passed == NOBODY or passed in held[:lead]
        if step == "look":
            found = skip_tasks(queues, WORKER, NOBODY, int(queues.head[WORKER]))
            assert found == (held[lead - 1] if lead else NOBODY, held[lead] if lead < len(held) else NOBODY)
            assert queues.passed[WORKER] == found[0]


# -- the shortest job --------------------------------------------------------------------------------------------------


def served_next(rows, limit):
    """Return the place of the reservation that is least work, of those that hold nobody up for too long."""
    first_task = next((place for place, row in enumerate(rows) if row.task), len(rows))
    if first_task == 0:
        return 0
    may = [place for place in range(first_task) if place == 0 or all(
        rows[place].estimate <= limit * row.estimate - row.delayed for row in rows[:place])]
    return min(may, key=lambda place: (rows[place].work, place))


@quick
@given(drawn=st.lists(st.tuples(st.sampled_from([False, False, False, True]), st.sampled_from([1.0, 2.0, 10.0]),
                                st.sampled_from([1.0, 8.0, 9.0, 60.0]), st.sampled_from([0.0, 1.0, 4.0, 50.0])),
                      min_size=1, max_size=12), limit=st.sampled_from([0, 1, 5]))
@example(drawn=[(False, 1.0, 8.0, 4.0), (False, 1.0, 1.0, 0.0)], limit=5)
def test_the_shortest_job_is_found_without_a_look_at_all(drawn, limit):
    rows = [SimpleNamespace(task=task, estimate=estimate, work=work, delayed=delayed)
            for task, estimate, work, delayed in drawn]
    queues = build_reservations(1, len(rows))
    for row in rows:
        number = new_row(queues)
        queues.row[number]["task"] = TASK if row.task else NOBODY
        for name in ("estimate", "work", "delayed"):
            queues.row[number][name] = getattr(row, name)
        append(queues, WORKER, number)
    chosen = served_next(rows, limit)
    assert shortest(queues, sharing(limit, min(row.estimate for row in rows)), WORKER) == (
        chosen, chosen - 1 if chosen else NOBODY)


def sharing(limit, estimate_min, request_min=(1,)):
    nothing = np.zeros(0, np.int64)
    return Sharing(nothing, nothing, nothing, nothing, nothing, limit, estimate_min, np.array(request_min, np.int32))


@pytest.mark.parametrize(("free", "is_room"), [((2, 3), True), ((1, 3), False), ((2, 2), False), ((-1, 9), False)])
def test_a_queue_is_walked_only_where_the_least_task_might_fit(free, is_room):
    own = SimpleNamespace(free=np.array([[0], [0]], np.int32))
    own.free[:, WORKER] = free
    assert has_room(own, sharing(5, 1.0, (2, 3)), WORKER) == is_room


def test_what_a_worker_runs_longer_than_thought_leaves_no_work_below_none():
    """Rounding may put what it had before 0, and beyond its work."""
    def central(work, running, since, running_work):
        return SimpleNamespace(work=[work], running=[running], running_since=[since], running_work=[running_work])

    assert waiting_time(central(10.0, 1.0, 5.5, 10.0), 0, 5.0) == 10.0  # what it had would be -0.5
    assert waiting_time(central(10.0, 1.0, 2.0, 10.0), 0, 5.0) == 7.0
    assert waiting_time(central(9.5, 1.0, 0.0, 10.0), 0, 20.0) == 0.0  # 10 of 9.5


def test_what_cannot_be_placed_yet_stays_owed(monkeypatch):
    """Of three batches the first is long and can be placed; the others stay, in their order."""
    placed = []
    monkeypatch.setattr(central_scheduler, "place_long", lambda *given: placed.append(given[3]))
    monkeypatch.setattr(central_scheduler, "probe_owed", lambda *_: None)
    schedulers = SimpleNamespace(stranded=np.array([4, 5, 6]), stranded_count=np.array([3]), owed=np.ones(7, int))
    roles = SimpleNamespace(
        schedulers=schedulers, members=SimpleNamespace(able_count=[1]),
        batches=SimpleNamespace(is_long=[False] * 4 + [True, False, False], shape=[0] * 7))
    plainly = getattr(  # not compiled, which a namespace is not for
        central_scheduler.place_owed, "py_func", central_scheduler.place_owed)
    plainly(roles, None, None, 0.0, None)
    assert placed == [4]
    assert schedulers.owed.tolist() == [1, 1, 1, 1, 0, 1, 1]
    assert schedulers.stranded[: schedulers.stranded_count[0]].tolist() == [5, 6]


def test_snapshots_go_round_in_their_places(monkeypatch):
    monkeypatch.setattr(eagle, "mark", lambda *_: None)
    out = build_outbox(4)
    post(out, ENQUEUE, 0, 1, 7, 1)
    sharing = SimpleNamespace(
        snapshot=np.zeros((4, 1), np.uint64), taken=np.array([3]), marked=np.array([9], np.uint64))
    eagle.share_state(sharing, None, out, {"task": NOBODY, "sender": 0})
    assert out.row[0]["seen"] == 3
    assert sharing.snapshot[:, 0].tolist() == [0, 0, 0, 9]
    assert sharing.taken.tolist() == [4]


def test_a_thief_gets_the_reservations_behind_a_long_task_that_it_could_hold(monkeypatch):
    monkeypatch.setattr(hawk, "is_able", lambda members, shape, worker: shape == 0)
    queues = build_reservations(2, 8)
    numbers = []
    for batch, task in ((0, 33), (0, NOBODY), (1, NOBODY), (2, NOBODY)):
        numbers.append(new_row(queues))
        queues.row[numbers[-1]]["batch"], queues.row[numbers[-1]]["task"] = batch, task
        append(queues, 0, numbers[-1])
    roles = SimpleNamespace(queues=queues, members=None, batches=SimpleNamespace(shape=[0, 0, 1]),
                            workers=SimpleNamespace(long_queued=[1, 0], long_running=[0, 0]))
    out = build_outbox(4)
    hawk.on_steal(roles, {"to": 0, "sender": 1}, out)
    assert (out.row[0]["count"], out.row[0]["start"]) == (2, numbers[1])
    assert queues.length[0] == 2
