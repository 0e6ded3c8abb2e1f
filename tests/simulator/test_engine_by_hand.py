"""Small schedules worked by hand: what each order, placement and change of the fleet does."""
import math
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from invariants import Watch
from small import TWO, fleet_of, plain, staged
from subak.errors import InputError
from subak.placement.claims import STATUSES
from subak.policy import find_scheduler
from subak.simulator.central.engines import central_loop
from subak.simulator.engine import setup
from subak.simulator.engine.attempts import LOST_EVENTS_KEPT
from subak.simulator.engine.changes import started_after
from subak.simulator.engine.heap import SIZE
from subak.simulator.engine.run_loop import next_budget
from subak.simulator.engine.setup import Terms
from subak.simulator.engine.state import LOOP_DONE, TIMELINE_RUNNING_MEAN
from subak.simulator.results import machine_rows
from subak.simulator.simulate import simulate
from subak.workload.table import make_workload

NEVER = None


def run(workload, fleet, scheduler="first-fit", **options):
    return simulate(workload, fleet, find_scheduler(scheduler), check=Watch(), **options)


def starts(outcome):
    """Per task the last start, NEVER where there was none."""
    return [None if math.isnan(time) else time for time in outcome.simulation.progress.start.tolist()]


def machines(outcome):
    return machine_rows(outcome).tolist()


def statuses(outcome):
    return [STATUSES[code] for code in outcome.simulation.claims.status]


# -- orders and placements ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheduler", "expected"), [
    ("first-fit", [0, 4, 7]),  # the last waits behind the large one
    ("first-fit+backfill", [0, 4, 1]),  # it goes ahead, the core is free
    ("first-fit+shortest-first", [3, 0, 3]),  # the large one is shorter than the first, the last than both
    ("first-fit+priority", [0, 4, 7]),
])
def test_backfill_and_orders(scheduler, expected):
    assert starts(run(plain((0, 4, 1), (0, 3, 2), (1, 2, 1)), fleet_of((2,)), scheduler)) == expected


def test_priority_beats_arrival_and_equals_keep_their_order():
    stages = [{"job": 0, "request": (1,), "priority": priority} for priority in (0, 5, 9, 5)]
    workload = staged(stages, [(0, 0, 1), (0, 0.5, 1), (1, 0.5, 1), (2, 0.5, 1), (3, 0.5, 1)])
    assert starts(run(workload, fleet_of((1,)), "first-fit+priority")) == [0, 4, 2, 1, 3]


def test_shortest_first_goes_by_the_estimate_where_there_is_one():
    tasks = [(0, 0, 1, None), (0, 0, 9, 1), (0, 0, 2, 8), (0, 0, 3, None)]
    # ranks 1, 1, 8, 3: 0 before 1 by number
    assert starts(run(staged([{"request": (1,)}], tasks), fleet_of((1,)), "first-fit+shortest-first")) == [0, 1, 13, 10]


def test_best_and_worst_fit_choose_opposite_machines():
    workload, fleet = plain((0, 1, 1)), fleet_of((4,), (2,), (8,))
    assert [machines(run(workload, fleet, name)) for name in ("first-fit", "best-fit", "worst-fit")] == [[0], [1], [2]]


def test_what_is_freed_at_an_instant_can_be_used_by_what_arrives_at_it():
    assert starts(run(plain((0, 2, 1), (2, 1, 1)), fleet_of((1,)))) == [0, 2]


def test_who_waits_goes_before_who_arrives_at_the_instant_something_is_freed():
    assert starts(run(plain((0, 2, 2), (1, 1, 1), (2, 1, 2)), fleet_of((2,)), "first-fit+backfill")) == [0, 2, 3]


def test_tasks_without_duration_leave_before_the_next_arrival_of_the_same_instant():
    outcome = run(plain((0, 0, 1), (0, 0, 1), (0, 0, 1)), fleet_of((1,)))
    assert (starts(outcome), outcome.loop_result.end) == ([0, 0, 0], 0)


# -- stages ------------------------------------------------------------------------------------------------------------


def test_a_stage_starts_when_the_last_task_of_every_stage_before_it_ended():
    stages = [{"job": 0, "request": (1,), "depends_on": parents} for parents in ([], [0], [0], [1, 2])]
    workload = staged(stages, [(0, 0, 1), (0, 0, 4), (1, 0, 2), (2, 9, 1), (3, 0, 1)])
    outcome = run(workload, fleet_of((9,)))
    by_stage = dict(zip(workload.tasks["index"].to_list(), starts(outcome), strict=True))
    assert by_stage == {0: 0, 1: 0, 2: 4, 3: 9, 4: 10}


def test_a_stage_without_tasks_keeps_nobody_waiting():
    stages = [{"request": (1,)}, {"request": (1,), "depends_on": [0]}]
    try:
        outcome = run(staged(stages, [(1, 0, 1)]), fleet_of((1,)))
    except InputError:
        return  # refusing it is as good
    assert statuses(outcome) == ["FINISHED"]


def test_what_waits_for_an_unplaceable_task_is_blocked_for_good():
    stages = [{"request": (5,)}, {"request": (1,), "depends_on": [0]}]
    assert statuses(run(staged(stages, [(0, 0, 1), (1, 0, 1)]), fleet_of((1,)))) == ["UNPLACEABLE", "BLOCKED"]


# -- the fleet changes -------------------------------------------------------------------------------------------------


def test_the_attempts_that_started_last_are_lost_when_a_machine_shrinks():
    # from 5 cores to 2 at time 3: tasks 3 and 2 (the later starts, the higher number first) go, 0 and 1 stay
    workload = plain((0, 9, 1), (1, 9, 1), (2, 9, 1), (2, 9, 2))
    outcome = run(workload, fleet_of((5,), changes=[(3, 0, True, 2)]), until=4.0)
    assert statuses(outcome) == ["RUNNING", "RUNNING", "WAITING", "WAITING"]
    assert outcome.loop_result.losses[-1][0].tolist() == [3, 2]


def test_who_started_last_is_sought_on_the_machine_alone():
    """Task 0 starts at 2, on the first machine; of the second, which shrinks at 3, the other two have all since 0."""
    fleet = fleet_of((0,), (2,), changes=[(2, 0, True, 3), (3, 1, True, 1)])
    outcome = run(plain((0, 9, 3), (0, 9, 1), (0, 9, 1)), fleet, "first-fit+backfill", until=4.0)
    assert outcome.loop_result.losses[-1][0].tolist() == [2]


def test_the_first_task_may_be_the_one_that_started_last():
    """It starts at 2, when the machine grows, and ends before the other, which has run since 0; at 3 one must go."""
    fleet = fleet_of((1,), changes=[(2, 0, True, 3), (3, 0, True, 2)])
    outcome = run(plain((0, 2, 2), (0, 9, 1)), fleet, "first-fit+backfill", until=3.5)
    assert outcome.loop_result.losses[-1][0].tolist() == [0]


def test_of_tasks_that_started_together_the_higher_number_is_later():
    start = np.array([3.0, 5.0, 5.0, 1.0])
    order = [3, 0, 1, 2]
    assert all(started_after(start, one, other) == (order.index(one) > order.index(other))
               for one in range(4) for other in range(4))


def test_a_machine_that_joins_or_grows_is_used_at_once():
    fleet = fleet_of((1,), (2,), present=[True, False], changes=[(3, 1, True, 2), (5, 0, True, 3)])
    assert starts(run(plain((0, 1, 2), (0, 1, 3)), fleet)) == [3, 5]


def test_a_leaving_machine_frees_nothing_and_a_task_it_lost_is_first_again():
    fleet = fleet_of((1,), (1,), changes=[(2, 0, False, 0)])
    outcome = run(plain((0, 4, 1), (0, 3, 1), (1, 1, 1)), fleet)
    assert (starts(outcome), machines(outcome)) == ([3, 0, 7], [1, 1, 1])


def test_an_unplaceable_task_may_be_placeable_later():
    fleet = fleet_of((1,), changes=[(5, 0, True, 4)])
    assert starts(run(plain((0, 1, 4)), fleet)) == [5]
    assert statuses(run(plain((0, 1, 5)), fleet)) == ["UNPLACEABLE"]


def test_endless_tasks_on_a_machine_that_comes_and_goes_leave_no_events_behind():
    changes, time = [], 1.0
    for _ in range(2):
        for _ in range(1000):
            changes += [(time, 0, False, 0), (time + 0.25, 0, True, 1)]
            time += 1
        changes += [(time, 0, True, 2), (time + 0.5, 0, True, 1)]  # a second one starts and is lost alone
        time += 1
    outcome = simulate(plain((0, math.inf, 1), (0, math.inf, 1)), fleet_of((1,), changes=changes),
                       find_scheduler("first-fit"), interval=1e6)
    assert outcome.simulation.progress.attempts.tolist() == [2001, 2]
    assert outcome.simulation.events.size[SIZE] <= 1 + 1000 + 1  # one lives; up to 1,000 may be dead


def test_ends_that_will_never_come_are_forgotten_behind_one_that_is_still_to_come():
    """The first task's end is the next event all along; the machine of the second comes and goes."""
    changes = [change for turn in range(1, LOST_EVENTS_KEPT + 9)
               for change in ((turn, 1, False, 0), (turn + 0.5, 1, True, 1))]
    outcome = simulate(plain((0, math.inf, 1), (0, math.inf, 1)), fleet_of((1,), (1,), changes=changes),
                       find_scheduler("first-fit"), interval=1e6)
    assert outcome.simulation.progress.attempts.tolist() == [1, LOST_EVENTS_KEPT + 9]
    assert outcome.simulation.events.size[SIZE] <= 2 + LOST_EVENTS_KEPT


# -- greedy ------------------------------------------------------------------------------------------------------------


def test_greedy_tries_the_most_frequent_configuration_first():
    assert machines(run(plain((0, 1, 1)), fleet_of((9,), (2,), (4,), (2,)), "greedy")) == [1]
    assert machines(run(plain((0, 1, 3)), fleet_of((9,), (2,), (4,), (2,)), "greedy")) == [2]  # ties: the smaller


def test_greedy_commits_a_waiting_task_to_one_machine():
    # both machines busy until 2 and 9; the third task queues at one of them, and stays there if it is the slow one
    seen = {tuple(starts(run(plain((0, 2, 1), (0, 9, 1), (1, 1, 1)), fleet_of((1,), (1,)), "greedy", seed=seed)))
            for seed in range(12)}
    assert seen == {(0, 0, 2), (0, 0, 9)}


def test_greedy_joins_the_shorter_queue():
    # task 2 draws a queue, task 3 takes the other: one starts at 5, the other at 6
    for seed in range(8):
        workload = plain((0, 5, 1), (0, 6, 1), (1, 9, 1), (2, 9, 1))
        assert sorted(starts(run(workload, fleet_of((1,), (1,)), "greedy", seed=seed))) == [0, 0, 5, 6]


def test_greedy_sends_the_queue_of_a_machine_that_left_elsewhere():
    fleet = fleet_of((1,), (1,), changes=[(2, 0, False, 0), (2, 1, False, 0), (4, 1, True, 1)])
    assert sorted(starts(run(plain((0, 9, 1), (0, 9, 1), (1, 9, 1)), fleet, "greedy"))) == [4, 13, 22]


def test_greedy_does_not_leave_a_task_at_a_machine_that_became_too_small():
    for seed in range(8):  # whichever machine the third task queues at
        for shrinking in (0, 1):
            fleet = fleet_of((2,), (2,), changes=[(2, shrinking, True, 1)])
            outcome = run(plain((0, 1, 2), (0, 3, 2), (0, 3, 2)), fleet, "greedy", seed=seed)
            assert statuses(outcome)[2] == "FINISHED"


def test_the_first_of_a_queue_may_fit_what_was_freed_where_others_would_not():
    """The second machine, of one core, is freed at 2; the task that waits is not of the first shape, of three cores."""
    assert starts(run(plain((0, 10, 3), (0, 2, 1), (1, 1, 1)), fleet_of((3,), (1,)))) == [0, 0, 2]


def test_who_is_refused_what_was_freed_keeps_nobody_from_it():
    """At 1 the second takes both cores, so that the third is refused; the last asks for memory alone, and starts."""
    workload = plain((0, 1, 2, 2), (0, 1, 2, 0), (0, 1, 1, 0), (0, 1, 0, 1), resources=TWO)
    assert starts(run(workload, fleet_of((2, 2), resources=TWO), "first-fit+backfill")) == [0, 1, 2, 1]


def test_events_are_arrivals_ends_and_changes_of_the_fleet():
    outcome = run(plain((0, 1, 1), (0, 3, 1)), fleet_of((2,), changes=[(2, 0, True, 4)]))
    assert outcome.loop_result.events == 2 + 2 + 1


HOOKS = """
from subak.policy import claim, hooks

def on_arrival(fleet, tasks, lanes, memory, arrived, claims):
    memory.whole[0, 0] += 1
    for task in arrived:
        claim(claims, fleet, tasks, task, 0)

def on_departure(fleet, tasks, lanes, memory, freed, claims):
    memory.whole[0, 1] += 1

mine = hooks(on_arrival, on_departure, memory=((1, 2), (0, 0), []))
"""


def test_hooks_are_called_when_something_arrives_or_is_freed(tmp_path):
    """Tasks arrive at 0 and 2, the latter two at once, and end at 5, 7 and 8."""
    (tmp_path / "p.py").write_text(HOOKS)
    loop = central_loop(plain((0, 5, 1), (2, 5, 1), (2, 6, 1)), fleet_of((3,)), find_scheduler(f"{tmp_path}/p.py:mine"),
                        Terms(interval=1.0))
    while loop.step(10) != LOOP_DONE:
        pass
    _, _, memory, *_ = loop.states
    assert memory.whole.tolist() == [[2, 3]]


# -- tetris ------------------------------------------------------------------------------------------------------------


def test_tetris_prefers_the_aligned_machine_and_less_work():
    # memory-rich and cpu-rich machine; the tasks go where their own resource is free
    workload = plain((0, 1, 2, 1), (0, 1, 1, 2), resources=TWO)
    assert machines(run(workload, fleet_of((2, 8), (8, 2), resources=TWO), "tetris")) == [1, 0]
    # alike but for the run time: the shorter goes first
    assert starts(run(plain((0, 5, 1), (0, 2, 1)), fleet_of((1,)), "tetris")) == [2, 0]


def test_tetris_weighs_run_time_against_alignment():
    # free 3: the small task scores 1 * 3 - 1 * 1 = 2, the large one 3 * 3 - t * 3: 3 for t = 2, 0 for t = 3
    assert starts(run(plain((0, 1, 1), (0, 2, 3)), fleet_of((3,)), "tetris")) == [2, 0]
    assert starts(run(plain((0, 1, 1), (0, 3, 3)), fleet_of((3,)), "tetris")) == [0, 1]


def test_tetris_serves_a_shape_again_only_when_its_next_task_scores_highest():
    # alignments 40 and 30: the first task of the large shape scores 36, then its second -376, the other's 15
    workload = staged([{"job": 0, "request": (4,)}, {"job": 1, "request": (3,)}],
                      [(0, 0, 1), (0, 0, 100), (1, 0, 1)])
    assert starts(run(workload, fleet_of((10,)), "tetris")) == [0, 1, 0]


def test_tetris_takes_the_best_machine_for_an_endless_task_too():
    # task 0 scores 2 * 4 on machine 1 and leaves 2 there; then both machines align alike and the first one is due
    outcome = run(plain((0, 1, 2), (0, math.inf, 1)), fleet_of((2,), (4,)), "tetris")
    assert machines(outcome) == [1, 0]


@pytest.mark.parametrize("scheduler", ["tetris", "first-fit", "first-fit+backfill"])
def test_every_machine_is_looked_at_for_tasks_that_arrive_together(scheduler):
    """The tasks are 0 and 1, and so are the machines that have no room for them."""
    assert starts(run(plain((0, 1, 2), (0, 1, 2)), fleet_of((1,), (1,), (4,)), scheduler)) == [0, 0]


def test_tetris_leaves_out_who_fits_nowhere_any_more():
    """Two tasks may use the first machine alone, which has room for one; the last, of a block, has as much free."""
    stages = [{"request": (1,), "constraints": [("rack", "=", "a")]},
              {"request": (1,), "constraints": [("rack", "!=", "b")]}]
    fleet = fleet_of((1,), *[(0,)] * 62, (1,), attributes=[(0, "rack", "a"), (63, "rack", "b")])
    assert starts(run(staged(stages, [(0, 0, 1), (1, 0, 1)]), fleet, "tetris")) == [0, 1]


def test_tetris_normalised_is_quiet_when_no_machine_has_what_is_asked():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert statuses(run(plain((0, 1, 1)), fleet_of((0,)), "tetris+normalised")) == ["UNPLACEABLE"]


# -- what cannot be simulated ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "said"), [
    ({"interval": 0.0}, "interval: must be a positive number of seconds, not 0"),
    ({"interval": math.inf}, "interval: must be a positive number of seconds, not inf"),
    ({"until": -1.0}, "until: must be 0 seconds or more, not -1"),
    ({"until": math.nan}, "until: must be 0 seconds or more, not nan"),
])
def test_options_that_mean_nothing_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        run(plain((0, 1, 1)), fleet_of((1,)), **options)


def test_workload_and_fleet_count_the_same_resources():
    with pytest.raises(InputError, match="workload and fleet: resources must be the same in the same units"):
        run(plain((0, 1, 1)), fleet_of((1, 1), resources=TWO))


def test_a_workload_without_tasks_is_refused():
    with pytest.raises(InputError, match="there must be at least one task to simulate, this one has 0"):
        some = plain((0, 1, 1))
        empty = make_workload(some.jobs.clear(), some.stages.clear(), some.tasks.clear(), some.resources)
        run(empty, fleet_of((1,)))


# -- the edges of a run ------------------------------------------------------------------------------------------------


def test_a_machine_that_never_comes_can_hold_nothing():
    fleet = fleet_of((1,), (5,), changes=[(3, 1, False, 0)])
    absent = replace(fleet, machines=fleet.machines.with_columns(present=pl.col("machine") != "m1"))
    assert statuses(run(plain((0, 1, 5)), absent)) == ["UNPLACEABLE"]
    assert statuses(run(plain((0, 1, 5)), fleet)) == ["FINISHED"]


def test_a_run_is_accounted_for_up_to_where_it_was_told_to_stop_while_anything_goes_on():
    endless, ending = plain((0, math.inf, 1)), plain((0, 3, 1))
    assert run(endless, fleet_of((1,)), until=100.0).loop_result.end == 100
    assert run(endless, fleet_of((1,))).loop_result.end == 0
    assert run(ending, fleet_of((1,)), until=100.0).loop_result.end == 3


def test_the_loop_comes_back_about_five_times_a_second():
    assert next_budget(1000, 0.4) == 500
    assert next_budget(1000, 0.0) == 2000
    assert next_budget(1000, 1e9) == 100
    assert next_budget(10**8, 0.0) == 10**8  # capped


@pytest.mark.parametrize("seconds", [3.5, 4.0, 4.5, 7.0, 7.5])
def test_the_last_interval_has_a_row_where_as_many_are_held_as_have_ended(monkeypatch, seconds):
    """Four rows are held; a task runs for so many intervals of a second, and all through each but the last."""
    monkeypatch.setattr(setup, "ROWS_HELD", 4)
    rows = run(plain((0, seconds, 1)), fleet_of((1,)), interval=1.0).loop_result.timeline
    assert rows[:, TIMELINE_RUNNING_MEAN].tolist() == [1.0] * int(seconds) + [0.5] * (seconds % 1 > 0)
