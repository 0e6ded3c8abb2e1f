"""Bounds the number of messages that each handler of Megha posts, which sizes the outboxes.

A handler that walks (`is_filling`) posts as many in its last step and after it. A bound is made of what is known before
a role begins: the largest gang, the attempts on a machine, the machines of a cluster. tests/federation/test_walks.py
drives every kind against its bound, and finds every loop that posts in the source.
"""
from collections.abc import Callable
from typing import NamedTuple

from subak.federation.messages import (
    ABANDON,
    ALIVE,
    ARRIVE,
    ASK,
    BEAT,
    BOOT,
    CANCEL,
    CATCH_UP,
    CHANGE,
    CHECK,
    DONE,
    ENDED,
    EXITED,
    EXPIRE,
    FORGET,
    GLOBAL_MASTER,
    GO,
    HAND_OVER,
    HOLD_BACK,
    HOLDS,
    KILL,
    LAUNCH,
    LAUNCHED,
    LEASE,
    LOCAL_MASTER,
    NOTED,
    OVER,
    PASSED_OVER,
    PLACE,
    POWER_OFF,
    PREEMPT,
    PULSE,
    REBUILD,
    RECONFIGURE,
    REFUSED,
    RELEASE,
    REOPEN,
    REPARTITION,
    REPORT,
    RESTART,
    RESUBMIT,
    RETRY,
    SETTLE,
    START,
    STARTED,
    SUBMIT,
    SUBMITTER,
    TICK,
    TRY_AGAIN,
    UPDATE,
    WAKE,
    WATCH,
    WITHDRAW,
    WORKER,
)


class Sizes(NamedTuple):
    """How large what is known beforehand is."""

    gang: int  # tasks that start together, 1 where none do
    attempts: int  # that a local master notes on one machine, besides those that are over
    kept: int  # attempts that a worker keeps, with those that have ended and that it has not been let forget
    machines: int  # of a cluster
    global_masters: int
    local_masters: int  # without standbys


Bound = Callable[[Sizes], int]


def _most(count: int) -> Bound:
    return lambda sizes: count


def _gang(more: int, each: int = 1) -> Bound:
    return lambda sizes: each * sizes.gang + more


def _attempts(more: int, each: int = 1) -> Bound:
    return lambda sizes: each * sizes.attempts + more


def _kept(more: int, each: int = 1) -> Bound:
    return lambda sizes: each * sizes.kept + more


def _cluster(more: int) -> Bound:
    return lambda sizes: sizes.machines + sizes.global_masters + more


# An end makes room for an attempt that waits for victims: ENDED, START, LAUNCHED. Giving a gang up posts ABANDON and
# RETRY for each task, and PLACE. An update may give one gang up in its last step, and another by what it says besides;
# it also posts REOPEN, SETTLE twice, and PASSED_OVER.
MOST: dict[int, dict[int, Bound]] = {  # by role and kind
    SUBMITTER: {
        ARRIVE: _most(4), TRY_AGAIN: _most(4), EXPIRE: _most(2), RELEASE: _most(5), HAND_OVER: _most(3),
        REBUILD: _most(3), CANCEL: _gang(1), RESUBMIT: _gang(1), DONE: _gang(6),
    },
    GLOBAL_MASTER: {
        SUBMIT: _gang(1, 2), WITHDRAW: _most(2), PLACE: _gang(1, 2), RETRY: _gang(0, 2), REOPEN: _most(1),
        PASSED_OVER: _most(3),
        **dict.fromkeys((LAUNCHED, REFUSED, ENDED, UPDATE, CATCH_UP), _gang(6, 4)), SETTLE: _gang(2, 2),
        WAKE: lambda sizes: 2 * sizes.local_masters + 1, RESTART: lambda sizes: 2 * sizes.local_masters + 2,
    },
    LOCAL_MASTER: {
        **dict.fromkeys((LAUNCH, REPARTITION, PREEMPT), _attempts(3)), GO: _most(2), HOLD_BACK: _most(1),
        ABANDON: _most(4), NOTED: _most(1), OVER: _most(4), STARTED: _most(0),
        CHECK: _attempts(3), ALIVE: _attempts(3), HOLDS: _attempts(4, 3),
        ASK: _most(1), BEAT: lambda sizes: sizes.global_masters + 1, PULSE: _most(2), BOOT: _most(2),
        WATCH: _cluster(3), RESTART: _cluster(3), CHANGE: _attempts(0),
    },
    WORKER: {
        START: _most(2), KILL: _most(2), EXITED: _most(1), FORGET: _most(0), LEASE: _most(0), REPORT: _kept(1),
        TICK: _kept(2, 2), BOOT: _most(1), RESTART: _most(2), POWER_OFF: _kept(0), RECONFIGURE: _kept(2),
    },
}


def most_posted(role: int, sizes: Sizes) -> int:
    """Return the most messages that a handler of a role posts, or a step of its walk and all that is behind it."""
    return max(bound(sizes) for bound in MOST[role].values())
