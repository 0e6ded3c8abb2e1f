"""Guards of roles that hold only in rare moments: a machine that joins again, an old lease, an end that came first."""
import pytest

from subak.federation.messages import ALIVE, GLOBAL_MASTER, LEASE, LOCAL_MASTER, OVER, WORKER
from subak.live.role.base import Cut
from subak.live.role.facts import CONFIGURATION, MACHINE, QUEUES, Fact
from subak.live.role.facts import JOB as JOB_FACT
from subak.live.role.frames import Answer, Batch, FrameError, Join, Leave, Outgoing
from subak.live.role.worker.worker_role import Ping
from subak.live.torture.case import JobCase
from test_live_roles import JOB, ask, messages, number_of, world_of


def test_a_cordon_holds_when_the_worker_joins_again():
    world = world_of()
    machine, process = number_of(world), world.machines.all[0].process
    ask(world, "cordon", machine)
    for again in (True, False):
        world.kill(process)
        world.machines.start_worker(world.machines.all[0])
        world.until(world.now + 1.0)
        assert [local.role.machines[machine].cordoned for local in world.locals[:1]] == [again]
        ask(world, "uncordon", machine)


@pytest.mark.parametrize("kind", [ALIVE, OVER])
def test_a_worker_speaks_for_no_other_machine(kind):
    world = world_of(machines=2)
    role, own = world.locals[0].role, number_of(world, 0)
    assert len(list(role.taken((WORKER, own), Batch(messages(kind, own, machine=own, task=0).tobytes())))) == 1
    with pytest.raises(FrameError):
        role.taken((WORKER, own), Batch(messages(kind, own, machine=number_of(world, 1), task=0).tobytes()))


@pytest.mark.parametrize(("of_fresh", "pings"), [(0.9, 1), (1.1, 0)])
def test_an_old_answer_to_a_sign_of_life_is_no_life_for_the_agent(of_fresh, pings):
    role = world_of().machines.all[0].process.role
    now = role.now + role.timing.fresh * 3
    rows = messages(LEASE, 0, machine=role.number)
    rows["to"], rows["epoch"], rows["incarnation"] = role.number, role.me["epoch"], role.me["incarnation"]
    rows["delay"] = now - of_fresh * role.timing.fresh
    outgoing = world_frame(role, rows)
    ready = role.receive(now, [((LOCAL_MASTER, 0), outgoing)])
    assert role.me["heard"] == rows["delay"][0]
    assert sum(isinstance(effect, Ping) for effect in ready.effects) == pings


def world_frame(role, rows):
    """Return the next frame from the first local master with these messages."""
    outgoing = Outgoing()
    outgoing.number = role.links[LOCAL_MASTER, 0].incoming.number
    return outgoing.frame(Batch(rows.tobytes()))


def test_an_end_that_was_reached_while_it_was_halted_counts():
    """The worker writes down that it halts what ends well before the agent hears of it: it is not run again."""
    world = world_of(jobs=[JobCase(2.5, "client", JOB, (((3.0, 0), (1.0, 0)),))])
    world.until(5.2)
    process = world.machines.all[0].process
    process.slow = 1.0
    ask(world, "drain", number_of(world))
    ask(world, "uncordon", number_of(world))
    assert process.role.halting
    assert len(world.watch.alive) == 1
    process.slow = 0.0
    world.until(20.0)
    assert list(world.watch.tries.values()) == [1]
    assert len(world.watch.finished) == 1
    assert not world.masters[0].role.book.of_number


def frame_of(role, peer, frame):
    """Hand a role the next frame from a peer; return what it cut."""
    outgoing = Outgoing()
    outgoing.number = role.links[peer].incoming.number
    return [each for each in role.receive(role.now, [(peer, outgoing.frame(frame))]).effects if isinstance(each, Cut)]


@pytest.mark.parametrize("fact", [
    Fact(QUEUES, 0, b"", 9), Fact(MACHINE, 0, b"", 9), Fact(CONFIGURATION, 0, b"", 9), Fact(JOB_FACT, 0, b"", 9)])
def test_a_worker_says_no_facts_but_of_shapes(fact):
    world = world_of()
    role, peer = world.locals[0].role, (WORKER, number_of(world))
    (cut,) = frame_of(role, peer, Batch(facts=(fact,)))
    assert "a worker said a fact" in cut.words
    assert role.facts.known.get((fact.kind, fact.number)) != fact


def test_a_local_master_says_no_machines_of_another_cluster_and_a_global_master_none():
    world = world_of()
    role, foreign = world.masters[0].role, world.layout.machines_each * 3
    peer = next(peer for peer in role.links if peer[0] == LOCAL_MASTER)
    (cut,) = frame_of(role, peer, Batch(facts=(Fact(MACHINE, foreign, b"", 9),)))
    assert "a local master said a fact" in cut.words
    local = world.locals[0].role
    (cut,) = frame_of(local, (GLOBAL_MASTER, 0), Batch(facts=(Fact(MACHINE, 0, b"", 9),)))
    assert "a global master said a fact" in cut.words


def test_a_worker_answers_for_its_own_machine_alone():
    world = world_of(machines=2)
    role, asker = world.locals[0].role, (GLOBAL_MASTER, 0)
    own, other = number_of(world, 0), number_of(world, 1)
    role.questions[77] = asker, 5, other
    assert len(frame_of(role, (WORKER, own), Answer(77, b"forged"))) == 1
    assert role.questions[77] == (asker, 5, other)
    frame_of(role, (WORKER, other), Answer(77, b"true"))
    assert 77 not in role.questions


def test_a_worker_joins_only_as_the_machine_of_its_certificate_and_is_heard_after_it():
    world = world_of()
    role, number = world.locals[0].role, number_of(world)
    peer, machine = (WORKER, number), role.machines[number]
    joins = Join(number, machine.identity, machine.name, machine.capacity, machine.attributes, True)
    role.disconnect(peer)
    role.connect(peer, "another")
    frame_of(role, peer, Leave())
    assert not role.leaving and not role.machines[number].cordoned  # not admitted, so not heard
    role.disconnect(peer)
    role.connect(peer, "another")
    (cut,) = frame_of(role, peer, joins)
    assert cut.words == f"machine {machine.name}: the certificate of its worker is of another"
    role.connect(peer, machine.name)
    assert frame_of(role, peer, joins) == []
    frame_of(role, peer, Leave())
    assert role.machines[number].cordoned or role.machines[number].removed
