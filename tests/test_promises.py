"""What live nodes promise of attempts, by hand: how often a task starts, and what is known of it afterwards."""
import numpy as np
import pytest
from msgspec import msgpack, structs

from subak.errors import RunError
from subak.live.node.global_master.book import ON_DISK, OUTCOME_WORDS, Happening, StoredJob
from subak.live.node.global_master.rows import FORMER, ended_rows, open_rows
from subak.live.torture.case import JobCase
from test_live_nodes import JOB, world_of

ONCE = structs.replace(JOB, stages=(structs.replace(JOB.stages[0], losses_max=0),))
LEASE = 6.0


def world_with(job, fates, machines=2, **more):
    return world_of([JobCase(3.0, "client", job, (fates,))], machines=machines, **more)


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
    node = machine.process.node
    assert not node._used()
    assert node.me["incarnation"] > 1


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
    incarnation = machine.process.node.me["incarnation"]
    world.until(4.0)
    assert world.watch.alive
    machine.process.disk["state"] = {0: before}
    reboot(world, machine)
    world.until(world.now + 0.01)
    assert machine.process.node.me["incarnation"] > incarnation
    assert machine.process.node.me["top"] == -1
    world.until(world.now + 4 * LEASE)
    row, _ = ended(world)
    assert (OUTCOME_WORDS[row["outcome"]], row["lost"]) == ("finished", 1)
