"""How long attempts take: speed factors of machines and the copying of inputs, in tables and in the engine."""
import numpy as np
import polars as pl
import pytest

from invariants import check
from small import CPU, fleet_of, plain, staged
from subak.errors import InputError
from subak.fleet.table import make_fleet, read_fleet
from subak.policy import find_scheduler
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate
from subak.tables import write_table
from subak.workload.table import make_workload, read_workload


def with_speeds(fleet, speeds):
    return make_fleet(fleet.machines, fleet.resources, speeds=np.array(speeds))


def with_stage_columns(workload, **columns):
    return make_workload(workload.jobs, workload.stages.with_columns(
        pl.Series(name, values) for name, values in columns.items()), workload.tasks, workload.resources)


def rule_of(scheduler):
    """The rules after every step; a dispatcher and a fair order keep no lanes for them to look at."""
    return None if scheduler in ("lotes", "drf") else check


def finishes(workload, fleet, scheduler="first-fit", **options):
    outcome = simulate(workload, fleet, find_scheduler(scheduler), check=rule_of(scheduler), **options)
    return task_table(outcome, workload, fleet)["finish"].to_list()


def test_a_run_time_is_multiplied_by_the_machines_factor():
    workload = plain((0, 10, 1), (0, 10, 1), (0, 10, 1))
    fleet = with_speeds(fleet_of((1,), (1,), (1,)), [[0.5, 1.0, 2.0]])
    assert finishes(workload, fleet) == [5.0, 10.0, 20.0]


def test_each_stage_has_its_group_and_its_shuffle():
    workload = staged([{"request": (1,)}, {"request": (1,), "depends_on": [0]}], [(0, 0, 10), (1, 0, 4)])
    workload = with_stage_columns(workload, speed_group=[1, 0], shuffle=[0.0, 3.0])
    fleet = with_speeds(fleet_of((1,)), [[0.5], [2.0]])
    assert finishes(workload, fleet) == [20.0, 20.0 + 3.0 + 2.0]


@pytest.mark.parametrize("scheduler", ["first-fit+backfill", "best-fit", "greedy", "tetris", "lotes", "drf"])
def test_every_central_scheduler_supports_them(scheduler):
    workload = with_stage_columns(plain((0, 10, 1), (1, 10, 2)), shuffle=[1.0, 2.0], speed_group=[0, 1])
    fleet = with_speeds(fleet_of((4,)), [[0.5], [0.25]])
    assert finishes(workload, fleet, scheduler) == [6.0, 1.0 + 2.0 + 2.5]


def test_speeds_follow_machines_that_are_reordered():
    """Greedy and LoTES look at configurations in an order of their own: the two alike machines first."""
    workload = plain((0, 10, 1), (0, 10, 1), (0, 10, 1), resources=CPU)
    fleet = with_speeds(fleet_of((2,), (1,), (1,)), [[3.0, 0.5, 1.0]])
    for scheduler in ("greedy", "lotes"):
        outcome = simulate(workload, fleet, find_scheduler(scheduler), check=rule_of(scheduler))
        table = task_table(outcome, workload, fleet)
        took = dict(zip(table["machine"].to_list(), (table["finish"] - table["start"]).to_list(), strict=True))
        factors = {"m0": 30.0, "m1": 5.0, "m2": 10.0}
        assert len(took) > 1
        assert took == {name: factors[name] for name in took}


def test_a_lost_attempt_begins_anew_at_the_next_machines_speed():
    workload = plain((0, 10, 1))
    fleet = fleet_of((1,), (1,), changes=[(3.0, 0, False, 0.0)])
    fleet = make_fleet(fleet.machines, fleet.resources, changes=fleet.changes, speeds=np.array([[1.0, 0.2]]))
    assert finishes(workload, fleet) == [5.0]


def test_folders_hold_them(tmp_path):
    fleet = with_speeds(fleet_of((1,), (1,)), [[0.1, 0.2], [1 / 3, 1.0]])
    workload = with_stage_columns(plain((0, 1, 1)), speed_group=[1], shuffle=[0.25])
    fleet.write(tmp_path)
    workload.write(tmp_path)
    assert np.array_equal(read_fleet(tmp_path).speeds, fleet.speeds)
    assert read_workload(tmp_path).stages.select("speed_group", "shuffle").row(0) == (1, 0.25)
    assert finishes(read_workload(tmp_path), read_fleet(tmp_path)) == [0.25 + 1 / 3]


@pytest.mark.parametrize("factor, said", [(0.0, "0"), (-2.0, "-2"), (np.nan, "nan"), (np.inf, "inf")])
def test_a_factor_is_a_positive_number(factor, said):
    with pytest.raises(InputError, match=f"finite number above 0, group 1 has {said} for machine m0"):
        with_speeds(fleet_of((1,), (1,)), [[1.0, 1.0], [factor, 1.0]])


@pytest.mark.parametrize("shape, said", [((2, 3), "2 x 3"), ((4,), "4"), ((0, 3), "0 x 3")])
def test_the_matrix_has_a_column_for_each_machine(shape, said):
    with pytest.raises(InputError, match=f"groups x 2 machines, a factor for each machine; this one is {said}$"):
        with_speeds(fleet_of((1,), (1,)), np.ones(shape))


def test_a_file_of_another_shape_is_refused(tmp_path):
    fleet_of((1,), (1,)).write(tmp_path)
    write_table(pl.DataFrame({"factors": [[1.0, 1.0], [1.0]]}), tmp_path / "speeds.parquet")
    with pytest.raises(InputError, match="groups x 2 machines, a factor for each machine; this one is 2 x 1"):
        read_fleet(tmp_path)
    write_table(pl.DataFrame({"factors": [[1.0, None]]}), tmp_path / "speeds.parquet")
    with pytest.raises(InputError, match="finite number above 0, group 0 has nan for machine m1"):
        read_fleet(tmp_path)


def test_groups_must_be_there_when_workload_and_fleet_meet():
    fleet = with_speeds(fleet_of((1,)), [[1.0], [0.5]])
    with pytest.raises(InputError, match="need a column speed_group, the fleet has 2 groups"):
        finishes(plain((0, 1, 1)), fleet)
    with pytest.raises(InputError, match="one of the fleet's 2 groups, from 0 on; stage 0 has 2"):
        finishes(with_stage_columns(plain((0, 1, 1)), speed_group=[2]), fleet)
    assert finishes(with_stage_columns(plain((0, 1, 1)), speed_group=[2]), fleet_of((1,))) == [1.0]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), None])
def test_a_shuffle_takes_a_finite_time(seconds):
    with pytest.raises(InputError, match="shuffle must be from 0 to 1e\\+12 s, row 0 has"):
        with_stage_columns(plain((0, 1, 1)), shuffle=pl.Series([seconds], dtype=pl.Float64))


def test_federations_refuse_what_they_do_not_support():
    with pytest.raises(InputError, match=r"speeds: sparrow is a federation.* the fleet has 1 speed groups"):
        finishes(plain((0, 1, 1)), with_speeds(fleet_of((1,)), [[0.5]]), "sparrow")
    with pytest.raises(InputError, match=r"shuffle: sparrow is a federation.* stage 0 has 2 s"):
        finishes(with_stage_columns(plain((0, 1, 1)), shuffle=[2.0]), fleet_of((1,)), "sparrow")
