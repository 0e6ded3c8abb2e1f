"""Usage that varies within a task's life: by hand, against its plain twin, after every step, and refused."""
import math
from dataclasses import MISSING, fields

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invariants import Watch
from naive import Ordered, Twin, twin_of
from naive_usage import SwingTwin
from small import TWO, cases, fleet_of, plain
from subak.errors import InputError
from subak.fleet.shapes import find_shapes
from subak.placement.claims import TASK_FINISHED
from subak.policy import find_scheduler
from subak.simulator.engine.overuse import draw_swings, with_swing
from subak.simulator.simulate import simulate
from test_engine_against_twin import engine_rows, lost_attempts, twin_rows

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))
SCHEDULERS = ["first-fit", "best-fit+backfill", "greedy", "tetris", "lotes"]


def test_less_is_held_by_a_share_rounded_but_a_unit_at_least():
    shapes = with_swing(find_shapes(plain((0, 1, 10, 1), (0, 1, 3, 0), resources=TWO)), 0.5)
    assert shapes.request.tolist() == [[10, 3, 5, 2], [1, 0, 1, 0]]


def test_half_of_the_tasks_rise_at_points_that_are_uniform():
    first, swing = draw_swings(np.zeros(50_000, np.int32), 1, seed=3)
    assert set(first.tolist()) == {0, 1}
    assert (first + swing.shape == 1).all()
    assert (first == swing.first).all()
    assert abs(first.mean() - 0.5) < 4 * 0.5 / math.sqrt(50_000)
    assert abs(swing.part.mean() - 0.5) < 4 * math.sqrt(1 / 12 / 50_000)


def swung(case, scheduler, **more):
    return simulate(*case, find_scheduler(scheduler), interval=1.0, **more)


def test_two_tasks_that_swing_share_a_machine_by_hand():
    """A machine of 10; tasks of 10 s that ask for 8 and use 4 for a part of their life, one second apart.

    Where the first rises it holds 4 at first, and both fit together; whoever rises second finds no room, is lost, and
    begins again with 8 when it may. Where the first falls, the second waits for that.
    """
    case = plain((0, 10, 8), (1, 10, 8)), fleet_of((10,))
    seen = set()
    for seed in range(40):
        first, drawn = draw_swings(np.zeros(2, np.int32), 1, seed)
        rises, point = first.astype(bool).tolist(), (10 * drawn.part).tolist()
        outcome = swung(case, "first-fit", usage_swing=0.5, seed=seed)
        start, attempts = outcome.simulation.progress.start.tolist(), outcome.simulation.progress.attempts.tolist()
        if not rises[1]:  # the second holds 8 at first, beside which there is not even room for 4
            assert start == [0, 10]
        if rises == [False, True]:  # 8 and then 4: the second, of 4 at first, enters at the fall, and rises if it can
            enters = max(point[0], 1)
            assert start == [0, enters if enters + point[1] > 10 else 10]
            assert attempts == [1, 1 if enters + point[1] > 10 else 2]
        if rises == [True, True] and point[0] < 1:  # has risen to 8 already
            assert start == [0, 10]
            assert attempts == [1, 1]
        if rises == [True, True] and point[0] > 1:  # 4 + 4; the first to rise finds 2 free, and is lost
            early = 0 if point[0] < 1 + point[1] else 1
            assert attempts[early] == 2
            (task,), _, _, (end,) = np.hstack(outcome.loop_result.losses).tolist()
            assert (task, end) == (early, pytest.approx(early + point[early]))
            assert start[early] == (11 if early == 0 else 10)  # when the other has ended
        seen.add((*rises, point[0] > 1))
    assert len(seen) >= 6


@pytest.mark.parametrize("seed", range(4))
def test_a_task_that_is_alone_swings_and_holds_what_it_held_at_first_when_it_begins_again(seed):
    """Its machine leaves just before it ends, and is back at 20."""
    fleet = fleet_of((8,), changes=[(9.999, 0, False, 0), (20, 0, True, 8)])
    (first,), drawn = draw_swings(np.zeros(1, np.int32), 1, seed)
    held = [int(swung((plain((0, 10, 8)), fleet), "first-fit", usage_swing=0.5, seed=seed, until=until)
                .simulation.tasks.shape[0]) for until in (0.0, 9.998, 20.0)]
    assert held == [first, drawn.shape[0], first]


@settings(quick, max_examples=150)
@given(case=cases(), placement=st.sampled_from(["first-fit", "best-fit"]), seed=st.integers(0, 2**32),
       swing=st.sampled_from([0.3, 0.5, 0.9]))
def test_tasks_hold_what_the_plain_twin_lets_them_hold(case, placement, seed, swing):
    outcome = swung(case, f"{placement}+backfill", usage_swing=swing, seed=seed)
    world = twin_of(*case, seed)
    plainly = find_shapes(case[0])
    of_task = plainly.of_stage[case[0].tasks["stage"].to_numpy()]
    first, drawn = draw_swings(of_task, plainly.constraint_set.size, seed)
    amounts = with_swing(plainly, swing).request.T.tolist()
    told = {each.name: getattr(world, each.name) for each in fields(Twin) if each.init and each.default is MISSING
            and each.default_factory is MISSING}
    twin = SwingTwin(**told, first=[amounts[row] for row in first], then=[amounts[row] for row in drawn.shape],
                     part=drawn.part.tolist()).swing()
    twin.run(Ordered("fifo", placement, backfill=True))
    assert engine_rows(outcome) == twin_rows(twin)
    assert lost_attempts(outcome) == sorted(twin.losses)


@settings(quick, max_examples=120)
@given(case=cases(), scheduler=st.sampled_from(SCHEDULERS[:-1]), swing=st.sampled_from([0.1, 0.5, 0.99]),
       seed=st.integers(0, 2**32))
def test_rules_hold_after_every_step(case, scheduler, swing, seed):
    watch = Watch()
    swung(case, scheduler, usage_swing=swing, seed=seed, check=watch)
    assert watch.steps > 0


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_everybody_finishes_and_who_was_lost_holds_all_it_asks_for(scheduler):
    tasks = [(row // 4, 10, 4 + row % 3, 3) for row in range(200)]
    outcome = swung((plain(*tasks, resources=TWO), fleet_of(*[(16, 9)] * 3, resources=TWO)), scheduler, usage_swing=0.6)
    simulation, attempts = outcome.simulation, outcome.simulation.progress.attempts
    assert (simulation.claims.status == TASK_FINISHED).all()
    held = simulation.tasks.request[0, simulation.tasks.shape[attempts > 1]]
    assert attempts.max() == 2
    assert (held == np.array(tasks)[attempts > 1, 2]).all()


@pytest.mark.parametrize(("scheduler", "more", "said"), [
    ("first-fit", {"usage_swing": 1.0}, "usage_swing: must be a share from 0 to below 1, not 1"),
    ("first-fit", {"usage_swing": math.nan}, "usage_swing: must be a share from 0 to below 1, not nan"),
    ("first-fit", {"usage_swing": 0.1, "request_error": 0.2},
     "usage_swing: goes with right requests, so that request_error must be 0, not 0.2"),
    ("megha", {"usage_swing": 0.1}, "usage_swing: megha is a federation; usage may vary under the others"),
    ("lotes+mch", {"usage_swing": 0.1}, "usage_swing: lotes+mch is a fair order, for which a task asks for the same "
                                        "always; usage may vary under the others"),
    ("easy", {"usage_swing": 0.1}, "usage_swing: easy makes reservations, for which a task asks for the same always; "
                                   "usage may vary under the others"),
])
def test_what_cannot_be_is_refused(scheduler, more, said):
    with pytest.raises(InputError) as caught:
        simulate(plain((0, 1, 1)), fleet_of((1,)), find_scheduler(scheduler), **more)
    assert str(caught.value) == said


def test_the_command_line_refuses_in_a_line(run):
    code, _, said = run("simulate", "--scheduler", "mch", "--usage-swing", "0.1")
    assert (code, said.count("\n")) == (2, 1)
    assert "usage_swing: mch is a fair order" in said
