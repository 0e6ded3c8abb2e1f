"""The rules of a federation, in the simulator and among nodes: the same scenario, the same end."""
import pytest

from both_worlds import WORLDS, Part, Scenario
from subak.federation.messages import (
    CANCELLED,
    FINISHED_WELL,
    GANG_FAILED,
    HAS_FAILED,
    RAN_TOO_LONG,
    REASONS,
    STAGE_FAILED,
    WAITED_TOO_LONG,
)

SLACK = 0.3  # seconds that messages and writes take among nodes


@pytest.fixture(params=WORLDS, ids=lambda world: world.__name__)
def run(request):
    """Who runs a scenario."""
    return request.param


def said(ended):
    """Outcome, attempts, and why, of each task."""
    return [(task.outcome, task.attempts, task.reason) for task in ended]


def of(outcome, attempts, reason):
    return outcome, attempts, REASONS[reason]


GOOD = of("finished", 1, FINISHED_WELL)


def about(seconds):
    return pytest.approx(seconds, abs=SLACK)


def test_every_task_is_begun_once_and_finishes(run):
    ended = run(Scenario((Part(tasks=5),), machines=((2, 4, ""), (4, 4, ""))))
    assert said(ended) == [GOOD] * 5
    assert [task.start for task in ended] == [about(0.0)] * 5


def test_what_does_not_fit_waits_until_something_ends(run):
    ended = run(Scenario((Part(tasks=3, seconds=2.0),), machines=((2, 4, ""),)))
    assert said(ended) == [GOOD] * 3
    assert [task.start for task in ended] == [about(0.0), about(0.0), about(2.0)]


def test_no_resource_is_given_twice(run):
    ended = run(Scenario((Part(tasks=3, request=(0, 2)),), machines=((4, 3, ""), (4, 3, ""))))
    assert sorted(task.start for task in ended) == [about(0.0), about(0.0), about(1.0)]
    assert {task.machine for task in ended[:2]} == {0, 1}


def test_a_stage_begins_when_all_before_it_have_finished(run):
    ended = run(Scenario((Part(tasks=2, seconds=1.0), Part(seconds=3.0), Part(after=(0, 1))), machines=((4, 4, ""),)))
    assert said(ended) == [GOOD] * 4
    assert ended[3].start == about(3.0)


def test_what_depends_on_a_stage_that_failed_is_cancelled(run):
    ended = run(Scenario((Part(fails=9), Part(after=(0,)), Part(after=(1,)), Part())))
    assert said(ended) == [of("failed", 1, HAS_FAILED), of("cancelled", 0, STAGE_FAILED),
                           of("cancelled", 0, STAGE_FAILED), GOOD]
    assert ended[0].code == 7


@pytest.mark.parametrize(("retries", "outcome"), [
    (2, of("finished", 3, FINISHED_WELL)), (1, of("failed", 2, HAS_FAILED))])
def test_a_failed_attempt_is_tried_again_as_often_as_it_may_be(run, retries, outcome):
    (task,) = run(Scenario((Part(fails=2),), retries=retries, backoff=1.0))
    assert said([task]) == [outcome]
    assert task.start == about({2: 5.0, 1: 2.0}[retries])  # after 1 and 1 s, and after 1 and 2 s more


@pytest.mark.parametrize(("seconds", "outcome"), [(5.0, of("timed out", 1, RAN_TOO_LONG)), (1.0, GOOD)])
def test_an_attempt_runs_for_no_longer_than_it_may(run, seconds, outcome):
    if run is WORLDS[1] and seconds > 2.0:
        pytest.skip("the agent without processes knows no time limit; the agent's is tested in test_agent.py")
    assert said(run(Scenario((Part(seconds=seconds),), run_max=2.0))) == [outcome]


def test_a_task_waits_for_no_longer_than_it_may(run):
    ended = run(Scenario((Part(seconds=5.0), Part(tasks=2)), wait_max=2.0))
    assert said(ended) == [GOOD] + [of("timed out", 0, WAITED_TOO_LONG)] * 2


def test_a_gang_begins_together_when_there_is_room_for_all(run):
    ended = run(Scenario((Part(seconds=2.0), Part(tasks=3, gang=True)), machines=((1, 4, ""), (2, 4, ""))))
    assert said(ended) == [GOOD] * 4
    assert [task.start for task in ended[1:]] == [about(2.0)] * 3


def test_a_gang_of_which_one_fails_has_failed(run):
    ended = run(Scenario((Part(tasks=2, gang=True, fails=1),), machines=((2, 4, ""),)))
    assert {(task.outcome, task.attempts) for task in ended} == {("failed", 1)}
    assert {task.reason for task in ended} <= {REASONS[HAS_FAILED], REASONS[GANG_FAILED]}


def test_a_task_runs_only_where_its_constraints_are_met(run):
    ended = run(Scenario((Part(tasks=3, rack="b"),), machines=((2, 4, "a"), (1, 4, "b"), (2, 4, ""))))
    assert said(ended) == [GOOD] * 3
    assert {task.machine for task in ended} == {1}
    assert [task.start for task in ended] == [about(0.0), about(1.0), about(2.0)]


def test_a_task_that_waits_or_runs_can_be_cancelled(run):
    ended = run(Scenario((Part(seconds=4.0, cancel_at=1.0), Part(cancel_at=0.5), Part(seconds=1.0))))
    assert said(ended) == [of("cancelled", 1, CANCELLED), of("cancelled", 0, CANCELLED), GOOD]
    assert ended[2].start == about(1.0)  # the one that ran has left its place


def test_both_worlds_end_alike_where_much_happens():
    scenario = Scenario((
        Part(tasks=4, seconds=2.0, request=(1, 1)), Part(tasks=3, fails=1, request=(1, 2), rack="a"),
        Part(tasks=2, gang=True, after=(0,), request=(2, 1)), Part(tasks=2, after=(1, 2)), Part(fails=5, after=(0,)),
        Part(after=(4,)),
    ), machines=((2, 4, "a"), (4, 2, ""), (2, 2, "b")), retries=2)
    first, second = (said(world(scenario)) for world in WORLDS)
    assert first == second
    assert len({outcome for outcome, *_ in first}) == 3
