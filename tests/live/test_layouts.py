"""Masters, clusters and queues that come and go: numbers stay what they are, and what cannot be is refused first."""
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack, structs

from federations import Folder, left, until
from subak.errors import InputError
from subak.federation.messages import GLOBAL_MASTER, LOCAL_MASTER, WORKER
from subak.live.api.errors import UnavailableError
from subak.live.config import FederationFile, read
from subak.live.jobfile.spec import JobSpec, Metadata, Stage
from subak.live.role.global_master.global_role import GlobalRole
from subak.live.role.global_master.queues import QueueSetup, QueuesFact, beginning_with
from subak.live.role.layout import OF_A_KIND_MAX, STANDBYS, Layout, Rooms, Timing, number_of_job
from subak.live.role.store_claims import ATTEMPTS_KEY, Claim
from subak.live.torture.case import ROOMS, Case, JobCase, MachineCase, random_case, smaller
from subak.live.torture.torture import run_case
from subak.live.torture.world import World
from worlds import begin

FILE = """
name = "home"
[[global_master]]
name = "g0"
http = "127.0.0.1:7001"
[[global_master]]
name = "g1"
http = "127.0.0.1:7002"
[[global_master]]
name = "g2"
http = "127.0.0.1:7003"
[[cluster]]
name = "a"
local_master = "127.0.0.1:7101"
standby = "127.0.0.1:7102"
[[cluster]]
name = "b"
local_master = "127.0.0.1:7103"
standby = "127.0.0.1:7104"
[[queue]]
name = "research"
"""


def file_of(folder, *changes):
    text = FILE
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path = folder / "federation.toml"
    path.write_text(text)
    return read(path, FederationFile)


# -- numbers -----------------------------------------------------------------------------------------------------------


@given(masters=st.integers(1, 5), clusters=st.integers(1, 5), more=st.integers(0, 5), others=st.integers(0, 5),
       machines=st.integers(1, 400), standby=st.booleans())
def test_what_numbers_mean_does_not_depend_on_how_many_others_there_are(
        masters, clusters, more, others, machines, standby):
    before = Layout(masters, clusters, ("cpu", "memory"), standby, Rooms(machines=machines))
    after = structs.replace(before, global_masters=masters + more, clusters=clusters + others)
    assert set(before.locals) <= set(after.locals)
    for local in before.locals:
        assert before.machines_of(local) == after.machines_of(local)
        assert before.configurations_of(local) == after.configurations_of(local)
    for master in range(masters):
        assert before.shapes_of(master) == after.shapes_of(master)
        assert after.owner_of(number_of_job(master, 17) * after.places + 3) == master
    every = np.arange(before.machines)
    assert [before.cluster_of(each) for each in every] == [after.cluster_of(each) for each in every]
    assert after.topology().machine["cluster"][every].tolist() == before.topology().machine["cluster"].tolist()
    given_ = [number for local in after.locals for number in after.machines_of(local)]
    assert len(given_) == len(set(given_)) and set(given_) <= set(range(after.machines))
    if standby or not machines % 64:
        assert len(given_) == after.machines


@given(masters=st.integers(1, 9), machines=st.integers(1, 700))
def test_partitions_share_the_blocks_of_a_cluster_and_the_machines_that_join(masters, machines):
    layout = Layout(masters, 2, ("cpu",), True, Rooms(machines=machines))
    topology = layout.topology()
    sizes = np.diff(topology.block).reshape(2, masters)
    assert sizes.sum(axis=1).tolist() == [layout.blocks_each] * 2
    assert sizes.max() - sizes.min() <= 1
    homes = topology.machine["home"]
    assert np.bincount(homes, minlength=masters).tolist() == (64 * sizes.sum(axis=0)).tolist()
    first = layout.machines_of(0)[: layout.blocks_each]
    assert np.bincount(homes[first], minlength=masters).tolist() == sizes[0].tolist()


def test_numbers_without_standbys_are_those_of_a_local_master_first():
    alone, pair = (Layout(1, 1, ("cpu",), standby, Rooms(machines=128)) for standby in (False, True))
    assert alone.machines_of(0)[:64] == pair.machines_of(0)
    assert alone.machines_of(0)[64:] == pair.machines_of(STANDBYS)


# -- the file ----------------------------------------------------------------------------------------------------------


def test_masters_and_clusters_keep_the_numbers_of_their_places_when_others_are_removed(tmp_path):
    file = file_of(tmp_path, ('name = "g1"\nhttp = "127.0.0.1:7002"', 'name = "g1"\nremoved = true'), (
        'name = "a"\nlocal_master = "127.0.0.1:7101"\nstandby = "127.0.0.1:7102"', 'name = "a"\nremoved = true'))
    assert {number: master.name for number, master in file.masters().items()} == {0: "g0", 2: "g2"}
    assert file.local_addresses() == {1: "127.0.0.1:7103", STANDBYS + 1: "127.0.0.1:7104"}
    layout = file.layout()
    assert (layout.global_masters, layout.clusters, layout.no_masters, layout.no_clusters) == (3, 2, (1,), (0,))
    assert layout.standby and layout.locals == (1, STANDBYS + 1)
    peers = [(GLOBAL_MASTER, 0), (GLOBAL_MASTER, 2), (LOCAL_MASTER, 1), (LOCAL_MASTER, STANDBYS + 1), (WORKER, 0)]
    others = [(GLOBAL_MASTER, 1), (GLOBAL_MASTER, 3), (LOCAL_MASTER, 0), (LOCAL_MASTER, 2), (LOCAL_MASTER, STANDBYS),
              (WORKER, layout.machines), (9, 0)]
    assert all(map(layout.is_peer, peers)) and not any(map(layout.is_peer, others))
    assert file.name_of_local(STANDBYS + 1) == "the standby of cluster b"


@pytest.mark.parametrize(("before", "after", "words"), [
    ('http = "127.0.0.1:7002"', 'http = "127.0.0.1:7002"\nremoved = true', "global_master g1: is removed, and has an"),
    ('http = "127.0.0.1:7002"', "", "global_master g1: http is missing"),
    ('local_master = "127.0.0.1:7103"\nstandby = "127.0.0.1:7104"', 'standby = "127.0.0.1:7104"\nremoved = true',
     "cluster b: is removed, and has an address"),
    ('local_master = "127.0.0.1:7103"', "", "cluster b: local_master is missing"),
    ('name = "research"', 'name = "research"\nowner = "g9"', "owner must be one of g0, g1, g2, not 'g9'"),
    ('http = "127.0.0.1:7002"', 'number = 2\nhttp = "127.0.0.1:7002"', "unknown field `number`"),
])
def test_a_file_that_contradicts_itself_is_refused(tmp_path, before, after, words):
    with pytest.raises(InputError, match=words):
        file_of(tmp_path, (before, after))


def test_a_queue_may_not_be_a_removed_masters_and_one_of_each_must_be_there(tmp_path):
    gone = ('http = "127.0.0.1:7002"', "removed = true")
    with pytest.raises(InputError, match="owner must be one of g0, g2, not 'g1'"):
        file_of(tmp_path, gone, ('name = "research"', 'name = "research"\nowner = "g1"'))
    with pytest.raises(InputError, match="global_master: all of them are removed"):
        file_of(tmp_path, gone, ('http = "127.0.0.1:7001"', "removed = true"),
                ('http = "127.0.0.1:7003"', "removed = true"))


# -- roles -------------------------------------------------------------------------------------------------------------


def spec(queue, tasks=1, number=0, **more):
    stage = Stage("s", ("work", f"{number}"), tasks, resources={"cpu": 500, "memory": 256}, **more)
    return JobSpec(Metadata("j"), queue, (stage,))


def world_of(jobs, masters=2, clusters=1, rooms=ROOMS):
    """A world that has met, with a machine in each cluster; queue a is global master 0's, b number 1's."""
    case = Case(1, Layout(masters, clusters, ("cpu", "memory"), True, rooms), Timing(lease=2.0, timer_slack=0.1),
                tuple(MachineCase(cluster, (2000, 2048), "", False) for cluster in range(clusters)),
                (QueueSetup("a", 0), QueueSetup("b", masters - 1)), "round-robin", tuple(jobs), (), (), (), 0.0, 0.0,
                0.0, 0.0)
    world = World(case)
    begin(world)
    return world


def start_again(world, processes):
    for process in processes:
        world.kill(process)
        world.start(process)


def test_what_a_removed_global_master_had_begun_ends_and_its_machines_are_free_again():
    world = world_of([JobCase(1.0, "client 0", spec("b", 3), (((1e6, 0),),) * 3)])
    world.until(3.0)
    assert len(world.watch.alive) == 3
    world.kill(world.masters[1])
    world.until(10.0)
    assert len(world.watch.alive) == 3, "a master that is away keeps what it runs"
    queues = QueuesFact(9, (QueueSetup("a", 0), QueueSetup("", 1)))
    world.masters[0].role.apply(queues)
    world.call_soon(world.masters[0])
    world.until(10.5)
    world.layout = structs.replace(world.layout, no_masters=(1,))
    start_again(world, [*world.locals, world.masters[0]])
    world.until(30.0)
    assert not world.watch.alive
    machine = world.machines.all[0]
    assert not machine.agent.ledger.rows
    for role in (world.masters[0].role, world.locals[0].role):
        fleet = role.master.fleet if isinstance(role, GlobalRole) else role.local.fleet
        number = machine.process.peer[1]
        assert fleet.free[:, number].tolist() == [2000, 2048]


def test_a_cluster_is_removed_only_when_no_task_may_still_run_there():
    where = {}
    jobs = [JobCase(at, f"client {number}", spec("a", 2, number=number), (((5.0, 0),),) * 2)
            for number, at in enumerate((1.0, 15.0))]
    world = world_of(jobs, masters=1, clusters=2)
    world.until(2.0)
    role = world.masters[0].role
    assert len(world.watch.alive) == 2
    for place in range(2):
        where[place] = role.layout.cluster_of(int(role.master.task["machine"][place]))
    used = set(where.values())
    assert used
    world.kill(world.masters[0])
    for cluster in range(2):
        world.layout = structs.replace(role.layout, no_clusters=(cluster,))
        if cluster in used:
            with pytest.raises(InputError, match=rf"cluster number {cluster} .* is removed, and .* tasks may"):
                world.start(world.masters[0])
    world.layout = role.layout
    world.start(world.masters[0])
    world.until(12.0)
    assert not world.watch.alive and not world.masters[0].role.book.of_number
    world.layout = structs.replace(role.layout, no_clusters=(0,))
    for process in world.locals[0], world.locals[2]:
        world.kill(process)
    start_again(world, [world.locals[1], world.locals[3], world.masters[0]])
    world.until(15.0)
    again = world.masters[0].role
    assert again.master.cluster["known"].tolist() == [True, True], "nobody waits for what is not there"
    world.until(16.0)
    (job,) = again.book.of_number.values()
    rows = again.jobs.row[job.places]
    assert {again.layout.cluster_of(int(each)) for each in again.master.task["machine"][rows]} == {1}


def test_a_task_that_was_last_in_a_cluster_that_is_removed_runs_elsewhere_after_a_restart():
    again = spec("a", retries=5, backoff_s=60.0)
    world = world_of([JobCase(1.0, "client 0", again, (((0.5, 1), (0.5, 0)),))], masters=1, clusters=2)
    world.until(3.0)
    role = world.masters[0].role
    (number,) = role.book.of_number
    row = role.jobs.row[role.book.of_number[number].places][0]
    last = int(role.master.task["sent_to"][row])
    world.kill(world.masters[0])
    world.layout = structs.replace(role.layout, no_clusters=(last,))
    for local in world.locals:
        if local.role.cluster == last:
            world.kill(local)
    start_again(world, [local for local in world.locals if local.role is not None])
    world.start(world.masters[0])
    world.until(100.0)
    assert not world.masters[0].role.book.of_number


def test_a_queue_in_force_of_a_removed_master_is_refused():
    layout = Layout(2, 1, ("cpu", "memory"), False, ROOMS, no_masters=(1,))
    with pytest.raises(InputError, match=r"queue b: global master number 1 \(from 0 on\), which serves it, is removed"):
        GlobalRole(0, layout, Timing(), QueuesFact(1, (QueueSetup("a", 0), QueueSetup("b", 1))), {}, "g0", "life")
    GlobalRole(0, layout, Timing(), QueuesFact(1, (QueueSetup("a", 0), QueueSetup("", 1))), {}, "g0", "life")


def test_entries_of_the_file_that_are_deleted_are_missed():
    world = world_of([], masters=2, clusters=2)
    world.until(2.0)
    layout = world.layout
    world.kill(world.masters[0])
    world.kill(world.locals[0])
    world.layout = structs.replace(layout, clusters=1)
    with pytest.raises(InputError, match="cluster: the file has 1, with those removed, and the store knows 2"):
        world.start(world.masters[0])
    world.layout = structs.replace(layout, global_masters=1)
    with pytest.raises(InputError, match="global_master: the file has 1, with those removed, and the store knows 2"):
        world.start(world.locals[0])
    attempts = msgpack.decode(world.masters[0].disk["incarnation"][ATTEMPTS_KEY])
    assert len(attempts) == 2 and msgpack.decode(world.locals[0].disk["claim"][1], type=Claim).incarnation == 1


def test_a_store_of_other_rooms_is_refused_by_a_local_master_too():
    world = world_of([])
    world.until(2.0)
    world.kill(world.locals[0])
    world.layout = structs.replace(world.layout, rooms=structs.replace(ROOMS, machines=1000))
    with pytest.raises(InputError, match=r"\[rooms\] machines was 64, and is 1,024 in the file now"):
        world.start(world.locals[0])


@pytest.mark.parametrize(("taker", "giver", "words"), [
    ("l0", "l1", "was the standby of cluster number 0 .from 0 on., and is the local master of cluster number 0"),
    ("l0", "g0", "was global master number 0 .from 0 on., and is the local master of cluster number 0"),
    ("g0", "g1", "was global master number 1 .from 0 on., and is global master number 0"),
])
def test_the_folder_of_another_master_is_refused(taker, giver, words):
    world = world_of([JobCase(1.0, "client 0", spec("a"), (((1.0, 0),),)),
                      JobCase(1.0, "client 1", spec("b", number=1), (((1.0, 0),),))])
    world.until(3.0)
    taker, giver = world.process(taker), world.process(giver)
    world.kill(taker)
    taker.disk = giver.disk
    with pytest.raises(InputError, match=f"its master {words}"):
        world.start(taker)


def test_queues_of_a_disk_are_later_than_those_of_a_file():
    """A master that is new begins with a later file, and must learn from the others which queues there are."""
    file = QueuesFact(1, (QueueSetup("a", 0), QueueSetup("of the new file", 1)))
    assert beginning_with(None, file) == file
    assert beginning_with(msgpack.encode(QueuesFact(1, (QueueSetup("a", 0),))), file).version == 2
    assert beginning_with(msgpack.encode(QueuesFact(7, (QueueSetup("a", 0),))), file).version == 7


def test_a_worker_takes_orders_of_a_global_master_that_came_after_it():
    world = world_of([])
    world.until(2.0)
    role = world.machines.all[0].process.role
    assert OF_A_KIND_MAX - 1 in role.bounds["owner"] and OF_A_KIND_MAX not in role.bounds["owner"]
    assert OF_A_KIND_MAX * ROOMS.shapes - 1 in role.bounds["shape"]


def test_federations_grow_in_torture_and_lose_nothing():
    seeds = [seed for seed in range(300) if random_case(seed).growth is not None][:40]
    happened = 0
    for seed in seeds:
        ending = run_case(random_case(seed))
        assert ending.failure == "", seed
        happened += ending.happened["grown"]
    assert happened == len(seeds) == 40


def test_a_case_that_grows_is_made_smaller_by_not_growing():
    case = next(case for case in map(random_case, range(300)) if case.growth is not None
                and case.growth.layout.global_masters == case.layout.global_masters)
    assert any(each.growth is None for each in smaller(case))


# -- real processes ----------------------------------------------------------------------------------------------------


@pytest.fixture
def federation():
    federation = Folder(clusters=1, workers=1)
    yield federation
    federation.over()
    until(lambda: not left(federation.folder), words=lambda: left(federation.folder))


def _taken(client, job):
    try:
        return client.submit(job).id
    except UnavailableError:
        return None


def apply(federation, file):
    process = federation.command("apply", file, "--yes")
    said, _ = process.communicate()
    assert process.returncode == 0, said


def test_a_global_master_comes_and_another_goes_while_a_task_runs_and_ids_stay(federation):
    """Master by master, as docs/live.md has it; the worker is never started again."""
    masters = ("a", "a-standby", "g0", "g1")
    for name in (*masters, "a1"):
        federation.start(name)
    files = federation.folder
    with federation.client() as client:
        until(lambda: any(each.state == "ready" for each in client.machines()))
        queues = {queue.path: queue.owner for queue in client.queues().items if queue.owner}
        of_g0 = next(path for path, owner in queues.items() if owner == "g0")
        long = client.submit(f"metadata: {{name: one}}\nqueue: {of_g0}\ncommand: [sleep, '1000']\n").id
        short = client.submit(f"metadata: {{name: two}}\nqueue: {of_g0}\ncommand: ['true']\n").id
        client.wait(short)
        until(lambda: client.job(long).counts.running == 1)

        text = (files / "federation.toml").read_text()
        head, rest = text[: text.index("[[queue]]")], f'[[queue]]\nname = "{of_g0}"\nowner = "g0"\n'
        (files / "less.toml").write_text(head + rest)  # nothing is g1's any more
        apply(federation, files / "less.toml")
        there = re.search('name = "g1"\nhttp = "(.*):(.*)"', head)
        gone = head.replace(there[0], f'name = "g1"\nremoved = true\n\n[[global_master]]\nname = "g2"\n'
                                      f'http = "{there[1]}:{int(there[2]) + 60}"')
        (files / "federation.toml").write_text(gone + rest + '[[queue]]\nname = "new"\nowner = "g2"\n')
        federation.kill("g1")
        for name in ("a", "a-standby", "g0"):
            federation.kill(name)
            federation.start(name)
        assert federation.running["a1"].poll() is None
        of_g2 = (files / "global-master-g0.toml").read_text().replace("g0", "g2")
        (files / "global-master-g2.toml").write_text(of_g2)
        federation.members["g2"] = federation.members["g0"]._replace(name="g2", file=files / "global-master-g2.toml")
        federation.start("g2")
        until(lambda: client.job(long).counts.running == 1, words=lambda: federation.said("g0"))
        assert client.job(short).outcome == "finished"
        apply(federation, files / "federation.toml")
        assert "queue new of the file is not in force: `subak apply` makes it so" in federation.said("g0")
        job = until(lambda: _taken(client, "metadata: {name: three}\nqueue: new\ncommand: ['true']\n"),
                    words=lambda: federation.said("g2"))
        assert job.startswith("g2-")
        assert client.wait(job).outcome == "finished"
        client.cancel(long)
        assert client.wait(long).outcome == "cancelled"


def test_addresses_and_timing_change_and_standbys_come_while_a_task_runs(federation):
    """As docs/live.md has it: the file, each master again, and the worker again with the addresses in its file."""
    file, worker = federation.folder / "federation.toml", federation.members["a1"].file
    whole, both = file.read_text(), worker.read_text()
    whole = whole.replace("[timing]\n", "[timing]\nlease = 12.0\n")  # longer than five processes take to start
    standby = re.search('^standby = "(.*):(.*)"\n', whole, re.MULTILINE)
    local = re.search('^local_master = "(.*):(.*)"\n', whole, re.MULTILINE)
    moved = f"{local[1]}:{int(local[2]) + 60}"
    alone = whole.replace(standby[0], "")
    assert alone != whole and "[timing]" in whole
    file.write_text(alone)
    worker.write_text(re.sub("(?m)^local_masters = .*$", f'local_masters = ["{local[1]}:{local[2]}"]', both))
    for name in ("a", "g0", "g1", "a1"):
        federation.start(name)
    with federation.client() as client:
        until(lambda: any(each.state == "ready" for each in client.machines()),
              words=lambda: federation.said("a") + federation.said("a1"))
        long = client.submit("metadata: {name: one}\nqueue: web\ncommand: [sleep, '1000']\n").id
        until(lambda: client.job(long).counts.running == 1)

        changed = whole.replace(local[0], f'local_master = "{moved}"\n')
        file.write_text(changed.replace("[timing]\n", "[timing]\nretry = 0.7\n"))
        worker.write_text(both.replace(f"{local[1]}:{local[2]}", moved))
        for name in ("a", "g0", "g1"):
            federation.kill(name)
        federation.kill("a1")
        for name in ("a", "a-standby", "g0", "g1", "a1"):
            federation.start(name)
        until(lambda: {master.role for master in client.masters() if master.state == "ready"} >= {"local", "standby"},
              words=lambda: federation.said("a-standby") + str(client.masters()))
        until(lambda: any(each.state == "ready" for each in client.machines()), words=lambda: federation.said("a1"))
        task = until(lambda: client.job(long).counts.running == 1 and client.task(f"{long}.0"))
        assert task.attempts == 1

        federation.kill("a")  # the standby takes over, and the task goes on
        after = client.submit("metadata: {name: two}\nqueue: web\ncommand: ['true']\n").id
        assert client.wait(after).outcome == "finished"
        assert (client.job(long).counts.running, client.task(f"{long}.0").attempts) == (1, 1)
