"""What live roles promise of attempts, by hand: how often a task starts, and what is known of it afterwards."""
import numpy as np
import pytest
from msgspec import msgpack, structs

from subak.errors import RunError
from subak.federation.megha.attempts import add_attempt
from subak.federation.megha.ledger import ENTRY, ENTRY_GAVE, ENTRY_GONE, ENTRY_TOOK, ring_place
from subak.federation.megha.local_master.state import ATTEMPT_HELD, ATTEMPT_RUNNING, end_row
from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.messages import FINISHED_WELL, HAS_FAILED, MACHINE_LOST, NOBODY, NOT_FREE
from subak.live.role.global_master.book import ON_DISK, StoredJob
from subak.live.role.global_master.history import (
    ATTEMPT_FAILED,
    ATTEMPT_LOST,
    BEGAN,
    EVENTS_EACH,
    OUTCOME_WORDS,
    Happening,
)
from subak.live.role.global_master.rows import FORMER, ended_rows, open_rows
from subak.live.torture.case import JobCase
from test_live_roles import JOB, world_of

ONCE = structs.replace(JOB, stages=(structs.replace(JOB.stages[0], losses_max=0),))
LEASE = 6.0


def world_with(job, planned, machines=2, **more):
    return world_of([JobCase(3.0, "client", job, (planned,))], machines=machines, **more)


def running_on(world):
    """The machine that runs the only task."""
    ((_, name),) = world.watch.alive.values()
    return next(machine for machine in world.machines.all if machine.process.name == name)


def ended(world):
    """The row of the only task, which has ended, and what has happened to it."""
    ((body),) = world.masters[0].disk["ended"].values()
    stored, rows, events = msgpack.decode(body, type=tuple[StoredJob, bytes, list[Happening]])
    assert isinstance(stored, StoredJob)
    (row,) = np.frombuffer(rows, ON_DISK)
    return row, events


def power_loss(world, processes, machine):
    for process in processes:
        world.kill(process)
    world.machines.switch_off(machine)
    world.until(world.now + 1.0)


def come_back(world, processes, machine):
    for process in processes:
        world.start(process)
    world.machines.switch_on(machine)


@pytest.mark.parametrize("who", ["owner before", "both local masters", "all masters"])
def test_a_task_that_may_not_be_lost_begins_once(who):
    """Its machine loses power, after its owner was restarted, or with both local masters, or with all masters."""
    world = world_with(ONCE, ((30.0, 0),))
    world.until(5.0)
    machine, masters = running_on(world), [*world.masters, *world.locals]
    if who == "owner before":
        world.kill(world.masters[0])
        world.start(world.masters[0])
        world.until(10.0)
        masters = []
    elif who == "both local masters":
        masters = list(world.locals)
    power_loss(world, masters, machine)
    come_back(world, masters, machine)
    world.until(world.now + 5 * LEASE)
    row, _ = ended(world)
    assert (OUTCOME_WORDS[row["outcome"]], row["lost"]) == ("lost", 1)
    assert sum(world.watch.beginnings.times.values()) == 1


def test_losses_are_counted_across_restarts_of_the_owner():
    world = world_with(structs.replace(JOB, stages=(structs.replace(JOB.stages[0], losses_max=1),)), ((40.0, 0),))
    world.until(5.0)
    for _ in range(2):
        machine = running_on(world)
        power_loss(world, [], machine)
        come_back(world, [], machine)
        world.until(world.now + 3 * LEASE)
        world.kill(world.masters[0])
        world.start(world.masters[0])
        world.until(world.now + 2.0)
    row, _ = ended(world)
    assert (OUTCOME_WORDS[row["outcome"]], row["lost"]) == ("lost", 2)
    assert sum(world.watch.beginnings.times.values()) == 2


def test_open_rows_of_another_version_are_refused_and_ended_ones_read():
    former = np.zeros(3, FORMER)
    former["number"], former["lost"], former["ended"] = (7, 8, 9), 300, 5.0
    assert ended_rows(former.tobytes(), 3)[["number", "lost", "ended"]].tolist() == [(7, 300, 5.0), (8, 300, 5.0),
                                                                                     (9, 300, 5.0)]
    now = np.zeros(3, ON_DISK)
    now["number"] = 7, 8, 9
    assert (ended_rows(now.tobytes(), 3) == now).all()
    assert (open_rows([row.tobytes() for row in now]) == now).all()
    with pytest.raises(RunError, match="another version of subak wrote"):
        open_rows([now[0].tobytes(), former[0].tobytes()])


# -- after a reboot ----------------------------------------------------------------------------------------------------


def reboot(world, machine, off_s=0.5):
    """Switch a machine off and on; what its worker wrote without a sync is left."""
    machine.state_at_boot = machine.process.disk["state"][0]
    world.machines.switch_off(machine)
    world.until(world.now + off_s)
    world.machines.switch_on(machine)


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("failover", [False, True])
def test_an_end_that_the_journal_has_counts_after_a_reboot(code, failover):
    """The worker is dead when its attempt ends, and the machine is restarted before the next worker begins."""
    world = world_with(ONCE, ((2.0, code),))
    world.until(4.0)
    machine = running_on(world)
    world.kill(machine.process)
    if failover:
        world.kill(world.locals[0])
    world.until(6.0)
    assert not world.watch.alive
    reboot(world, machine)
    world.until(world.now + 4 * LEASE)
    row, _ = ended(world)
    assert (OUTCOME_WORDS[row["outcome"]], row["code"], row["lost"]) == (("failed" if code else "finished"), code, 0)
    assert sum(world.watch.beginnings.times.values()) == 1
    role = machine.process.role
    assert not role._used()
    assert role.me["incarnation"] > 1


def test_what_the_journal_does_not_know_was_lost_with_its_machine():
    world = world_with(ONCE, ((20.0, 0),))
    world.until(4.0)
    machine = running_on(world)
    reboot(world, machine)
    world.until(world.now + 2.0)
    row, _ = ended(world)
    assert (OUTCOME_WORDS[row["outcome"]], row["lost"]) == ("lost", 1)
    world.until(world.now + 4 * LEASE)
    assert sum(world.watch.beginnings.times.values()) == 1


def test_a_rebooted_worker_starts_nothing_that_its_former_incarnation_was_told_to():
    """Its tables are from before the attempt began, so it does not know that the order was carried out."""
    world = world_with(structs.replace(JOB, stages=(structs.replace(JOB.stages[0], losses_max=1),)), ((3.0, 0),), 1)
    world.until(2.9)
    machine = world.machines.all[0]
    before = machine.process.disk["state"][0]
    incarnation = machine.process.role.me["incarnation"]
    world.until(4.0)
    assert world.watch.alive
    machine.process.disk["state"] = {0: before}
    reboot(world, machine)
    world.until(world.now + 0.01)
    assert machine.process.role.me["incarnation"] > incarnation
    assert machine.process.role.me["top"] == -1
    world.until(world.now + 4 * LEASE)
    row, _ = ended(world)
    assert (OUTCOME_WORDS[row["outcome"]], row["lost"]) == ("finished", 1)


# -- the history of a job ----------------------------------------------------------------------------------------------


def opened():
    """A world without machines, its global master, and the one job that it has."""
    world = world_of([JobCase(3.0, "client", JOB, (((30.0, 0),),))], machines=0)
    world.until(4.0)
    role = world.masters[0].role
    (job,) = role.book.of_number.values()
    return world, role, job


def told(role, job, *entries):
    """Let a local master have told of attempts of the first task; what is left of the history afterwards."""
    rows = np.zeros(len(entries), ENTRY)
    rows["task"], rows["owner"] = job.admitted.numbers[0][0], role.number
    for row, fields in zip(rows, entries, strict=True):
        for name, value in fields.items():
            row[name] = value
    role.book.note_entries(rows, 5.0)
    return [(event.what, event.attempt, event.nth) for event in job.history.events]


GAVE = {"kind": ENTRY_GAVE, "reason": MACHINE_LOST, "attempt": 7}


@pytest.mark.parametrize(("entries", "found"), [
    ([GAVE], [(BEGAN, 7, 1), (ATTEMPT_LOST, 7, 1)]),  # nobody saw it begin
    ([GAVE, GAVE], [(BEGAN, 7, 1), (ATTEMPT_LOST, 7, 1)]),  # told twice
    ([GAVE, {**GAVE, "kind": ENTRY_GONE}], [(BEGAN, 7, 1), (ATTEMPT_LOST, 7, 1)]),  # and again in a whole state
    ([{**GAVE, "kind": ENTRY_GONE}], [(BEGAN, 7, 1), (ATTEMPT_LOST, 7, 1)]),
    ([{**GAVE, "kind": ENTRY_TOOK, "reason": 0}, GAVE], [(BEGAN, 7, 1), (ATTEMPT_LOST, 7, 1)]),
    ([{**GAVE, "kind": ENTRY_TOOK, "reason": 0}], [(BEGAN, 7, 1)]),  # of a master that has been replaced
    ([{**GAVE, "kind": ENTRY_TOOK, "reason": 0, "held": 1}], []),
    ([{**GAVE, "held": 1}], [(ATTEMPT_LOST, 7, 0)]),  # held for its gang
    ([{**GAVE, "reason": NOT_FREE}], [(ATTEMPT_LOST, 7, 0)]),  # its machine had no room
    ([{**GAVE, "reason": HAS_FAILED}, {**GAVE, "reason": HAS_FAILED}], [(BEGAN, 7, 1), (ATTEMPT_FAILED, 7, 1)]),
    ([{**GAVE, "reason": FINISHED_WELL}], [(BEGAN, 7, 1)]),
    ([GAVE, {**GAVE, "machine": 1}],  # another cluster's of the same number
     [(BEGAN, 7, 1), (ATTEMPT_LOST, 7, 1), (BEGAN, 7, 2), (ATTEMPT_LOST, 7, 2)]),
    ([{**GAVE, "attempt": 8}, GAVE],  # the older one is told last
     [(BEGAN, 8, 1), (ATTEMPT_LOST, 8, 1), (BEGAN, 7, 2), (ATTEMPT_LOST, 7, 2)]),
])
def test_each_attempt_is_in_the_history_once_in_whatever_order_it_is_told(entries, found):
    _, role, job = opened()
    assert told(role, job, *entries) == found
    assert role.book.now[job.admitted.places]["attempts"] == sum(what == BEGAN for what, *_ in found)


def test_what_an_older_round_left_behind_is_no_news():
    _, role, job = opened()
    role.book.now[job.admitted.places]["round"] = 1
    assert told(role, job, GAVE) == []


def test_a_full_history_counts_what_this_incarnation_has_begun():
    """Of what a former one had begun nobody can say any more whether it was counted."""
    _, role, job = opened()
    job.history.events += [Happening(0.0, 0, "something", "", NOBODY, 0, 0)] * EVENTS_EACH
    told(role, job, GAVE)
    assert role.book.now[job.admitted.places]["attempts"] == 0
    told(role, job, {**GAVE, "attempt": (1 << INCARNATION_BITS) + 7})
    assert role.book.now[job.admitted.places]["attempts"] == 1


@pytest.mark.parametrize("restarts", [False, True])
def test_the_history_has_attempts_of_which_nobody_knows_how_they_ended(restarts):
    """Both local masters and the machine lose power, and the owner too; the attempt may have begun."""
    job = structs.replace(JOB, stages=(structs.replace(JOB.stages[0], losses_max=3),))
    world = world_with(job, ((20.0, 0), (1.0, 0)))
    world.until(5.0)
    machine, masters = running_on(world), [*(world.masters if restarts else ()), *world.locals]
    power_loss(world, masters, machine)
    come_back(world, masters, machine)
    world.until(world.now + 5 * LEASE)
    row, events = ended(world)
    assert [event.what for event in events] == [BEGAN, ATTEMPT_LOST, BEGAN, "finished"]
    assert (row["attempts"], row["lost"], [event.nth for event in events]) == (2, 1, [1, 1, 2, 2])


def test_the_history_outlives_its_master():
    job = structs.replace(JOB, stages=(structs.replace(JOB.stages[0], retries=3, backoff_s=0.1, tasks=1),))
    world = world_with(job, ((0.5, 3), (0.5, 4), (30.0, 0)))
    world.until(6.0)
    (before,) = [each.history.events for each in world.masters[0].role.book.of_number.values()]
    assert [event.what for event in before] == [BEGAN, ATTEMPT_FAILED] * 2 + [BEGAN]
    world.kill(world.masters[0])
    world.start(world.masters[0])
    world.until(8.0)
    (after,) = world.masters[0].role.book.of_number.values()
    assert [(event.what, event.nth, event.attempt) for event in after.history.events] == [
        (event.what, event.nth, event.attempt) for event in before]
    assert after.history.events[:4] == before[:4]
    world.until(60.0)
    row, events = ended(world)
    assert (row["attempts"], row["failed"], len(events)) == (3, 2, 6)
    assert not world.masters[0].disk["history"]


def test_a_loss_that_a_local_master_tells_of_is_in_the_history_once():
    job = structs.replace(JOB, stages=(structs.replace(JOB.stages[0], losses_max=3),))
    world = world_with(job, ((20.0, 0), (1.0, 0)))
    world.until(5.0)
    machine = running_on(world)
    power_loss(world, [], machine)
    come_back(world, [], machine)
    world.until(world.now + 4 * LEASE)
    row, events = ended(world)
    assert [event.what for event in events] == [BEGAN, ATTEMPT_LOST, BEGAN, "finished"]
    assert (row["attempts"], row["lost"]) == (2, 1)


def test_a_restarted_master_notes_nothing_again_of_tasks_whose_rows_were_written_before():
    """The second task fails, so that all is written: also that the first has ended and the third begun."""
    stage = structs.replace(JOB.stages[0], tasks=3, retries=1, backoff_s=60.0)
    world = world_with(structs.replace(JOB, stages=(stage,)), ((0.5, 0),), machines=3)
    world.watch.jobs["0"] = structs.replace(
        world.watch.jobs["0"], endings=(((0.2, 0),), ((1.0, 3), (0.2, 0)), ((30.0, 0),)))
    world.until(6.0)
    for _ in range(2):
        world.kill(world.masters[0])
        world.start(world.masters[0])
        world.until(world.now + 2.0)
    (job,) = world.masters[0].role.book.of_number.values()
    found = sorted((event.task, event.what, event.nth) for event in job.history.events)
    assert found == [(0, BEGAN, 1), (0, "finished", 1), (1, ATTEMPT_FAILED, 1), (1, BEGAN, 1), (2, BEGAN, 1)]
    assert world.masters[0].role.book.now[job.places]["attempts"].tolist() == [1, 1, 1]


def test_what_a_replaced_local_master_told_last_is_in_the_history():
    """Its entry, and the first of its successor, come in one call."""
    _, role, job = opened()
    role.applied[0] = 0, 3
    entry = np.zeros(2, ENTRY)
    entry["kind"], entry["task"], entry["owner"], entry["attempt"] = ENTRY_TOOK, job.admitted.numbers[0][0], 0, (6, 7)
    role.brought = [(0, 0, 2, entry)]  # of which the first, of version 2, was seen before
    role.master.cluster["epoch"][0], role.master.cluster["seen"][0] = 1, 0
    assert role._applied() == [job.admitted.numbers[0][0]]
    assert [(event.what, event.attempt) for event in job.history.events] == [(BEGAN, 7)]
    assert not role.brought


@pytest.mark.parametrize(("state", "held"), [(ATTEMPT_HELD, 1), (ATTEMPT_RUNNING, 0)])
def test_a_local_master_says_of_an_end_whether_the_attempt_was_held_for_its_gang(state, held):
    local = world_of(machines=1).locals[0].role.local
    row = add_attempt(local.rows, 0, 1, 7, state)
    local.rows.row[row]["owner"] = 0
    end_row(local, row, MACHINE_LOST)
    entry = local.ledger.entry[ring_place(local.ledger, local.ledger.counts.version - 1)]
    assert (entry["kind"], entry["held"]) == (ENTRY_GAVE, held)
