"""What is read is checked once, and every refusal names the table, the rule, the row and the value."""
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small import CPU, TWO, fleet_of, staged
from subak.errors import InputError, RunError
from subak.fleet.edits import completed
from subak.fleet.table import make_fleet, read_fleet, uniform_fleet
from subak.output.writing import new_folder
from subak.resources import AMOUNT_MAX, Resource, asked_units, held_units
from subak.tables import Provenance, read_table
from subak.workload.constraints import satisfied
from subak.workload.predicates import Constraint
from subak.workload.table import make_workload, read_workload

RACK = {"attribute": "rack", "operator": "=", "value": "a"}


def tables(**columns):
    """The three tables of two jobs, two stages and three tasks, with columns named table__column put in their place."""
    found = {
        "jobs": {"job": ["j0", "j1"], "queue": ["org/a", "org/b"], "user": ["ada", "bob"]},
        "stages": {"job": [0, 1], "name": ["s0", "s1"], "depends_on": [[], []], "kind": ["TASK", "SERVICE"],
                   "priority": [0, 5], "constraints": [[], [RACK]], "cpu": [1.0, 2.0]},
        "tasks": {"stage": [0, 0, 1], "index": [0, 1, 0], "arrival": [0.0, 1.0, 2.0], "run_time": [1.0, 2.0, 3.0]},
    }
    for name, values in columns.items():
        table, column = name.split("__")
        found[table][column] = values
    return tuple(pl.DataFrame(found[name], strict=False) for name in ("jobs", "stages", "tasks"))


def workload(resources=CPU, **columns):
    return make_workload(*tables(**columns), resources)


def refused(call, said):
    with pytest.raises(InputError) as error:
        call()
    text = str(error.value)
    assert said in text
    assert "\n" not in text


# -- workloads ---------------------------------------------------------------------------------------------------------

FLOATS = {"dtype": pl.Float64}


@pytest.mark.parametrize(("columns", "said"), [
    ({"jobs__job": ["j0", "j0"]}, "jobs: job ids must differ, row 1 has 'j0'"),
    ({"jobs__job": ["j0", ""]}, "jobs: a job needs an id, row 1 has ''"),
    ({"jobs__job": ["j0", None]}, "jobs: a job needs an id, row 1 has None"),
    ({"jobs__queue": ["org/a", "org//b"]},
     "jobs: queue must be a path of names such as org/department/user, row 1 has 'org//b'"),
    ({"jobs__queue": ["", "org"]}, "jobs: queue must be a path of names such as org/department/user, row 0 has ''"),
    ({"jobs__queue": ["org", "/".join("a" * 65)]}, "jobs: queue must be at most 64 levels deep, row 1 has 'a/a/a"),
    ({"jobs__team": [1, 2]}, "jobs: columns must be job, queue, user; unknown team"),
    ({"stages__job": [0, 2]}, "stages: job must be a row of the 2 jobs, row 1 has 2"),
    ({"stages__job": [0, -1]}, "stages: a value does not fit its column"),
    ({"stages__kind": ["TASK", None]}, "stages: kind must be given, row 1 has None"),
    ({"stages__kind": ["TASK", "BATCH"]}, "stages: a value does not fit its column"),
    ({"stages__priority": [None, 1]}, "stages: priority must be given, row 0 has None"),
    ({"stages__gpu": [1.0, 1.0]}, "unknown gpu"),
    ({"stages__cpu": [1.0, 0.0]}, "stages: a request must ask for something (cpu), row 1 has 0"),
    ({"stages__cpu": [1.0, -0.5]}, "stages: cpu must not be negative, row 1 has -0.5"),
    ({"stages__cpu": [math.nan, 1.0]}, "stages: cpu must be a number, row 0 has nan"),
    ({"stages__cpu": [1.0, None]}, "stages: cpu must be a number, row 1 has nan"),
    ({"stages__cpu": [1.0, 2.0**31]}, "stages: cpu must be at most 2147483647 units of 1 cores, row 1 has 2.14748e+09"),
    ({"stages__cpu": [1.0, math.inf]}, "stages: cpu must be at most 2147483647 units of 1 cores, row 1 has inf"),
    ({"stages__depends_on": [[], [1]]}, "stages: a stage must not depend on itself, row 0 has 1"),
    ({"stages__depends_on": [[], [0]]}, "stages: a stage may only depend on stages of its own job, row 0 has 1"),
    ({"stages__depends_on": [[9], []]}, "stages: depends_on must name rows of stages, row 0 has 9"),
    ({"stages__depends_on": [[1], [0]], "stages__job": [0, 0], "tasks__index": [0, 1, 2]},
     "stages: dependencies must not form a cycle, stage 0 is in or behind one"),
    ({"stages__constraints": [[], [{**RACK, "operator": "~"}]]},
     "stages: a constraint needs an attribute and one of = != < > <= >=, not 'rack' '~' 'a'"),
    ({"stages__constraints": [[], [{**RACK, "attribute": ""}]]}, "stages: a constraint needs an attribute"),
    ({"stages__constraints": [[], [{**RACK, "operator": ">="}]]}, "stages: constraint rack >= needs a number, not 'a'"),
    ({"stages__constraints": [[], [{**RACK, "operator": "<", "value": "nan"}]]}, "rack < needs a number, not 'nan'"),
    ({"stages__constraints": ["rack", "rack"]}, "stages: a value does not fit its column"),
    ({"tasks__stage": [0, 0, 2]}, "tasks: stage must be a row of the 2 stages, row 2 has 2"),
    ({"tasks__stage": [0, None, 1]}, "tasks: stage must be a row of the 2 stages, row 1 has None"),
    ({"tasks__index": [0, 0, 0]}, "tasks: an index must occur once in a job, row 1 has 0 again"),
    ({"tasks__index": [0, None, 0]}, "tasks: index must be given, row 1 has None"),
    ({"tasks__arrival": [0.0, -1.0, 2.0]}, "tasks: arrival must not be negative, row 1 has -1.0"),
    ({"tasks__arrival": [0.0, math.inf, 2.0]}, "tasks: arrival must be finite, row 1 has inf"),
    ({"tasks__arrival": [0.0, math.nan, 2.0]}, "tasks: arrival must be a number of seconds, row 1 has nan"),
    ({"tasks__arrival": ["now", "soon", "later"]}, "tasks: a value does not fit its column"),
    ({"tasks__run_time": [1.0, None, 1.0]}, "tasks: run_time must be given, row 1 has None"),
    ({"tasks__run_time": [1.0, -1.0, -2.0]}, "tasks: run_time must not be negative, row 1 has -1.0 (and 1 more rows)"),
    ({"tasks__estimate": [None, -1.0, 1.0]}, "tasks: estimate must not be negative, row 1 has -1.0"),
    ({"tasks__estimate": [None, math.nan, 1.0]}, "tasks: estimate must be a number of seconds, row 1 has nan"),
    ({"tasks__outcome": ["FINISH", "LOST", "EATEN"]}, "tasks: a value does not fit its column"),
    ({"tasks__colour": [1, 2, 3]}, "tasks: columns must be stage, index, arrival, run_time; unknown colour"),
])
def test_a_workload_that_breaks_a_rule(columns, said):
    refused(lambda: workload(**columns), said)


def test_a_missing_column_is_named():
    jobs, stages, tasks = tables()
    refused(lambda: make_workload(jobs.drop("user"), stages, tasks, CPU), "jobs: columns must be job, queue, user; "
            "missing user")
    refused(lambda: make_workload(jobs, stages.drop("cpu"), tasks, CPU), "missing cpu")


def test_what_the_rules_allow():
    found = workload(tasks__run_time=[0.0, math.inf, 3.0], tasks__estimate=[None, math.inf, 0.0],
                     stages__priority=[-3, 2**31 - 1], stages__cpu=[2.0**31 - 1, 1.0], jobs__user=[None, ""])
    assert found.requests.tolist() == [[2**31 - 1, 1]]
    assert found.tasks["estimate"].to_list() == [None, math.inf, 0.0]


def test_tasks_are_sorted_by_arrival_and_equal_ones_keep_their_order():
    found = workload(tasks__arrival=[2.0, 1.0, 1.0], tasks__index=[7, 8, 9], tasks__stage=[0, 0, 1])
    assert found.tasks["index"].to_list() == [8, 9, 7]


def test_a_cycle_of_three_stages_is_found_behind_an_acyclic_part():
    stages = [{"job": 0, "request": (1,), "depends_on": parents} for parents in ([], [0, 3], [1], [2])]
    refused(lambda: staged(stages, [(0, 0, 1)]), "stages: dependencies must not form a cycle")


@pytest.mark.parametrize("resources", [
    (), CPU + CPU])
def test_resources_are_named_once_each_and_at_least_one(resources):
    refused(lambda: workload(resources), "resources: must be named once each, and at least one")
    machines = pl.DataFrame({"machine": ["m"], "cluster": ["c"], "cpu": [1.0]})
    refused(lambda: make_fleet(machines, resources), "resources: must be named once each, and at least one")


def test_an_amount_that_is_a_word_is_refused():
    refused(lambda: workload(stages__cpu=["one", "two"]), "cpu")


def test_a_time_beyond_reason_is_refused():
    refused(lambda: workload(tasks__run_time=[1.0, 1e13, 1.0]), "run_time must be at most 1e+12 s, row 1 has 1")


def test_half_a_priority_is_refused():
    refused(lambda: workload(stages__priority=[1.5, 2.0]), "priority must be a whole number, row 0 has 1.5")


def test_a_stage_that_others_wait_for_has_a_task():
    stages = [{"request": (1,)}, {"request": (1,), "depends_on": [0]}, {"request": (1,)}]
    refused(lambda: staged(stages, [(1, 0, 1)]), "a stage that others wait for must have a task, row 0 has none")
    assert len(staged(stages, [(0, 0, 1)]).stages) == 3  # nobody waits for the other two


def test_an_empty_constraint_is_refused():
    refused(lambda: workload(stages__constraints=[[None, RACK], []]), "constraint")


@pytest.mark.parametrize(("name", "unit", "said"), [
    ("job", 1.0, "resource name 'job': must be an identifier and not the name of a column"),
    ("2cpu", 1.0, "resource name '2cpu': must be an identifier"),
    ("cpu", 0.0, "resource cpu: unit must be a positive number, not 0.0"),
    ("cpu", -1.0, "resource cpu: unit must be a positive number, not -1.0"),
    ("cpu", math.nan, "resource cpu: unit must be a positive number, not nan"),
    ("cpu", math.inf, "resource cpu: unit must be a positive number, not inf"),
])
def test_a_resource_that_breaks_a_rule(name, unit, said):
    refused(lambda: Resource(name, unit), said)


# -- exact amounts -----------------------------------------------------------------------------------------------------


def test_google_decimals_become_exact_units():
    # task requests and machine capacities as printed in the Google 2011 trace, of the largest machine
    cpu = Resource("cpu", 1e-8, "of the largest machine")
    printed = ["0.0125", "0.06873", "0.01562", "0.2498", "0.5", "0.03085", "1", "0.4995", "1e-05", "0.0001554"]
    units = [1250000, 6873000, 1562000, 24980000, 50000000, 3085000, 100000000, 49950000, 1000, 15540]
    assert asked_units(np.array([float(text) for text in printed]), cpu, "here").tolist() == units


def test_ten_tenths_fill_a_machine_exactly():
    # 0.1 added ten times is 0.9999999999999999 in floats, 0.1 + 0.2 is more than 0.3; in units both are exact
    tenth, third = (asked_units(np.array([amount]), Resource("cpu", 1e-8), "here")[0] for amount in (0.1, 0.3))
    assert sum([0.1] * 10) != 1.0
    assert 10 * tenth == asked_units(np.array([1.0]), Resource("cpu", 1e-8), "here")[0]
    assert 3 * tenth == third


def test_what_is_asked_for_is_rounded_up_and_what_machines_have_down():
    # so that no machine holds tasks that together ask for more than it has
    thousandths = Resource("cpu", 1e-3, "cores")
    amounts = np.array([0.0, 1e-9, 0.0014, 0.0016, 2.9996, 2.0])
    assert asked_units(amounts, thousandths, "here").tolist() == [0, 1, 2, 2, 3000, 2000]
    assert held_units(amounts, thousandths, "here").tolist() == [0, 0, 1, 1, 2999, 2000]


@given(st.integers(1, AMOUNT_MAX), st.integers(1, 4096), st.sampled_from([1e-8, 1e-3, 1.0, 2.0**-20]))
def test_a_whole_number_of_units_that_was_divided_and_multiplied_is_itself(units, parts, size):
    each = Resource("cpu", size)
    amount = np.array([units * size / parts * parts])
    assert asked_units(amount, each, "here").tolist() == held_units(amount, each, "here").tolist() == [units]


# -- fleets ------------------------------------------------------------------------------------------------------------


def machines(**columns):
    return pl.DataFrame({"machine": ["a", "b"], "cluster": ["c", "c"], "cpu": [1.0, 2.0], **columns}, strict=False)


@pytest.mark.parametrize(("columns", "said"), [
    ({"machine": ["a", "a"]}, "machines: machine ids must differ, row 1 has 'a'"),
    ({"machine": ["a", ""]}, "machines: a machine needs an id, row 1 has ''"),
    ({"cluster": ["c", None]}, "machines: a machine needs a cluster, row 1 has 'b'"),
    ({"present": [True, None]}, "machines: present must be true or false, row 1 has 'b'"),
    ({"cpu": [1.0, -1.0]}, "machines: cpu must not be negative, row 1 has -1"),
    ({"cpu": [1.0, math.nan]}, "machines: cpu must be a number, row 1 has nan"),
    ({"cpu": [1e10, 1.0]}, "machines: cpu must be at most 2147483647 units of 1 cores, row 0 has 1e+10"),
    ({"colour": ["red", "blue"]}, "machines: columns must be machine, cluster, present, cpu; unknown colour"),
])
def test_a_fleet_that_breaks_a_rule(columns, said):
    refused(lambda: make_fleet(machines(**columns), CPU), said)


@pytest.mark.parametrize(("extra", "said"), [
    ({"changes": [(-1.0, 0, True, 1)]}, "changes: time must be a finite number of seconds, 0 or more, row 0 has -1.0"),
    ({"changes": [(math.inf, 0, True, 1)]}, "time must be a finite number of seconds, 0 or more, row 0 has inf"),
    ({"changes": [(1.0, 0, True, 1), (1.0, 2, True, 1)]}, "changes: machine must be a row of the 2 machines, row 1"),
    ({"changes": [(1.0, 0, None, 1)]}, "changes: present must be true or false, row 0 has 0"),
    ({"changes": [(1.0, 0, True, -1)]}, "changes: cpu must not be negative, row 0 has -1"),
    ({"attributes": [(2, "rack", "a")]}, "attributes: machine must be a row of the 2 machines, row 0 has 2"),
    ({"attributes": [(0, "rack", "a"), (1, "rack", "a"), (0, "rack", "b")]},
     "attributes: a machine has one value for an attribute, row 2 has 'rack'"),
])
def test_attributes_and_changes_that_break_a_rule(extra, said):
    refused(lambda: fleet_of((1,), (2,), **extra), said)


def test_a_fleet_of_no_machines_is_refused():
    refused(lambda: make_fleet(machines().clear(), CPU), "machines: a fleet needs at least one machine, this one has 0")
    refused(lambda: uniform_fleet(0, {"cpu": 1}, CPU), "machines: a fleet needs at least one machine, this one has 0")


def test_alike_machines_need_each_resource_once():
    assert uniform_fleet(3, {"memory": 2, "cpu": 1}, TWO).capacity.tolist() == [[1, 1, 1], [2, 2, 2]]
    refused(lambda: uniform_fleet(3, {"cpu": 1}, TWO), "capacity: must name each of cpu, memory once; "
            "missing memory (memory=0 for machines without it)")
    refused(lambda: uniform_fleet(3, {"cpu": 1, "gpu": 1}, CPU), "capacity: must name each of cpu once; unknown gpu")
    refused(lambda: uniform_fleet(3, {"gpu": 1}, CPU), "unknown gpu; missing cpu")


def test_alike_machines_have_none_of_what_is_not_named_and_nobody_asks_for():
    fleet = uniform_fleet(2, {"cpu": 1}, TWO, {"cpu"})
    assert fleet.capacity.tolist() == [[1, 1], [0, 0]] and fleet.provenance.name == "cpu 1 each"
    assert uniform_fleet(1, {"cpu": 1, "memory": 3}, TWO, {"cpu"}).capacity.tolist() == [[1], [3]]
    refused(lambda: uniform_fleet(3, {"memory": 1}, TWO, {"cpu"}, "--kind"), "--kind: must name each of cpu once; "
            "missing cpu, which tasks ask for (cpu=0 for machines without it; --only-queue for a part of the tasks)")
    refused(lambda: uniform_fleet(3, {"cpu": 1}, TWO, {"cpu", "memory"}), "each of cpu, memory once; missing memory")


def test_a_fleet_has_none_of_what_it_lacks_and_nobody_asks_for():
    fleet = fleet_of((1,), (2,), changes=[(4, 0, False, 1)])
    whole = completed(fleet, TWO, {"cpu"})
    assert whole.resources == TWO and whole.capacity.tolist() == [[1, 2], [0, 0]]
    assert whole.changes["memory"].to_list() == [0]
    assert completed(fleet, TWO, {"cpu", "memory"}) is fleet  # and is refused then, as before
    assert completed(fleet, CPU, {"cpu"}) is fleet
    other = (Resource("cpu", 0.5, "cores"), TWO[1])
    assert completed(fleet, other, set()) is fleet
    refused(lambda: uniform_fleet(1, {"cpu": -2}, CPU), "machines: cpu must not be negative, row 0 has -2")


def test_changes_are_sorted_by_time_and_equal_ones_keep_their_order():
    fleet = fleet_of((1,), (2,), changes=[(5.0, 0, True, 1), (1.0, 1, True, 2), (1.0, 0, False, 3)])
    assert fleet.changes["cpu"].to_list() == [2, 3, 1]


@pytest.mark.parametrize(("operator", "value", "meets"), [
    ("=", "2", [False, True, False, False]),
    ("!=", "2", [True, False, True, True]),
    ("=", "", [True, False, False, False]),  # the attribute is absent
    ("!=", "", [False, True, True, True]),  # it is present
    ("<", "2", [True, False, False, True]),  # absent and words count as 0
    (">=", "2", [False, True, True, False]),
    (">", "2", [False, False, True, False]),
    ("<=", "0", [True, False, False, True]),
])
def test_constraints_by_the_rules_of_the_google_format(operator, value, meets):
    values = pl.Series([None, "2", "10", "fast"], dtype=pl.String)
    assert satisfied(Constraint("level", operator, value), values).tolist() == meets


# -- folders -----------------------------------------------------------------------------------------------------------


def test_a_workload_is_read_back_as_it_was_written(tmp_path):
    source = Provenance("a name", "made by hand", "CC0", {"dropped": 3})
    written = make_workload(*tables(tasks__estimate=[1.5, None, math.inf], tasks__outcome=["FINISH", None, "EVICT"]),
                            (Resource("cpu", 0.5, "cores"),), source)
    written.write(tmp_path)
    found = read_workload(tmp_path)
    assert (found.resources, found.provenance) == (written.resources, source)
    for name in ("jobs", "stages", "tasks"):
        assert getattr(found, name).equals(getattr(written, name))
        assert getattr(found, name).schema == getattr(written, name).schema


def test_a_fleet_is_read_back_as_it_was_written(tmp_path):
    written = fleet_of((1, 2), (3, 4), resources=TWO, present=[True, False], attributes=[(1, "rack", "a")],
                       changes=[(1.5, 1, True, 3, 4)])
    written.write(tmp_path)
    found = read_fleet(tmp_path)
    assert found.resources == written.resources
    for name in ("machines", "attributes", "changes"):
        assert getattr(found, name).equals(getattr(written, name))


def test_the_same_table_is_written_as_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        workload().write(tmp_path / name)
    for file in ("workload.toml", "jobs.parquet", "stages.parquet", "tasks.parquet"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_a_folder_is_checked_again_when_it_is_read(tmp_path):
    workload().write(tmp_path)
    tasks = pl.read_parquet(tmp_path / "tasks.parquet")
    tasks.with_columns(run_time=-pl.col("run_time")).write_parquet(tmp_path / "tasks.parquet")
    refused(lambda: read_workload(tmp_path), "tasks: run_time must not be negative, row 0 has -1.0 (and 2 more rows)")


def test_files_that_are_absent_or_something_else_are_named(tmp_path):
    refused(lambda: read_workload(tmp_path), f"{tmp_path / 'workload.toml'}: no such file")
    workload().write(tmp_path)
    (tmp_path / "tasks.parquet").write_text("not parquet")
    refused(lambda: read_workload(tmp_path), f"{tmp_path / 'tasks.parquet'}: not a readable Parquet file")
    (tmp_path / "tasks.parquet").unlink()
    refused(lambda: read_workload(tmp_path), f"{tmp_path / 'tasks.parquet'}: no such file")
    (tmp_path / "workload.toml").write_text("resources = 3")
    refused(lambda: read_workload(tmp_path), f"{tmp_path / 'workload.toml'}: ")
    refused(lambda: read_table(tmp_path / "none.parquet"), "none.parquet: no such file")


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_new_folder_appears_whole(tmp_path):
    with new_folder(tmp_path / "deep" / "run", "marker") as partial:
        (partial / "marker").write_text("1")
        assert not (tmp_path / "deep" / "run").exists()
    assert listing(tmp_path) == ["deep", "deep/run", "deep/run/marker"]


@pytest.mark.parametrize("mistake", [ValueError("mine"), KeyboardInterrupt()])
def test_an_exception_inside_leaves_nothing(tmp_path, mistake):
    with pytest.raises(type(mistake)), new_folder(tmp_path / "run", "marker") as partial:
        (partial / "marker").write_text("1")
        raise mistake
    assert listing(tmp_path) == []


def test_an_exception_inside_leaves_what_was_there(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "marker").write_text("old")
    with pytest.raises(ValueError, match="mine"), new_folder(tmp_path / "run", "marker", overwrite=True) as partial:
        (partial / "marker").write_text("new")
        raise ValueError("mine")
    assert (tmp_path / "run" / "marker").read_text() == "old"
    assert listing(tmp_path) == ["run", "run/marker"]


def test_a_full_disk_is_a_run_error(tmp_path):
    with pytest.raises(RunError, match="run: could not be written: No space left on device"), \
            new_folder(tmp_path / "run", "marker"):
        raise OSError(28, "No space left on device")
    assert listing(tmp_path) == []


def write_marker(folder: Path, overwrite: bool) -> None:
    with new_folder(folder, "marker", overwrite) as partial:
        (partial / "marker").write_text("new")


def test_only_a_folder_of_the_same_kind_is_replaced_and_only_when_asked(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    write_marker(folder, overwrite=False)  # an empty folder may be filled
    refused(lambda: write_marker(folder, overwrite=False), f"{folder}: exists already; choose another folder or pass")
    (folder / "old").write_text("x")
    write_marker(folder, overwrite=True)
    assert listing(folder) == ["marker"]
    (folder / "marker").rename(folder / "thesis.tex")
    refused(lambda: write_marker(folder, overwrite=True), f"{folder}: exists and holds no marker; it is not replaced")
    assert listing(folder) == ["thesis.tex"]
    refused(lambda: write_marker(folder / "thesis.tex", overwrite=True), "thesis.tex: exists and holds no marker")
