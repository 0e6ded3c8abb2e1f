"""Single steps of a global master on tables that are written by hand: what it forgets, what it takes to be its own."""
import numpy as np
import pytest

from growing import Growing
from subak.federation.choices import BINS
from subak.federation.megha.attempts import add_attempt, build_attempts
from subak.federation.megha.global_master.backlog import enqueue
from subak.federation.megha.global_master.handlers import (
    confirm,
    end,
    is_current,
    on_place,
    on_reopen,
    on_submit,
    on_update,
)
from subak.federation.megha.global_master.placement import Bins, chosen_in, hold, hold_nothing, let_go
from subak.federation.megha.global_master.preemption import dominant_share, machine_with_victims
from subak.federation.megha.global_master.rebuild import restart, settle_doubts
from subak.federation.megha.global_master.state import (
    CLUSTER,
    NEVER_SEEN,
    PHASE_ENDED,
    PHASE_FLYING,
    PHASE_RUNNING,
    PHASE_UNKNOWN,
    PHASE_WAITING,
    TASK,
    is_here,
    phase_of,
)
from subak.federation.megha.global_master.view import (
    MISSING,
    NOTHING_NEW,
    begin_update,
    empty_machine,
    is_mine,
    take_in_view,
)
from subak.federation.megha.ledger import ENTRY, ENTRY_TOOK, build_ledger, enter
from subak.federation.megha.open_tasks import join_gang, open_gang, open_task
from subak.federation.megha.topology import INCARNATION_BITS, STRICT
from subak.federation.messages import (
    ASK,
    DONE,
    FINISHED_WELL,
    KINDS,
    MACHINE_LOST,
    MESSAGE,
    NOBODY,
    PREEMPTED,
    UPDATE,
    build_outbox,
)
from subak.fleet.amounts import shift
from subak.fleet.state import LOG
from subak.workload.predicates import Constraint

FIRST = 1 << INCARNATION_BITS  # attempts of the first incarnation of a master come behind it
NUMBER = 70  # of the task that the tests are about


class Master:
    """A global master with one open task, and all that its handlers are told beside a message."""

    def __init__(self, clusters_machines=(0,), **more):
        self.federation = Growing(1, **more)
        self.topology, self.rules = self.federation.topology, self.federation.roles.rules
        self.tasks, self.master = self.federation.roles.submitters[0].tasks, self.federation.roles.masters[0]
        self.out = build_outbox(64)
        for machine in clusters_machines:
            self.federation.catalog.describe(machine, {})
            shift(self.master.fleet, machine, self.topology.capacity, self.federation.catalog.configuration((4, 4)))
        shape = self.federation.catalog.shape((1, 2))
        admission = self.federation.admission[0]
        admission.add_queue(0)
        self.row = open_task(self.tasks, NUMBER)
        self.tasks.lane[self.row] = admission.lane(0, shape, 0)
        self.tasks.shape[self.row], self.tasks.queue[self.row], self.tasks.losses_max[self.row] = shape, 0, 9
        assert self.is_here()

    def is_here(self, round_=0):
        return is_here(self.master, self.tasks, self.row, NUMBER, round_)

    @property
    def task(self):
        return self.master.task[self.row]

    def entry(self, **fields):
        """An entry of a ledger about the task."""
        entry = np.zeros(1, ENTRY)[0]
        entry["row"], entry["task"], entry["attempt"] = self.row, NUMBER, FIRST + 1
        for name, value in fields.items():
            entry[name] = value
        return entry

    def everything(self):
        return self.master, self.topology, self.rules, self.tasks


def said(record):
    """The fields of a record that say something else than 0."""
    return {name: record[name].item() for name in record.dtype.names if record[name].item()}


# -- what a global master knows of a task ------------------------------------------------------------------------------


def test_of_a_task_that_comes_into_a_row_nothing_is_known():
    one = Master()
    for name in TASK.names:
        one.master.task[name][one.row] = 1
    assert phase_of(one.master, one.tasks, one.row) == PHASE_UNKNOWN
    assert one.is_here()
    assert said(one.task) == {"tenant": NUMBER + 1, "machine": NOBODY, "sent_to": NOBODY}
    one.task["phase"] = PHASE_WAITING
    assert one.is_here()
    assert phase_of(one.master, one.tasks, one.row) == PHASE_WAITING
    one.tasks.round[one.row] = 1
    assert phase_of(one.master, one.tasks, one.row) == PHASE_UNKNOWN, "it was submitted anew"
    assert not one.is_here()
    assert one.is_here(1)
    assert said(one.task) == {"tenant": NUMBER + 1, "machine": NOBODY, "sent_to": NOBODY, "round": 1}


def test_of_a_gang_that_comes_into_a_row_nothing_is_known():
    one = Master()
    gang = open_gang(one.tasks, NUMBER, 2)
    join_gang(one.tasks, one.row, gang)
    one.master.gang[gang] = 9, 3, True
    assert one.is_here()
    assert one.master.gang[gang].item() == (NUMBER + 1, 0, False)
    one.master.gang["waiting"][gang] = 1
    assert one.is_here()
    assert one.master.gang[gang].item() == (NUMBER + 1, 1, False)


def test_a_restarted_global_master_knows_its_incarnation_and_where_it_asked():
    one = Master()
    join_gang(one.tasks, one.row, open_gang(one.tasks, NUMBER, 2))
    for name in ("attempt", "machine", "sent_epoch", "sent_to", "withdrawn", "queued", "flying", "doubted"):
        one.task[name] = 0 if name == "sent_to" else 1
    one.task["phase"] = PHASE_WAITING
    one.master.gang[0] = NUMBER + 1, 1, True
    one.master.cluster[0] = np.ones(1, CLUSTER)[0]
    forgotten = ("next_queue", "next_internal", "next_external", "placing", "doubts", "queued")
    for name in forgotten:
        setattr(one.master.counts, name, 1)
    one.master.counts.beats = 5
    restart(*one.everything(), one.out)
    assert said(one.task) == {"tenant": NUMBER + 1, "machine": NOBODY}
    assert one.master.gang[0].item() == (NUMBER + 1, 0, False)
    assert said(one.master.cluster[0]) == {"seen": NEVER_SEEN, "seen_at": 1.0}
    assert [getattr(one.master.counts, name) for name in forgotten] == [0] * 6
    assert (one.master.counts.incarnation, one.master.counts.beats) == (2, 5)
    assert one.master.counts.own_queues == 1


@pytest.mark.parametrize(("phase", "entry", "mine"), [
    (PHASE_RUNNING, {}, True),
    (PHASE_RUNNING, {"owner": 1}, False),
    (PHASE_RUNNING, {"task": NUMBER + 1}, False),
    (PHASE_RUNNING, {"attempt": FIRST + 2}, False),
    (PHASE_RUNNING, {"machine": 1}, False),
    (PHASE_WAITING, {}, False),
    (PHASE_WAITING, {"attempt": 1}, True),  # the one it was sent to last, by incarnation 0
    (PHASE_UNKNOWN, {"attempt": 1, "machine": 1}, True),
    (PHASE_WAITING, {"attempt": 2}, False),
    (PHASE_WAITING, {"attempt": 2, "reason": MACHINE_LOST}, False),
    (PHASE_WAITING, {"attempt": 2, "reason": FINISHED_WELL}, True),
])
def test_an_entry_is_about_the_attempt_it_stands_by_or_one_of_a_former_incarnation(phase, entry, mine):
    one = Master()
    one.task["phase"], one.task["attempt"], one.task["machine"] = phase, FIRST + 1, 0
    one.task["sent"], one.task["sent_to"] = 1, 0
    assert is_mine(one.master, one.topology, one.tasks, one.entry(**entry)) == mine


def test_an_attempt_of_another_cluster_is_not_the_one_it_was_sent_to():
    one = Master()
    one.task["sent"], one.task["sent_to"] = 1, 1
    assert not is_mine(one.master, one.topology, one.tasks, one.entry(attempt=1))


@pytest.mark.parametrize(("changed", "current"), [
    ({}, True), ({"task": NUMBER + 1}, False), ({"round": 1}, False), ({"attempt": FIRST + 2}, False),
    ({"machine": 1}, False)])
def test_an_answer_is_about_the_last_attempt_of_its_task(changed, current):
    one = Master()
    one.task["attempt"], one.task["machine"] = FIRST + 1, 0
    message = np.zeros(1, MESSAGE)[0]
    for name, value in {"row": one.row, "task": NUMBER, "attempt": FIRST + 1, "machine": 0, **changed}.items():
        message[name] = value
    assert is_current(one.master, one.tasks, message) == current


@pytest.mark.parametrize(("reason", "preempted"), [(MACHINE_LOST, 0), (PREEMPTED, 1)])
def test_a_task_whose_attempt_is_over_waits_again(reason, preempted):
    one = Master()
    one.task["phase"], one.task["doubted"] = PHASE_RUNNING, True
    end(*one.everything(), one.entry(reason=reason), one.out)
    assert (one.task["preempted"], one.task["phase"]) == (preempted, PHASE_WAITING)
    assert not one.task["doubted"]


def test_an_end_that_comes_before_its_beginning_gives_back_what_was_taken_for_it():
    one = Master()
    hold(one.master.fleet, one.master.bins, one.tasks, 0, 0)
    one.task["phase"], one.task["flying"], one.task["machine"] = PHASE_FLYING, True, 0
    end(*one.everything(), one.entry(reason=FINISHED_WELL), one.out)
    assert one.master.fleet.free[:, 0].tolist() == [4, 4]
    assert (one.task["phase"], one.task["flying"], one.task["reason"]) == (PHASE_ENDED, False, FINISHED_WELL)


def test_an_attempt_that_a_restarted_master_learns_of_is_asked_for_in_the_epoch_that_told_of_it():
    one = Master()
    one.master.cluster["epoch"][0] = 4
    confirm(*one.everything(), 0.0, one.entry(attempt=7), one.out)
    assert (one.task["phase"], one.task["attempt"], one.task["sent_epoch"]) == (PHASE_RUNNING, 7, 4)


def test_of_a_task_that_had_ended_a_new_master_knows_nothing_else():
    one, submitted = Master(), np.zeros(1, MESSAGE)[0]
    submitted["row"], submitted["task"], submitted["incarnation"] = one.row, NUMBER, 1
    submitted["reason"] = FINISHED_WELL
    on_submit(*one.everything(), submitted, one.out)
    assert one.task["phase"] == PHASE_ENDED
    assert [one.out.row[0][name] for name in ("kind", "reason", "count")] == [DONE, FINISHED_WELL, 0]


def test_a_doubted_task_waits_again_when_its_machine_is_listed_without_it():
    one = Master()
    one.task["phase"], one.task["doubted"], one.task["machine"] = PHASE_RUNNING, True, 0
    one.master.listed[0] = False
    settle_doubts(*one.everything(), one.out)
    assert (one.task["phase"], one.master.counts.doubts) == (PHASE_RUNNING, 1), "what runs there is not known yet"
    one.master.listed[0] = True
    settle_doubts(*one.everything(), one.out)
    assert (one.task["phase"], one.task["doubted"], one.master.counts.doubts) == (PHASE_WAITING, False, 0)


def test_doubts_are_settled_as_far_as_there_is_room_for_what_follows():
    one = Master()
    others = [open_task(one.tasks, NUMBER + more) for more in (1, 2)]
    for row in (one.row, *others):
        one.tasks.shape[row], one.tasks.queue[row], one.tasks.lane[row] = 0, 0, 0
        assert is_here(one.master, one.tasks, row, one.tasks.number[row], 0)
        one.master.task["phase"][row], one.master.task["doubted"][row] = PHASE_RUNNING, True
        one.master.task["machine"][row] = 0
    one.master.listed[0] = True
    settle_doubts(*one.everything(), build_outbox(8, more=0))  # a walk stops behind the first message
    assert one.master.task["doubted"][[one.row, *others]].tolist() == [False, True, True]
    assert one.master.counts.doubts == 1


def test_a_turn_ends_when_more_was_withdrawn_than_the_outbox_holds():
    """Nine were withdrawn while they waited; the tenth waits: each turn says of one that its row is not needed."""
    one = Master()
    rows = [one.row, *(open_task(one.tasks, NUMBER + more) for more in range(1, 10))]
    for row in rows:
        one.tasks.shape[row], one.tasks.queue[row], one.tasks.lane[row] = 0, 0, one.tasks.lane[one.row]
        assert is_here(one.master, one.tasks, row, one.tasks.number[row], 0)
        one.master.task["phase"][row] = PHASE_WAITING
        enqueue(one.master, one.tasks, row)
    one.master.task["phase"][rows[:-1]] = PHASE_ENDED
    said, out = [], build_outbox(8, more=0)  # a walk stops behind the first message
    for _ in rows:
        out.counts.write(0, 0, 0)
        on_place(*one.everything(), 0.0, out)
        said.append([KINDS[kind] for kind in out.row["kind"][: out.counts.posted]])
    assert said == [["DONE", "PLACE"]] * 9 + [["LAUNCH", "RETRY", "PLACE"]]
    assert one.master.counts.placing == 1


# -- its view ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "last", "start"), [
    (5, 8, 5), (3, 8, 5), (3, 5, NOTHING_NEW), (2, 3, NOTHING_NEW), (7, 7, NOTHING_NEW), (7, 8, MISSING)])
def test_an_update_is_applied_from_what_was_seen_on(first, last, start):
    one, ledger = Master(), build_ledger(8, 8)
    for number in range(8):
        enter(ledger, ENTRY_TOOK, 0, number, 0)
    one.master.cluster["seen"][0] = 5
    message = np.zeros(1, MESSAGE)[0]
    message["first"], message["last"] = first, last
    assert begin_update(one.master, 0, 2.5, message, ledger) == start
    assert (one.master.cluster["seen_at"][0], one.master.tally.overruns) == (2.5, 0)


def test_a_master_that_missed_an_update_asks_for_the_whole_state():
    one, ledger = Master(), build_ledger(8, 8)
    for number in range(9):
        enter(ledger, ENTRY_TOOK, 0, number, 0)
    one.master.counts.incarnation = 3
    message = np.zeros(1, MESSAGE)[0]
    message["kind"], message["first"], message["last"], one.master.cluster["seen"][0] = UPDATE, 7, 9, 5
    on_update(*one.everything()[:4], 2.5, message, ledger, one.out)
    asked = one.out.row[0]
    assert [KINDS[kind] for kind in one.out.row["kind"][: one.out.counts.posted]] == ["ASK", "NOTED"]
    assert [asked[name] for name in ("kind", "incarnation", "seen")] == [ASK, 3, NEVER_SEEN]


def test_an_update_of_which_the_ring_has_lost_the_beginning_is_counted():
    one, ledger = Master(), build_ledger(8, 8)
    for number in range(20):
        enter(ledger, ENTRY_TOOK, 0, number, 0)
    message = np.zeros(1, MESSAGE)[0]
    message["first"], message["last"] = 3, 20
    one.master.cluster["seen"][0] = 3
    assert begin_update(one.master, 0, 2.5, message, ledger) == MISSING
    assert one.master.tally.overruns == 1


def test_without_preemption_nobody_notes_what_runs_where():
    one = Master()
    assert not take_in_view(*one.everything(), one.entry(owner=1))
    assert one.master.held.counts.rows_used == 0
    assert one.master.fleet.free[:, 0].tolist() == [3, 2]


def test_a_cluster_that_is_asked_again_is_searched_in_all_its_blocks():
    one = Master(masters=2)
    before, message = int(one.master.fleet.freed_blocks[LOG]), np.zeros(1, MESSAGE)[0]
    one.master.cluster["closed"][0] = True
    on_reopen(one.master, one.topology, message, one.out)
    assert not one.master.cluster["closed"][0]
    assert one.master.fleet.freed_blocks[before : one.master.fleet.freed_blocks[LOG]].tolist() == [0, 1]


def test_a_share_is_of_what_is_there_however_little():
    one = Master()
    one.master.total[0] = 1, 1
    one.master.fleet.present[:] = 4, 1
    assert dominant_share(one.master, one.tasks, 0, NOBODY) == 1.0
    one.master.fleet.present[:] = 4, 0
    assert dominant_share(one.master, one.tasks, 0, NOBODY) == 0.25
    assert dominant_share(one.master, one.tasks, 0, 0) == 0.5


@pytest.mark.parametrize(("machine", "found"), [(0, NOBODY), (1, 1)])
def test_victims_are_sought_where_the_task_may_run(machine, found):
    one = Master(())
    for place, rack in ((0, "a"), (1, "b")):
        one.federation.catalog.describe(place, {"rack": rack})
    shape = one.federation.catalog.shape((2, 2), [Constraint("rack", "=", "b")])
    one.tasks.shape[one.row] = shape
    one.master = one.master._replace(held=build_attempts(one.topology.machine.size, 1))
    held = one.master.held.row[add_attempt(one.master.held, machine, 7, 1, 0)]
    held["queue"], held["shape"] = 1, shape
    rules = one.rules._replace(preemption=STRICT, preemptions_max=1)
    assert machine_with_victims(one.master, one.topology, rules, one.tasks, one.row, 1) == found


def test_the_first_bin_with_most_room_left_is_filled_first():
    one = Master((0, 1, 2, 3))
    target = np.zeros((1, 64), np.int16)
    target[0, :4] = 1, 3, 3, 2
    bins = Bins(target, np.zeros(1, np.int32), np.zeros((1, 64), np.int16))
    chosen = []
    for _ in range(8):
        chosen.append(chosen_in(one.master.fleet, bins, one.tasks, 0, BINS, 0, 1))
        hold(one.master.fleet, bins, one.tasks, 0, chosen[-1])
    assert chosen == [1, 2, 1, 2, 3, 0, 3, 0], "two fit on each, where more are planned too"
    assert chosen_in(one.master.fleet, bins, one.tasks, 0, BINS, 0, 1) == NOBODY
    let_go(one.master.fleet, bins, one.tasks, 0, 1)
    assert bins.running[0, :4].tolist() == [2, 1, 2, 2]
    hold_nothing(bins, 0)
    assert bins.running[0, :4].tolist() == [0, 1, 2, 2]
    assert one.master.fleet.free[:, 1].tolist() == [3, 2]
    empty_machine(one.master._replace(bins=bins), one.rules, 1)
    assert bins.running[0, :4].tolist() == [0, 0, 2, 2]
