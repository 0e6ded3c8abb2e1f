"""An agent without processes for benchmarks and seeded tests: attempts last as long as told.

It obeys the same ledger as the agent; what it forgets when it is made anew is what an agent has on disk.
"""
import heapq
from collections.abc import Callable, Sequence
from signal import SIGKILL

from subak.live.agent.attempts.attempt import (
    AGENT_LOST,
    EXITED,
    SIGNALLED,
    AttemptToRun,
    Ending,
    Event,
    Fence,
    Key,
    Known,
    NodeAgent,
)
from subak.live.agent.attempts.ledger import NEVER, Lease, Ledger
from subak.live.agent.attempts.records import Record


class SimulatedAgent(NodeAgent):
    """Runs attempts for `seconds(attempt)`, each ending as `ending(attempt)` says; `clock` is the test's own.

    What runs ends at once when it is sent SIGTERM, or, with *stubborn*, only when it is killed. *records* are those of
    an agent that has died: what ran is lost with it.
    """

    def __init__(self, clock: Callable[[], float], seconds: Callable[[AttemptToRun], float] = lambda _: 0.0,
                 ending: Callable[[AttemptToRun], Ending] = lambda _: Ending(EXITED), lease: Lease | None = None,
                 stubborn: bool = False, records: Sequence[Record] = ()) -> None:
        self.clock, self.seconds, self.ending, self.stubborn = clock, seconds, ending, stubborn
        self.ledger = Ledger(lease)
        self.records: list[Record] = []  # what an agent would have on disk
        self.news: list[Event] = []
        self.ends: list[tuple[float, int, AttemptToRun]] = []  # a heap: when, a tie-breaker, what
        self.begun = 0  # ever
        self.ledger.restore(records)
        self.records += records
        for key in [*self.ledger.running]:
            self.ledger.exited(key, Ending(AGENT_LOST))
        self._release()

    def attach(self, incarnation: int, epoch: int) -> str:
        """Note who gives the orders from now on, and say all ends again; return why it may not, or ""."""
        why = self.ledger.attach(incarnation, epoch)
        if not why:
            self.ledger.tell_ends()
        self._release()
        return why

    def ping(self) -> None:
        """Say that the worker is still here, and heard by a master."""
        self.ledger.touch(self.clock())

    def start(self, attempt: AttemptToRun) -> None:
        """Run an attempt: Begun and later Exited follow, or Refused."""
        self.ledger.start(attempt, self.clock())
        self._release()

    def end(self, key: Key, grace_s: float, fence: Fence | None = None) -> None:
        """End an attempt: Exited follows."""
        self.ledger.end(key, grace_s, self.clock(), fence)
        self.ledger.tick(self.clock())
        self._release()

    def forget(self, *keys: Key) -> None:
        """Drop what is kept of attempts that have ended."""
        for key in keys:
            self.ledger.forget(key)
        self._release()

    def list(self) -> Sequence[Known]:
        """Return all attempts that run, or have ended and are not forgotten."""
        return list(self.ledger.known())

    def watch(self, timeout_s: float = 0.0) -> Sequence[Event]:
        """Return what has happened up to now."""
        now = self.clock()
        while (due := self.due()) <= now:
            self._advance(due)
        news, self.news = self.news, []
        return news

    def due(self) -> float:
        """Return when something happens next."""
        return min(self.ledger.due(), self.ends[0][0] if self.ends else NEVER)

    def _advance(self, now: float) -> None:
        while self.ends and self.ends[0][0] <= now:
            attempt = heapq.heappop(self.ends)[2]
            if attempt.key in self.ledger.running:
                self.ledger.exited(attempt.key, self.ending(attempt))
        if self.ledger.due() <= now:
            self.ledger.tick(now)
        self._release()

    def _release(self) -> None:
        while (step := self.ledger.take()).signals or step.records or step.begins or step.news:
            self.records += step.records
            self.news += step.news
            for attempt in step.begins:
                self.begun += 1
                heapq.heappush(self.ends, (self.clock() + self.seconds(attempt), self.begun, attempt))
                self.ledger.began(attempt.key, self.begun)
            for each in step.signals:
                if each.key in self.ledger.running and (each.number == SIGKILL or not self.stubborn):
                    self.ledger.exited(each.key, Ending(SIGNALLED, -each.number))
