"""Every role by itself: what a role was told in a simulated run, told again to one that has tables of its own and knows
of no other role, makes it answer with the same bytes; in plain Python, and by the compiled function of a process.
"""
import numpy as np
import pytest

from inboxes import INBOX, Recorder, alone, hand_over
from subak.federation.megha.ledger import ENTRY, bring, build_ledger, carried, still_holds
from subak.federation.megha.roles import SERVE
from subak.federation.messages import CROSSES, HANDLER, KINDS, LOCAL_MASTER, NOBODY, ROLES, SPOKEN, SUBMITTER, WORKER
from subak.federation.serving import compiled_service
from subak.live.role.local_role import WITHOUT_MACHINE
from subak.simulator.engine.state import LOOP_DONE
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated
from subak.simulator.torture.torture import INTERVAL, build, failures_of, next_event, random_case

LARGE = 20_000


def opened_case(seed, outbox=None):
    """A drawn federation; with an *outbox* of its own no walk has to stop, however many messages a role is told."""
    case = random_case(seed)
    return open_federated(*build(case), MEGHA, case.settings, case.seed, INTERVAL, np.inf, case.plan, compiled=False,
                          rows=case.rows, outbox=outbox or case.outbox, failures=failures_of(case))


def recorded(seed, outbox=None):
    """Run a drawn federation, and return what its roles were told."""
    recorder = Recorder(opened_case(seed, outbox))
    for _ in range(30_000):
        why, _ = next_event(recorder.opened)
        if why == LOOP_DONE or recorder.opened.simulation.clock.now > 40.0:
            return recorder
    raise AssertionError("no end")


def played(tables, serve, calls):
    """Tell a role again what it was told at one instant, in one call; return what it answers."""
    hand_over(tables, calls)
    with np.errstate(over="ignore"):
        task = serve(calls[0].now, len(calls))
    return tables.out.row[: tables.out.counts.posted].copy(), task


def in_batches(calls, most):
    """Yield up to *most* calls of one role at one instant, as a process hands them on; a machine's change by itself."""
    batch = []
    for told in calls:
        if batch and ((told.role, told.now) != (batch[0].role, batch[0].now) or len(batch) == most
                      or told.message[0]["epoch"] != batch[0].message[0]["epoch"] or told.lost is not None):
            yield batch
            batch = []
        batch.append(told)
    yield batch


def assert_same_answers(opened, recorder, service, most):
    for (roles, number), calls in recorder.calls.items():
        tables = alone(opened, roles)
        serve = {role: service(role, tables[role]) for role in roles}
        for batch in in_batches(calls, most):
            role = batch[0].role
            again, task_again = played(tables[role], serve[role], batch)
            told = f"{ROLES[role]} {number} was told {[KINDS[each.message[0]['kind']] for each in batch]}"
            assert np.concatenate([each.answers for each in batch]).tobytes() == again.tobytes(), told
            assert task_again == batch[-1].task, told


def in_plain_python(role, tables):
    return lambda now, count: SERVE[role](tables, now, count)


SEEDS = [seed for seed in range(60) if random_case(seed).settings.placement != "bins"][:24]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_role_by_itself_answers_with_the_same_bytes(seed):
    recorder = recorded(seed)
    assert_same_answers(opened_case(seed), recorder, in_plain_python, most=1)


@pytest.mark.parametrize("seed", SEEDS[:6])
def test_so_does_the_compiled_function_of_a_process_whatever_it_is_told_at_once(seed):
    recorder = recorded(seed, LARGE)
    assert {told.role for calls in recorder.calls.values() for told in calls} == set(range(WORKER + 1))
    assert_same_answers(opened_case(seed, LARGE), recorder,
                        lambda role, tables: compiled_service(SERVE[role], tables), INBOX)


def test_what_crosses_the_network_is_taken_by_live_roles():
    """A node refuses a kind that its peer does not speak, and a local master's one about a machine it does not have."""
    crossing = [(told.role, row) for seed in SEEDS[:10] for calls in recorded(seed).calls.values() for told in calls
                if told.role != SUBMITTER  # it is beside its master
                for row in told.answers if CROSSES[row["kind"]] and HANDLER[row["kind"]] in SPOKEN]
    spoken = {(sender, int(row["kind"])) for sender, row in crossing}
    assert {(ROLES[sender], KINDS[kind]) for sender, kind in spoken if kind not in SPOKEN[sender]} == set()
    assert {ROLES[sender] for sender, _ in spoken} == {ROLES[sender] for sender in SPOKEN}
    about_none = {int(row["kind"]) for _, row in crossing
                  if HANDLER[row["kind"]] == LOCAL_MASTER and row["machine"] == NOBODY}
    assert {KINDS[kind] for kind in about_none - WITHOUT_MACHINE} == set() and len(about_none) > 2


def test_a_kind_that_crosses_the_network_is_spoken_by_somebody():
    """But what a submitter says to the master beside it, and what federations say that sample."""
    beside, sampling = {"SUBMIT", "WITHDRAW"}, set(KINDS[KINDS.index("PROBE"):KINDS.index("BOOT")])
    crossing = {kind for number, kind in enumerate(KINDS) if CROSSES[number] and HANDLER[number] in SPOKEN}
    assert crossing - beside - sampling == {KINDS[kind] for kinds in SPOKEN.values() for kind in kinds}


def test_a_copy_of_a_ledger_holds_what_came_whatever_came_before_it():
    copy = build_ledger(4, 4)

    def entries(first, last):
        told = np.zeros(last - first, ENTRY)
        told["attempt"] = np.arange(first, last)
        return told

    def holds(epoch, first, last):
        return still_holds(copy, epoch, first) and carried(copy, epoch, first, last)["attempt"].tolist() == list(
            range(first, last))

    bring(copy, 0, 6, entries(6, 8))
    assert holds(0, 6, 8)
    bring(copy, 0, 3, entries(3, 7))  # an overtaken one: what the ring no longer goes back to is left out
    assert holds(0, 6, 8)
    assert holds(0, 4, 7)
    assert not holds(0, 3, 7)
    bring(copy, 2, 0, entries(0, 1))  # of a later epoch
    assert holds(2, 0, 1)
    assert not holds(0, 6, 8)
    bring(copy, 0, 8, entries(8, 9))  # of a former one
    assert holds(2, 0, 1)
    assert copy.counts.version == 1
