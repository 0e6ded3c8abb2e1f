"""Edits of a fleet: the mix stays, copies bring their attributes and changes, numbers are those asked for."""
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small import TWO, fleet_of, staged
from subak.errors import InputError
from subak.experiment.fleet_words import Machines, read_added, read_removed
from subak.experiment.fleets import edited
from subak.experiment.scenario import Scenario
from subak.fleet.edits import added, mixed, removed, resized, rows_in_mix, scaled
from subak.fleet.table import make_fleet

KINDS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=40)


def kinds_of(fleet):
    """How many machines of each capacity there are."""
    return {row[:-1]: row[-1] for row in fleet.machines.group_by("cpu", "memory").len().rows()}


def mix():
    """Six machines of one kind and two of another, with attributes, a change and two clusters."""
    fleet = fleet_of(*[(4, 8)] * 6, *[(1, 2)] * 2, resources=TWO,
                     attributes=[(row, "rack", str(row)) for row in range(8)], changes=[(5.0, 0, False, 4.0, 8.0)])
    clusters = pl.Series("cluster", ["a", "b"] * 4)
    return make_fleet(fleet.machines.with_columns(clusters).cast({"cpu": pl.Float64, "memory": pl.Float64}), TWO,
                      fleet.attributes, fleet.changes.cast({"cpu": pl.Float64, "memory": pl.Float64}))


@given(KINDS, st.integers(1, 90))
def test_any_number_of_machines_has_the_mix_and_one_more_takes_nobodys_place(kinds, count):
    fleet = fleet_of(*kinds, resources=TWO)
    rows, more = (np.bincount(rows_in_mix(fleet, each), minlength=len(kinds)) for each in (count, count + 1))
    assert rows.sum() == count
    assert (more >= rows).all() and more.sum() == count + 1
    assert rows.max() - rows.min() <= 1  # nobody comes again before all have come
    for kind in set(kinds):
        of_kind = np.array([each == kind for each in kinds])
        assert abs(rows[of_kind].sum() - count * of_kind.sum() / len(kinds)) < 3


def test_two_kinds_stay_within_a_machine_of_their_share():
    fleet = fleet_of(*[(1, 1)] * 30, *[(2, 2)] * 10, resources=TWO)
    for count in range(1, 200):
        assert abs((rows_in_mix(fleet, count) >= 30).sum() - count / 4) <= 1


def test_as_many_machines_are_the_fleet_itself():
    fleet = mix()
    same = resized(fleet, 8)
    for name in ("machines", "attributes", "changes"):
        assert getattr(same, name).equals(getattr(fleet, name))


def test_twice_the_machines_are_copies_with_all_that_befalls_them():
    fleet = scaled(mix(), 2.0)
    assert kinds_of(fleet) == {(4, 8): 12, (1, 2): 4}
    assert fleet.machines["machine"].to_list() == [f"m{row}" for row in range(8)] + [f"m{row}~2" for row in range(8)]
    assert fleet.attribute("rack").to_list() == [str(row) for row in range(8)] * 2
    assert fleet.changes.select("time", "machine", "present").rows() == [(5.0, 0, False), (5.0, 8, False)]
    assert fleet.machines["cluster"].to_list() == ["a", "b"] * 8
    assert fleet.provenance.name.endswith("\N{MULTIPLICATION SIGN} 2")


def test_a_copy_is_not_called_as_a_machine_that_there_is():
    twice = scaled(scaled(mix(), 2.0), 2.0)
    assert twice.machines["machine"].n_unique() == 32


def test_half_the_machines_are_of_both_clusters():
    half = scaled(mix(), 0.5)
    assert (kinds_of(half), half.machines["cluster"].n_unique()) == ({(4, 8): 3, (1, 2): 1}, 2)
    assert half.attribute("rack").to_list() == [name.removeprefix("m") for name in half.machines["machine"]]


def test_machines_are_removed_by_number_by_share_and_by_kind():
    assert kinds_of(removed(mix(), 4, False, {})) == {(4, 8): 3, (1, 2): 1}
    assert kinds_of(removed(mix(), 0.5, True, {})) == {(4, 8): 3, (1, 2): 1}
    assert kinds_of(removed(mix(), 2, False, {"cpu": 1.0})) == {(4, 8): 6}
    assert kinds_of(removed(mix(), 0.5, True, {"cpu": 4.0, "memory": 8.0})) == {(4, 8): 3, (1, 2): 2}


@pytest.mark.parametrize(("amount", "share", "capacity", "said"), [
    (9, False, {}, "remove 9: the fleet has 8 such machines"), (8, False, {}, "must leave a machine"),
    (1.0, True, {}, "must leave a machine"), (3, False, {"cpu": 1.0}, "remove 3 of cpu 1: the fleet has 2 such"),
    (1, False, {"cpu": 3.0}, "has 0 such"), (1, False, {"gpu": 1.0}, "the fleet has cpu, memory, and no gpu"),
])
def test_what_cannot_be_removed_is_refused(amount, share, capacity, said):
    with pytest.raises(InputError, match=said):
        removed(mix(), amount, share, capacity)


def test_machines_are_added_to_all_clusters_without_attributes():
    fleet = added(mix(), 4, {"cpu": 2.0, "memory": 3.0})
    assert kinds_of(fleet) == {(4, 8): 6, (1, 2): 2, (2, 3): 4}
    assert sorted(fleet.machines["cluster"][8:]) == ["a", "a", "b", "b"]
    assert fleet.attribute("rack")[8:].to_list() == [None] * 4
    with pytest.raises(InputError, match=r"add_machines 1 of cpu 1: .*memory"):
        added(mix(), 1, {"cpu": 1.0})


def test_speeds_are_copied_and_machines_of_unknown_speed_refused():
    fleet = mix()
    fast = make_fleet(fleet.machines.cast({"cpu": pl.Float64, "memory": pl.Float64}), TWO,
                      speeds=np.arange(1.0, 9.0).reshape(1, 8))
    assert scaled(fast, 2.0).speeds.tolist() == [[*range(1, 9), *range(1, 9)]]
    assert scaled(fast, 0.5).speeds[0].tolist() == [
        1.0 + int(name.removeprefix("m")) for name in scaled(fast, 0.5).machines["machine"]]
    with pytest.raises(InputError, match="how fast each machine is"):
        added(fast, 1, {"cpu": 1.0, "memory": 1.0})


def test_edits_are_scale_then_remove_then_add():
    fleet = edited(mix(), 2.0, ["25%", "2:cpu=1"], ["3:cpu=2,memory=2"])
    assert kinds_of(fleet) == {(4, 8): 9, (1, 2): 1, (2, 2): 3}
    assert fleet.provenance.name == "unnamed × 2 - 25% - 2 of cpu 1 + 3 of cpu 2, memory 2"  # noqa: RUF001


def test_a_mix_is_its_parts_in_order():
    fleet = mixed([(2, {"cpu": 4.0, "memory": 8.0}), (1, {"memory": 2.0, "cpu": 1.0})], TWO)
    assert fleet.machines.select("cpu", "memory").rows() == [(4, 8), (4, 8), (1, 2)]
    assert kinds_of(resized(fleet, 9)) == {(4, 8): 6, (1, 2): 3}


def test_words():
    assert read_added("200:cpu=0.5,memory=1") == Machines(200.0, False, {"cpu": 0.5, "memory": 1.0})
    assert read_removed("30%") == Machines(0.3, True, {})
    assert read_removed("100:cpu=0.5") == Machines(100.0, False, {"cpu": 0.5})
    assert read_removed("12.5%:cpu=0.5")[:2] == (0.125, True)
    for text in ("", "0", "0%", "101%", "1.5", "x", "-1", "1:", "1:cpu", "1:cpu=nan"):
        with pytest.raises(InputError, match="remove"):
            read_removed(text)
    for text in ("", "5", "5%:cpu=1", "0:cpu=1", "1.5:cpu=1", "99999999:cpu=1"):
        with pytest.raises(InputError, match="add_machines"):
            read_added(text)
    for factor in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="scale"):
            Scenario(scale=factor)


def test_a_run_of_an_edited_fleet_repeats_from_its_scenario(run, tmp_path):
    (tmp_path / "W").mkdir()
    staged([{"request": (1,)}], [(0, each / 4, 1.0 + each % 3) for each in range(40)]).write(tmp_path / "W")
    code, out, said = run("simulate", tmp_path / "W", "--machines", 4, "--capacity", "cpu=1", "--scale", 1.5,
                          "--remove", "2", "--add-machines", "1:cpu=2", "--out", tmp_path / "R")
    assert code == 0, said
    assert "on 5 machines" in out
    assert run("simulate", "--scenario", tmp_path / "R" / "scenario.toml", "--out", tmp_path / "R2")[0] == 0
    assert (tmp_path / "R" / "tasks.parquet").read_bytes() == (tmp_path / "R2" / "tasks.parquet").read_bytes()


def test_generate_writes_the_edited_fleet(run, tmp_path):
    code, out, said = run("generate", "--tasks", 20, "--machines", 10, "--capacity", "cpu=1", "--capacity", "memory=1",
                          "--remove", "50%", "--add-machines", "2:cpu=2,memory=2", "--out", tmp_path / "W")
    assert code == 0, said
    assert "7 machines" in out
