"""Attempts that count as lost, on tables that are written by hand: each once, whoever says so, across restarts."""
import numpy as np
import pytest

from subak.federation.megha.global_master.handlers import end, on_refused, on_submit
from subak.federation.megha.global_master.losses import NOTHING_SENT
from subak.federation.megha.global_master.rebuild import restart, settle_cluster, settle_doubts
from subak.federation.megha.global_master.state import (
    PHASE_ENDED,
    PHASE_FLYING,
    PHASE_HELD,
    PHASE_LEAVING,
    PHASE_RUNNING,
    PHASE_UNKNOWN,
    PHASE_WAITING,
    is_here,
)
from subak.federation.megha.open_tasks import join_gang, open_gang
from subak.federation.messages import (
    DONE,
    FINISHED_WELL,
    GANG_LOST,
    KINDS,
    LEASE_LOST,
    LOST_TOO_OFTEN,
    MACHINE_LOST,
    MESSAGE,
    NOT_FREE,
    OLD_EPOCH,
    OLD_REQUEST,
    PREEMPTED,
    UNKNOWN,
)
from test_global_master_by_hand import FIRST, NUMBER, Master

NUMBERED = FIRST + 1  # the attempt that the task was sent to last


def sent(phase, gang=False, losses_max=9, attempt=NUMBERED):
    """A master whose task is in a phase, and was sent to machine 0."""
    one = Master()
    one.master.counts.incarnation = 1
    me = one.task
    me["phase"], me["attempt"], me["machine"], me["sent"], me["sent_to"] = phase, attempt, 0, attempt, 0
    one.tasks.losses_max[one.row] = losses_max
    if gang:
        join_gang(one.tasks, one.row, open_gang(one.tasks, NUMBER, 1))
        assert one.is_here()
    return one


def message(one, **fields):
    said = np.zeros(1, MESSAGE)[0]
    said["row"], said["task"], said["incarnation"] = one.row, NUMBER, one.master.counts.incarnation
    for name, value in fields.items():
        said[name] = value
    return said


def done(one):
    """Why the submitter is told that the task has ended, and how often it was lost."""
    rows = one.out.row[: one.out.counts.posted]
    return [(int(row["reason"]), int(row["lost"])) for row in rows if row["kind"] == DONE]


@pytest.mark.parametrize(("reason", "lost"), [
    (MACHINE_LOST, 1), (LEASE_LOST, 1), (UNKNOWN, 1), (PREEMPTED, 0), (GANG_LOST, 0), (NOT_FREE, 0)])
@pytest.mark.parametrize("attempt", [NUMBERED, 1])  # of this incarnation, and of a former one
def test_an_attempt_that_nobody_ended_is_lost_whichever_incarnation_sent_it(reason, lost, attempt):
    one = sent(PHASE_RUNNING, attempt=attempt)
    end(*one.everything(), one.entry(reason=reason, attempt=attempt), one.out)
    assert (one.task["lost"], one.task["sent"], one.task["phase"]) == (lost, NOTHING_SENT, PHASE_WAITING)


@pytest.mark.parametrize("phase", [PHASE_UNKNOWN, PHASE_WAITING])
def test_a_loss_that_a_restarted_master_is_told_of_counts_once(phase):
    one = sent(phase, attempt=1)
    for _ in range(2):
        end(*one.everything(), one.entry(reason=MACHINE_LOST, attempt=1), one.out)
    assert (one.task["lost"], one.task["sent"], one.task["phase"]) == (1, NOTHING_SENT, phase)


def test_what_has_ended_well_may_yet_be_lost_with_the_word_of_it():
    one = sent(PHASE_RUNNING)
    end(*one.everything(), one.entry(reason=FINISHED_WELL), one.out)
    assert (one.task["lost"], one.task["sent"]) == (0, NUMBERED), "if nobody remembers, it has begun all the same"


@pytest.mark.parametrize(("phase", "gang", "lost"), [
    (PHASE_RUNNING, False, 1), (PHASE_FLYING, False, 1), (PHASE_LEAVING, False, 1),
    (PHASE_RUNNING, True, 1), (PHASE_FLYING, True, 0), (PHASE_HELD, True, 0), (PHASE_LEAVING, True, 1)])
def test_a_doubt_that_is_settled_as_lost_is_a_loss_where_the_attempt_may_have_begun(phase, gang, lost):
    one = sent(phase, gang)
    one.task["doubted"], one.master.listed[0] = True, True
    settle_doubts(*one.everything(), one.out)
    assert (one.task["lost"], one.task["sent"], one.task["phase"]) == (lost, NOTHING_SENT, PHASE_WAITING)


@pytest.mark.parametrize(("reason", "gang", "lost"), [
    (OLD_EPOCH, False, 1), (OLD_EPOCH, True, 0), (NOT_FREE, False, 0), (OLD_REQUEST, False, 0)])
def test_what_a_new_local_master_refuses_may_have_begun_under_the_former_one(reason, gang, lost):
    one = sent(PHASE_FLYING, gang)
    on_refused(*one.everything(), message(one, attempt=NUMBERED, machine=0, reason=reason), one.out)
    assert (one.task["lost"], one.task["refusals"], one.task["sent"]) == (lost, 1, NOTHING_SENT)


@pytest.mark.parametrize("is_submitted_first", [False, True])
def test_what_was_sent_before_a_restart_and_left_no_trace_is_lost(is_submitted_first):
    one = sent(PHASE_RUNNING, losses_max=0)
    restart(*one.everything(), one.out)
    assert (one.task["sent"], one.task["lost"], one.task["phase"]) == (NUMBERED, 0, PHASE_UNKNOWN)
    if is_submitted_first:
        on_submit(*one.everything(), message(one), one.out)
        assert (one.task["lost"], one.task["phase"]) == (0, PHASE_WAITING), "its cluster has not answered yet"
    one.master.listed[:], one.master.cluster["seen"][0] = True, 1
    settle_cluster(*one.everything(), 0, one.out)
    if not is_submitted_first:
        on_submit(*one.everything(), message(one), one.out)
    assert done(one) == [(LOST_TOO_OFTEN, 1)]
    assert one.task["phase"] == PHASE_ENDED
    kinds = {KINDS[kind] for kind in one.out.row["kind"][: one.out.counts.posted].tolist()}
    assert not kinds & {"LAUNCH", "REPARTITION"}


def test_a_restart_between_two_attempts_loses_nothing():
    one = sent(PHASE_RUNNING, losses_max=1)
    end(*one.everything(), one.entry(reason=MACHINE_LOST), one.out)
    restart(*one.everything(), one.out)
    one.master.listed[:], one.master.cluster["seen"][0] = True, 1
    settle_cluster(*one.everything(), 0, one.out)
    on_submit(*one.everything(), message(one), one.out)
    assert (one.task["lost"], one.task["phase"]) == (1, PHASE_WAITING)


def test_losses_count_in_all_rounds_of_a_task_and_not_for_the_next_in_its_row():
    one = sent(PHASE_RUNNING)
    one.task["lost"] = 3
    one.tasks.round[one.row] = 1
    assert one.is_here(1)
    assert (one.task["lost"], one.task["sent"]) == (3, NOTHING_SENT)
    one.tasks.number[one.row] = NUMBER + 1
    assert is_here(one.master, one.tasks, one.row, NUMBER + 1, 1)
    assert one.task["lost"] == 0
