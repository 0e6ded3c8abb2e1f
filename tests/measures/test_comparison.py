"""The comparison: which of two values is called the better one, and what is said of a federation's requests."""
import math
from pathlib import Path

import pytest

from subak.measures.objective import read_objective
from subak.measures.runs import (
    Amounts,
    EnergyFacts,
    FairnessFacts,
    FederationFacts,
    JobFacts,
    LevelFacts,
    ObjectiveFacts,
    RoleFacts,
    Run,
    Speed,
    Spread,
    Summary,
    Waiting,
)
from subak.placement.schedulers import UNKNOWN, foreknown
from subak.report.comparison import _met, _objective, compare, messages_a_task, refused_share, verdict
from subak.report.notes import notes
from subak.report.number_text import NOTHING
from subak.resources import Resource

OF_A_PLAN = {"failed", "cancelled", "timed out", "lost", "attempts failed"}  # of failures, which these runs had not
NO_JUDGEMENT = {
    "framework queueing", "processing", "worker queueing", "communication", "running at the end", "tasks preempted",
    "global masters busy", "local masters busy", "lower bound", "tasks a second", "peak memory",
    "total", "mean power", "of energy", "of machines", "rack-local",
}


def spread(size):
    return Spread(size, 2 * size, 3 * size, 4 * size, 5 * size, 6 * size, 3.5 * size)


def summary(label, few, many):
    """A run of ten tasks: *few* of what there should be little of, *many* of what there should be much of."""
    return Summary(
        scheduler=label, label=label, resources=(Resource("cpu", 1.0, "cores"),),
        status={"FINISHED": many, "RUNNING": few, "WAITING": few, "UNPLACEABLE": few},
        wait_time=spread(few), slurm_wait=spread(few), slowdown=spread(few), execution_delay=spread(few),
        locality={"node-local": many / 10, "rack-local": few / 10, "off-rack": few / 10},
        lengths={"short": spread(few), "long": spread(few)},
        jobs=JobFacts(10, many, spread(few), spread(few), spread(few)), makespan=few, makespan_bound=few, gap=few / 10,
        utilisation={"cpu": many / 10}, stranded={"cpu": few / 10}, idle_while_waiting={"cpu": few / 10},
        waiting=Waiting(few, 10 * few),
        attempts_lost=few, run_time_lost=few, speed=Speed(few, few, few, few),
        energy=EnergyFacts("cpu", total=Amounts(few, few, few), per_task=Amounts(few, few, few),
                           per_used_hour=Amounts(few, few, few), cost_energy=few, cost_machines=few, watts_mean=few),
        fairness=FairnessFacts(levels=(LevelFacts(1, jain=many / 10),), short=few, shortfall=few,
                               shortfall_mean=few / 10, starved_longest=few),
        federation=FederationFacts(
            allocation=spread(2 * few), parts={name: spread(few) for name in ("framework_queueing", "processing",
                                                                          "worker_queueing", "communication")},
            messages={"SUBMIT": 10 * few}, roles={"global master": RoleFacts(1, few / 10),
                                                  "local master": RoleFacts(1, few / 10)},
            counts={"refused: not free": few, "launches": 10, "tasks preempted": few}),
    )


def test_the_better_run_is_marked_in_every_row_that_judges():
    rows = compare([Run(Path(name), summary(name, *numbers)) for name, *numbers in (("bad", 2, 4), ("good", 1, 7))])
    assert len(rows) >= 45
    for row in rows:
        if row.measure.title in OF_A_PLAN:
            assert row.values == [None, None]
            continue
        assert None not in row.values, row.measure.title
        judged = row.measure.title not in NO_JUDGEMENT and row.measure.family != "Fragmented"
        assert row.best == (frozenset({1}) if judged else frozenset()), (row.measure.family, row.measure.title)


def federated(messages=(), **counts):
    facts = FederationFacts(counts={name.replace("_", " "): count for name, count in counts.items()},
                            messages=dict(messages))
    return Summary(scheduler="megha", status={"FINISHED": 3, "WAITING": 1}, federation=facts)


def test_every_refusal_counts_against_every_request():
    refusals = {"refused: not free": 3, "refused otherwise": 2}
    assert refused_share(federated(launches=15, repartitions=5, **refusals)) == pytest.approx(5 / 20)
    assert refused_share(federated(launches=20, refused_otherwise=2)) == pytest.approx(2 / 20)
    assert refused_share(federated(repartitions=4)) == 0
    assert refused_share(federated(launches=0)) is None
    assert refused_share(Summary(scheduler="first-fit")) is None


def test_messages_that_cross_the_network_are_counted_for_each_task():
    assert messages_a_task(federated({"SUBMIT": 4, "LAUNCH": 6, "PLACE": 99, "BEAT": 99})) == 10 / 4
    assert messages_a_task(Summary(scheduler="first-fit")) is None


def test_what_a_run_does_not_know_is_no_row_and_no_number():
    row_of = {row.measure.title: row.values for row in compare([waited("a", 3.0, FINISHED=3)])}
    assert "Jain, level 1" not in row_of
    assert [row_of[title] for title in ("finished", "waiting at the end", "unplaceable")] == [[3], [0], [0]]


# -- the verdict -------------------------------------------------------------------------------------------------------


def waited(label, seconds, **status):
    """A run whose tasks waited so long, each; None where none started."""
    return Run(Path(label), Summary(scheduler=label, label=label, status=status, wait_time=Spread(*[seconds] * 6)))


def test_the_verdict_on_one_scheduler_says_how_long_tasks_waited_and_which_are_left_out():
    assert verdict([waited("a", 3.0, FINISHED=3)]) == (
        "Tasks waited 3 s on average before they started; one in a hundred waited longer than 3 s.")
    assert verdict([waited("a", 3.0, FINISHED=3, WAITING=2)]).endswith(
        " These numbers leave out 2 tasks that had not started when the run ended.")


def test_the_verdict_on_several_names_the_best_the_next_and_who_left_most_out():
    runs = [waited("a", 3.0, WAITING=1), waited("b", 2.0, BLOCKED=2), waited("c", 4.0)]
    assert verdict(runs) == (
        "b has the lowest mean wait time, 2 s; next is a with 3 s. b has the lowest 99th percentile, 2 s; next is a "
        "with 3 s. These numbers leave out up to 2 tasks (b) that had not started when the run ended.")
    assert verdict([waited("a", 2.0), waited("b", 2.0), waited("c", 4.0)]).startswith(
        "a and b have the lowest mean wait time, 2 s; next is c with 4 s. ")
    assert verdict([waited("a", 2.0), waited("b", 2.0)]) == (
        "All schedulers have the same mean wait time, 2 s. All schedulers have the same 99th percentile, 2 s.")
    assert verdict([waited("a", None), waited("b", None)]) == "No task started, so there is no wait time to report."


def test_an_allocation_time_that_is_the_wait_time_is_not_said_again():
    same, other = (Run(Path(name), Summary(scheduler=name, label=name, wait_time=spread(1), federation=FederationFacts(
        allocation=spread(size)))) for name, size in (("same", 1), ("other", 2)))
    assert "Allocation time" not in {row.measure.family for row in compare([same])}
    assert "Allocation time" in {row.measure.family for row in compare([same, other])}


def test_the_verdict_is_among_those_that_know_the_same():
    def run(name, wait, knows):
        return Run(Path(name), Summary(scheduler=name, label=name, wait_time=spread(wait), knows=knows))

    text = verdict([run("blind", 9, "nothing"), run("lucky", 8, "nothing"), run("told", 1, "run times")])
    assert text.startswith("Of those that know nothing of run times: lucky has the lowest mean wait time, 8 s; next is "
                           "blind with 9 s.")
    assert "Knowing run times: Tasks waited 1 s on average" in text
    alone = verdict([run("blind", 9, "nothing"), run("lucky", 8, "nothing")])
    assert alone.startswith("lucky has the lowest mean wait time")
    said = notes([run("blind", 9, "nothing"), run("told", 1, "run times"), run("recorded", 5, UNKNOWN)])
    assert "Know run times before the tasks run: told (run times)." in said


def test_what_users_estimate_is_no_knowledge_of_the_future():
    def run(name, wait, knows):
        return Run(Path(name), Summary(scheduler=name, label=name, wait_time=spread(wait), knows=knows))

    plain, easy = run("backfill", 9, "nothing"), run("easy", 8, "run times, as users estimate them")
    assert verdict([plain, easy]).startswith("easy has the lowest mean wait time, 8 s; next is backfill with 9 s.")
    assert verdict([plain, easy, run("told", 1, "run times")]).startswith(
        "Of those that know nothing of run times but what users estimate: easy has the lowest mean wait time, 8 s")
    assert [foreknown(known) for known in ("", "nothing", "run times", "class means, as users estimate them")] == [
        "nothing", "nothing", "run times", "nothing"]


def test_the_scheduler_of_the_log_is_shown_and_neither_wins_nor_is_recommended():
    runs = [Run(Path(name), Summary(scheduler=name, label=name, wait_time=spread(wait), knows=knows))
            for name, wait, knows in (("slow", 9, "nothing"), ("recorded", 1, "not recorded"), ("fast", 8, "nothing"))]
    mean = next(row for row in compare(runs) if (row.measure.family, row.measure.title) == ("Wait time", "mean"))
    assert mean.values == [9, 1, 8] and mean.best == frozenset({2})
    assert verdict(runs).startswith("fast has the lowest mean wait time, 8 s; next is slow with 9 s.")


@pytest.mark.parametrize(("text", "value", "words"), [
    ("wait.mean < 2min", 90.0, "met: 90 s"), ("slowdown.mean < 2", 3.0, "missed: 3.00"),
    ("wait.mean < 2min", math.inf, "missed: never"), ("wait.mean < 2min", None, NOTHING),
])
def test_the_verdict_on_an_objective_has_its_value_in_its_unit(text, value, words):
    assert _met(read_objective(text), value) == words


def test_an_objective_has_the_value_that_the_run_says_of_it():
    """Of two, the latter has an endless one; a third the run knows nothing of."""
    facts = (ObjectiveFacts("a", 3.0, True, 1), ObjectiveFacts("b", None, False, 1))
    assert [_objective(text, Summary("easy", objectives=facts)) for text in "abc"] == [3.0, math.inf, None]
