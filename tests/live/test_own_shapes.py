"""Numbers of shapes are given back: what stands for something else later is counted right by everybody."""
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from subak.errors import InputError
from subak.federation.megha.ledger import ENTRY_WHOLE
from subak.federation.messages import LOCAL_MASTER
from subak.live.jobfile.spec import Constraint, JobSpec, Metadata, Stage
from subak.live.role.base import Put
from subak.live.role.facts import SHAPE, ShapeFact, encoded, read_shape, shape_fact
from subak.live.role.global_master.own_shapes import COUNT_BITS, OwnShapes
from subak.live.role.layout import Layout, Rooms, Timing
from subak.live.torture.case import Case, JobCase, MachineCase, QueueSetup
from subak.live.torture.world import World
from worlds import begin

ROOM = 3
ROOMS = Rooms(tasks=128, machines=64, shapes=ROOM, configurations=8, queues=8, attempts_each=24)


class FakeNode:
    """A global master as far as shapes go; its link with a local master is to be told, another's is not."""

    def __init__(self, disk=()):
        self.layout, self.number = Layout(2, 1, ("cpu", "memory"), False, ROOMS), 1
        self.disk, self.writes, self.said, self.learnt = {"shape": dict(disk)}, [], [], {}
        self.links = {(LOCAL_MASTER, 0): None, (LOCAL_MASTER + 1, 0): None}
        self.shapes = OwnShapes(self, 7)
        self.shapes.restore()

    def learn(self, fact):
        self.learnt[fact.number] = read_shape(fact.body)

    def say(self, peer, names):
        self.said += [(peer, *name) for name in names]


def stage(cpu=1, *constraints):
    return SimpleNamespace(resources={"cpu": cpu}, constraints=[Constraint(*each) for each in constraints])


def test_one_request_has_one_number_while_a_job_names_it_and_later_if_nobody_needed_it():
    role = FakeNode()
    rack, zone = ("rack", "=", "a"), ("zone", "=", "b")
    assert role.shapes.numbers([stage(1), stage(2), stage(1)]) == (3, 4, 3)  # its own range begins at 3
    assert role.shapes.numbers([stage(1, rack, zone), stage(1, zone, rack, zone)]) == (5, 5)
    assert role.learnt[5].request == (1, 0)
    assert [(put.table, put.keys) for put in role.writes] == [("shape", [3]), ("shape", [4]), ("shape", [5])]
    assert role.said == [((LOCAL_MASTER, 0), SHAPE, number) for number in (3, 4, 5)]


def test_the_number_that_was_given_up_longest_ago_is_given_first_under_a_later_version():
    role = FakeNode()
    for cpu in (1, 2, 3):
        role.shapes.use(role.shapes.numbers([stage(cpu)]))
    with pytest.raises(InputError, match=r"ask for 3 different amounts and constraints.*wait for some jobs to end, or "
                                         r"raise \[rooms\] shapes"):
        role.shapes.numbers([stage(4)])
    role.shapes.use([4])
    role.shapes.leave([4])  # another job still names it
    with pytest.raises(InputError):
        role.shapes.numbers([stage(4)])
    role.shapes.leave([4])
    role.shapes.leave([3])
    assert role.shapes.numbers([stage(2)]) == (4,)  # it stands for that still
    versions = [role.learnt[number].version for number in (3, 4, 5)]
    assert versions == [(7 << COUNT_BITS) + count for count in (1, 2, 3)]
    role.shapes.use([4])
    assert role.shapes.numbers([stage(4)]) == (3,)
    assert role.learnt[3] == ShapeFact((4, 0), (), (7 << COUNT_BITS) + 4)
    role.shapes.use([3])
    role.shapes.leave([4])
    assert role.shapes.numbers([stage(1)]) == (4,)  # what 3 stood for has another number now


def test_stages_of_one_job_do_not_take_each_others_numbers():
    role = FakeNode()
    with pytest.raises(InputError):
        role.shapes.numbers([stage(cpu) for cpu in (1, 2, 3, 4)])
    assert sorted(role.shapes.idle) == [3, 4, 5]
    assert role.shapes.numbers([stage(5), stage(1), stage(6)]) != role.shapes.numbers([stage(1), stage(5), stage(7)])
    assert len(set(role.shapes.numbers([stage(8), stage(9), stage(10)]))) == 3


def test_a_request_for_what_there_is_not_takes_no_number():
    role = FakeNode()
    with pytest.raises(InputError, match="this federation has no 'gpu'; it has cpu, memory; subak up FOLDER "
                                         "--capacity gpu=N makes another one"):
        role.shapes.numbers([SimpleNamespace(resources={"gpu": 1}, constraints=[])])
    assert not role.shapes.shape
    assert not role.writes


def test_numbers_come_back_from_disk_and_those_of_a_former_version_too():
    role = FakeNode({3: encoded(ShapeFact((1, 0), (), 9)), 5: encoded(((2, 0), ()))})
    assert role.shapes.numbers([stage(1)]) == (3,)
    assert role.shapes.numbers([stage(2)]) == (5,)
    assert role.learnt == {3: ShapeFact((1, 0), (), 9), 5: ShapeFact((2, 0))}
    role.shapes.use([3, 5])
    assert role.shapes.numbers([stage(3)]) == (4,)  # one between them that is nobody's


def test_what_a_former_store_has_given_is_taken_over_unless_open_jobs_stand_for_something_else():
    role = FakeNode()
    role.shapes.use(role.shapes.numbers([stage(1)]))
    other = ShapeFact((9, 0), (), (5 << COUNT_BITS) + 1)
    role.shapes.hear(3, other)
    assert role.learnt[3] == ShapeFact((1, 0), (), (7 << COUNT_BITS) + 2)
    role.shapes.hear(3, ShapeFact((9, 0), (), 9 << COUNT_BITS))
    assert role.learnt[3] == ShapeFact((1, 0), (), (9 << COUNT_BITS) + 1)
    role.shapes.hear(5, other)
    assert role.writes[-1] == Put("shape", [5], [encoded(other)])
    assert role.shapes.numbers([stage(9)]) == (5,)
    assert role.shapes.numbers([stage(2), stage(3)]) == (4, 5)


# -- in a federation ---------------------------------------------------------------------------------------------------


def world_of(*seconds, kinds=8):
    """A federation of one cluster with one machine; a job of each time, each of a request of its own."""
    jobs = []
    for number, each in enumerate(seconds):
        tasks = Stage("s", ("job", str(number), "0"), tasks=1, resources={"cpu": 100 + number},
                      constraints=(Constraint("rack", "!=", str(number)),))
        jobs.append(JobCase(3.0 + number, f"client {number}", JobSpec(Metadata(f"j{number}"), "a", (tasks,)),
                            (((each, 0),),)))
    machines, rooms = (MachineCase(0, (1000, 8), "", False),), structs.replace(ROOMS, configurations=kinds)
    world = World(Case(1, Layout(1, 1, ("cpu", "memory"), True, rooms), Timing(), machines, (QueueSetup("a", 0),),
                       "round-robin", tuple(jobs), (), (), (), 0.0, 0.0, 0.0, 0.0))
    begin(world)
    world.until(2.0)
    return world


def test_ten_times_as_many_requests_as_there_are_numbers_run_one_after_the_other():
    world = world_of(*([0.2] * 10 * ROOM))
    world.until(10.0 * ROOM + 8.0)
    assert len(world.watch.finished) == 10 * ROOM
    role = world.masters[0].role
    assert len(role.own_shapes.shape) == ROOM
    assert not role.admission.lanes.of
    assert len(role.catalog.sets.of) <= ROOM
    for process in world.locals:  # the standby is told as well
        assert [process.role.facts.known[SHAPE, number] for number in range(ROOM)] == [
            role.facts.known[SHAPE, number] for number in range(ROOM)]
        assert np.array_equal(process.role.shapes.request, role.shapes.request)
    local = world.locals[0].role.local
    assert local.fleet.free[:, 0].tolist() == role.master.fleet.free[:, 0].tolist() == [1000, 8]


def learn_another(world, process, number, request):
    """Let a number stand for something else at one process, while an attempt that names it holds amounts there."""
    before = process.role.facts.known[SHAPE, number]
    process.role.learn(shape_fact(number, ShapeFact(request, (), before.version + 1)))
    world.call_soon(process)
    world.until(world.now + 0.1)


def test_a_local_master_counts_what_it_holds_anew_and_writes_its_state_down():
    world = world_of(30.0)
    world.until(5.0)
    process = world.locals[0]
    local, version = process.role.local, process.role.local.ledger.counts.version
    assert local.fleet.free[:, 0].tolist() == [900, 8]
    learn_another(world, process, 0, (300, 2))
    assert local.fleet.free[:, 0].tolist() == [700, 6]
    assert local.ledger.counts.whole_at == version
    assert local.ledger.entry["kind"][version] == ENTRY_WHOLE
    world.until(6.5)  # a heartbeat: its owner hears of it, and says what it stands for
    assert local.fleet.free[:, 0].tolist() == world.masters[0].role.master.fleet.free[:, 0].tolist() == [900, 8]
    world.until(40.0)
    assert local.fleet.free[:, 0].tolist() == world.masters[0].role.master.fleet.free[:, 0].tolist() == [1000, 8]


def test_no_state_is_written_down_for_a_number_that_nobodys_view_names():
    world = world_of(30.0)
    world.until(5.0)
    process = world.locals[0]
    version = process.role.local.ledger.counts.version
    process.role.learn(shape_fact(1, ShapeFact((300, 2))))
    process.role.learn(shape_fact(1, ShapeFact((400, 2), (), 1)))
    assert process.role.local.ledger.counts.version == version


def test_a_worker_counts_what_it_holds_anew():
    world = world_of(30.0)
    world.until(5.0)
    process = world.machines.all[0].process
    learn_another(world, process, 0, (300, 2))
    free = process.role.workers.free
    assert [free[resource, 0] for resource in range(2)] == [700, 6]
    world.until(40.0)
    assert [free[resource, 0] for resource in range(2)] == [1000, 8]


def test_a_search_for_what_fitted_nowhere_is_forgotten_with_its_shape():
    world = world_of(30.0)
    world.until(5.0)
    for process in (world.masters[0], world.locals[0]):
        fleet = process.role.master.fleet if process in world.masters else process.role.local.fleet
        fleet.frontier[:, 0] = 77
        learn_another(world, process, 0, (300, 2))
        assert fleet.frontier[:, 0].tolist() != [77, 77]


def test_a_local_master_that_was_away_is_told_when_it_is_back():
    world = world_of(*([0.2] * 2 * ROOM))
    world.until(4.0)
    world.kill(world.locals[1])
    world.until(2 * ROOM + 5.0)
    world.start(world.locals[1])
    world.until(2 * ROOM + 8.0)
    assert [world.locals[1].role.facts.known[SHAPE, number] for number in range(ROOM)] == [
        world.masters[0].role.facts.known[SHAPE, number] for number in range(ROOM)]


def test_a_machine_of_one_kind_too_many_does_not_join_and_the_others_go_on():
    world = world_of(0.2, kinds=3)  # with that of nothing
    world.machines.add(MachineCase(0, (2000, 8), "", False))
    world.until(3.0)
    local = world.locals[0].role
    assert len(local.machines) == 2
    join = structs.replace(world.machines.all[1].process.role.join, name="m9", identity="another", capacity=(3000, 8))
    words = "machine m9: this local master tells 3 different amounts that machines have apart, and no more: raise"
    assert local._refusal((1, -1), join).startswith(words)
    assert local._refusal((1, -1), structs.replace(join, capacity=(2000, 8))) == ""
    local.cordon(0, True)
    world.until(5.0)
    assert len(world.watch.finished) == 1
