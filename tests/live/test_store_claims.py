"""Stores of global masters that are lost or older: local masters know better; one that takes over does no harm."""
import shutil
from itertools import pairwise

import pytest
from msgspec import msgpack, structs

from federations import Folder, left, until
from subak import exit_codes
from subak.errors import InputError
from subak.federation.megha.local_master.state import ATTEMPT_HELD
from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.messages import GLOBAL_MASTER
from subak.live.api.errors import UnavailableError
from subak.live.jobfile.spec import JobSpec, Metadata, Stage
from subak.live.role.frames import Claim
from subak.live.role.global_master.global_role import GlobalRole, NoNumbersError
from subak.live.role.global_master.queues import QueueSetup
from subak.live.role.layout import STANDBYS, Layout, Rooms, Timing, number_of_job, serial_of_job
from subak.live.role.store_claims import (
    BEHIND_KEY,
    HOLD_S,
    IDENTITY_KEY,
    RESERVE_FIRST,
    RESERVE_MOST,
    RESERVED_KEY,
    Claims,
    Refusal,
    StoreRefused,
    adopt,
    is_behind,
)
from subak.live.torture import stores
from subak.live.torture.case import STORES, Case, Fault, JobCase, MachineCase, random_case
from subak.live.torture.process import write
from subak.live.torture.torture import run_case
from subak.live.torture.world import World
from worlds import begin

ROOMS = Rooms(tasks=512, machines=64, shapes=8, configurations=8, queues=8)
KNOWN = Claim("id", 3, "life", 10, 64, 128, 7)


SPECS = [JobSpec(Metadata("job"), "a", (Stage("main", ("true", str(number)), resources={"cpu": number % 3 + 1}),))
         for number in range(200)]
SPECS.append(JobSpec(Metadata("again"), "a", (
    Stage("main", ("true", "200"), resources={"cpu": 1}, retries=3, backoff_s=0.1, grace_s=3.0),)))
ENDINGS = {200: ((0.1, 1), (1000.0, 0))}  # it fails once
JOBS = tuple(JobCase(0.0, str(number), spec, (ENDINGS.get(number, ((1000.0, 0),)),))
             for number, spec in enumerate(SPECS))


@pytest.mark.parametrize(("changes", "attempt", "wanted"), [
    ({}, 7, False),  # a connection anew
    ({"reserved": 192}, 9, False),
    ({"reserved": 64}, 0, True),
    ({"life": "another"}, 0, True),  # a copy, in the same incarnation
    ({"incarnation": 4, "life": "next", "began": 128, "reserved": 192}, 7, False),
    ({"incarnation": 4, "life": "next", "began": 127, "reserved": 191}, 7, True),  # before numbers were reserved
    ({"incarnation": 4, "life": "next", "began": 128, "reserved": 192}, 8, True),  # before an attempt was requested
    ({"incarnation": 2, "life": "former"}, 0, True),
    ({"identity": "new", "incarnation": 9, "began": 500, "reserved": 564}, 0, True),  # says nothing of the known one
    ({"identity": "new", "incarnation": 4, "began": 128, "reserved": 192, "supersedes": ("id",)}, 9, False),
    ({"identity": "new", "incarnation": 3, "began": 128, "reserved": 192, "supersedes": ("id",)}, 9, True),
    ({"identity": "new", "incarnation": 4, "began": 127, "reserved": 191, "supersedes": ("id", "x")}, 9, True),
])
def test_which_claim_is_behind_the_one_that_is_known(changes, attempt, wanted):
    assert is_behind(structs.replace(KNOWN, **changes), KNOWN, attempt) is wanted


def test_nothing_is_held_when_clusters_that_say_nothing_were_waited_for():
    pair = Pair(machines=())
    claims = pair.role.claims
    claims.unheard, claims.until = {0}, 0.0
    assert claims.holds(5.0) and claims.holds(5.0 + HOLD_S - 0.001)
    assert not claims.holds(5.0 + HOLD_S)


class Pair(World):
    """A global master with two local masters of one cluster, and a machine; a refused store stays refused."""

    def __init__(self, standby=False, machines=(0,), clusters=1):
        """*machines*: the cluster of each."""
        super().__init__(Case(1, Layout(1, clusters, ("cpu",), standby, ROOMS), Timing(), (), (QueueSetup("a", 0),),
                              "round-robin", JOBS, (), (), (), 0.0, 0.0, 0.0, 0.0))
        self.refusals, self.taken = [], 0
        for process in (*self.masters, *self.locals):
            self.start(process)
        self.join(*machines)

    def join(self, *clusters):
        """Let machines join clusters, on which tasks do not heed SIGTERM."""
        for cluster in clusters:
            self.machines.add(MachineCase(cluster, (4,), "", True))
        self.until(self.now + 3.0)

    @property
    def role(self):
        return self.masters[0].role

    def _carry_out(self, process, effect, on):
        if isinstance(effect, StoreRefused):
            self.refusals.append(effect)
            return
        super()._carry_out(process, effect, on)

    def copy(self):
        return {table: dict(rows) for table, rows in self.masters[0].disk.items()}

    def begin_again(self, disk=None):
        """Kill the global master, and start it again, maybe on another store."""
        self.kill(self.masters[0])
        if disk is not None:
            self.masters[0].disk = disk
        self.start(self.masters[0])
        self.until(self.now + 2.0)

    def adopt(self):
        """Let the store that is there take over from the one in use, and its global master start again."""
        refusal, writes = adopt(self.masters[0].disk["incarnation"], "adopted")
        write(self.masters[0], writes)
        self.refusals.clear()
        self.begin_again()
        return refusal

    def take(self, count=1, at=None):
        """Submit jobs, each another; return their serial numbers."""
        first = self.taken if at is None else at
        specs = SPECS[first : first + count]
        self.taken += count
        numbers = [serial_of_job(self.role.submit(spec, "", 1.0)) for spec in specs]
        self.call_soon(self.masters[0])
        self.until(self.now + 0.1)
        return numbers


def test_each_start_gives_numbers_behind_all_that_were_reserved_and_a_local_master_knows_first():
    pair = Pair()
    first = pair.take(2)
    assert first == [1, 2]
    pair.begin_again()
    assert pair.take() == [RESERVE_FIRST + 1]
    assert pair.locals[0].role.claims.claims[0].reserved == pair.role.claims.granted == 2 * RESERVE_FIRST
    assert not pair.refusals


def test_no_job_is_taken_before_a_local_master_has_confirmed_the_store_nor_beyond_what_it_has():
    pair = Pair()
    pair.kill(pair.locals[0])
    pair.begin_again()
    with pytest.raises(NoNumbersError, match="no local master has confirmed that this is the store in use"):
        pair.role.submit(SPECS[199], "", 1.0)
    pair.start(pair.locals[0])
    pair.until(pair.now + 1.0)
    pair.kill(pair.locals[0])
    numbers = [pair.role.submit(SPECS[199], "", 1.0) for _ in range(RESERVE_FIRST)]
    assert len(set(numbers)) == RESERVE_FIRST
    with pytest.raises(NoNumbersError):
        pair.role.submit(SPECS[199], "", 1.0)


def test_numbers_are_reserved_in_ranges_that_grow():
    pair = Pair()
    asked = []
    for _ in range(3 * RESERVE_MOST // 64):
        pair.role.admission.latest = number_of_job(0, serial_of_job(pair.role.admission.latest) + 64)
        pair.role.claims.reserve()
        asked.append(pair.role.claims.claim.reserved)
        pair.call_soon(pair.masters[0])
        pair.until(pair.now + 0.1)
        assert pair.role.claims.left > 0
    sizes = [after - before for before, after in pairwise(asked) if after != before]
    assert sizes == sorted(sizes) and max(sizes) == RESERVE_MOST


@pytest.mark.parametrize("what", ["lost", "older", "older by a job that runs", "older by numbers"])
def test_a_store_that_is_not_the_one_in_use_is_refused_and_takes_no_job(what):
    pair = Pair()
    pair.take()
    copy = {} if what == "lost" else pair.copy()
    if what == "older":
        pair.begin_again()
    elif what == "older by a job that runs":
        pair.take()
    elif what == "older by numbers":
        pair.machines.switch_off(pair.machines.all[0])
        pair.take(RESERVE_FIRST // 2)
    pair.begin_again(copy)
    assert pair.refusals and not pair.role.claims.left
    words = pair.refusals[0].words
    assert ("another store of g0" if what == "lost" else "a later state of this store of g0") in words
    assert "run `subak store adopt` on this one" in words
    with pytest.raises(NoNumbersError, match="a local master knows"):
        pair.role.submit(SPECS[199], "", 1.0)
    assert len(pair.refusals) == 1, "what it says is not heard"


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_store_that_takes_over_gives_no_number_again_and_the_former_one_is_refused_from_then_on(is_lost):
    pair = Pair(standby=True)
    copy = {} if is_lost else pair.copy()
    given = pair.take(2)
    former = pair.copy()
    pair.begin_again(copy)
    refusal = pair.adopt()
    assert refusal.reserved == RESERVE_FIRST and refusal.incarnation == 1
    assert {serial_of_job(job) for job in refusal.jobs} <= set(given)
    pair.until(pair.now + 30.0)
    assert not pair.refusals and not pair.role.claims.is_behind
    assert BEHIND_KEY not in pair.masters[0].disk["incarnation"], "else it were behind again after each start"
    numbers = pair.take()
    assert min(numbers) > RESERVE_FIRST
    assert pair.role.book.of_number[number_of_job(0, numbers[0])].stored.shapes == (2,), "nor is a number of a shape"
    pair.begin_again()
    assert not pair.refusals, "it is the one in use, also when it is started again"
    pair.begin_again(former)
    assert pair.refusals[0].words.split(":")[0] == "knows another store of g0"


def test_a_store_that_takes_over_places_nothing_while_a_cluster_cannot_be_heard():
    """It believes that a task waits, which runs in the cluster that is cut off."""
    pair = Pair(machines=(), clusters=2)
    pair.take()
    copy = pair.copy()
    pair.join(1)
    assert list(pair.watch.alive) == [(0, 0)]
    pair.begin_again(copy)
    pair.join(0)
    pair.network.hold_apart(frozenset(("g0", "l1")), 1)
    pair.adopt()
    pair.until(pair.now + 20.0)
    assert pair.role.claims.is_behind and len(pair.watch.alive) == 1
    with pytest.raises(NoNumbersError):
        pair.role.submit(SPECS[199], "", 1.0)
    pair.network.hold_apart(frozenset(("g0", "l1")), -1)
    pair.until(pair.now + 60.0)
    assert not pair.role.claims.is_behind and len(pair.watch.alive) == 1
    assert pair.watch.beginnings.times[0, 0] == 2


def test_a_store_that_takes_over_is_heeded_when_nothing_runs_any_more_that_was_begun_before():
    """What it believes of a task is so long ago that it does not take what runs for an attempt of it."""
    pair = Pair(machines=())
    pair.take(at=200)
    copy = pair.copy()
    pair.join(0, 0)
    pair.until(pair.now + 3.0)
    assert pair.watch.beginnings.times[200, 0] == 2
    pair.begin_again(copy)
    pair.adopt()
    assert pair.role.claims.is_behind, "what runs has three seconds to end"
    pair.until(pair.now + 60.0)
    assert pair.watch.beginnings.times[200, 0] > 2


def test_only_a_store_that_was_refused_takes_over():
    with pytest.raises(InputError, match="no local master has refused this store"):
        adopt({IDENTITY_KEY: b"id"}, "new")


def test_what_several_local_masters_know_is_put_together():
    pair = Pair(standby=True)
    copy = pair.copy()
    pair.begin_again()
    pair.begin_again(copy)
    found = [body for key, body in pair.masters[0].disk["incarnation"].items() if key == 7]
    refusal = msgpack.decode(found[0], type=Refusal)
    assert refusal.by == (0, STANDBYS)
    assert refusal.incarnation == 2
    assert refusal.reserved == 2 * RESERVE_FIRST


def test_stores_of_global_masters_are_lost_in_torture_and_no_number_is_given_twice():
    seeds = [seed for seed in range(100) if any(fault.kind in STORES for fault in random_case(seed).faults)]
    for seed in seeds:
        ending = run_case(random_case(seed))
        assert ending.failure == "", seed
    assert seeds


def test_a_store_that_never_spoke_of_attempts_is_taken_as_one_in_use():
    """One of a former version, which has reserved nothing and has no identity."""
    pair = Pair()
    pair.take()
    disk = pair.copy()
    disk["incarnation"] = {key: body for key, body in disk["incarnation"].items() if key < IDENTITY_KEY}
    pair.locals[0].disk.pop("claim")
    pair.kill(pair.locals[0])
    pair.start(pair.locals[0])
    pair.begin_again(disk)
    assert not pair.refusals
    assert pair.take() == [2]
    assert isinstance(pair.role, GlobalRole) and isinstance(pair.role.claims, Claims)
    assert RESERVED_KEY in pair.masters[0].disk["incarnation"]


def test_a_task_of_a_gang_that_is_held_for_a_lost_store_is_given_up():
    """Found by torture: it was held for ever, as who knew of the gang could not give it up any more."""
    stage = Stage("s", ("work", "0"), 2, gang=True, resources={"cpu": 600})
    machines = tuple(MachineCase(cluster, (1000,), "", False) for cluster in range(2))
    job = JobCase(2.0, "client 0", JobSpec(Metadata("j"), "a", (stage,)), (((9.0, 0),),) * 2)
    lost = Fault(0.0, "lost", ("g0",), 0.0)
    world = World(Case(1, Layout(1, 2, ("cpu",), False, ROOMS), Timing(), machines, (QueueSetup("a", 0),),
                       "round-robin", (job,), (), (), (lost,), 0.0, 0.0, 0.0, 0.0))
    begin(world)

    def held():
        rows = [process.role.local.rows for process in world.locals]
        return sum(int((each.row["state"][: each.counts.rows_ever] == ATTEMPT_HELD).sum()) for each in rows)

    while not held():
        world.until(world.now + 0.0005)
        assert world.now < 5.0
    stores.begin(world, world.masters[0], lost)
    world.until(world.now + 3.0)
    assert world.happened["store adopted"] == 1 and not world.watch.alive
    assert not held()
    for process in world.locals:
        assert process.role.local.fleet.free[:, process.role.layout.machine_of(process.role.cluster)].tolist() == [1000]


# -- real processes ----------------------------------------------------------------------------------------------------


@pytest.fixture
def federation():
    federation = Folder(clusters=1, workers=1)
    yield federation
    federation.over()
    until(lambda: not left(federation.folder), words=lambda: left(federation.folder))


def test_a_lost_store_ends_its_process_with_a_line_and_takes_over_when_it_is_told_to(federation, run):
    for name in ("a", "a-standby", "g0", "a1"):
        federation.start(name)
    with federation.client() as client:
        until(lambda: any(each.state == "ready" for each in client.machines()))
        first = client.submit("metadata: {name: one}\nqueue: research\ncommand: [sleep, '1000']\n").id
        until(lambda: client.job(first).counts.running == 1)
        code, _, err = run("store", "adopt", federation.members["g0"].file)
        assert (code, err.count("\n")) == (2, 1)
        assert "another process uses this folder" in err
        federation.kill("g0")
        shutil.rmtree(federation.folder / "data" / "g0")
        code, _, err = run("store", "adopt", federation.members["g0"].file)
        assert code == 2
        assert "there is no store; start g0, which makes one" in err
        process = federation.start("g0")
        until(lambda: process.poll() is not None, words=lambda: federation.said("g0"))
        assert process.returncode == exit_codes.STORE_UNFIT == 7
        last = federation.said("g0").splitlines()[-1]
        assert "of cluster a knows another store of g0: incarnation 1, jobs up to g0-64; here: incarnation 1" in last
        code, out, _ = run("store", "adopt", federation.members["g0"].file)
        assert code == 0
        assert "takes over as incarnation 2 of g0" in out
        assert "lost: all jobs, up to g0-64" in out
        assert f"of those, known where they ran, and ended there: {first}" in out
        federation.start("g0")
        job = until(lambda: _taken(client))
        assert client.wait(job).outcome == "finished"
        assert job == "g0-65"


def _taken(client):
    try:
        return client.submit("metadata: {name: two}\nqueue: research\ncommand: ['true']\n").id
    except UnavailableError:
        return None


def test_a_store_is_not_behind_what_its_own_incarnation_has_requested_by_the_partner():
    """Found by torture (seed 1424): a standby that had not heard of the incarnation was told by workers of it."""
    pair = Pair(standby=True)
    pair.begin_again()
    known = pair.locals[1].role.claims
    former = known.claims[0]
    known.claims[0] = structs.replace(former, incarnation=former.incarnation - 1, life="former", reserved=former.began)
    claim = pair.role.claims.to(STANDBYS)
    known.requested[0] = (claim.incarnation << INCARNATION_BITS) + 5
    known.take((GLOBAL_MASTER, 0), claim)
    assert known.claims[0] == claim
    known.claims[0] = structs.replace(former, incarnation=former.incarnation - 1, life="former", reserved=former.began)
    known.requested[0] = (claim.incarnation + 1 << INCARNATION_BITS) + 5
    known.take((GLOBAL_MASTER, 0), claim)
    assert known.claims[0] != claim
    known.requested[0] = claim.attempt + 1
    known.take((GLOBAL_MASTER, 0), claim)
    assert known.claims[0] != claim
