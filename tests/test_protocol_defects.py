"""Orders of messages that once led to a second run, a second attempt or a standstill, handed to roles one by one."""
import math

import numpy as np

from small import fleet_of, plain
from subak.federation.megha.roles import SERVE
from subak.federation.messages import (
    ALIVE,
    ARRIVE,
    BEGIN,
    DONE,
    ENDED,
    EXITED,
    FINISHED_WELL,
    HALT,
    HANDLER,
    KINDS,
    LAUNCH,
    LAUNCHED,
    LEASE_LOST,
    MACHINE_LOST,
    MESSAGE,
    NOBODY,
    NOTED,
    OVER,
    PLACE,
    REPORT,
    START,
    SUBMIT,
    TICK,
)
from subak.federation.settings import Federation
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated

LOSSY = Federation(global_masters=1, local_masters=1, retry=0.5, lease=6.0, timer_slack=0.5, heartbeat=1.0)


class ByHand:
    """The roles of a small federation, in plain Python; what they post is handed on by the test."""

    def __init__(self, tasks, machines, federation):
        workload, fleet = tasks, machines
        self.opened = open_federated(workload, fleet, MEGHA, federation, 1, 1e6, math.inf, compiled=False)
        self.roles = self.opened.roles

    def tell(self, now, message):
        """Hand a message to its role; return what it posts."""
        out = self.opened.out
        out.size[0] = 0
        self.opened.due[0] = message
        role = HANDLER[message["kind"]]
        with np.errstate(over="ignore"):
            SERVE[role](self.opened.services.tables[role].state, now, 1)
        return out.row[: out.size[0]].copy()

    def tell_kind(self, now, kind, **fields):
        message = np.zeros(1, MESSAGE)[0]
        message["kind"] = kind
        message["task"], message["machine"], message["handle"] = NOBODY, NOBODY, NOBODY
        for name, value in fields.items():
            message[name] = value
        return self.tell(now, message)

    def requested(self, now, task=0, master=0):
        """Let a task be submitted and placed; return its START."""
        submit, = kinds(self.tell_kind(now, ARRIVE, task=task), SUBMIT)
        self.tell(now, submit)
        launch, = kinds(self.tell_kind(now, PLACE, to=master), LAUNCH)
        answers = self.tell(now, launch)
        self.tell(now, kinds(answers, LAUNCHED)[0])
        return kinds(answers, START)[0]

    def begun(self, now, task=0, master=0):
        """Let a task be submitted, placed and begun; return its BEGIN."""
        begin, = kinds(self.tell(now, self.requested(now, task, master)), BEGIN)
        return begin

    def exited(self, now, begin):
        """Let an attempt come to its end; return the OVER."""
        over, = kinds(self.tell_kind(now, EXITED, **{
            name: begin[name] for name in ("to", "task", "machine", "attempt", "handle")}), OVER)
        return over


def kinds(posted, kind):
    return [row for row in posted if row["kind"] == kind]


def test_a_finished_task_does_not_run_again_because_a_sign_of_life_overtakes_its_end():
    """The worker takes a new incarnation with an end that is not noted; ALIVE comes before OVER, which is not lost."""
    hand = ByHand(plain((0, 5, 1)), fleet_of((1,)), LOSSY)
    begin = hand.begun(0.1)
    first = hand.exited(5.1, begin)
    posted = hand.tell_kind(7.0, TICK, to=0, machine=0, incarnation=1)  # no lease was heard for 6 s
    again, alive = kinds(posted, OVER)[0], kinds(posted, ALIVE)[0]
    assert (alive["incarnation"], alive["count"]) == (2, 1)
    answers = hand.tell(7.1, alive)
    assert not kinds(answers, ENDED), "the attempt is not lost before its worker has reported"
    assert len(kinds(answers, REPORT)) == 1
    for over in (first, again):
        for ended in kinds(hand.tell(7.2, over), ENDED):
            assert ended["reason"] == FINISHED_WELL
            assert len(kinds(hand.tell(7.3, ended), DONE)) == 1
    assert hand.roles.submitter.state[0] != 0


def test_the_report_of_a_new_incarnation_says_what_has_ended_and_the_rest_is_lost():
    """Task 0 has ended, task 1 was stopped when the lease was over, and the start of task 2 never came."""
    hand = ByHand(plain((0, 5, 1), (0, 50, 1), (0, 50, 1)), fleet_of((3,)), LOSSY)
    begin = hand.begun(0.1, task=0)
    hand.begun(0.1, task=1)
    hand.exited(5.1, begin)
    hand.requested(5.2, task=2)
    alive = kinds(hand.tell_kind(7.0, TICK, to=0, machine=0, incarnation=1), ALIVE)[0]
    report, = kinds(hand.tell(7.1, alive), REPORT)
    ends = [ended for held in hand.tell(7.2, report) for ended in kinds(hand.tell(7.3, held), ENDED)]
    assert {(int(end["task"]), int(end["reason"])) for end in ends} == {
        (0, FINISHED_WELL), (1, LEASE_LOST), (2, MACHINE_LOST)}
    local = hand.roles.locals[0]
    assert (local.machine["worker_incarnation"][0], local.machine["reborn"][0]) == (2, 0)


def test_a_restarted_worker_with_nothing_to_report_has_lost_its_attempts():
    hand = ByHand(plain((0, 5, 1)), fleet_of((1,)), LOSSY)
    hand.begun(0.1)
    answers = hand.tell_kind(1.0, ALIVE, to=0, machine=0, incarnation=2, count=0)
    ended, = kinds(answers, ENDED)
    assert ended["reason"] == MACHINE_LOST


def test_a_late_exit_of_a_former_attempt_ends_nothing():
    hand = ByHand(plain((0, 5, 1)), fleet_of((1,)), LOSSY)
    begin = hand.begun(0.1)
    former = begin.copy()
    former["attempt"] -= 1
    posted = hand.tell_kind(1.0, EXITED, **{
        name: former[name] for name in ("to", "task", "machine", "attempt", "handle")})
    assert not posted.size
    assert hand.exited(5.1, begin)["reason"] == FINISHED_WELL


def test_a_worker_stops_before_its_lease_can_be_over_for_others_even_when_a_timer_is_late():
    """Ticks come every second of the lease of 6 s and may be half a second late: at 4.5 s the next may be at 6 s."""
    hand = ByHand(plain((0, 50, 1)), fleet_of((1,)), LOSSY)
    hand.begun(0.1)
    for now in (1.0, 2.0, 3.0, 4.0):
        assert not kinds(hand.tell_kind(now, TICK, to=0, machine=0, incarnation=1), HALT)
    assert len(kinds(hand.tell_kind(4.5, TICK, to=0, machine=0, incarnation=1), HALT)) == 1


def test_a_start_that_comes_when_the_lease_is_over_begins_nothing():
    hand = ByHand(plain((0, 50, 1)), fleet_of((1,)), LOSSY)
    start = hand.requested(0.0)
    assert not hand.tell(6.0, start).size
    assert len(kinds(hand.tell(5.9, start), BEGIN)) == 1


def test_ends_that_a_dead_master_never_notes_do_not_keep_the_rows_of_others():
    two = Federation(global_masters=2, local_masters=1, retry=0.5, lease=6.0, timer_slack=0.5, heartbeat=1.0)
    hand = ByHand(plain((0, 5, 1), (0, 5, 1)), fleet_of((2,), (2,)), two)
    owners = hand.roles.submitter.owner
    assert sorted(owners.tolist()) == [0, 1]
    local = hand.roles.locals[0]
    for task in np.argsort(owners):  # the dead master's task ends first
        begin = hand.begun(0.1, task=int(task), master=int(owners[task]))
        hand.tell(5.2, hand.exited(5.1, begin))
    used = int(local.rows.size[1])
    posted = hand.tell_kind(6.0, NOTED, to=0, sender=1, incarnation=1, epoch=0, seen=int(local.ledger.size[0]))
    assert [KINDS[row["kind"]] for row in posted] == ["FORGET"]
    assert (used, int(local.rows.size[1])) == (2, 1)
