"""Plans of failures: what no plan could be is refused, and what is drawn has the probabilities that it names."""
import math

import numpy as np
import polars as pl
import pytest

from small import plain, staged
from subak.errors import InputError
from subak.federation.megha.jobs import TERMS
from subak.simulator.failures.draws import draw_failures, rules_of_stages
from subak.simulator.failures.plan import FailurePlan, PlanError, Rule, read_failure_plan
from subak.simulator.failures.planned import ALWAYS, KILLED, NEVER
from subak.workload.table import make_workload

REFUSED = {
    "seed = -1": "seed: must be from 0 to 2^63 - 1, not -1",
    "[[task]]\nfail = 1.5": "task.fail: must be a probability from 0 to 1, not 1.5",
    "[[task]]\noverrun = nan": "task.overrun: must be a probability from 0 to 1, not nan",
    "[[task]]\ncancel = -0.1": "task.cancel: must be a probability from 0 to 1, not -0.1",
    "[[task]]\nfail = 0.7\noverrun = 0.4\nrun_max = 9": "so their sum must be at most 1, not 1.1",
    "[[task]]\noverrun = 0.1": "task.overrun: needs run_max",
    "[[task]]\ncancel = 0.1": "task.cancel, task.cancel_after: go together",
    "[[task]]\ncancel_after = 5.0": "task.cancel, task.cancel_after: go together",
    "[[task]]\ncancel = 0.1\ncancel_after = -5.0": "task.cancel_after: must be from 0 to 1e+09 seconds, not -5",
    "[[task]]\nfail_after = 0.0": "task.fail_after: must be a share of the run time, above 0 and at most 1, not 0",
    "[[task]]\nfail_after = 'late'": "Invalid enum value 'late' - at `$.task[0].fail_after`",
    "[[task]]\nexit_code = 0": "task.exit_code: must be from 1 to 255, not 0",
    "[[task]]\nexit_code = 256": "task.exit_code: must be from 1 to 255, not 256",
    "[[task]]\nretries = -1": "task.retries: must be from 0 to 1,000, not -1",
    "[[task]]\nretries = 1001": "task.retries: must be from 0 to 1,000, not 1001",
    "[[task]]\nlosses_max = 40000": "task.losses_max: must be from 0 to 32,767, not 40000",
    "[[task]]\nbackoff = inf": "task.backoff: must be from 0 to 1e+09 seconds, not inf",
    "[[task]]\nwait_max = 0": "task.wait_max: must be above 0 and at most 1e+09 seconds, or inf, not 0",
    "[[task]]\nrun_max = nan": "task.run_max: must be above 0 and at most 1e+09 seconds, or inf, not nan",
    "[[task]]\nretry = 3": "unknown field `retry`",
    "[[jobs]]\nfail = 0.1": "unknown field `jobs`",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_no_plan_could_be_is_refused_with_its_file_and_rule(text, tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        read_failure_plan(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert REFUSED[text] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_plan_is_read_with_all_that_its_head_explains(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text('recorded = true\n[[task]]\nqueue = "a"\ngang = false\nfail = 0.1\nfail_after = 1\nwait_max = inf\n'
                    'retries = 3\nbackoff = 10\n')
    assert read_failure_plan(file) == FailurePlan(
        recorded=True, task=[Rule(queue="a", gang=False, fail=0.1, fail_after=1.0, retries=3, backoff=10.0)])


# -- whom rules are for ------------------------------------------------------------------------------------------------


def organisation(gangs=(), tasks_each=2):
    """Four jobs of two stages, map and reduce, in queues of two departments; stages in *gangs* start together."""
    queues = ["a/x", "a/y", "ab", "b/x"]
    stages = [{"job": stage // 2, "request": (1,)} for stage in range(8)]
    tasks = [(stage, 0, 5) for stage in range(8) for _ in range(tasks_each)]
    made = staged(stages, tasks)
    return make_workload(
        pl.DataFrame({"job": ["j10", "j11", "j20", "j21"], "queue": queues, "user": ["ada", "bob", "ada", None]},
                     schema_overrides={"user": pl.String}),
        made.stages.with_columns(name=pl.Series(["map", "reduce"] * 4), cpu=pl.col("cpu").cast(pl.Float64),
                                 gang=pl.Series([stage in gangs for stage in range(8)])),
        made.tasks, made.resources)


@pytest.mark.parametrize(("given", "stages"), [
    ({"queue": "a"}, [0, 1, 2, 3]), ({"queue": "a/x"}, [0, 1]), ({"queue": "*/x"}, [0, 1, 6, 7]),
    ({"user": "ada"}, [0, 1, 4, 5]), ({"job": "j1?"}, [0, 1, 2, 3]), ({"stage": "map"}, [0, 2, 4, 6]),
    ({"queue": "a", "stage": "reduce"}, [1, 3]), ({"gang": True}, [5]),
    ({"gang": False, "job": "j20"}, [4]), ({}, list(range(8))),
])
def test_a_rule_is_for_what_it_names(given, stages):
    rule = rules_of_stages(FailurePlan(task=[Rule(**given)]), organisation(gangs=[5]))
    assert np.flatnonzero(rule == 0).tolist() == stages


def test_the_last_rule_that_fits_holds():
    plan = FailurePlan(task=[Rule(retries=1), Rule(queue="a", retries=2), Rule(queue="a/x", stage="map", retries=3)])
    _, terms = draw_failures(plan, organisation(), 1)
    assert terms["retries"].tolist() == [3, 3, *[2] * 6, *[1] * 8]


@pytest.mark.parametrize(("given", "said"), [
    ({"queue": "c"}, "task.queue: the workload has no queue 'c'; it has a/x, a/y, ab ..."),
    ({"user": "eve"}, "task.user: the workload has no user 'eve'; it has ada, bob"),
    ({"job": "j3*"}, "task.job: the workload has no job 'j3*'; it has j10, j11, j20 ..."),
    ({"stage": "Map"}, "task.stage: the workload has no stage 'Map'; it has map, reduce"),
])
def test_a_name_that_nothing_has_is_refused(given, said):
    with pytest.raises(PlanError) as refused:
        rules_of_stages(FailurePlan(task=[Rule(**given)]), organisation())
    assert str(refused.value) == said


def test_gangs_are_not_tried_again():
    plan = FailurePlan(task=[Rule(queue="a"), Rule(queue="ab", retries=2)])
    with pytest.raises(PlanError, match=r"task.retries: must be 0 for gangs, .* not 2; stage reduce of job j20 is one"):
        draw_failures(plan, organisation(gangs=[5]), 1)
    draw_failures(FailurePlan(task=[*plan.task, Rule(gang=True)]), organisation(gangs=[5]), 1)
    draw_failures(plan, organisation(gangs=[5], tasks_each=1), 1)  # one task alone is no gang


# -- what is drawn -----------------------------------------------------------------------------------------------------

MANY = 20_000


def many(run_time=10.0):
    return plain(*[(task, run_time, 1) for task in range(MANY)])


def near(share, expected):
    """Whether a share of MANY is within five standard deviations of what is expected."""
    return abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / MANY)


def test_attempts_fail_with_the_probability_of_their_rule():
    planned, _ = draw_failures(FailurePlan(task=[Rule(fail=0.3, exit_code=7)]), many(), 1)
    for attempts in range(1, 5):
        assert near((planned.fails >= attempts).mean(), 0.3**attempts)
    assert (planned.code == 7).all()
    assert (planned.after < 10).all()
    assert near((planned.after < 2.5).mean(), 0.25)
    assert np.isinf(planned.cancel_at).all()


def test_certain_failure_has_no_end():
    planned, _ = draw_failures(FailurePlan(task=[Rule(fail=1.0, fail_after=0.25)]), plain((0, 8, 1), (1, 4, 1)), 1)
    assert planned.fails.tolist() == [ALWAYS, ALWAYS]
    assert planned.after.tolist() == [2.0, 1.0]


def test_attempts_that_run_on_are_a_share_of_those_that_do_not_finish():
    planned, terms = draw_failures(FailurePlan(task=[Rule(fail=0.1, overrun=0.3, run_max=20.0)]), many(), 1)
    bad = planned.fails > 0
    assert near(bad.mean(), 0.4)
    assert near((bad & np.isinf(planned.after)).mean(), 0.3)
    assert (terms["run_max"] == 20.0).all()


def test_users_cancel_an_exponential_time_after_the_arrival():
    planned, _ = draw_failures(FailurePlan(task=[Rule(cancel=0.5, cancel_after=100.0)]), many(), 1)
    waited = (planned.cancel_at - np.arange(MANY))[np.isfinite(planned.cancel_at)]
    assert near(waited.size / MANY, 0.5)
    assert (waited >= 0).all()
    assert abs(waited.mean() - 100) < 5 * 100 / math.sqrt(waited.size)
    assert near((waited > 100).sum() / MANY, 0.5 * math.exp(-1))


def test_the_same_seeds_draw_the_same_and_others_do_not():
    plan = FailurePlan(seed=3, task=[Rule(fail=0.3, cancel=0.2, cancel_after=5.0)])
    first, again, other_run, other_plan = (draw_failures(*each)[0] for each in (
        (plan, many(), 1), (plan, many(), 1), (plan, many(), 2), (FailurePlan(seed=4, task=plan.task), many(), 1)))
    assert all(one.tobytes() == other.tobytes() for one, other in zip(first, again, strict=True))
    assert (first.fails != other_run.fails).any()
    assert (first.fails != other_plan.fails).any()


def test_with_a_larger_probability_the_same_tasks_fail_and_more():
    seldom, often = (draw_failures(FailurePlan(task=[Rule(fail=fail)]), many(), 1)[0].fails for fail in (0.1, 0.2))
    assert (often >= seldom).all()
    assert (often > seldom).any()


def test_a_task_without_an_end_does_not_fail_by_itself():
    planned, _ = draw_failures(FailurePlan(task=[Rule(fail=1.0)]), plain((0, math.inf, 1), (0, 4, 1)), 1)
    assert planned.fails.tolist() == [0, ALWAYS]


def test_without_a_rule_everything_finishes_on_terms_that_forbid_nothing():
    planned, terms = draw_failures(FailurePlan(), plain((0, 1, 1), (0, 1, 1)), 1)
    assert planned.fails.tolist() == [0, 0]
    assert planned.cancel_at.tolist() == [NEVER, NEVER]
    assert terms.dtype == TERMS
    assert terms.tolist() == [(0, ALWAYS, 0.0, NEVER, NEVER)] * 2


# -- what the trace recorded -------------------------------------------------------------------------------------------


def recorded(*outcomes, run_time=5.0):
    made = plain(*[(0, run_time, 1) for _ in outcomes])
    return make_workload(made.jobs, made.stages.with_columns(pl.col("cpu").cast(pl.Float64)),
                         made.tasks.with_columns(outcome=pl.Series(outcomes, dtype=pl.String)), made.resources)


def test_what_was_recorded_as_failed_or_killed_is_so_again():
    workload = recorded("FINISH", "FAIL", "KILL", "EVICT", "LOST", "CENSORED", None)
    planned, terms = draw_failures(FailurePlan(recorded=True, task=[Rule(exit_code=9)]), workload, 1)
    assert planned.fails.tolist() == [0, ALWAYS, ALWAYS, 0, 0, 0, 0]
    assert (planned.after[1:3].tolist(), planned.code[1:3].tolist()) == ([5.0, 5.0], [9, KILLED])
    assert np.isinf(planned.cancel_at).all()
    assert (terms["retries"] == 0).all()
    ignored, _ = draw_failures(FailurePlan(), workload, 1)
    assert not ignored.fails.any()


def test_what_was_recorded_as_killed_but_has_no_end_goes_on():
    planned, _ = draw_failures(FailurePlan(recorded=True), recorded("KILL", "FAIL", run_time=math.inf), 1)
    assert not planned.fails.any()


def test_a_trace_that_recorded_no_outcome_is_refused():
    with pytest.raises(PlanError, match=r"recorded: the tasks of workload .* have no column outcome"):
        draw_failures(FailurePlan(recorded=True), plain((0, 1, 1)), 1)
