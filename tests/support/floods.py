"""Hands a role, in the midst of a run, ten times as many messages of one kind as its smallest outbox holds.

The run goes on as if nothing had been: what the role works on is put back.
"""
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from subak.federation.megha import roles, worker_role
from subak.federation.megha.bounds import MOST, Sizes, most_posted
from subak.federation.megha.roles import SERVE
from subak.federation.megha.worker import attempts_on
from subak.federation.messages import (
    ARRIVE,
    CROSSES,
    GLOBAL_MASTER,
    HANDLER,
    KINDS,
    LOCAL_MASTER,
    MESSAGE,
    NOBODY,
    SUBMITTER,
    WORKER,
    build_outbox,
)
from subak.simulator.chunks.arrays import own_arrays, take_on
from subak.simulator.federated import megha_setup

TIMES = 10  # what the outbox holds
CALLS = 40  # of a role, until it is left alone with what it owes itself
HANDS_ON = {SUBMITTER: (roles, "to_submitter"), GLOBAL_MASTER: (roles, "to_global_master"),
            LOCAL_MASTER: (roles, "to_local_master"), WORKER: (worker_role, "to_worker")}


class Floods:
    """Which roles were flooded with which kinds of messages, how often: at the first *each* of a kind in a run."""

    def __init__(self, each: int) -> None:
        self.each, self.seen, self.under_way = each, Counter[tuple[int, str]](), False
        self.sizes: Sizes | None = None

    @contextmanager
    def over(self) -> Iterator[None]:
        """Flood the roles of the federation that is run within."""
        self.now = Counter[tuple[int, str]]()
        with mock.patch.object(megha_setup, "most_posted", self._note_sizes):
            patches = [mock.patch.object(home, name, self._through(role, getattr(home, name)))
                       for role, (home, name) in HANDS_ON.items()]
            for patch in patches:
                patch.start()
            try:
                yield
            finally:
                for patch in patches:
                    patch.stop()

    def _note_sizes(self, role: int, sizes: Sizes) -> int:
        self.sizes = sizes
        return most_posted(role, sizes)

    def _through(self, role: int, hand_on: Any) -> Any:
        def through(tables: Any, *rest: Any) -> Any:
            message = rest[-1]
            place = role, KINDS[message["kind"]]
            if not self.under_way and self.now[place] < self.each:
                self.now[place] += 1
                self.seen[place] += 1
                self.under_way = True
                try:
                    flood(role, tables, rest[0] if len(rest) > 1 else 0.0, message.copy(), self.sizes)
                finally:
                    self.under_way = False
            return hand_on(tables, *rest)
        return through


def flood(role: int, tables: Any, now: float, message: np.void, sizes: Sizes) -> None:
    """Hand a role messages like one, and what it then owes itself, as far as it takes them at once."""
    kept = {name: array.copy() for name, array in own_arrays(tables).items()}
    if role == WORKER:
        sizes = sizes._replace(kept=attempts_on(tables.workers, message["to"]))
    bound = MOST[role][int(message["kind"])](sizes)
    own = build_outbox(bound, more=0) if bound else build_outbox(0, more=1)
    roles_own = build_outbox(most_posted(role, sizes), more=0)
    waiting = _like(role, tables, message, TIMES * own.row.size)
    for _ in range(CALLS + len(waiting)):
        if not waiting:
            break
        inbox = np.array(waiting, MESSAGE)
        out = own if (inbox["kind"] == message["kind"]).all() else roles_own
        kind = KINDS[inbox[0]["kind"]]
        out.counts.write(0, 0, 0)
        SERVE[role](tables._replace(inbox=inbox, out=out), now, len(waiting))
        assert out.counts.overrun == 0, f"{kind}: {out.counts.overrun} more than {out.row.size}"
        assert out.counts.posted <= bound or out is roles_own, f"{kind}: {out.counts.posted}, and not {bound}"
        assert out.counts.served > 0
        owed = [row.copy() for row in out.row[: out.counts.posted]
                if HANDLER[row["kind"]] == role and not CROSSES[row["kind"]] and row["delay"] == 0.0]
        waiting = [*waiting[out.counts.served:], *owed]
    take_on(tables, kept)


def _like(role: int, tables: Any, message: np.void, count: int) -> list[np.void]:
    """Messages like one, about all tasks that it may be about; then the same again, unless a task only arrives once."""
    subjects = {SUBMITTER: _of_submitter, GLOBAL_MASTER: _of_master}.get(role, lambda tables, message: [message])
    all_of_them = subjects(tables, message)
    again = 1 if message["kind"] == ARRIVE else -(-count // len(all_of_them))
    return (all_of_them * again)[:max(count, len(all_of_them))]


def _of_submitter(tables: Any, message: np.void) -> list[np.void]:
    submitter, jobs = tables.submitters[message["to"]], tables.jobs
    if message["row"] != NOBODY:
        return _of_rows(submitter.tasks, message)
    if message["task"] == NOBODY:
        return [message]
    return [_with(message, task=number) for place, number in enumerate(jobs.number)
            if jobs.asked[place]["owner"] == message["to"]
            and jobs.state[place] == jobs.state[message["task"] & jobs.mask]]


def _of_master(tables: Any, message: np.void) -> list[np.void]:
    if message["row"] == NOBODY or message["task"] == NOBODY:
        return [message]
    known = tables.masters[message["to"]].task
    alike = [row for row in _of_rows(tables.tasks[message["to"]], message)
             if known[row["row"]]["phase"] == known[message["row"]]["phase"]]
    return [message] + [_with(row, attempt=known[row["row"]]["attempt"], machine=known[row["row"]]["machine"])
                        for row in alike if message["attempt"] != 0]


def _of_rows(tasks: Any, message: np.void) -> list[np.void]:
    return [message] + [_with(message, row=row, task=tasks.number[row], round=tasks.round[row])
                        for row in range(tasks.counts.tasks_ever) if tasks.number[row] != NOBODY]


def _with(message: np.void, **fields: Any) -> np.void:
    other = message.copy()
    for name, value in fields.items():
        other[name] = value
    return other
