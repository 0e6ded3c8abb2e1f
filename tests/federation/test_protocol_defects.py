"""Orders of messages that once led to a second run, a second attempt or a standstill, handed to roles one by one."""
import dataclasses
import math

import msgspec
import numpy as np
import polars as pl

from small import fleet_of, plain, staged
from subak.federation.megha.global_master.state import PHASE_WAITING
from subak.federation.megha.roles import SERVE
from subak.federation.megha.topology import INCARNATION_BITS
from subak.federation.messages import (
    ABANDON,
    ALIVE,
    ARRIVE,
    ASK,
    BEGIN,
    DONE,
    ENDED,
    EXITED,
    FINISHED_WELL,
    GLOBAL_MASTER,
    HALT,
    HANDLER,
    KILL,
    KINDS,
    LAUNCH,
    LAUNCHED,
    LEASE_LOST,
    LOCAL_MASTER,
    MACHINE_LOST,
    MESSAGE,
    NO_ROOM,
    NOBODY,
    NOTED,
    OVER,
    PLACE,
    PREEMPT,
    PREEMPTED,
    REBUILD,
    REFUSED,
    REOPEN,
    REPORT,
    RESTART,
    RETRY,
    START,
    SUBMIT,
    TICK,
    UPDATE,
)
from subak.federation.settings import Federation
from subak.simulator.federated.by_task import states_by_task
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated

LOSSY = Federation(global_masters=1, local_masters=1, retry=0.5, lease=6.0, timer_slack=0.5, heartbeat=1.0)


class ByHand:
    """The roles of a small federation, in plain Python; what they post is handed on by the test."""

    def __init__(self, workload, fleet, federation, rows=0):
        self.opened = open_federated(workload, fleet, MEGHA, federation, 1, 1e6, math.inf, compiled=False, rows=rows)
        self.roles = self.opened.roles

    def tell(self, now, message, role=None):
        """Hand a message to its role; return what it posts."""
        out = self.opened.out
        out.counts.posted = 0
        self.opened.due[0] = message
        role = HANDLER[message["kind"]] if role is None else role
        with np.errstate(over="ignore"):
            SERVE[role](self.opened.services.tables[role].state, now, 1)
        return out.row[: out.counts.posted].copy()

    def turns(self, now):
        """Let a global master have its turns until it owes itself none; return what it posts."""
        posted, all_posted = self.tell_kind(now, PLACE, to=0), []
        while kinds(posted, PLACE):
            all_posted += list(posted)
            posted = self.tell_kind(now, PLACE, to=0)
        return all_posted + list(posted)

    def tell_kind(self, now, kind, **fields):
        message = np.zeros(1, MESSAGE)[0]
        message["kind"] = kind
        message["task"], message["machine"], message["handle"] = NOBODY, NOBODY, NOBODY
        for name, value in fields.items():
            message[name] = value
        return self.tell(now, message, GLOBAL_MASTER if kind == RESTART else None)

    def requested(self, now, task=0, master=0):
        """Let a task be submitted and placed; return its START."""
        submit, = kinds(self.tell_kind(now, ARRIVE, to=master, task=task), SUBMIT)
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
    assert hand.roles.jobs.state[0] != 0


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


def killed(hand, now, start):
    """Let a worker be told to preempt an attempt; return what it posts."""
    return hand.tell_kind(now, KILL, reason=PREEMPTED, **{
        name: start[name] for name in ("to", "sender", "task", "machine", "attempt", "handle", "start", "incarnation")})


def test_a_finished_task_does_not_run_again_because_it_was_to_be_preempted():
    """KILL comes when the attempt is over: where nothing is kept, its OVER may come behind what is said now."""
    hand = ByHand(plain((0, 5, 1)), fleet_of((1,)), msgspec.structs.replace(LOSSY, retry=math.inf))
    start = hand.requested(0.1)
    begin, = kinds(hand.tell(0.2, start), BEGIN)
    assert hand.exited(5.1, begin)["reason"] == FINISHED_WELL
    assert not killed(hand, 5.2, start).size
    hand = ByHand(plain((0, 5, 1)), fleet_of((1,)), LOSSY)  # where an end may be lost, it is said once more
    start = hand.requested(0.1)
    begin, = kinds(hand.tell(0.2, start), BEGIN)
    hand.exited(5.1, begin)
    assert [over["reason"] for over in kinds(killed(hand, 5.2, start), OVER)] == [FINISHED_WELL]


def test_an_attempt_that_is_killed_before_it_is_started_never_begins():
    for federation in (LOSSY, msgspec.structs.replace(LOSSY, retry=math.inf)):
        hand = ByHand(plain((0, 5, 1)), fleet_of((1,)), federation)
        start = hand.requested(0.1)
        assert [over["reason"] for over in kinds(killed(hand, 0.2, start), OVER)] == [PREEMPTED]
        assert not kinds(hand.tell(0.3, start), BEGIN)


def test_a_worker_stops_before_its_lease_can_be_over_for_others_even_when_a_timer_is_late():
    """Ticks come every second of the lease of 6 s and may be half a second late: at 4.5 s the next may be at 6 s."""
    hand = ByHand(plain((0, 50, 1)), fleet_of((1,)), LOSSY)
    hand.begun(0.1)
    for now in (1.0, 2.0, 3.0, 4.0):
        assert not kinds(hand.tell_kind(now, TICK, to=0, machine=0, incarnation=1), HALT)
    assert len(kinds(hand.tell_kind(4.5, TICK, to=0, machine=0, incarnation=1), HALT)) == 1


def test_a_timer_of_a_former_incarnation_is_not_armed_again():
    hand = ByHand(plain((0, 50, 1)), fleet_of((1,)), LOSSY)
    hand.begun(0.1)
    assert not hand.tell_kind(1.0, TICK, to=0, machine=0, incarnation=0).size
    assert len(kinds(hand.tell_kind(1.0, TICK, to=0, machine=0, incarnation=1), TICK)) == 1


def test_a_start_that_comes_when_the_lease_is_over_begins_nothing():
    hand = ByHand(plain((0, 50, 1)), fleet_of((1,)), LOSSY)
    start = hand.requested(0.0)
    assert not hand.tell(6.0, start).size
    assert len(kinds(hand.tell(5.9, start), BEGIN)) == 1


def test_ends_that_a_dead_master_never_notes_do_not_keep_the_rows_of_others():
    two = Federation(global_masters=2, local_masters=1, retry=0.5, lease=6.0, timer_slack=0.5, heartbeat=1.0)
    hand = ByHand(plain((0, 5, 1), (0, 5, 1)), fleet_of((2,), (2,)), two)
    owners = hand.roles.jobs.asked["owner"]
    assert sorted(owners.tolist()) == [0, 1]
    local = hand.roles.locals[0]
    for task in np.argsort(owners):  # the dead master's task ends first
        begin = hand.begun(0.1, task=int(task), master=int(owners[task]))
        hand.tell(5.2, hand.exited(5.1, begin))
    used = local.rows.counts.rows_used
    posted = hand.tell_kind(6.0, NOTED, to=0, sender=1, incarnation=1, epoch=0, seen=local.ledger.counts.version)
    assert [KINDS[row["kind"]] for row in posted] == ["FORGET"]
    assert (used, local.rows.counts.rows_used) == (2, 1)


TWO_CLUSTERS = Federation(global_masters=1, local_masters=2, retry=0.5, lease=6.0, timer_slack=0.5, heartbeat=1.0)


def restarted(hand, now, answering):
    """Restart global master 0 and hand everything on but to clusters that do not answer; return its posts since."""
    posted = list(hand.tell_kind(now, RESTART, to=0))
    since = []
    while posted:
        message = posted.pop(0)
        role = HANDLER[message["kind"]]
        if role == LOCAL_MASTER and message["to"] not in answering:
            continue
        if message["kind"] in (ASK, UPDATE, REBUILD, SUBMIT):
            new = list(hand.tell(now, message))
            posted += new
            since += new if role == GLOBAL_MASTER else []
    return since


def test_a_restarted_master_places_what_no_silent_cluster_can_be_running():
    """Two machines in two clusters; task 0 was requested from cluster 1, which never answers again, task 1 is new."""
    hand = ByHand(plain((0, 50, 1), (0, 50, 1)), fleet_of((1,), (1,)), TWO_CLUSTERS)
    start = hand.requested(0.1, task=0)
    silent = int(hand.roles.topology.machine["cluster"][start["machine"]])
    for submit in kinds(hand.tell_kind(0.2, ARRIVE, task=1), SUBMIT):
        assert submit["task"] == 1  # lost on its way
    since = restarted(hand, 1.0, {1 - silent})
    assert len(kinds(since, PLACE)) == 1
    assert states_by_task(hand.roles)["phase"].tolist() == [PHASE_WAITING, PHASE_WAITING]
    launch, = kinds(hand.turns(1.1), LAUNCH)  # task 0 may run in the cluster that is silent
    assert launch["task"] == 1


def test_what_a_silent_cluster_was_asked_is_placed_once_it_answers_without_it():
    hand = ByHand(plain((0, 50, 1)), fleet_of((1,), (1,)), TWO_CLUSTERS)
    submit, = kinds(hand.tell_kind(0.0, ARRIVE, task=0), SUBMIT)
    hand.tell(0.0, submit)
    lost, = kinds(hand.tell_kind(0.0, PLACE, to=0), LAUNCH)  # never arrives
    silent = int(hand.roles.topology.machine["cluster"][lost["machine"]])
    restarted(hand, 1.0, {1 - silent})
    assert not kinds(hand.turns(1.1), LAUNCH)
    restarted_at = hand.tell_kind(1.2, ASK, to=silent, sender=0, incarnation=2)
    hand.tell(1.3, kinds(restarted_at, UPDATE)[0])
    assert kinds(hand.turns(1.4), LAUNCH)[0]["task"] == 0
    assert not hand.tell(1.5, lost).size, "a former incarnation's request is not heeded any more"


def test_a_cluster_without_room_is_not_asked_again_at_once():
    hand = ByHand(plain((0, 50, 1), (0, 50, 1)), fleet_of((4,)), LOSSY, rows=1)
    hand.begun(0.1, task=0)
    submit, = kinds(hand.tell_kind(0.2, ARRIVE, task=1), SUBMIT)
    hand.tell(0.2, submit)
    launch, = kinds(hand.tell_kind(0.2, PLACE, to=0), LAUNCH)
    refused, = kinds(hand.tell(0.2, launch), REFUSED)
    assert refused["reason"] == NO_ROOM
    reopen, = kinds(hand.tell(0.2, refused), REOPEN)
    assert not kinds(hand.turns(0.2), LAUNCH)
    assert reopen["delay"] == LOSSY.retry
    assert len(kinds(hand.tell(0.7, reopen), PLACE)) == 1
    assert len(kinds(hand.turns(0.7), LAUNCH)) == 1


def test_a_gang_is_not_held_for_ever_for_one_whose_request_nobody_answers():
    alone = staged([{"request": (1,)}], [(0, 0.0, 50), (0, 0.0, 50)])
    gang = dataclasses.replace(alone, stages=alone.stages.with_columns(gang=pl.lit(True)))
    hand = ByHand(gang, fleet_of((1,), (1,)), TWO_CLUSTERS)
    for task in (0, 1):
        submit, = kinds(hand.tell_kind(0.0, ARRIVE, task=task), SUBMIT)
        hand.tell(0.0, submit)
    posted = hand.tell_kind(0.0, PLACE, to=0)
    answered, silent = kinds(posted, LAUNCH)
    hand.tell(0.1, kinds(hand.tell(0.1, answered), LAUNCHED)[0])
    retry = next(row for row in kinds(posted, RETRY) if row["task"] == silent["task"])
    now, abandoned = 0.0, []
    while not abandoned and now < 20.0:
        now += float(retry["delay"])
        posted = hand.tell(now, retry)
        abandoned = kinds(posted, ABANDON)
        retry = next(row for row in kinds(posted, RETRY) if row["task"] == silent["task"])
    assert now == 6.5  # a lease after its first request, which is 0.5 s older than the first repetition
    assert sorted(int(row["task"]) for row in abandoned) == [0, 1]


def test_what_pends_for_a_former_incarnation_never_starts():
    """A preemption waits for its victim; a request of the restarted master comes before its ASK."""
    strict = msgspec.structs.replace(LOSSY, preemption="strict", shares={"a": 0.0, "b": 1.0})
    workload = plain((0, 50, 2), (1, 50, 2))
    workload = dataclasses.replace(workload, jobs=workload.jobs.with_columns(queue=pl.Series(["a", "b"])))
    hand = ByHand(workload, fleet_of((2,)), strict)
    victim = hand.begun(0.1, task=0)
    submit, = kinds(hand.tell_kind(1.0, ARRIVE, task=1), SUBMIT)
    hand.tell(1.0, submit)
    preempt, = kinds(hand.turns(1.0), PREEMPT)
    kill, = kinds(hand.tell(1.1, preempt), KILL)
    other = preempt.copy()
    other["kind"], other["attempt"], other["incarnation"] = LAUNCH, (2 << INCARNATION_BITS) + 1, 2
    hand.tell(1.2, other)
    over, = kinds(hand.tell(1.3, kill), OVER)
    assert over["task"] == victim["task"]
    assert not kinds(hand.tell(1.4, over), START)
