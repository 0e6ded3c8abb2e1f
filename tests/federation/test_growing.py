"""Federations whose tables are empty at first: what comes into being while they run is placed, and rows serve again."""
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growing import Growing
from subak.errors import InputError
from subak.federation.megha.admission import JobAsked, Spans, StageAsked
from subak.federation.megha.jobs import OUTCOME_CANCELLED, OUTCOME_FINISHED, SUBMISSION_ENDED
from subak.federation.messages import CANCELLED, NOBODY, RELEASE, SUBMITTER
from subak.workload.predicates import Constraint


def small(**more):
    return Growing(1, **more)


def one(federation, queue=0, tasks=1, request=(1, 1), **more):
    return JobAsked(queue, (StageAsked(tasks, federation.catalog.shape(request), **more),), rank=federation.now)


def outcomes(federation, job):
    return federation.jobs[0].ending["outcome"][job.places : job.places + job.tasks].tolist()


def test_a_job_of_a_new_shape_in_a_new_queue_runs_on_a_machine_that_joins_later():
    federation = small()
    job = federation.submit(one(federation, tasks=3), [20.0])
    federation.until(5.0)
    assert not federation.begun, "no machine is there"
    federation.join(7, (2, 4))
    federation.until(7.0)
    assert len(federation.running) == 2
    federation.join(9, (1, 1))
    federation.until(9.0)
    assert len(federation.running) == 3
    federation.until(40.0)
    assert outcomes(federation, job) == [OUTCOME_FINISHED] * 3
    assert federation.admission[0].is_over(job)


def test_a_task_waits_for_a_machine_that_meets_its_constraints():
    federation = small()
    federation.join(0, (8, 8), rack="a")
    shape = federation.catalog.shape((1, 1), [Constraint("rack", "=", "b")])
    federation.submit(JobAsked(0, (StageAsked(1, shape),), 0.0), [9.0])
    federation.until(3.0)
    assert not federation.begun
    federation.join(1, (8, 8), rack="b")
    federation.until(6.0)
    assert [machine for machine, _ in federation.running.values()] == [1]


def test_stages_wait_for_each_other_and_gangs_start_together():
    federation = small()
    federation.join(0, (2, 8))
    shape = federation.catalog.shape((1, 1))
    job = federation.submit(JobAsked(0, (
        StageAsked(3, shape), StageAsked(1, shape), StageAsked(2, shape, depends_on=(0, 1), gang=True),
    ), 0.0), [1.0, 4.0, 1.0])
    federation.until(30.0)
    first, second, gang = ([federation.begun[number] for number in numbers.tolist()] for numbers in job.numbers)
    ends = [federation.ended[number] for numbers in job.numbers[:2] for number in numbers.tolist()]
    assert min(gang) > max(ends)
    assert max(gang) - min(gang) < 0.01
    assert max(first) < 4.0, "two at a time"
    assert len(second) == 1


def test_a_number_is_never_given_again_and_who_comes_late_changes_nothing():
    federation = small(places=4)
    federation.join(0, (4, 4))
    first = federation.submit(one(federation, tasks=4), [1.0])
    with pytest.raises(InputError, match="no room for 1 more tasks of jobs that are open: 0 of 4 are free"):
        federation.submit(one(federation), [1.0])
    federation.until(5.0)
    federation.admission[0].forget(first)
    assert (federation.jobs[0].number == NOBODY).all()
    second = federation.submit(one(federation, tasks=4), [100.0])
    assert not set(first.numbers[0].tolist()) & set(second.numbers[0].tolist())
    assert (first.places, first.tasks) == (second.places, second.tasks)
    federation.cancel(int(first.numbers[0][1]))
    federation.until(8.0)
    assert len(federation.running) == 4
    federation.cancel(int(second.numbers[0][1]))
    federation.until(9.0)
    assert len(federation.running) == 3
    assert outcomes(federation, second) == [0, OUTCOME_CANCELLED, 0, 0]
    assert federation.given_up == {int(second.numbers[0][1]): CANCELLED}


def release_of_a_former_job(federation, shape, heads):
    """Take out of the way what goes on to release four tasks behind so many of a task each, and end their job."""
    stages = [StageAsked(1, shape, tuple(range(number))) for number in range(heads)]
    last = StageAsked(4, shape, tuple(range(heads)), wait_max=100.0)  # a walk stops behind nine messages
    job = federation.submit(JobAsked(0, (*stages, last), 0.0), [*[1.0] * heads, 50.0])
    while not (due := [event for event in federation.events if event[3]["kind"] == RELEASE]):
        federation.step()
    federation.events.remove(due[0])
    for number in job.numbers[-1].tolist():
        federation.cancel(number)
    federation.until(10.0)
    assert outcomes(federation, job) == [OUTCOME_FINISHED] * heads + [OUTCOME_CANCELLED] * 4
    assert federation.admission[0].is_over(job)
    federation.admission[0].forget(job)
    return due[0][3]


@pytest.mark.parametrize("heads", [1, 2], ids=["as many stages", "a stage more"])
def test_what_was_to_be_released_of_a_former_job_does_not_release_who_has_its_places(heads):
    federation = Growing(1, places=8, rows=4)
    federation.join(0, (8, 8))
    shape = federation.catalog.shape((1, 1))
    late = release_of_a_former_job(federation, shape, heads)
    asked = JobAsked(0, (StageAsked(heads + 1, shape), StageAsked(3, shape, (0,))), 0.0)
    job = federation.submit(asked, [5.0, 1.0])
    federation.until(11.0)
    assert late["row"] == job.places + job.tasks - 1, "the last task, of the stage that waits"
    federation.send(SUBMITTER, late, 0.0)
    federation.until(14.0)
    assert not set(job.numbers[1].tolist()) & set(federation.begun), "the first stage has not ended"
    federation.until(40.0)
    assert outcomes(federation, job) == [OUTCOME_FINISHED] * job.tasks


def test_a_queue_is_removed_when_it_is_empty_and_the_others_keep_their_turns():
    federation = small()
    federation.join(0, (1, 1))
    for queue in (3, 1, 2):
        federation.submit(one(federation, queue, tasks=2), [1.0])
    federation.until(0.5)
    admission = federation.admission[0]
    with pytest.raises(InputError, match="must be empty before it is removed, and 2 tasks of it have not ended"):
        admission.remove_queue(1)
    federation.until(20.0)
    assert len(federation.ended) == 6
    master = federation.roles.masters[0]
    master.counts.next_queue = 2
    admission.remove_queue(1)
    admission.remove_queue(1)
    assert master.own[: master.counts.own_queues].tolist() == [3, 2]
    assert master.counts.next_queue == 1, "it is the turn of the same queue"
    master.counts.next_queue = 2  # behind the last one is the first
    admission.add_queue(5)
    admission.remove_queue(5)
    assert master.counts.next_queue == 0
    federation.submit(one(federation, 2), [1.0])
    federation.submit(one(federation, 3), [1.0])
    federation.until(40.0)
    assert len(federation.ended) == 8


def test_a_queue_of_which_a_stage_waits_for_another_is_not_empty():
    federation = small()
    shape, admission = federation.catalog.shape((1, 1)), federation.admission[0]
    job = federation.submit(JobAsked(0, (StageAsked(1, shape), StageAsked(2, shape, (0,))), 0.0), [1.0, 1.0])
    federation.jobs[0].state[job.places] = SUBMISSION_ENDED  # the first stage; the second has no row yet
    with pytest.raises(InputError, match="and 2 tasks of it have not ended"):
        admission.remove_queue(0)


def test_a_job_is_not_over_while_a_row_of_it_is_open():
    federation = small()
    job = federation.admission[0].admit(one(federation, tasks=2))
    federation.admission[0].lay(job, 0, 2)
    jobs = federation.jobs[0]
    jobs.state[job.places : job.places + 2] = SUBMISSION_ENDED
    assert federation.admission[0].is_over(job)
    jobs.row[job.places + 1] = 0  # its end is not settled: the master that said so was restarted
    assert not federation.admission[0].is_over(job)


def test_room_that_is_used_up_is_named():
    federation = small()
    for cpu in range(1, 65):
        federation.catalog.shape((cpu, 0))
    assert federation.catalog.shape((3, 0)) == 2, "a shape that is there already needs no room"
    with pytest.raises(InputError, match="shapes of tasks: there may be 64 at most"):
        federation.catalog.shape((65, 0))


def test_of_a_span_that_is_taken_as_a_whole_nothing_is_left():
    spans = Spans(4)
    assert (spans.take(4), spans.free, spans.take(1)) == (0, [], None)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), max_size=40), st.randoms(use_true_random=False))
def test_spans_are_apart_and_come_together_again(sizes, random):
    spans, taken = Spans(30), {}
    for size in sizes:
        first = spans.take(size)
        if first is None:
            assert not any(all((place, 1) not in _places(taken) for place in range(begin, begin + size))
                           for begin in range(30 - size + 1)), "there was room"
            continue
        assert not {(place, 1) for place in range(first, first + size)} & _places(taken)
        taken[first] = size
        if random.random() < 0.4:
            first = random.choice(sorted(taken))
            spans.give(first, taken.pop(first))
    for first, size in taken.items():
        spans.give(first, size)
    assert spans.free == [(0, 30)]


def _places(taken):
    return {(place, 1) for first, size in taken.items() for place in range(first, first + size)}


@pytest.mark.parametrize(("seed", "doubled"), [(1, 0.0), (2, 0.05), (3, 0.2), (4, 0.2), (5, 0.5)])
def test_hundreds_of_jobs_through_a_few_rows(seed, doubled):
    """Shapes, queues, constraints and machines appear all the time; the places of 48 tasks serve some thousand."""
    federation, random = Growing(seed, places=64, rows=48, doubled=doubled), np.random.default_rng(seed)
    open_jobs, over, refused = [], 0, 0
    federation.join(0, (4, 8))
    for turn in range(150):
        federation.until(federation.now + float(random.exponential(0.7)))
        if turn % 15 == 3:
            federation.join(turn // 15 + 1, (int(random.integers(1, 6)), int(random.integers(1, 9))),
                            **({"rack": "b"} if turn % 2 else {}))
        if turn in (40, 90):
            federation.restart()
        for job in [job for job in open_jobs if federation.admission[0].is_over(job)]:
            federation.admission[0].forget(job)
            open_jobs.remove(job)
            over += 1
        try:
            open_jobs.append(federation.submit(*drawn(federation, random, turn)))
        except InputError:
            refused += 1
            continue
        if random.random() < 0.1:
            federation.cancel(int(random.choice(open_jobs[-1].numbers[0])))
    federation.until(federation.now + 200.0)
    assert all(federation.admission[0].is_over(job) for job in open_jobs)
    tasks = federation.roles.submitters[0].tasks
    assert (tasks.number[: tasks.counts.tasks_ever] == NOBODY).all()
    assert over + len(open_jobs) > 100
    assert refused < 50
    assert len(federation.ended) > 200
    assert not federation.running
    assert tasks.counts.tasks_ever <= 48
    assert int(federation.jobs[0].number.max()) <= 150 * 64 + 63


def drawn(federation, random, turn):
    """A job of one to three stages, in one of ever more queues, and how long its tasks run."""
    constraints = [Constraint("rack", "=", "b")] if turn > 20 and random.random() < 0.2 else []
    shapes = [federation.catalog.shape((1, int(random.integers(0, 2 + turn // 30))), constraints) for _ in range(3)]
    stages = tuple(StageAsked(
        int(random.integers(1, 4)), shapes[number], tuple(range(number)) if random.random() < 0.5 else (),
        gang=bool(random.random() < 0.2),
    ) for number in range(int(random.integers(1, 4))))
    queue = int(random.integers(0, 1 + turn // 20))
    job = JobAsked(queue, tuple(replace(stage, retries=1) for stage in stages), federation.now)
    return job, [float(random.choice([0.0, 0.3, 1.0, 2.5])) for _ in stages]
