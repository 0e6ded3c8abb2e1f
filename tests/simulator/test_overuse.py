"""Wrong requests: who uses more than it asked for is ended, waits again, and then asks for what it uses."""
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invariants import Watch
from small import TWO, cases, fleet_of, plain
from subak.errors import InputError
from subak.fleet.shapes import find_shapes
from subak.placement.claims import TASK_FINISHED, TASK_UNPLACEABLE
from subak.policy import find_scheduler
from subak.simulator.engine.overuse import LEVELS, draw_overuse, no_overuse, with_errors
from subak.simulator.simulate import simulate

quick = settings(deadline=None, suppress_health_check=list(HealthCheck))
SCHEDULERS = ["first-fit", "best-fit+backfill", "greedy", "tetris", "lotes"]


def ten(resources=TWO):
    """Tasks that use (10, 4), one after the other."""
    return plain(*[(100.0 * row, 10, 10, 4) for row in range(400)], resources=resources)


def test_each_level_asks_for_its_part_rounded_within_the_largest_machine():
    shapes = with_errors(find_shapes(plain((0, 1, 10, 1), (0, 1, 3, 0), resources=TWO)), 0.2, np.array([11, 9]))
    asked = shapes.request.reshape(2, len(LEVELS), 2).transpose(1, 2, 0).tolist()  # [level][shape][resource]
    assert asked == [[[10, 1], [3, 0]], [[8, 1], [2, 0]], [[9, 1], [3, 0]], [[11, 1], [3, 0]], [[11, 1], [4, 0]]]


def test_nobody_who_uses_something_asks_for_nothing_of_it():
    shapes = with_errors(find_shapes(plain((0, 1, 1, 0), (0, 1, 2, 1), resources=TWO)), 0.9, np.array([9, 9]))
    asked = shapes.request.reshape(2, len(LEVELS), 2).transpose(1, 2, 0).tolist()  # [level][shape][resource]
    assert asked[LEVELS.index(-1.0)] == [[1, 0], [1, 1]]  # a tenth of a unit, and two, round to 0
    assert asked[LEVELS.index(1.0)] == [[2, 0], [4, 2]]


def test_levels_are_drawn_evenly_and_the_ends_uniformly():
    shapes = with_errors(find_shapes(plain((0, 1, 10, 10), resources=TWO)), 0.2, np.array([99, 99]))
    asked, overuse = draw_overuse(shapes, np.zeros(50_000, np.int32), seed=3)
    counts = np.bincount(asked, minlength=5)
    assert abs(counts - 10_000).max() < 4 * math.sqrt(50_000 * 0.2 * 0.8)
    lacking = np.isin(asked, (1, 2))
    assert np.isfinite(overuse.part[lacking]).all()
    assert np.isinf(overuse.part[~lacking]).all()
    points = overuse.part[lacking]
    assert points.min() >= 0
    assert points.max() < 1
    assert abs(points.mean() - 0.5) < 4 * math.sqrt(1 / 12 / points.size)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_task_that_lacks_is_ended_once_and_then_asks_for_what_it_uses(scheduler):
    outcome = simulate(ten(), fleet_of((20, 20), resources=TWO), find_scheduler(scheduler), request_error=0.5)
    simulation, attempts = outcome.simulation, outcome.simulation.progress.attempts
    assert (simulation.claims.status == TASK_FINISHED).all()
    assert set(attempts.tolist()) == {1, 2}
    lost = np.hstack(outcome.loop_result.losses)
    assert sorted(lost[0].astype(int).tolist()) == np.flatnonzero(attempts == 2).tolist()
    lasted = lost[3] - lost[2]
    assert (lasted < 10).all()
    assert (simulation.progress.start[attempts == 2] == lost[3][np.argsort(lost[0])]).all()  # nobody else is there
    assert (simulation.tasks.request[:, simulation.tasks.shape[attempts == 2]] == [[10], [4]]).all()
    assert 120 < (attempts == 2).sum() < 200  # two of five levels ask for too little


def test_a_task_that_is_alone_is_ended_too():
    attempts = {int(simulate(plain((0, 10, 4)), fleet_of((8,)), find_scheduler("first-fit"), request_error=0.5,
                             seed=seed).simulation.progress.attempts[0]) for seed in range(20)}
    assert attempts == {1, 2}


def test_who_asked_for_too_much_keeps_it():
    outcome = simulate(ten(), fleet_of((20, 20), resources=TWO), find_scheduler("first-fit"), request_error=0.5)
    asked = outcome.simulation.tasks.request[0, outcome.simulation.tasks.shape]
    assert set(asked.tolist()) == {10, 12, 15}


def test_no_error_changes_nothing():
    assert [array.size for array in no_overuse()] == [0, 0, 0]
    case = ten(), fleet_of((20, 20), resources=TWO)
    plainly, with_zero = (simulate(*case, find_scheduler("best-fit"), **more) for more in ({}, {"request_error": 0.0}))
    assert plainly.simulation.progress.start.tobytes() == with_zero.simulation.progress.start.tobytes()


def test_a_task_that_no_machine_can_hold_stays_unplaceable_whatever_it_asks():
    outcome = simulate(plain(*[(0, 1, 12)] * 50), fleet_of((10,)), find_scheduler("first-fit"), request_error=0.5)
    assert (outcome.simulation.claims.status == TASK_UNPLACEABLE).all()


@settings(quick, max_examples=120)
@given(case=cases(), scheduler=st.sampled_from(SCHEDULERS[:-1]), error=st.sampled_from([0.1, 0.5, 0.99]),
       seed=st.integers(0, 2**32))
def test_rules_hold_after_every_step(case, scheduler, error, seed):
    watch = Watch()
    simulate(*case, find_scheduler(scheduler), seed=seed, interval=1.0, check=watch, request_error=error)
    assert watch.steps > 0


@pytest.mark.parametrize(("scheduler", "error", "said"), [
    ("first-fit", 1.0, "request_error: must be a share from 0 to below 1, not 1"),
    ("first-fit", math.nan, "request_error: must be a share from 0 to below 1, not nan"),
    ("megha", 0.1, "request_error: megha is a federation; requests may be wrong under the others"),
    ("mch", 0.1, "request_error: mch is a fair order, for which a task asks for the same always; requests may be wrong"
                 " under the others"),
])
def test_what_cannot_be_is_refused(scheduler, error, said):
    with pytest.raises(InputError) as caught:
        simulate(plain((0, 1, 1)), fleet_of((1,)), find_scheduler(scheduler), request_error=error)
    assert str(caught.value) == said


def test_the_command_line_refuses_in_a_line_and_repeats_to_the_byte(tmp_path, run):
    code, _, said = run("simulate", "--scheduler", "mch", "--request-error", "0.1")
    assert (code, said.count("\n")) == (2, 1)
    assert "request_error: mch is a fair order" in said
    folder, first, again = (tmp_path / name for name in ("workload", "first", "again"))
    (folder / "fleet").mkdir(parents=True)
    ten().write(folder)
    fleet_of((20, 20), resources=TWO).write(folder / "fleet")
    assert run("simulate", folder, "--request-error", "0.3", "--out", first)[0] == 0
    assert run("simulate", "--scenario", first / "scenario.toml", "--out", again)[0] == 0
    assert (first / "tasks.parquet").read_bytes() == (again / "tasks.parquet").read_bytes()
    assert "request_error = 0.3" in (first / "scenario.toml").read_text()
