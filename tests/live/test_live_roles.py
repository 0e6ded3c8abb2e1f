"""Roles among each other, by hand: what a federation of them does beyond the rules of test_rules.py."""
import math

import numpy as np
import pytest
from msgspec import msgpack, structs

from subak.errors import RunError
from subak.federation.megha.jobs import OUTCOME_CANCELLED
from subak.federation.megha.ledger import ENTRY, ENTRY_GAVE, ENTRY_GONE, ENTRY_SIZED, ENTRY_TOOK, ENTRY_WHOLE
from subak.federation.megha.local_master.state import LISTED, LOST_MACHINE
from subak.federation.messages import (
    DONE,
    ENDED,
    GLOBAL_MASTER,
    GO,
    HOLD_BACK,
    LAUNCH,
    LOCAL_MASTER,
    MESSAGE,
    NOBODY,
    NOBODYS,
    NOTED,
    REASONS,
    START,
    TICK,
    WAKE,
    WORKER,
)
from subak.live.jobfile.spec import TASKS, JobSpec, Metadata, Stage
from subak.live.role import master
from subak.live.role.base import Cut
from subak.live.role.facts import MACHINE, read_machine
from subak.live.role.frames import Answer, Ask, Batch, Dismissed, FrameError, Join, Outgoing
from subak.live.role.global_master import global_role
from subak.live.role.global_master.queues import QueueSetup, QueuesFact
from subak.live.role.layout import STANDBYS, Layout, Timing
from subak.live.role.removal import REMOVE, is_free_again, remove, settle_removal
from subak.live.role.worker.worker_role import STATE_VERSION, Ping, WorkerRole
from subak.live.service.views import preempted_by
from subak.live.torture.case import ROOMS, Case, JobCase, MachineCase, Wish
from subak.live.torture.world import World
from worlds import begin

JOB = JobSpec(Metadata("job"), "a", (Stage("s", ("job", "0", "0"), tasks=1, resources={"cpu": 1000}),))


def world_of(jobs=(), machines=1, standby=True, timing=Timing(), rooms=ROOMS, wishes=()):
    """A world that has met: one global master, a cluster, machines of one core."""
    case = Case(1, Layout(1, 1, ("cpu", "memory"), standby, rooms), timing,
                tuple(MachineCase(0, (1000, 1024), "", False) for _ in range(machines)),
                (QueueSetup("a", 0), QueueSetup("b", 0)),
                "round-robin", tuple(jobs), tuple(wishes), (), (), 0.0, 0.0, 0.0, 0.0)
    world = World(case)
    begin(world)
    world.until(2.0)
    return world


def ask(world, words, machine):
    role = world.masters[0].role
    assert role.ask(Ask(1, words, machine))
    world.call_soon(world.masters[0])
    world.until(world.now + 0.1)


def number_of(world, machine=0):
    return world.machines.all[machine].process.peer[1]


def test_a_machine_runs_as_many_tasks_as_it_may_know_and_another_waits():
    """Its worker refused what it had no row for, and was asked again at once, a durable round each time."""
    layout = Layout(1, 1, ("cpu", TASKS), True, structs.replace(ROOMS, attempts_each=5))
    assert layout.tasks_each == 2
    job = JobSpec(Metadata("job"), "a", (Stage("s", ("job", "0"), tasks=5, resources={"cpu": 1}),))
    case = Case(1, layout, Timing(), (MachineCase(0, (1000, layout.tasks_each), "", False),), (QueueSetup("a", 0),),
                "round-robin", (JobCase(2.0, "client", job, (((3.0, 0),),) * 5),), (), (), (), 0.0, 0.0, 0.0, 0.0)
    world = World(case)
    begin(world)
    world.until(4.0)
    assert len(world.watch.alive) == 2
    world.until(14.0)
    assert len(world.watch.finished) == 5
    local = world.locals[0].role.local
    assert local.tally.accepted == 5 and local.tally.refused_not_free == 0
    assert world.masters[0].role.master.tally.refusals == 0


def test_a_cordon_holds_beyond_a_failover():
    world = world_of(jobs=[JobCase(14.0, "client", JOB, (((1.0, 0),),))])
    machine = number_of(world)
    ask(world, "cordon", machine)
    world.kill(world.locals[0])
    world.until(13.0)
    local = world.locals[1].role
    assert local.local.standing.active
    assert local.machines[machine].cordoned
    world.until(20.0)
    assert not world.watch.tries  # the job waits
    ask(world, "uncordon", machine)
    world.until(25.0)
    assert len(world.watch.finished) == 1


@pytest.mark.parametrize("killed_after", [0.03, 0.3, 1.2])
@pytest.mark.parametrize("apart", [0.0, 0.05, 0.3, 0.9, 1.9])
@pytest.mark.parametrize("order", [1, -1])
def test_a_task_outlives_a_failover_of_two_masters_that_were_just_started(order, apart, killed_after):
    """Both may take over, as neither has heard the other; the one of the later epoch is killed soon after."""
    world = world_of(jobs=[JobCase(2.0, "client", JOB, (((100.0, 0),),))])
    world.until(5.0)
    assert len(world.watch.alive) == 1
    for local in world.locals:
        world.kill(local)
    for local in world.locals[::order]:
        world.start(local)
        world.until(world.now + apart)
    while not any(local.role.local.standing.active for local in world.locals) or world.now < 7.05 + apart:
        world.until(world.now + 0.01)
    world.until(world.now + killed_after)
    left, latest = sorted(world.locals, key=lambda local: local.role.local.standing.epoch)
    world.kill(latest)
    world.until(world.now + 5.0 / 6.0 * world.timing.lease)
    me = left.role.local
    assert me.standing.active and me.machine["state"][number_of(world)] == LISTED
    world.until(world.now + 3.0 * world.timing.lease)
    assert dict(world.watch.tries) == {(0, 0): 1} and len(world.watch.alive) == 1


def test_one_answer_comes_to_a_question_that_both_masters_are_asked():
    world = world_of()
    answers = []
    role = world.masters[0].role
    plain = role.on_frame
    role.on_frame = lambda peer, frame: (answers.append((peer, frame.number)), plain(peer, frame))
    ask(world, "cordon", number_of(world))
    assert sorted(answers) == [((LOCAL_MASTER, 0), 1), ((LOCAL_MASTER, STANDBYS), 0)]


def pings(world, until):
    """When the agent of the first machine was told that its worker lives."""
    process, found = world.machines.all[0].process, []
    agent = world.machines.all[0].agent
    plain = agent.ping
    agent.ping = lambda: (found.append(world.now), plain())
    world.until(until)
    assert process.role is not None
    return found


def test_an_agent_hears_of_its_worker_only_while_a_master_does():
    world = world_of(standby=False)
    heard = pings(world, 8.0)
    assert 5 <= len(heard) <= 8  # with each answered sign of life, a sixth of the lease apart
    world.kill(world.locals[0])
    assert pings(world, 30.0) == []


@pytest.mark.parametrize("returns", [False, True])
def test_what_runs_ends_when_no_master_is_heard_though_the_worker_dies_just_before(returns):
    """The worker is cut off, and killed when the lease is nearly over: nothing goes on for a lease of its own then.

    Nor does it when the worker *returns*, and attaches to its agent again, just before it is killed once more.
    """
    world = world_of(jobs=[JobCase(3.0, "client", JOB, (((100.0, 0),),))], standby=False)
    world.until(4.0)
    machine, lease = world.machines.all[0], world.timing.lease
    assert len(world.watch.alive) == 1
    world.kill(world.locals[0])
    cut_at = world.now
    world.until(cut_at + 0.6 * lease)
    world.kill(machine.process)
    if returns:
        world.machines.start_worker(machine)
        world.until(world.now + 0.01)
        world.kill(machine.process)
    world.until(cut_at + lease)
    assert not world.watch.alive


def test_a_lease_is_begun_by_nothing_else():
    role = world_of().machines.all[0].process.role
    role.effects = []
    role.tell(TICK, machine=role.number, incarnation=int(role.me["incarnation"]))
    ready = role.receive(role.now + 0.01)
    assert not [effect for effect in ready.effects if isinstance(effect, Ping)]


def come_too_late(world, monkeypatch):
    """Let answers come too late from 2 s to 14 s to begin the agent's lease anew."""
    lease, fresh = world.timing.agent_lease, world.timing.fresh
    monkeypatch.setattr(Timing, "agent_lease", property(lambda _: lease))
    monkeypatch.setattr(Timing, "fresh", property(lambda _: -1.0 if 2.0 <= world.now < 14.0 else fresh))


@pytest.mark.parametrize("arrival", [6.0, 9.0])
def test_a_task_waits_on_its_machine_while_the_agents_lease_is_nearly_over(arrival, monkeypatch):
    """Answers come too late from 2 s to 14 s to begin the lease anew, and soon enough for the worker to go on.

    Were it begun, the agent would refuse it, or end it at once in the last half second of its lease, which is over
    at 6.26 s; it would be lost, placed again and refused again all the while.
    """
    world = world_of(jobs=[JobCase(arrival, "client", JOB, (((2.0, 0),),))], standby=False)
    assert world.machines.all[0].process.role.pinged == pytest.approx(1.26, abs=0.01)
    come_too_late(world, monkeypatch)
    world.until(13.5)
    assert not world.watch.tries and world.machines.all[0].process.role.held_back
    world.until(20.0)
    assert dict(world.watch.tries) == {(0, 0): 1} and not world.watch.alive
    assert not world.machines.all[0].process.role.held_back
    assert world.locals[0].role.local.tally.accepted == 1


def test_what_was_held_back_is_not_begun_once_it_was_cancelled(monkeypatch):
    world = world_of(jobs=[JobCase(9.0, "client", JOB, (((2.0, 0),),))], standby=False)
    come_too_late(world, monkeypatch)
    world.until(12.0)
    assert world.machines.all[0].process.role.held_back
    ask(world, "drain", number_of(world))
    world.until(20.0)
    assert not world.watch.tries and not world.machines.all[0].process.role.held_back


def test_the_shares_of_queues_are_their_guarantees_in_the_tree():
    world = world_of()
    role = world.masters[0].role
    queues = (QueueSetup("a", 0, 1.0), QueueSetup("b/x", 0, 5.0), QueueSetup("b/y", 0, 5.0), QueueSetup("", 0, 9.0))
    role.apply(QueuesFact(2, queues, "drf", (QueueSetup("b", 0, 3.0),)))
    assert role.topology.queue["share"][:4].tolist() == [0.25, 0.375, 0.375, 0.0]


def test_a_machine_is_nobodys_who_was_deposed_before_the_other_one_knew_it():
    """The standby takes over while it knows no machine; the former speaker must not begin anything there."""
    world = world_of(machines=0)
    first, standby = world.locals
    world.network.hold_apart(frozenset((first.name, standby.name)), 1)
    world.until(world.now + 3.0)
    assert standby.role.local.standing.active
    assert first.role.local.standing.active
    apart = frozenset((standby.name, "m0"))
    world.network.hold_apart(apart, 1)
    world.machines.add(MachineCase(0, (1000, 1024), "", False))
    world.until(world.now + 1.0)
    worker = world.machines.all[0].process.role
    assert worker.known_to == {first.role.number}
    assert worker.me["configuration"] == NOBODY
    world.network.hold_apart(apart, -1)
    while worker.me["configuration"] == NOBODY:
        world.until(world.now + 0.0002)
    assert worker.me["epoch"] == standby.role.local.standing.epoch > 0


def test_nothing_is_sent_to_a_machine_that_joins_before_both_masters_know_it():
    """The first master is gone when a machine comes: its worker would refuse each order, and get the next at once."""
    world = world_of(machines=0, jobs=[JobCase(14.0, "client", JOB, (((1.0, 0),),))])
    first, standby = world.locals
    world.kill(first)
    world.until(13.0)
    world.machines.add(MachineCase(0, (1000, 1024), "", False))
    world.until(16.0)
    worker, machine = world.machines.all[0].process.role, number_of(world)
    facts = world.masters[0].role.facts.known
    assert standby.role.machines[machine].joining
    assert read_machine(facts[MACHINE, machine].body).joining
    before = world.masters[0].role.handled, standby.role.handled, worker.handled
    world.until(26.0)
    assert not world.watch.tries  # the job waits
    after = world.masters[0].role.handled, standby.role.handled, worker.handled
    assert [later - earlier < 100 for earlier, later in zip(before, after, strict=True)] == [True, True, True]
    world.start(first)
    world.until(30.0)
    assert not standby.role.machines[machine].joining
    assert len(world.watch.finished) == 1


def test_it_is_said_for_which_queue_a_task_was_preempted():
    job = structs.replace(JOB, stages=(structs.replace(JOB.stages[0], tasks=2),))
    other = structs.replace(JOB, queue="b", stages=(structs.replace(JOB.stages[0], command=("job", "1", "0")),))
    jobs = JobCase(2.5, "long", job, (((5.0, 0),), ((5.0, 0),))), JobCase(3.5, "short", other, (((1.0, 0),),))
    world = world_of(jobs, machines=2, timing=Timing(preemption="strict", preemptions_max=1))
    book, queues = world.masters[0].role.book, world.masters[0].role.queues
    world.until(4.0)
    happened = [event for job in book.of_number.values() for event in job.history.events]
    (preempted,) = (event for event in happened if event.what == "attempt lost")
    assert preempted_by(preempted, queues) == ("b", "that queue was below its share")
    (row,) = (row for row in book.now if row["number"] >= 0 and row["preempted"])
    assert row["lost"] == 0
    world.until(12.0)
    assert len(world.watch.finished) == 3


def test_more_tasks_are_cancelled_than_the_outbox_holds(monkeypatch):
    monkeypatch.setattr(global_role, "GANG_MAX", 1)
    monkeypatch.setattr(master, "POSTS", 1)
    count = 600
    job = structs.replace(JOB, stages=(structs.replace(JOB.stages[0], tasks=count),))
    world = world_of([JobCase(3.0, "array", job, (((30.0, 0),),) * count)], rooms=structs.replace(ROOMS, tasks=1024),
                     wishes=[Wish(5.0, "cancel", 0)])
    assert world.masters[0].role.out.row.size < count / 2
    world.until(4.5)
    assert world.masters[0].role.master.counts.queued == count - 1
    world.until(20.0)
    role = world.masters[0].role
    assert role.master.counts.queued == 0
    assert (role.jobs.ending["outcome"] == OUTCOME_CANCELLED).sum() == count


def messages(kind, sender, **fields):
    rows = np.zeros(1, MESSAGE)
    for name in (*NOBODYS, "machine", "task"):
        rows[name] = NOBODY
    rows["kind"], rows["sender"] = kind, sender
    for name, value in fields.items():
        rows[name] = value
    return rows


@pytest.mark.parametrize(("to", "peer", "kind", "fields"), [
    ("g", (LOCAL_MASTER, 0), DONE, {"row": 0, "task": 0}),  # a submitter's, said within a process
    ("g", (LOCAL_MASTER, 0), ENDED, {"machine": 0, "row": 0, "reason": -1}),
    ("g", (LOCAL_MASTER, 0), ENDED, {"machine": 0, "row": 0, "reason": len(REASONS)}),
    ("g", (LOCAL_MASTER, 0), ENDED, {"machine": -2}),
    ("l", (WORKER, 0), NOTED, {}),  # a table of global masters is looked up by its sender
    ("l", (GLOBAL_MASTER, 0), LAUNCH, {"machine": 0, "row": 0, "owner": 0, "queue": 0, "shape": NOBODY}),
    ("l", (GLOBAL_MASTER, 0), GO, {"machine": NOBODY}),
    ("m", (LOCAL_MASTER, 0), START, {"machine": 0, "shape": NOBODY}),
    ("m", (LOCAL_MASTER, 0), START, {"machine": 0, "shape": 0, "limit": math.nan}),
    ("l", (GLOBAL_MASTER, 0), HOLD_BACK, {"machine": 0, "delay": -1.0}),
    ("l", (GLOBAL_MASTER, 0), HOLD_BACK, {"machine": 0, "delay": math.nan}),
])
def test_messages_that_name_what_is_not_there_are_refused(to, peer, kind, fields):
    world = world_of()
    role = {"g": world.masters[0], "l": world.locals[0], "m": world.machines.all[0].process}[to].role
    with pytest.raises(FrameError):
        role.taken(peer, Batch(messages(kind, peer[1], **fields).tobytes()))


@pytest.mark.parametrize(("kind", "fields"), [
    (ENTRY_TOOK, {"machine": NOBODY}), (ENTRY_TOOK, {"shape": NOBODY}), (ENTRY_GAVE, {"queue": NOBODY}),
    (ENTRY_WHOLE, {"machine": NOBODY}), (ENTRY_GONE, {"reason": -1}), (ENTRY_SIZED, {"task": 1 << 20}),
    (ENTRY_TOOK, {"row": 1 << 20}),
])
def test_entries_that_name_what_is_not_there_are_refused(kind, fields):
    role, entries = world_of().masters[0].role, np.zeros(1, ENTRY)
    entries["kind"] = kind
    role.on_entries((LOCAL_MASTER, 0), 0, 0, entries)
    for name, value in fields.items():
        entries[name] = value
    with pytest.raises(FrameError, match="an entry names what is not there"):
        role.on_entries((LOCAL_MASTER, 0), 0, 0, entries)


def test_a_frame_with_such_entries_ends_its_connection():
    role, peer, entries = world_of().masters[0].role, (LOCAL_MASTER, 0), np.zeros(1, ENTRY)
    entries["machine"] = NOBODY
    outgoing = Outgoing()
    outgoing.number = role.links[peer].incoming.number
    ready = role.receive(role.now, [(peer, outgoing.frame(Batch(entries=entries.tobytes())))])
    assert ready.effects == [Cut(peer, "an entry names what is not there")]
    assert peer not in role.links


def test_a_timer_waits_for_a_call_that_comes_anyway_but_not_for_long():
    role = world_of().masters[0].role
    role.timers.clear()
    now, slack = role.now, role.timing.timer_slack
    role.tell(WAKE, delay=1.0)
    assert role.due() == pytest.approx(now + 1.0 + 0.1 * slack)
    role.receive(now + 0.99)
    assert role.timers
    role.receive(now + 1.01)
    assert not role.timers
    role.tell(WAKE, delay=0.1)
    assert role.due() == pytest.approx(now + 1.01 + 0.11)


def test_a_worker_says_that_its_state_is_of_another_version():
    role = world_of().machines.all[0].process.role
    disk = {"state": {0: msgpack.encode(["boot", b"", 0, [0, 0, 0], b"", [0], [], {}])}}  # without places
    with pytest.raises(RunError, match="another version of subak wrote"):
        WorkerRole(0, role.layout, role.timing, disk, role.join, "boot")
    there = msgpack.decode(role._snapshot())
    assert there[-1] == STATE_VERSION
    WorkerRole(0, role.layout, role.timing, {"state": {0: msgpack.encode(there[:-1])}}, role.join, "boot")  # version 1
    disk = {"state": {0: msgpack.encode([*there[:-1], STATE_VERSION + 1, "later"])}}
    with pytest.raises(RunError, match=f"another version of subak wrote.*version {STATE_VERSION + 1} there, "
                                       f"{STATE_VERSION} here"):
        WorkerRole(0, role.layout, role.timing, disk, role.join, "boot")


# -- machines that are gone --------------------------------------------------------------------------------------------


def removal(world, number):
    """Ask for the removal of a machine as the service does; return what was answered, empty where it was done."""
    role = world.masters[0].role
    fact = role.facts.known[MACHINE, number]
    answers = []
    take = world.masters[0].role.on_frame
    role.on_frame = lambda peer, frame: answers.append(frame) if isinstance(frame, Answer) else take(peer, frame)
    assert role.ask(Ask(1, REMOVE + read_machine(fact.body).identity, number, offset=fact.version))
    world.call_soon(world.masters[0])
    world.until(world.now + 0.1)
    if not answers[0].problem:
        settle_removal(role, number)
        world.call_soon(world.masters[0])
        world.until(world.now + 0.1)
    role.on_frame = take
    return answers[0].problem


def lose(world, machine=0):
    """Switch a machine off for good, and wait until it is lost."""
    world.machines.switch_off(world.machines.all[machine])
    world.until(world.now + 10.0)


def test_a_machine_is_removed_only_when_it_is_lost_and_what_ran_there_runs_elsewhere():
    world = world_of(machines=2, jobs=[JobCase(2.5, "client", JOB, (((30.0, 0), (1.0, 0)),))])
    world.until(4.0)
    rows = world.masters[0].role.master.task
    (number,) = {int(row["machine"]) for row in rows if row["machine"] > NOBODY and row["phase"]}
    assert "is not lost" in removal(world, number)
    machine = next(place for place in (0, 1) if number_of(world, place) == number)
    lose(world, machine)
    assert not removal(world, number)
    assert all(local.role.machines[number].removed for local in world.locals)
    world.until(60.0)
    assert len(world.watch.finished) == 1


def test_a_machine_that_was_removed_may_not_come_back():
    world = world_of(machines=1, jobs=[JobCase(20.0, "client", JOB, (((1.0, 0),),))])
    number = number_of(world)
    lose(world)
    assert not removal(world, number)
    told = []
    world.machines.switch_on(world.machines.all[0])
    worker = world.machines.all[0].process.role
    take = worker.on_frame
    worker.on_frame = lambda peer, frame: (told.append((peer, frame)), take(peer, frame))
    world.until(world.now + 20.0)
    dismissed = {peer for peer, frame in told if isinstance(frame, Dismissed)}
    assert dismissed == {(LOCAL_MASTER, 0), (LOCAL_MASTER, STANDBYS)}
    assert not world.watch.tries  # the job waits


def test_a_local_master_that_is_down_hears_of_a_removal_when_it_is_back():
    world = world_of(machines=1)
    number = number_of(world)
    lose(world)
    world.kill(world.locals[1])
    assert not removal(world, number)
    world.start(world.locals[1])
    world.until(world.now + 3.0)
    assert [local.role.machines[number].removed for local in world.locals] == [True, True]


def test_ten_times_the_names_of_machines_pass_through_a_cluster():
    """The places of the local master that a machine asks first are given again and again."""
    world = world_of(machines=0)
    room = world.locals[0].role.layout.machines_each
    numbers = set()
    for serial in range(10 * room):
        for local in (local.role for local in world.locals):
            local.connect((WORKER, local.layout.machines - 1))
        first, second = (local.role for local in world.locals)
        guest = (WORKER, first.layout.machines - 1)
        first._join(guest, Join(-1, f"identity {serial}", f"m{serial}", (1000, 1024), {}))
        (number,) = [place for place, each in first.machines.items() if each.identity == f"identity {serial}"]
        second.connect((WORKER, number))
        second._join((WORKER, number), Join(number, f"identity {serial}", f"m{serial}", (1000, 1024), {}))
        second.disconnect((WORKER, number))
        for role in (first, second):
            role.disconnect(guest)
            role.local.machine[number]["state"] = LOST_MACHINE
            assert not remove(role, Ask(1, f"{REMOVE}identity {serial}", number))
            role.receive(world.now)
        numbers.add(number)
    assert len(numbers) <= room


def test_a_number_is_not_given_again_while_an_attempt_of_its_former_machine_is_known():
    world = world_of(machines=1)
    local, number = world.locals[0].role, number_of(world)
    lose(world)
    assert not removal(world, number)
    assert is_free_again(local, number)
    local.local.rows.first[number] = 0
    assert not is_free_again(local, number)
    with pytest.raises(FrameError, match="its number is"):
        local._join((WORKER, number), Join(number, "another", "another", (1000, 1024), {}))


def test_a_full_cluster_says_which_limit_it_is_and_what_raises_it():
    world = world_of(machines=1)
    local = world.locals[0].role
    local.free = []
    with pytest.raises(FrameError, match=r"all its 32 numbers, of 64 of the cluster: raise machines of \[rooms\]"):
        local._join((WORKER, 63), Join(-1, "another", "another", (1000, 1024), {}))


def test_a_machine_that_has_the_number_of_one_that_was_removed_runs_tasks():
    """It begins at its first incarnation, while the one before it was restarted many times."""
    world = world_of(machines=1, jobs=[JobCase(60.0, "client", JOB, (((1.0, 0),),))])
    old, number = world.machines.all[0], number_of(world)
    for _ in range(4):
        world.kill(old.process)
        world.machines.start_worker(old)
        world.until(world.now + 1.0)
    lose(world)
    assert not removal(world, number)
    for local in world.locals:
        local.role.free = []
    world.machines.add(MachineCase(0, (1000, 1024), "", False))
    world.until(80.0)
    assert number_of(world, 1) == number
    assert len(world.watch.finished) == 1


def test_a_drain_of_a_machine_whose_worker_is_not_connected_says_so():
    world = world_of(machines=1, jobs=[JobCase(2.5, "client", JOB, (((30.0, 0), (1.0, 0)),))])
    world.until(4.0)
    number, local = number_of(world), world.locals[0].role
    world.kill(world.machines.all[0].process)
    world.until(4.5)
    said = []
    local.frame_to = lambda peer, frame: said.append(frame)
    local._ask((GLOBAL_MASTER, 0), Ask(1, "drain", number))
    assert "worker of its machine is not connected" in said[0].problem


# -- machines that leave by themselves ---------------------------------------------------------------------------------


def leave(world, place=0):
    """Let the worker of a machine leave; return what it is told."""
    process, told = world.machines.all[place].process, []
    take = process.role.on_frame
    process.role.on_frame = lambda peer, frame: (told.append(frame), take(peer, frame))
    process.role.leave()
    world.call_soon(process)
    return told


def test_a_machine_that_leaves_ends_what_runs_which_runs_elsewhere_and_is_gone():
    world = world_of(jobs=[JobCase(3.0, "client", JOB, (((6.0, 0), (1.0, 0)),))], machines=2)
    world.until(4.0)
    place = next(place for place, machine in enumerate(world.machines.all) if machine.agent.ledger.rows)
    number = number_of(world, place)
    told = leave(world, place)
    world.until(9.0)
    assert [frame.words for frame in told if isinstance(frame, Dismissed)][:1] == [
        f"machine m{place} was removed from the federation; to join again as another, give its worker a new folder "
        "(data)"]
    assert [process.role.machines[number].removed for process in world.locals] == [True, True]
    assert len(world.watch.finished) == 1
    assert world.watch.beginnings.times[next(iter(world.watch.finished))] == 2
    assert is_free_again(world.locals[0].role, number)


def test_a_machine_does_not_leave_before_the_end_of_what_ran_there_is_noted():
    world = world_of(jobs=[JobCase(3.0, "client", JOB, (((20.0, 0),),))])
    world.until(4.0)
    world.kill(world.masters[0])
    told = leave(world)
    world.until(8.0)
    assert not world.watch.alive
    assert not [frame for frame in told if isinstance(frame, Dismissed)]
    world.start(world.masters[0])
    world.until(12.0)
    assert [frame for frame in told if isinstance(frame, Dismissed)]


def test_a_machine_says_again_that_it_leaves_to_a_local_master_that_was_away():
    world = world_of()
    for process in world.locals:
        world.kill(process)
    world.until(world.now + 1.0)
    told = leave(world)
    world.until(world.now + 20.0)
    assert not told
    for process in world.locals:
        world.start(process)
    world.until(world.now + 20.0)
    assert [frame for frame in told if isinstance(frame, Dismissed)]
    assert [process.role.machines[0].removed for process in world.locals] == [True, True]


def test_nothing_starts_on_a_machine_that_leaves():
    world = world_of(jobs=[JobCase(4.0, "client", JOB, (((1.0, 0),),))])
    world.kill(world.masters[0])
    world.until(3.0)
    world.locals[0].role.local.standing.active = 0  # who speaks lets it go; here nobody does yet
    leave(world)
    world.until(3.5)
    world.locals[0].role.local.standing.active = 1
    world.start(world.masters[0])
    world.until(8.0)
    assert [name for name, _ in world.watch.finished.values()] == ["m1"]  # which has joined in its place
