"""The ledger of attempts, without processes: against a plain model, under any order of what can happen."""
import math
from signal import SIGKILL, SIGTERM

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agents import attempt
from subak.live.agent.attempts.attempt import (
    AGENT_LOST,
    EXITED,
    HALTED,
    LEASE_LOST,
    NEVER_BEGAN,
    NO_DISK,
    NO_ROOM,
    OLD_EPOCH,
    OLD_INCARNATION,
    OLD_START,
    OUT_OF_MEMORY,
    RAN_TOO_LONG,
    SIGNALLED,
    STOPPED,
    Begun,
    Ending,
    Exited,
    Fence,
    Key,
    Refused,
)
from subak.live.agent.attempts.ledger import NEVER, Lease, Ledger, Signal
from subak.live.agent.attempts.records import Ended, Seen
from subak.live.agent.attempts.simulated import SimulatedAgent

ROOM = 6


class Plain:
    """The rules in the plainest words: sets of all that ever was."""

    def __init__(self) -> None:
        self.latest = (0, 0)
        self.used = set()  # (incarnation, epoch, start) of all that was begun or barred
        self.state = {}  # key: "running" or the reason of its end
        self.begun = {}  # key: how often

    def admits(self, fence) -> bool:
        """Whether an order is not older than the latest; notes a later one."""
        if fence.incarnation < self.latest[0] or fence.epoch < self.latest[1]:
            return False
        self.latest = (fence.incarnation, fence.epoch)
        return True

    def start(self, key, fence) -> str:
        """Return what a start does."""
        if not self.admits(fence):
            return "refused"
        if key in self.state:
            return "told"
        starts = [start for *life, start in self.used if tuple(life) == self.latest]
        if (*self.latest, fence.start) in self.used or any(start - fence.start >= 64 for start in starts):
            return "refused"
        if len(self.state) >= ROOM:
            return "refused"
        self.used.add((*self.latest, fence.start))
        self.state[key] = "running"
        self.begun[key] = self.begun.get(key, 0) + 1
        return "begun"


KEYS = st.builds(Key, st.integers(0, 4), st.integers(1, 2))
FENCES = st.builds(Fence, st.integers(0, 2), st.integers(0, 2), st.one_of(st.integers(0, 4), st.sampled_from([66, 70])))


class Against(RuleBasedStateMachine):
    """The ledger beside the plain model; the processes are imagined, and it may be restored at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger, self.plain = Ledger(room=ROOM), Plain()
        self.now, self.disk = 0.0, []
        self.kill_at = {}  # key: when it must have been killed
        self.signals = {}

    def release(self):
        step = self.ledger.take()
        self.disk += step.records
        for each in step.begins:
            self.ledger.began(each.key, 1)
            assert self.ledger.take().news == [Begun(each.key, 1)]
        for each in step.signals:
            self.signals.setdefault(each.key, []).append((self.now, each.number))
        return step

    @rule(key=KEYS, fence=FENCES)
    def start(self, key, fence):
        expected = self.plain.start(key, fence)
        self.ledger.start(attempt(key.task, "x", attempt=key.attempt, incarnation=fence.incarnation,
                                  epoch=fence.epoch, start=fence.start), self.now)
        step = self.release()
        assert [each.key for each in step.begins] == ([key] if expected == "begun" else [])
        said = {"refused": Refused, "told": Exited if self.plain.state.get(key) != "running" else Begun}
        assert [type(each) for each in step.news] == ([said[expected]] if expected in said else [])

    @rule(key=KEYS, grace_s=st.sampled_from([0.0, 1.0, 5.0]), fence=st.none() | FENCES)
    def end(self, key, grace_s, fence):
        admitted = fence is None or self.plain.admits(fence)
        known = self.plain.state.get(key)
        self.ledger.end(key, grace_s, self.now, fence)
        if self.now >= self.ledger.due():
            self.ledger.tick(self.now)
        news = self.release().news
        if not admitted or (known is None and len(self.plain.state) >= ROOM):
            assert [type(each) for each in news] == [Refused]
        elif known == "running":
            assert news == []
            self.kill_at[key] = min(self.kill_at.get(key, NEVER), self.now + grace_s)
        else:
            if known is None:
                self.plain.state[key] = NEVER_BEGAN
                if fence is not None:
                    self.plain.used.add((*self.plain.latest, fence.start))
            assert [each.ending.reason for each in news] == [self.plain.state[key]]

    @precondition(lambda self: self.ledger.running)
    @rule(data=st.data(), code=st.integers(0, 2))
    def exit(self, data, code):
        key = data.draw(st.sampled_from(sorted(self.ledger.running, key=str)))
        reason = HALTED if key in self.kill_at else EXITED
        self.over(key, Ending(EXITED, code), reason)

    def over(self, key, ending, reason):
        self.ledger.exited(key, ending)
        assert [each.ending.reason for each in self.release().news] == [reason]
        self.plain.state[key] = reason
        self.kill_at.pop(key, None)
        self.signals.pop(key, None)

    @rule(key=KEYS)
    def forget(self, key):
        dropped = self.ledger.forget(key)
        assert dropped == (self.plain.state.get(key, "running") != "running")
        if dropped:
            del self.plain.state[key]
        assert self.release().news == []

    @rule(seconds=st.sampled_from([0.4, 1.0, 6.0]))
    def wait(self, seconds):
        self.now += seconds
        if self.now >= self.ledger.due():
            self.ledger.tick(self.now)
        self.release()

    @rule(short=st.booleans())
    def restart(self, short):
        records = [*self.ledger.snapshot()] if short else self.disk
        self.ledger = Ledger(room=ROOM)
        self.ledger.restore(records)
        self.disk = [*records]
        running = {key for key, state in self.plain.state.items() if state == "running"}
        assert set(self.ledger.running) == running
        self.kill_at.clear()
        for key in running:
            self.over(key, Ending(AGENT_LOST), AGENT_LOST)

    @invariant()
    def the_same_is_known(self):
        known = {each.key: each.ending.reason if each.ending else "running" for each in self.ledger.known()}
        assert known == self.plain.state
        assert set(self.ledger.running) == {key for key, state in known.items() if state == "running"}

    @invariant()
    def whoever_should_be_killed_has_been(self):
        for key, at in self.kill_at.items():
            numbers = [number for when, number in self.signals.get(key, ()) if when <= self.now]
            assert (SIGKILL in numbers) == (self.now >= at)
            assert numbers.count(SIGTERM) <= 1


TestAgainstThePlainModel = Against.TestCase
TestAgainstThePlainModel.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 140)), max_size=40))
@settings(max_examples=150, deadline=None)
def test_no_start_is_used_twice_whatever_its_attempt(orders):
    ledger, begun = Ledger(), []
    for number, (incarnation, epoch, start) in enumerate(orders):
        ledger.start(attempt(number, "x", incarnation=incarnation, epoch=epoch, start=start), 0.0)
        begun += [(each.fence.incarnation, each.fence.epoch, each.fence.start) for each in ledger.take().begins]
    assert len(begun) == len({*begun})
    assert [order[:2] for order in begun] == sorted(order[:2] for order in begun)


def ran(lease=None, **others) -> Ledger:
    """Return a ledger with an attempt that runs, from time 0 on."""
    ledger = Ledger(lease)
    ledger.start(attempt(1, "x", **others), 0.0)
    ledger.take()
    ledger.began(Key(1, 1), 7)
    ledger.take()
    return ledger


def signals(ledger, now) -> list[int]:
    """Return the signals that are due."""
    if now >= ledger.due():
        ledger.tick(now)
    return [each.number for each in ledger.take().signals]


def test_the_record_of_a_start_goes_with_its_begin_and_that_of_an_end_with_its_news():
    ledger = Ledger()
    ledger.start(attempt(1, "x"), 0.0)
    step = ledger.take()
    assert [type(record).__name__ for record in step.records] == ["Seen", "Started"]
    assert [each.key for each in step.begins] == [Key(1, 1)]
    ledger.exited(Key(1, 1), Ending(EXITED))
    step = ledger.take()
    assert [type(record).__name__ for record in step.records] == ["Ended"]
    assert step.news == [Exited(Key(1, 1), Ending(EXITED))]


def test_the_lease_with_its_grace():
    ledger = ran(Lease(10.0, 2.0))
    ledger.touch(1.0)
    ledger.touch(0.5)  # late news of an earlier sign of life
    assert ledger.due() == 9.0
    assert signals(ledger, 8.99) == []
    assert signals(ledger, 9.0) == [SIGTERM]
    ledger.touch(9.5)  # too late: it ends all the same
    assert signals(ledger, 10.9) == []
    assert signals(ledger, 11.0) == [SIGKILL]
    ledger.exited(Key(1, 1), Ending(EXITED))
    assert ledger.take().news[0].ending.reason == LEASE_LOST


def test_a_machine_that_slept_through_its_lease_kills_at_once():
    assert signals(ran(Lease(10.0, 2.0)), 1000.0) == [SIGKILL]


def test_the_lease_cuts_a_longer_grace_short():
    ledger = ran(Lease(10.0, 2.0))
    ledger.end(Key(1, 1), 600.0, 1.0)
    assert signals(ledger, 1.0) == [SIGTERM]
    assert ledger.due() == 8.0  # though it is being ended already
    assert signals(ledger, 8.0) == []
    assert ledger.due() == 10.0
    assert signals(ledger, 10.0) == [SIGKILL]
    assert ledger.due() == math.inf  # until it has ended there is nothing to do
    assert signals(ledger, 11.0) == []
    ledger.exited(Key(1, 1), Ending(EXITED))
    assert ledger.take().news[0].ending.reason == HALTED


def test_a_limit_of_time_ends_with_the_attempts_own_grace():
    ledger = ran(limit_s=5.0, grace_s=3.0)
    assert [signals(ledger, now) for now in (4.9, 5.0, 7.9, 8.0, 9.0)] == [[], [SIGTERM], [], [SIGKILL], []]
    ledger.exited(Key(1, 1), Ending(SIGNALLED, 137, "", ))
    assert ledger.take().news[0].ending == Ending(RAN_TOO_LONG, 137)


def test_the_first_reason_is_kept_and_the_soonest_kill():
    ledger = ran()
    ledger.end_for(Key(1, 1), OUT_OF_MEMORY, 0.0, 4.0)
    ledger.end_for(Key(1, 1), STOPPED, 1.0, 1.0)
    ledger.end(Key(1, 1), 600.0, 1.0)
    assert [signals(ledger, now) for now in (1.0, 1.9, 2.0)] == [[SIGTERM], [], [SIGKILL]]
    ledger.exited(Key(1, 1), Ending(SIGNALLED, 137))
    assert ledger.take().news[0].ending.reason == OUT_OF_MEMORY


def test_a_start_too_far_behind_leaves_no_mark():
    ledger = Ledger(8)
    ledger.restore([Seen(1, 0, 70, 1), Ended(Key(7, 1), Fence(1, 0, 6), Ending(EXITED)),
                    Ended(Key(8, 1), Fence(1, 0, 7), Ending(EXITED))])
    assert ledger.seen == Seen(1, 0, 70, 1 | 1 << 63)


def test_refusals_in_words():
    ledger = Ledger(room=1)
    ledger.attach(3, 5)
    ledger.disk_is_full = True
    ledger.start(attempt(1, "x", incarnation=3, epoch=5), 0.0)
    ledger.disk_is_full = False
    ledger.start(attempt(1, "x", incarnation=3, epoch=5), 0.0)
    for number, others in ((2, {"incarnation": 2, "epoch": 5}), (3, {"incarnation": 3, "epoch": 4}),
                           (4, {"incarnation": 3, "epoch": 5, "start": 1}), (5, {"incarnation": 3, "epoch": 5})):
        ledger.start(attempt(number, "x", **others), 0.0)
    assert [(each.why, each.words) for each in ledger.take().news] == [
        (NO_DISK, "the disk of the agent's folder is full"),
        (OLD_INCARNATION, "incarnation 2 of the worker, after 3"),
        (OLD_EPOCH, "epoch 4, after 5"),
        (OLD_START, "start 1 was used, or is 64 behind 1"),
        (NO_ROOM, "1 attempts are kept; forget some that have ended"),
    ]


def test_what_is_due_is_never_missed():
    ledger = Ledger(Lease(100.0, 1.0))
    for number in range(20):
        ledger.start(attempt(number, "x", limit_s=20.0 - number, grace_s=0.5), 0.0)
    ledger.take()
    now, heard = 0.0, []
    while ledger.due() < 99.0:
        now = ledger.due()
        ledger.tick(now)
        heard += [(now, each) for each in ledger.take().signals]
    assert heard == sorted(heard, key=lambda each: each[0])
    assert [(now, each) for now, each in heard if each.number == SIGTERM] == [
        (20.0 - number, Signal(Key(number, 1), SIGTERM)) for number in reversed(range(20))]
    assert len(heard) == 40


# the agent without processes


def test_a_simulated_agent_keeps_time_and_fences():
    now = [0.0]
    agent = SimulatedAgent(lambda: now[0], seconds=lambda each: each.key.task * 10.0,
                                 ending=lambda each: Ending(EXITED, each.index))
    for number in (2, 1, 2):
        agent.start(attempt(number, "x", index=number))
    assert [type(each) for each in agent.watch()] == [Begun, Begun, Begun]
    assert agent.due() == 10.0
    now[0] = 30.0
    assert [(each.key.task, each.ending.code) for each in agent.watch()] == [(1, 1), (2, 2)]
    assert agent.begun == 2
    agent.forget(Key(1, 1))
    agent.start(attempt(1, "x"))
    assert agent.watch()[0].why == OLD_START


@pytest.mark.parametrize(("stubborn", "ends_at"), [(False, 1.0), (True, 6.0)])
def test_a_simulated_agent_ends_what_it_is_told_to(stubborn, ends_at):
    now = [1.0]
    agent = SimulatedAgent(lambda: now[0], seconds=lambda _: 100.0, stubborn=stubborn)
    agent.start(attempt(1, "x"))
    agent.end(Key(1, 1), 5.0)
    agent.watch()
    now[0] = max(ends_at - 0.1, 1.0)
    assert [known.ending is None for known in agent.list()] == [stubborn]
    now[0] = ends_at
    agent.watch()
    assert [known.ending.reason for known in agent.list()] == [HALTED]


def test_a_simulated_agent_that_died_has_lost_what_ran():
    now = [0.0]
    agent = SimulatedAgent(lambda: now[0], seconds=lambda each: each.key.task)
    agent.start(attempt(1, "x"))
    agent.start(attempt(5, "x"))
    now[0] = 2.0
    agent.watch()
    again = SimulatedAgent(lambda: now[0], records=agent.records)
    again.attach(1, 1)
    assert {each.key.task: each.ending.reason for each in again.watch()} == {1: EXITED, 5: AGENT_LOST}
    again.start(attempt(5, "x"))
    assert again.begun == 0
