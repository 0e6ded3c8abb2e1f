"""Small parts of the live half by known answers: bounds, limits, plans of queues, frames, files, sockets, what runs."""
import asyncio
import errno
import os
import stat
import sys
import tempfile
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from subak.errors import InputError
from subak.federation.megha.jobs import SUBMISSION_BACKOFF
from subak.federation.megha.worker import WORKER_ENDED
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, MESSAGE, PLACE, WAITED_TOO_LONG, WORKER
from subak.live.agent import guard, journal
from subak.live.agent.attempts.attempt import EXITED, INVALID, OLD_START, Ending, Fence, Key, Refused
from subak.live.agent.attempts.ledger import Lease, Ledger
from subak.live.agent.attempts.records import Ended, Forgotten, Seen
from subak.live.agent.attempts.wire import FRAME_BYTES_MAX, LENGTH_BYTES, Frames, WireError
from subak.live.agent.connections import Connections
from subak.live.agent.journal import SLACK_BYTES, Journal
from subak.live.agent.processes import output, proc, spawn
from subak.live.agent.processes.output import Outputs
from subak.live.agent.processes.spawn import NOT_EXECUTABLE, NOT_FOUND
from subak.live.agent.settings import Settings, checked
from subak.live.api.errors import InvalidError, RefusedError
from subak.live.config import (
    ClusterEntry,
    FederationFile,
    GlobalMasterEntry,
    QueueEntry,
    WorkerFile,
    capacity_of,
    decoded,
    document_of,
    read,
)
from subak.live.jobfile.spec import TASKS
from subak.live.role.base import DefectError, Drop, within
from subak.live.role.facts import MACHINE, read_machine
from subak.live.role.frames import Answer, Ask, FrameError, Leave, Retract
from subak.live.role.global_master.book import asked_of
from subak.live.role.global_master.global_role import Answered
from subak.live.role.global_master.history import BEGAN, Happening, History
from subak.live.role.global_master.queues import QueueSetup, QueuesFact
from subak.live.role.layout import STANDBYS, Layout, Rooms, Timing
from subak.live.role.local_role import UNREACHABLE
from subak.live.service.changing import removed_view
from subak.live.service.planning import first_queues, new_queues, plan_of, setups_of
from subak.live.service.resources import machine_view, running_on, total_of
from subak.live.service.service import GlobalMasterService
from subak.live.service.views import Known
from subak.live.torture.case import Case, JobCase, MachineCase
from subak.live.torture.world import World
from subak.live.up.plan import worker_text
from test_live_roles import JOB, number_of, world_of
from worlds import begin

# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "wanted"), [
    ([0, 2], True), ([0], True), ([2, 0, 1], True), ([], True), ([0, 3], False), ([-1, 2], False), ([-1, 3], False),
    ([5], False)])
def test_all_of_a_column_is_in_its_range(values, wanted):
    rows = np.zeros(len(values), MESSAGE)
    rows["machine"] = values
    assert within(rows, {"machine": range(3), "task": range(1)}) is wanted


def test_machines_are_of_the_cluster_and_the_partition_that_their_numbers_say():
    layout = Layout(2, 2, ("cpu",), rooms=Rooms(machines=200))
    assert (layout.blocks_each, layout.machines_each, layout.machines) == (4, 256, 512)
    machine = layout.topology().machine
    assert machine["cluster"].tolist() == [0] * 256 + [1] * 256
    assert machine["home"].tolist() == ([0] * 128 + [1] * 128) * 2
    of_three = structs.replace(layout, global_masters=3).topology()
    assert of_three.machine["home"].tolist() == ([0] * 64 + [1] * 64 + [2] * 128) * 2
    assert of_three.block.tolist() == [0, 1, 2, 4, 5, 6, 8]


def test_a_machine_has_as_many_tasks_as_its_file_says_and_half_of_its_attempts_at_most():
    layout = Layout(1, 1, ("cpu", "memory", TASKS), rooms=Rooms(attempts_each=9))
    file = WorkerFile("m", ("127.0.0.1:1",), "m", capacity={"cpu": 7, "memory": 5})
    assert capacity_of(file, layout) == (7, 5, 4)
    assert capacity_of(structs.replace(file, capacity={"cpu": 7, "memory": 5, TASKS: 3}), layout) == (7, 5, 3)
    with pytest.raises(InputError, match=r"^capacity.tasks: must be at most 4, half of .* attempts_each .*, not 5$"):
        capacity_of(structs.replace(file, capacity={TASKS: 5}), layout)
    assert structs.replace(layout, rooms=Rooms(attempts_each=1)).tasks_each == 1


@pytest.mark.parametrize(("text", "amounts"), [
    ("cpu = 4\nmemory = '8Gi'\ngpu = 2\ntasks = 3", {"cpu": 4000, "memory": 8192, "gpu": 2, "tasks": 3}),
    ("cpu = 0.5\nmemory = 8589934592", {"cpu": 500, "memory": 8192}), ("cpu = '500m'", {"cpu": 500}),
    ("cpu = '4'\ngpu = '2'", {"cpu": 4000, "gpu": 2}), ("", {})])
def test_amounts_of_a_worker_are_said_as_those_of_jobs(tmp_path, text, amounts):
    path = tmp_path / "m.toml"
    head = "name = 'm'\nlocal_masters = ['127.0.0.1:1']\ndata = 'm'\noutput_bytes = '1Mi'\n[capacity]\n"
    path.write_text(head + text)
    file = read(path, WorkerFile)
    assert (file.capacity, file.output_bytes) == (amounts, 1 << 20)
    path.write_bytes(msgspec.toml.encode(document_of(file)))
    assert read(path, WorkerFile) == file
    path.write_text(worker_text("m", ["127.0.0.1:1"], amounts))
    assert read(path, WorkerFile).capacity == amounts


def test_bytes_of_a_history_are_said_as_those_of_jobs():
    text = ("name = 'f'\nglobal_master = [{name = 'g', http = '127.0.0.1:1'}]\nqueue = [{name = 'q'}]\n"
            "cluster = [{name = 'a', local_master = '127.0.0.1:2'}]\n[history]\nbytes = %s")
    assert [decoded(text % bytes, FederationFile).history.bytes for bytes in ("'4Gi'", "4294967296")] == [4 << 30] * 2
    with pytest.raises(InputError, match=r'^history\.bytes: must be bytes, such as "4Gi", .*, not -1$'):
        decoded(text % "-1", FederationFile)


def test_a_ledger_has_room_for_four_whole_states_and_no_more():
    layout = Layout(1, 1, ("cpu",), rooms=Rooms(machines=64, attempts=63))
    assert layout.machines_each + layout.attempts == 1 << 13
    assert layout.ledger == 1 << 15
    assert structs.replace(layout, rooms=Rooms(machines=64, attempts=64)).ledger == 1 << 16


def test_what_a_stage_does_not_limit_is_without_limit():
    stage = structs.replace(JOB.stages[0], wait_limit_s=None, time_limit_s=7.0)
    asked = asked_of(structs.replace(JOB, stages=(stage,)), 0, (3,), 1.0).stages[0]
    assert (asked.wait_max, asked.run_max, asked.shape) == (np.inf, 7.0, 3)


def test_the_history_of_a_job_on_disk_is_dropped_as_a_whole():
    history = History(3)
    assert history.drops() == []
    history.note(Happening(1.0, 0, BEGAN, "", 0, 1, 9))
    assert history.drops() == []  # nothing of it is on disk yet
    written = history.writes()
    assert history.drops() == [Drop("history", written[0].keys)]
    assert len(written[0].keys) == 1


# -- queues of a file --------------------------------------------------------------------------------------------------


FILE = FederationFile("f", (GlobalMasterEntry("g0", "127.0.0.1:1"), GlobalMasterEntry("g1", "127.0.0.1:2")),
                      (ClusterEntry("a", "127.0.0.1:3", "127.0.0.1:4"),),
                      (QueueEntry("a", 2.0), QueueEntry("b"), QueueEntry("c"), QueueEntry("d", owner="g1"),
                       QueueEntry("a/x", 3.0)))


def toml(**changes):
    return msgspec.toml.encode(structs.replace(FILE, **changes))


@pytest.fixture(name="role")
def fixture_node():
    fact = first_queues(FILE)
    return SimpleNamespace(queues=fact, layout=FILE.layout())


def test_masters_take_queues_in_turn_where_the_file_names_none():
    leaves, inner = setups_of(FILE)
    assert [(queue.path, queue.owner) for queue in leaves] == [("b", 0), ("c", 1), ("d", 1), ("a/x", 1)]
    assert [(queue.path, queue.owner, queue.weight) for queue in inner] == [("a", 0, 2.0)]


def test_a_plan_names_what_comes_goes_and_changes(role):
    queues = (QueueEntry("a", 5.0), QueueEntry("b", 4.0), QueueEntry("d", owner="g1"), QueueEntry("a/x", 3.0),
              QueueEntry("e", 2.0))
    plan = plan_of(role, FILE, toml(queue=queues, order="drf"))
    assert [(each.kind, each.what, each.before, each.after) for each in plan.changes] == [
        ("change", "queue a: weight", "2", "5"), ("change", "queue b: weight", "1", "4"),
        ("remove", "queue c", "weight 1", ""), ("add", "queue e", "", "weight 2"),
        ("change", "order", "round-robin", "drf")]
    assert plan.warnings == ("queue c takes no jobs any more; what it has is served until it has ended",)
    assert plan.version == 1
    assert plan_of(role, FILE, toml()).changes == ()


@pytest.mark.parametrize(("error", "words", "changes"), [
    (InvalidError, "configuration: order: must be one of", {"order": "by hand"}),
    (InvalidError, "configuration: queue", {"queue": (QueueEntry("a", -1.0),)}),
    (InvalidError, "configuration: queue", {"queue": ()}),
    (RefusedError, "configuration: name differs; that takes a restart", {"name": "other"}),
    (RefusedError, "queue d: its jobs are with another global master", {"queue": (QueueEntry("d", owner="g0"),)}),
])
def test_a_configuration_that_cannot_be_applied_is_refused(role, error, words, changes):
    with pytest.raises(error, match=words):
        new_queues(role, FILE, toml(**changes))


def test_queues_that_were_applied_are_there_after_a_restart_whatever_the_file_says():
    world = world_of()
    role = world.masters[0].role
    first = structs.replace(role.queues.queues[0], weight=7.0)
    role.apply(structs.replace(role.queues, version=2, queues=(first, *role.queues.queues[1:])))
    world.call_soon(world.masters[0])
    world.until(world.now + 0.1)
    for process in world.locals:  # who would say it again
        world.kill(process)
    world.kill(world.masters[0])
    world.start(world.masters[0])
    world.until(world.now + 0.5)
    queues = world.masters[0].role.queues
    assert (queues.version, queues.queues[0].weight) == (2, 7.0)


def test_a_queue_that_was_removed_has_no_turn_once_its_last_job_has_ended():
    world = world_of(jobs=[JobCase(2.0, "client", JOB, (((3.0, 0),),))])
    world.until(3.0)
    role = world.masters[0].role
    gone = structs.replace(role.queues.queues[0], path="")
    role.apply(structs.replace(role.queues, version=2, queues=(gone, *role.queues.queues[1:])))
    world.call_soon(world.masters[0])
    world.until(4.0)
    assert 0 in role.master.own
    world.until(8.0)
    assert len(world.watch.finished) == 1 and 0 not in role.master.own


def test_what_was_written_of_a_job_is_not_written_again():
    world = world_of(jobs=[JobCase(2.0, "client", job_again(retries=1, backoff_s=9.0), (((0.5, 1), (0.5, 0)),))])
    world.until(4.0)
    book = world.masters[0].role.book
    (job,) = book.of_number.values()
    assert not book.due and book.writes(np.arange(*job.places.indices(1 << 30)), 5.0) == []


# -- jobs and machines as they are shown -------------------------------------------------------------------------------


def test_a_task_is_of_the_stage_that_its_index_falls_into():
    stages = tuple(structs.replace(JOB.stages[0], name=name, tasks=tasks)
                   for name, tasks in (("a", 2), ("b", 3), ("c", 1)))
    known = Known("g0-1", None, structs.replace(JOB, stages=stages), 6, 0, [], None)
    assert "".join(known.stage_of(index).name for index in range(6)) == "aabbbc"
    with pytest.raises(IndexError):
        known.stage_of(6)


def test_a_machine_is_shown_as_its_local_master_says():
    world = world_of()
    role, number = world.masters[0].role, number_of(world)
    fact = read_machine(role.facts.known[MACHINE, number].body)
    view = machine_view(role, FILE, number, fact, running_on(role))
    assert (view.state, view.reason, view.capacity, view.used) == (
        "ready", "", {"cpu": 1000, "memory": 1024}, {"cpu": 0, "memory": 0})
    assert machine_view(role, FILE, number, structs.replace(fact, joining=True), running_on(role)).state == "joining"
    role.master.listed[number] = False
    view = machine_view(role, FILE, number, structs.replace(fact, joining=True), running_on(role))
    assert (view.state, view.reason) == ("unknown", "its local master has not heard of it yet")
    role.master.listed[number], role.master.fleet.capacity[:, number] = True, 0
    assert machine_view(role, FILE, number, fact, running_on(role)).state == "lost"


def answers_to(world, *asks):
    """What a local master answers to questions."""
    role, found = world.masters[0].role, []
    take = role.on_frame
    role.on_frame = lambda peer, frame: (found.append(frame), take(peer, frame))
    for each in asks:
        role.frame_to((LOCAL_MASTER, 0), each)
    world.call_soon(world.masters[0])
    world.until(world.now + 0.2)
    return [(each.number, each.problem) for each in found]


def test_a_question_about_a_machine_that_is_not_there_is_answered():
    world = world_of()
    world.kill(world.machines.all[0].process)
    world.until(world.now + 0.1)
    assert answers_to(world, Ask(4, "logs stdout", 63), Ask(5, "logs stdout", number_of(world))) == [
        (4, "machine 63: there is none"), (5, UNREACHABLE)]


def test_a_machine_may_have_nothing_of_a_resource_and_not_less():
    world = world_of(machines=0)
    role = world.locals[0].role
    join = SimpleNamespace(name="m", identity="i", machine=-1, capacity=(1000, 0), attributes={}, is_known=False)
    assert role._refusal((1, -1), join) == ""
    join.capacity = (1000, -1)
    assert role._refusal((1, -1), join) == "machine m: has 2 resources, not 2"
    join.capacity = (1000,)
    with pytest.raises(FrameError, match="has 1 resources, not 2"):
        role._join((1, -1), join)


def test_an_outbox_that_ran_over_ends_the_process():
    role = world_of(machines=0).masters[0].role
    role.services[GLOBAL_MASTER] = lambda now, count: setattr(role.out.counts, "overrun", 1)
    role.pending.append((GLOBAL_MASTER, PLACE, role.message(kind=PLACE, to=0, sender=0)))
    with pytest.raises(DefectError, match="the outbox of a global master ran over: "):
        role.receive(99.0)


def job_again(**changes):
    return structs.replace(JOB, stages=(structs.replace(JOB.stages[0], **changes),))


def test_a_task_that_is_to_be_tried_again_later_is_also_after_a_restart():
    world = world_of(jobs=[JobCase(2.0, "client", job_again(retries=1, backoff_s=3.0), (((0.5, 1), (0.5, 0)),))])
    world.until(4.0)
    master = world.masters[0]
    (job,) = master.role.book.of_number.values()
    assert master.role.jobs.state[job.places] == [SUBMISSION_BACKOFF]
    world.kill(master)
    world.start(master)
    world.until(6.5)
    assert master.role.book.of_number and not world.watch.alive
    world.until(10.0)
    assert not master.role.book.of_number
    assert [*world.watch.tries.values()] == [2]


def test_after_its_second_failure_a_task_pauses_twice_as_long_also_after_a_restart():
    world = world_of(jobs=[JobCase(2.0, "client", job_again(retries=2, backoff_s=2.0),
                                   (((0.1, 1), (0.1, 1), (0.1, 0)),))])
    world.until(5.5)  # failed at 2.1 and at 4.2 or so, and is to be tried again 4 seconds later
    master = world.masters[0]
    (job,) = master.role.book.of_number.values()
    assert (master.role.jobs.state[job.places], master.role.jobs.ending["failed"][job.places]) == (
        [SUBMISSION_BACKOFF], [2])
    world.kill(master)
    world.start(master)
    begun = world.now
    while master.role.book.of_number:
        world.until(world.now + 0.1)
        assert world.now < 20.0
    assert begun + 4.0 <= world.now <= begun + 5.0


def test_a_gang_that_waits_starts_together_also_after_a_restart():
    world = world_of(jobs=[JobCase(2.0, "client", job_again(tasks=2, gang=True), (((0.5, 0),),) * 2)])
    world.until(3.0)
    world.kill(world.masters[0])
    world.start(world.masters[0])
    world.until(6.0)
    assert not world.watch.tries  # there is room for one of them
    world.machines.add(world.case.machines[0])
    world.until(12.0)
    assert len(world.watch.finished) == 2


def test_a_task_waits_no_longer_than_it_may_also_after_a_restart():
    world = world_of(machines=0, jobs=[JobCase(2.0, "client", job_again(wait_limit_s=4.0), (((0.5, 0),),))])
    world.until(3.0)
    master = world.masters[0]
    world.kill(master)
    world.start(master)
    world.until(6.5)
    (job,) = master.role.book.of_number.values()
    assert not job.has_ended
    world.until(8.0)
    assert job.has_ended and not world.watch.tries
    assert master.role.book.now["reason"][job.places].tolist() == [WAITED_TOO_LONG]


def test_what_machines_have_and_what_of_it_is_used_is_counted_to_the_last_unit():
    rooms = world_of(machines=0).layout.rooms
    case = Case(1, Layout(1, 1, ("cpu", "memory"), False, rooms), Timing(), (
        MachineCase(0, (1, 7), "", False), MachineCase(0, (0, 5), "", False)), (QueueSetup("a", 0),), "round-robin",
        (JobCase(2.0, "client", job_again(resources={"cpu": 1, "memory": 3}), (((9.0, 0),),)),), (), (), (), 0.0, 0.0,
        0.0, 0.0)
    world = World(case)
    begin(world)
    world.until(4.0)
    assert total_of(world.masters[0].role) == ({"cpu": 1, "memory": 12}, {"cpu": 1, "memory": 3})


def test_a_removal_that_a_local_master_has_yet_to_hear_of_says_so():
    world = world_of(machines=1)
    file = SimpleNamespace(name_of_local=lambda local: f"local {local}", clusters=lambda: {
        0: SimpleNamespace(name="a")})
    role, number = world.masters[0].role, number_of(world)
    view = machine_view(role, file, number, read_machine(role.facts.known[MACHINE, number].body), running_on(role))
    after = removed_view(role, file, number, view)
    assert (after.state, after.tasks, after.reason) == ("absent", 0, "removed")
    world.kill(world.locals[1])
    world.until(world.now + 1.0)
    assert removed_view(role, file, number, view).reason == (
        f"removed; local {STANDBYS} cannot be reached now, and is told when it is back")


def test_a_start_that_has_ended_is_not_begun_again_after_a_restart():
    ledger = Ledger(8, Lease(6.0, 0.5))
    ledger.restore([Seen(1, 0, 2, 0b1), Ended(Key(7, 1), Fence(1, 0, 5), Ending(EXITED))])
    assert ledger.seen == Seen(1, 0, 5, 0b1001)


@pytest.mark.parametrize("is_done", [None, False, True])
def test_an_answer_comes_to_who_still_waits_for_it(is_done):
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    if is_done:
        future.set_result("before")
    service = SimpleNamespace(answers={} if is_done is None else {7: future})
    answer = Answer(7, b"", "")
    GlobalMasterService.on_effect(service, Answered(answer))
    assert not service.answers
    assert future.done() is (is_done is not None)
    assert not future.done() or future.result() == ("before" if is_done else answer)
    loop.close()


@pytest.mark.parametrize(("why", "code"), [(INVALID, 126), (OLD_START, 0)])
def test_what_an_agent_refuses_is_over_and_forgotten_by_its_worker(why, code):
    world = world_of(jobs=[JobCase(2.0, "client", JOB, (((30.0, 0),),))])
    world.until(3.0)
    role = world.machines.all[0].process.role
    (key,) = role.alive
    role.halting.add(key)  # a kill had been on its way
    role.on_events([Refused(key, why)])
    role.receive(role.now)
    assert not role.alive and not role.halting
    (row,) = role._used().values()
    assert (row["state"], row["code"]) == (WORKER_ENDED, code)


@pytest.mark.parametrize(("peer", "frame"), [
    ((GLOBAL_MASTER, 0), Answer(1, b"", "")), ((GLOBAL_MASTER, 0), Leave()), ((WORKER, 0), Ask(1, "cordon", 0)),
    ((WORKER, 0), Retract(())), ((LOCAL_MASTER, STANDBYS), Leave()), ((WORKER, 0), Answer(99, b"", ""))])
def test_a_local_master_takes_each_frame_from_its_role_alone(peer, frame):
    role = world_of().locals[0].role
    with pytest.raises(FrameError, match=r"^a frame \w+ that is not for a local master$"):
        role.on_frame(peer, frame)


@pytest.mark.parametrize(("ends", "code"), [(lambda: None, 0), (lambda: sys.exit(2), 2), (lambda: sys.exit("x"), 1),
                                            (lambda: 1 // 0, 1)])
def test_an_agent_under_guard_ends_with_its_code(ends, code, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    child = os.fork()
    if child == 0:
        guard._end_with(ends, ())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code


# -- the agent --------------------------------------------------------------------------------------------------------


GOOD = Settings("state", 0)


@pytest.mark.parametrize(("field", "least", "most"), [
    ("machine", 0, (1 << 31) - 1), ("lease_s", 0.1, 1e9), ("room", 1, None), ("output_bytes", 4096, None),
    ("idle_s", 0.1, 1e9), ("kept_bytes", 0, None)])
def test_settings_of_an_agent_are_within_their_limits(tmp_path, field, least, most):
    good = GOOD._replace(state=tmp_path, lease_grace_s=0.0)
    for value in (least, most):
        if value is not None:
            assert getattr(checked(good._replace(**{field: value})), field) == value
    step = 0.001 if isinstance(least, float) else 1
    for value in (least - step, *(() if most is None else (most + max(step, most / 1e9),))):
        with pytest.raises(InputError, match=f"not {value}|and is {value}"):
            checked(good._replace(**{field: value}))


def test_the_grace_of_a_lease_is_within_half_of_it(tmp_path):
    assert checked(GOOD._replace(state=tmp_path, lease_s=4.0, lease_grace_s=2.0)).lease_grace_s == 2.0
    for grace in (2.001, -0.001):
        with pytest.raises(InputError, match="must be within half of --lease"):
            checked(GOOD._replace(state=tmp_path, lease_s=4.0, lease_grace_s=grace))


def test_a_frame_is_neither_empty_nor_longer_than_the_longest():
    def cut(*parts):
        frames = Frames()
        for part in parts:
            frames.add(part)
        return list(frames.cut())

    longest = FRAME_BYTES_MAX.to_bytes(LENGTH_BYTES, "big") + bytes(FRAME_BYTES_MAX)
    assert [len(body) for body in cut(b"\0\0\0\1x", longest, b"\0\0\0\2y")] == [1, FRAME_BYTES_MAX]
    for length in (0, FRAME_BYTES_MAX + 1):
        with pytest.raises(WireError, match=f"a frame of {length} bytes"):
            cut(length.to_bytes(LENGTH_BYTES, "big"))


def test_a_journal_is_written_anew_when_it_has_grown_to_twice_what_it_says(tmp_path, monkeypatch):
    kept = Journal(tmp_path / "journal")
    assert (kept.size, kept.rewrite_at, kept.read()) == (0, SLACK_BYTES, [])
    records = [Forgotten(Key(number, 1)) for number in range(100)]
    kept.append(records)
    whole = kept.size
    kept.rewrite(records[:10])
    assert (kept.size, kept.rewrite_at) == (whole // 10, 2 * (whole // 10) + SLACK_BYTES)
    assert not kept.is_long()
    kept.size = kept.rewrite_at + 1
    assert kept.is_long()
    kept.size = whole // 10

    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(journal, "_write_all", full)
    kept.rewrite(records[:5])
    assert kept.rewrite_at == 2 * (whole // 10) + SLACK_BYTES
    assert kept.read() == records[:10]
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]
    kept.close()


def test_output_is_its_users_own_and_what_is_not_there_has_nothing(tmp_path):
    outputs = Outputs(tmp_path / "out", 1 << 20, 1 << 20, 10)
    out, err = outputs.open(Key(1, 2))
    assert stat.S_IMODE(os.fstat(out).st_mode) == stat.S_IMODE(os.fstat(err).st_mode) == 0o600
    os.write(out, b"x")
    for each in (out, err):
        os.close(each)
    outputs.end(Key(1, 2))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["1.2.out"]  # one byte stays, nothing goes
    assert outputs.read(Key(1, 2), "out", -1, 10) == (0, b"x", 1)
    assert outputs.read(Key(7, 2), "out", -5, 10) == (0, b"", 0)
    assert outputs.read(Key(7, 2), "out", 5, 10) == (5, b"", 0)


def test_children_are_found_where_linux_does_not_list_them(tmp_path, monkeypatch):
    monkeypatch.setattr(proc, "PROC", tmp_path)
    there = {pid: proc.Process(parent, 1, False, 0, 0.0) for pid, parent in ((10, 5), (11, 6), (12, 5))}
    monkeypatch.setattr(proc, "all_processes", lambda: there)
    assert proc.children(5) == [10, 12]


def test_a_command_with_a_path_is_meant_from_its_folder(tmp_path):
    (tmp_path / "bin").mkdir()
    for name, mode in (("run", 0o755), ("text", 0o644)):
        (tmp_path / "bin" / name).write_text("")
        (tmp_path / "bin" / name).chmod(mode)
    find = spawn._find_command
    assert find("bin/run", "", str(tmp_path)) is None
    assert find(str(tmp_path / "bin/run"), "", "/") is None
    assert find("run", str(tmp_path / "bin"), "/") is None
    for name, path, code in (("bin/none", "", NOT_FOUND), ("bin", str(tmp_path), NOT_FOUND),
                             ("./bin", "", NOT_EXECUTABLE), ("bin/text", "", NOT_EXECUTABLE),
                             ("none", str(tmp_path / "bin"), NOT_FOUND)):
        assert find(name, path, str(tmp_path)).code == code, name


def test_the_end_of_a_watched_file_is_told_once_and_a_signal_ends_a_wait(tmp_path):
    wires, told = Connections(tmp_path / "socket"), []
    try:
        assert not wires.awake.getblocking()
        reader, writer = os.pipe()
        wires.watch(reader, lambda: told.append(1))
        assert wires.wait(0.0) == []
        os.close(writer)
        for _ in range(2):
            assert wires.wait(0.0) == []
        assert told == [1]
        os.close(reader)
        wires.waker.send(b"x" * 10_000)
        for _ in range(4):  # what is left of it ends the next wait, and none waits for more
            assert wires.wait(0.0) == []
    finally:
        wires.close()


@given(text=st.lists(st.sampled_from([b"", b"a", b"bc", b"long enough for two blocks"]), max_size=9),
       lines=st.integers(1, 12), first=st.integers(0, 5), ends=st.booleans())
def test_the_last_lines_are_found_block_by_block_as_if_all_were_read(text, lines, first, ends):
    data = b"\n".join(text) + (b"\n" if ends else b"")
    first = min(first, len(data))
    kept = data[first:].splitlines(keepends=True)
    wanted = len(data) - sum(map(len, kept[-lines:]))
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        file.write(data)
        file.flush()
        patch.setattr(output, "OUTPUT_BYTES_MAX", 7)
        assert output._last_lines(file.fileno(), lines, first, len(data)) == wanted


# -- queues ------------------------------------------------------------------------------------------------------------


def test_a_job_that_names_no_queue_goes_to_the_first_that_is_there():
    queues = QueuesFact(1, (QueueSetup("", 0), QueueSetup("web", 1), QueueSetup("a", 0)))
    assert [queues.of_job(path) for path in ("default", "a", "b")] == ["web", "a", "b"]
    assert QueuesFact(1, (QueueSetup("a", 0), QueueSetup("default", 1))).of_job("default") == "default"
    assert QueuesFact(1, ()).of_job("default") == "default"


def test_a_page_of_machines_looks_at_its_own_and_goes_on_behind_one_that_is_gone(monkeypatch):
    """Every page looked at every machine, and at every task for each of them."""
    world = world_of(machines=7)
    role, looked = world.masters[0].role, []
    service = GlobalMasterService(SimpleNamespace(role=role), None, FILE)
    monkeypatch.setattr("subak.live.service.service.machine_view", lambda role, file, number, machine, running: (
        looked.append(number), machine_view(role, file, number, machine, running))[1])
    first = asyncio.run(service.machines("", "", 3))
    assert [machine.name for machine in first.items] == ["m0", "m1", "m2"]
    assert (len(looked), first.cursor) == (3, "m3")
    number = next(number for number, machine in service._machines().items() if machine.name == "m3")
    fact = role.facts.known[MACHINE, number]
    role.facts.note(structs.replace(fact, version=fact.version + 1, body=msgspec.msgpack.encode(
        structs.replace(read_machine(fact.body), gone=True))))
    rest = asyncio.run(service.machines("", first.cursor, 3))
    assert ([machine.name for machine in rest.items], rest.cursor) == (["m4", "m5", "m6"], "")
    assert asyncio.run(service.machines("elsewhere", "", 3)).items == ()
