"""Roles of a live federation under faults: no rule breaks, all comes to rest; and planted defects are found.

A planted defect is a role that lacks one guard.
"""
import numpy as np
import pytest

from subak.federation.megha import worker
from subak.federation.megha.jobs import SUBMISSION_BACKOFF
from subak.federation.megha.local_master import handlers
from subak.federation.messages import NOBODY
from subak.live.agent.attempts.ledger import Ledger
from subak.live.role.global_master import restore
from subak.live.role.layout import Timing
from subak.live.role.worker.worker_role import WorkerRole
from subak.live.torture.torture import random_case, run_case
from subak.live.torture.world import World

SEEDS = range(1, 41)
FOUND_WITHIN = 500


@pytest.mark.parametrize("seed", SEEDS)
def test_live_torture_is_clean(seed):
    ending = run_case(random_case(seed))
    assert ending.failure == ""


def test_the_same_seed_is_the_same_torture():
    first, second = run_case(random_case(5)), run_case(random_case(5))
    assert (first.steps, first.log, first.happened) == (second.steps, second.log, second.happened)


def found(may=lambda case: True, first=1):
    """Return the first seed of which the case may show it and does, and how; *first* is near one that does."""
    for seed in range(first, first + FOUND_WITHIN):
        case = random_case(seed)
        if may(case) and (failure := run_case(case).failure):
            return seed, failure
    pytest.fail("not found")


def test_frames_that_leave_before_the_write_is_durable_are_found(monkeypatch):
    plain = World._make_durable

    def hasty(world, process, step):
        if process.life == step.life and not process.full:
            world.release(process, step.ready, step.connections)
            step = step._replace(ready=step.ready._replace(frames=[], effects=[]))
        plain(world, process, step)

    monkeypatch.setattr(World, "_make_durable", hasty)
    assert found(first=20)


def test_a_forgotten_fence_is_found(monkeypatch):
    monkeypatch.setattr(Ledger, "_raise_fence", lambda ledger, fence: "")
    monkeypatch.setattr(Ledger, "_no_place", lambda ledger, fence: "")
    monkeypatch.setattr(worker, "is_for_this_incarnation", lambda workers, message: True)
    assert found(first=55)


def test_a_row_that_is_given_again_too_early_is_found(monkeypatch):
    plain = restore._free_the_rest

    def hasty(role):
        tasks, jobs = role.tasks, role.jobs
        for place in np.flatnonzero(jobs.state == SUBMISSION_BACKOFF).tolist():
            tasks.number[jobs.row[place]] = NOBODY
        plain(role)

    monkeypatch.setattr(restore, "_free_the_rest", hasty)
    assert found(first=125)


def test_a_lease_that_is_ignored_is_found(monkeypatch):
    """By the worker and its agent, each of which would end what runs by itself."""
    plain = worker.on_tick

    def careless(workers, topology, rules, shapes, now, message, out):
        workers.machine[message["machine"]]["heard"] = now
        plain(workers, topology, rules, shapes, now, message, out)

    monkeypatch.setattr("subak.federation.megha.worker_role.on_tick", careless)
    monkeypatch.setattr(Timing, "agent_lease", property(lambda timing: 1e9))
    _, failure = found(lambda case: any(
        fault.kind == "part" and fault.seconds > case.timing.lease for fault in case.faults), first=305)
    assert "begins on" in failure


def test_an_end_of_a_halted_attempt_that_is_not_held_back_is_found(monkeypatch):
    monkeypatch.setattr(WorkerRole, "may_send", lambda role, kind, row: True)
    assert found(lambda case: any(machine.stubborn for machine in case.machines) and len(case.wishes) > 1)


@pytest.mark.parametrize("seed", [1750, 1983, 2705])
def test_an_order_that_a_full_disk_held_up_until_the_lease_was_over_begins_nothing(seed):
    """Found by torture: the agent began it, though another machine had the task by then."""
    assert run_case(random_case(seed)).failure == ""


def test_ends_of_a_dead_master_kept_with_those_of_others_are_found(monkeypatch):
    """A local master forgets what ended in the order in which it did, whoever is to note it."""

    def forget_noted(local, owner, out):
        if (local.asker["known"] >= local.asker["known"][owner]).all():
            forget(local, owner, out)

    forget = handlers.forget_noted
    monkeypatch.setattr(handlers, "forget_noted", forget_noted)
    _, failure = found(lambda case: any(name.startswith("g") for name in case.dead))
    assert "keeps task" in failure


@pytest.mark.parametrize("seed", [2182, 2402, 2449])
def test_a_worker_obeys_the_latest_epoch_of_those_who_admitted_it(seed):
    """Found by torture: who had taken over without knowing the machine had said that nothing runs there."""
    assert run_case(random_case(seed)).failure == ""


@pytest.mark.parametrize("seed", [398, 3375])
def test_a_machine_is_not_let_go_before_it_has_said_what_it_holds(seed):
    """Found by torture: a local master that has just taken over knows of no attempt on any machine."""
    ending = run_case(random_case(seed))
    assert (ending.failure, ending.happened["a machine left"]) == ("", 1)


def test_what_a_master_that_restarted_is_told_again_is_no_news():
    """Found by torture: a preempted attempt of before passed for the one that had finished."""
    assert run_case(random_case(1424)).failure == ""


def test_to_attach_does_not_begin_an_agents_lease_anew():
    """Found by torture: a worker that was started again and killed left behind what another machine ran by then."""
    assert run_case(random_case(925)).failure == ""
