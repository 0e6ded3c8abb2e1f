"""Every role by itself: what a role was told in a simulated run, told again to one that has tables of its own and knows
of no other role, makes it answer with the same bytes; in plain Python, and by the compiled function of a process.
"""
from collections import defaultdict

import numpy as np
import pytest

from subak.federation.megha.ledger import ENTRY, VERSION, Ledger, bring, carried, still_holds
from subak.federation.megha.roles import SERVE
from subak.federation.messages import (
    CATCH_UP,
    ENDED,
    GLOBAL_MASTER,
    KINDS,
    LAUNCHED,
    MESSAGE,
    REFUSED,
    ROLES,
    SUBMITTER,
    UPDATE,
    WORKER,
    build_outbox,
)
from subak.federation.serving import compiled_service
from subak.simulator.engine.state import LOOP_DONE, NOW
from subak.simulator.federated.engine import Services
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated
from subak.simulator.torture.torture import INTERVAL, build, failures_of, next_event, random_case

NEWS = (LAUNCHED, REFUSED, ENDED, UPDATE, CATCH_UP)
INBOX, LARGE = 8, 20_000


def opened_case(seed, outbox=None):
    """A drawn federation; with an *outbox* of its own no walk has to stop, however many messages a role is told."""
    case = random_case(seed)
    return open_federated(*build(case), MEGHA, case.settings, case.seed, INTERVAL, np.inf, case.plan, compiled=False,
                          rows=case.rows, outbox=outbox or case.outbox, failures=failures_of(case))


class Recorder:
    """Notes what each role was told, what its messages brought of a ledger, and what it answered."""

    def __init__(self, opened):
        self.opened, self.calls = opened, defaultdict(list)
        services = opened.services
        opened.services = Services(services.loop, tuple(self.recorded(role, serve) for role, serve in enumerate(
            services.serve)), services.tables)

    def recorded(self, role, serve):
        def note(address, now, count):
            message, before = self.opened.due.copy(), int(self.opened.out.size[0])
            brought = self.brought(message[0]) if role == GLOBAL_MASTER else None
            lost = self.opened.simulation.losses.task.copy() if role == WORKER else None
            task = serve(address, now, count)
            answers = self.opened.out.row[before : self.opened.out.size[0]].copy()
            self.calls[self.process(role, int(message[0]["to"]))].append(
                (role, now, message, brought, lost, answers, task))
            return task
        return note

    @staticmethod
    def process(role, number):
        """The roles that are in one process: workers share a pool whose rows they name, and a global master has its
        submitter beside it, with the table of open tasks on one disk.
        """
        if role == WORKER:
            return (WORKER,), 0
        return ((SUBMITTER, GLOBAL_MASTER) if role in (SUBMITTER, GLOBAL_MASTER) else (role,)), number

    def brought(self, message):
        if message["kind"] not in NEWS:
            return None
        ledger = self.opened.roles.locals[message["sender"]].ledger
        return carried(ledger, message["epoch"], message["first"], message["last"])

    def run(self):
        for _ in range(30_000):
            why, _ = next_event(self.opened)
            if why == LOOP_DONE or self.opened.simulation.clock[NOW] > 40.0:
                return self
        raise AssertionError("no end")


def copied(state, copies):
    """Return a state with arrays of its own; what it had in common with another of *copies* it has in common again."""
    if isinstance(state, np.ndarray):
        return copies.setdefault(id(state), state.copy())
    if isinstance(state, list):
        return [copied(each, copies) for each in state]
    if isinstance(state, tuple):
        parts = [copied(each, copies) for each in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state


def alone(opened, roles):
    """Return the tables of a process of a federation that has not begun, by role: no other process shares any."""
    out = build_outbox(opened.out.spare, opened.out.row.size - opened.out.spare)
    inbox, copies = np.zeros(INBOX, MESSAGE), {}
    tables = {role: copied(opened.services.tables[role].state, copies)._replace(inbox=inbox, out=out)
              for role in roles}
    if GLOBAL_MASTER in tables:
        ledgers = [Ledger(np.zeros_like(each.entry), np.array([0, -1, 0])) for each in tables[GLOBAL_MASTER].ledgers]
        tables[GLOBAL_MASTER] = tables[GLOBAL_MASTER]._replace(ledgers=ledgers)
    return tables


def played(tables, serve, calls):
    """Tell a role again what it was told at one instant, in one call; return what it answers."""
    for place, (_, _, message, brought, lost, *_) in enumerate(calls):
        tables.inbox[place] = message[0]
        if brought is not None:
            bring(tables.ledgers[message[0]["sender"]], message[0]["epoch"], message[0]["first"], brought)
        if lost is not None:
            tables.lost[:] = lost
    tables.out.size[0] = 0
    with np.errstate(over="ignore"):
        task = serve(calls[0][1], len(calls))
    return tables.out.row[: tables.out.size[0]].copy(), task


def in_batches(calls, most):
    """Yield up to *most* calls of one role at one instant, as a process hands them on; a machine's change by itself."""
    batch = []
    for call in calls:
        role, now, message, _, lost, *_ = call
        if batch and ((role, now) != batch[0][:2] or len(batch) == most
                      or message[0]["epoch"] != batch[0][2][0]["epoch"]
                      or (lost is not None and not np.array_equal(lost, batch[0][4]))):
            yield batch
            batch = []
        batch.append(call)
    yield batch


def assert_same_answers(opened, recorder, service, most):
    for (roles, number), calls in recorder.calls.items():
        tables = alone(opened, roles)
        serve = {role: service(role, tables[role]) for role in roles}
        for batch in in_batches(calls, most):
            role = batch[0][0]
            again, task_again = played(tables[role], serve[role], batch)
            told = f"{ROLES[role]} {number} was told {[KINDS[message[0]['kind']] for _, _, message, *_ in batch]}"
            assert np.concatenate([answers for *_, answers, _ in batch]).tobytes() == again.tobytes(), told
            assert task_again == batch[-1][-1], told


def in_plain_python(role, tables):
    return lambda now, count: SERVE[role](tables, now, count)


SEEDS = [seed for seed in range(60) if random_case(seed).settings.placement != "bins"][:24]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_role_by_itself_answers_with_the_same_bytes(seed):
    recorder = Recorder(opened_case(seed)).run()
    assert_same_answers(opened_case(seed), recorder, in_plain_python, most=1)


@pytest.mark.parametrize("seed", SEEDS[:6])
def test_so_does_the_compiled_function_of_a_process_whatever_it_is_told_at_once(seed):
    recorder = Recorder(opened_case(seed, LARGE)).run()
    assert {call[0] for calls in recorder.calls.values() for call in calls} == set(range(WORKER + 1))
    assert_same_answers(opened_case(seed, LARGE), recorder,
                        lambda role, tables: compiled_service(SERVE[role], tables), INBOX)


def test_a_copy_of_a_ledger_holds_what_came_whatever_came_before_it():
    copy = Ledger(np.zeros(4, ENTRY), np.array([0, -1, 0]))

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
    assert copy.size[VERSION] == 1
