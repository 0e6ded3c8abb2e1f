"""Where jobs are written in the tables of a submitter, and that all places are given back; what a catalog numbers."""
import numpy as np
import pytest

from growing import QUEUES, Growing
from subak.errors import InputError
from subak.federation.megha.admission import JobAsked, Spans, StageAsked
from subak.federation.megha.catalog import Numbers, empty_fleet
from subak.federation.megha.jobs import SUBMISSION_ENDED
from subak.federation.megha.tables import build_jobs
from subak.federation.messages import NOBODY
from subak.fleet.state import LOG
from subak.workload.predicates import Constraint


def admission_of(**room):
    federation = Growing(1, **room)
    federation.catalog.shape((1, 1))
    return federation.admission[0]


def asked(*stages):
    return JobAsked(0, stages, 0.0)


def laid(admission, job):
    """Admit a job, and lay all of its tasks out."""
    admitted = admission.admit(job)
    admission.lay(admitted, 0, admitted.tasks)
    return admitted


def free(admission):
    return [list(spans.free) for spans in (admission.places, admission.stages, admission.edges, admission.gangs)]


def test_all_places_of_a_job_are_given_back():
    admission = admission_of(places=16)
    before, jobs = free(admission), admission.jobs
    for job in (asked(StageAsked(3, 0), StageAsked(2, 0, (0,), gang=True)), asked(StageAsked(2, 0)),
                asked(StageAsked(2, 0, gang=True), StageAsked(2, 0, gang=True))):
        admitted = laid(admission, job)
        assert free(admission) != before
        jobs.state[:] = SUBMISSION_ENDED
        admission.forget(admitted)
        assert free(admission) == before


@pytest.mark.parametrize("stages", [
    [StageAsked(17, 0)], [StageAsked(1, 0) for _ in range(16)],
    [StageAsked(1, 0), *(StageAsked(1, 0, (0,) * 9) for _ in range(2))],
    [StageAsked(1, 0, gang=True), *(StageAsked(1, 0, gang=True) for _ in range(3))],
], ids=["tasks", "stages", "dependencies", "gangs"])
def test_a_job_for_which_there_is_no_room_takes_none(stages):
    admission = admission_of(places=16)
    admission.gangs = Spans(3)
    before = free(admission)
    words = r"job: there is no room for .*: .* are free.*; wait for some to end, cancel some, or raise \[rooms\] tasks"
    with pytest.raises(InputError, match=words):
        admission.admit(asked(*stages))
    assert free(admission) == before


def test_a_gang_comes_into_its_place_as_nobody_knows_it():
    admission = admission_of(places=16)
    jobs = admission.jobs
    jobs.gang_size[:], jobs.gang_left[:], jobs.gang_row[:], jobs.gang_failed[:] = 9, 9, 9, True
    job = laid(admission, asked(StageAsked(2, 0), StageAsked(3, 0, gang=True), StageAsked(2, 0, gang=True)))
    first, second = job.gangs
    assert jobs.gang[job.places : job.places + 7].tolist() == [NOBODY] * 2 + [first] * 3 + [second] * 2
    assert jobs.gang_size[[first, second]].tolist() == jobs.gang_left[[first, second]].tolist() == [3, 2]
    assert jobs.gang_row[[first, second]].tolist() == [NOBODY, NOBODY]
    assert not jobs.gang_failed[[first, second]].any()


def test_tasks_that_are_laid_out_some_at_a_time_are_as_those_laid_out_at_once():
    stages = asked(StageAsked(3, 0, priority=2), StageAsked(4, 1, (0,), gang=True, retries=3), StageAsked(2, 0, (0, 1)))
    found = []
    for sizes in ((9,), (1,) * 9, (2, 4, 3), (3, 4, 2), (8, 1)):
        admission = admission_of(places=16)
        jobs = admission.jobs
        for table in (*jobs, *jobs.stages):  # a former job was here
            if isinstance(table, np.ndarray) and table is not jobs.number:
                table.view(np.uint8)[:] = 1
        job, first = admission.admit(stages), 0
        assert (jobs.number == NOBODY).all()
        for size in sizes:
            assert job.number in admission.to_lay
            admission.lay(job, first, first + size)
            first += size
        assert not admission.to_lay
        found.append([table.tobytes() for table in (*jobs, *jobs.stages) if isinstance(table, np.ndarray)])
        assert jobs.number[job.places : job.places + 9].tolist() == np.concatenate(job.numbers).tolist()
    assert all(each == found[0] for each in found)


def test_a_queue_whose_tasks_have_yet_to_be_laid_out_is_not_empty():
    admission = admission_of(places=16)
    admission.add_queue(0)
    job = admission.admit(asked(StageAsked(3, 0)))
    with pytest.raises(InputError, match="3 tasks of it have not ended"):
        admission.remove_queue(0)
    admission.lay(job, 0, 2)
    with pytest.raises(InputError, match="3 tasks of it have not ended"):
        admission.remove_queue(0)
    admission.lay(job, 2, 3)
    admission.jobs.state[job.places : job.places + 3] = SUBMISSION_ENDED
    admission.remove_queue(0)


def test_a_job_that_was_admitted_before_has_its_number_and_its_places():
    admission = admission_of(places=16)
    job = admission.restore(7, asked(StageAsked(3, 0), StageAsked(2, 0, (0,))), 5)
    assert (job.places, job.stages, job.edges) == (5, 0, 0)
    assert [(number - 7 * 16).tolist() for number in job.numbers] == [[5, 6, 7], [8, 9]]
    assert admission.admit(asked(StageAsked(1, 0))).number == 8
    admission.restore(3, asked(StageAsked(1, 0)), 12)
    assert admission.admit(asked(StageAsked(1, 0))).number == 9


def test_the_stages_that_wait_for_a_stage_are_its_children():
    admission = admission_of(places=16)
    graph = admission.jobs.stages
    graph.child_first[:], graph.child[:] = 9, 9
    for job in (asked(StageAsked(1, 0), StageAsked(1, 0, (0,))),
                asked(StageAsked(1, 0), StageAsked(1, 0, (0,)), StageAsked(1, 0, (0, 1)))):
        first = admission.admit(job).stages
        children = [(graph.child[graph.child_first[stage] : graph.child_first[stage + 1]] - first).tolist()
                    for stage in range(first, first + len(job.stages))]
        assert children == [[after for after, stage in enumerate(job.stages) if number in stage.depends_on]
                            for number in range(len(job.stages))]


def test_a_gang_of_one_does_not_stand_with_tasks_that_start_by_themselves():
    admission = admission_of()
    job = laid(admission, asked(StageAsked(1, 0), StageAsked(1, 0, gang=True), StageAsked(1, 0)))
    first, second, third = admission.jobs.asked["lane"][job.places : job.places + 3].tolist()
    assert first == third != second


def test_lanes_of_a_queue_have_twice_as_many_places_whenever_they_are_used_up():
    admission, places = admission_of(), []
    for size in range(9):
        admission.lane(0, 0, size)
        begin, end = admission.master.lane_span[0].tolist()
        places.append(end - begin)
    assert places == [4, 4, 4, 4, 8, 8, 8, 8, 16]
    assert sum(end - begin for begin, end in admission.lane_places.free) == 256 - 16
    assert [admission.lane(0, 0, size) for size in range(9)] == list(range(9))


def test_lanes_are_given_back_with_the_last_job_whose_tasks_wait_in_them():
    admission = admission_of()
    first = laid(admission, asked(StageAsked(1, 0), StageAsked(1, 0), StageAsked(1, 0, gang=True)))
    second = laid(admission, asked(StageAsked(1, 0)))
    assert first.lanes == (0, 0, 1)
    assert second.lanes == (0,)
    admission.forget(first)
    assert admission.lanes.of == {(0, 0, 0): 0}
    admission.forget(second)
    assert not admission.lanes.of
    assert not admission.jobs_with
    assert admission.of_queue == {0: 0}
    assert sorted(laid(admission, asked(StageAsked(1, 0), StageAsked(1, 0, gang=True))).lanes) == [0, 1]


def test_a_job_that_is_refused_keeps_no_lane():
    admission = admission_of()
    with pytest.raises(InputError, match="tasks"):
        admission.admit(asked(StageAsked(admission.jobs.number.size + 1, 0)))
    admission.lane_places = Spans(0)  # beyond the four that the queue has by now
    with pytest.raises(InputError, match="lanes"):
        admission.admit(asked(*(StageAsked(size, 0, gang=True) for size in range(1, 6))))
    assert not admission.lanes.of
    assert not admission.jobs_with
    assert not admission.of_queue.get(0)


def test_lanes_for_which_there_is_no_room_are_refused():
    admission = admission_of()
    admission.lane_places = Spans(4)
    for size in range(4):
        admission.lane(0, 0, size)
    with pytest.raises(InputError, match="there is no room for 8 lanes of queue 0"):
        admission.lane(0, 0, 5)


def test_a_queue_for_which_there_is_no_room_is_refused():
    admission = admission_of()
    for queue in range(QUEUES):
        admission.add_queue(queue)
    admission.add_queue(3)
    with pytest.raises(InputError, match=f"queue: a global master may have {QUEUES} at most"):
        admission.add_queue(QUEUES)


def test_a_thing_is_numbered_once():
    numbers = Numbers[str](2, "colours", 5)
    assert [numbers.number(colour) for colour in ("red", "blue", "red")] == [(5, True), (6, True), (5, False)]
    with pytest.raises(InputError, match="colours: there may be 2 at most"):
        numbers.number("green")


def test_a_machine_that_meets_constraints_no_more_leaves_the_others_as_they_are():
    catalog = Growing(1).catalog
    for machine, rack in enumerate("bab"):
        catalog.describe(machine, {"rack": rack})
    number = catalog.constraint_set_of([Constraint("rack", "=", "b")])
    assert catalog.allowed[number].tolist() == [0b101]
    catalog.describe(0, {"rack": "a"})
    assert catalog.allowed[number].tolist() == [0b100]


def test_an_empty_fleet_has_whole_blocks():
    fleet = empty_fleet(2, 65, 3, 5)
    assert (fleet.free.shape, fleet.capacity.shape, fleet.block_free_max.shape) == ((2, 128), (2, 128), (2, 2))
    assert (fleet.allowed.shape, fleet.allowed.shape[1], fleet.machines) == ((3, 2), 2, 65)
    assert (fleet.freed_blocks.size, fleet.frontier.shape, fleet.scale.tolist()) == (LOG + 1, (2, 5), [1.0, 1.0])
    assert fleet.random.tolist() == [1]


def test_tables_have_room_for_what_was_asked():
    jobs = build_jobs(8, 3, 2, 4)
    graph = jobs.stages
    assert (jobs.number.size, jobs.mask, jobs.gang_size.size, jobs.to_give_up.size) == (8, 7, 4, 3)
    assert (graph.child_first.size, graph.task_first.size, graph.child.size, graph.left.size) == (4, 4, 2, 3)


def test_roles_begin_in_their_first_incarnation_with_what_is_there():
    roles = Growing(1).roles
    assert roles.submitters[0].counts.values() == (1,)
    assert roles.masters[0].lane_size.shape == (QUEUES, 3)
    assert not roles.masters[0].listed.any(), "no machine is there"
    local = roles.locals[0]
    assert (local.asker["incarnation"][0], local.standing.pulse_at) == (1, 0.0)
    assert local.ledger.counts.values() == (0, -1, 0, local.ledger.entry.size, 0)
