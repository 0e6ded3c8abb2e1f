"""Energy, cost and carbon of a run: by hand, against a plain twin, and what reaches folder, page and terminal."""
import csv
import io
import json
import math
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from naive_energy import plain_energy, plain_series
from small import TWO, fleet_of, plain
from subak.errors import InputError
from subak.experiment.inputs import inputs_of, load_inputs, refuse_unfit
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario, read_scenario
from subak.measures.energy.kinds import Curve, kinds_of
from subak.measures.energy.measure import _codes
from subak.measures.energy.series import steps_of
from subak.measures.energy.settings import Energy, MachineKind, energy_file, energy_names, read_energy
from subak.measures.energy.sweep import JOULES_PER_KWH, Attempts, Kinds, Presence, Tariff, sweep
from subak.measures.run_folders import load_runs
from subak.measures.runs import EnergyFacts
from subak.placement.schedulers import SCHEDULERS
from subak.report.charts.energy import _changes
from subak.report.comparison import compare
from subak.report.page import write_report
from subak.report.terminal import comparison_table
from subak.workload.samples import sample_folder

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
# Two kinds, by capacity: one linear, one of three points that is nearly off while it is empty.
FILE = """
currency = "EUR"
price = [[0, 0.1], [5, 0.4]]
carbon = 0.5

[[kind]]
name = "small"
watts = [100, 200]
per_hour = 1.5

[[kind]]
name = "large"
capacity = { cpu = 4 }
watts = [50, 100, 400]
empty = 10
"""
KWH = 1 / JOULES_PER_KWH


def written(folder, text=FILE, name="energy.toml"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return str(folder / name)


def ran(folder, workload, fleet, text=FILE, scheduler="first-fit", **options):
    scenario = Scenario(**{"energy": written(folder, text), "measure_until": math.inf, **options})
    simulate_into(folder / "run", scenario, scheduler, 1, (workload, fleet))
    return load_runs(folder / "run")[0]


# -- by hand -----------------------------------------------------------------------------------------------------------


def two_machines():
    """On 2 cores: one of them from 0 to 10 s. On 4 cores: two from 0 to 10 s, all four from 2 to 8 s."""
    return plain((0, 10, 1), (0, 10, 2), (2, 6, 2)), fleet_of((2,), (4,))


def test_two_machines_of_two_kinds_with_a_price_that_rises_in_the_middle_of_a_task(tmp_path):
    """The small one draws 150 W for 10 s; the large one 100 W for 4 s and 400 W for 6 s. From 5 s on a kWh costs 0.4.

    small   150 W * (5 s * 0.1 + 5 s * 0.4) = 375
    large   100 W * 2 s * 0.1 + 400 W * 3 s * 0.1 + 400 W * 3 s * 0.4 + 100 W * 2 s * 0.4 = 700
    """
    run = ran(tmp_path, *two_machines())
    facts = run.summary.energy
    assert facts.total.kwh == pytest.approx((1500 + 2800) * KWH, rel=1e-12)
    assert facts.cost_energy == pytest.approx((375 + 700) * KWH, rel=1e-12)
    assert facts.cost_machines == pytest.approx(1.5 * 10 / 3600, rel=1e-12)
    assert facts.total.cost == facts.cost_energy + facts.cost_machines
    assert facts.total.carbon == pytest.approx(0.5 * 4300 * KWH, rel=1e-12)
    assert facts.watts_mean == pytest.approx(430) and facts.finished == 3
    assert facts.used_hours == pytest.approx((10 + 20 + 12) / 3600)
    assert facts.per_task.kwh == pytest.approx(facts.total.kwh / 3)
    assert facts.per_used_hour.carbon == pytest.approx(0.5 * 4300 * KWH / (42 / 3600))
    small, large = facts.kinds
    assert (small.kind, small.machines, small.kwh) == ("small", 1, pytest.approx(1500 * KWH))
    assert (large.cost_energy, large.cost_machines, large.hours) == (pytest.approx(700 * KWH), 0.0, 10 / 3600)
    assert (small.carbon, large.carbon) == (pytest.approx(750 * KWH), pytest.approx(1400 * KWH))


def test_machines_cost_by_the_hour_where_energy_has_no_price(tmp_path):
    run = ran(tmp_path, *two_machines(), "[[kind]]\nname = 'a'\nwatts = [100, 200]\nper_hour = 1.5\n")
    facts = run.summary.energy
    assert facts.cost_energy is None and facts.total.carbon is None and facts.kinds[0].carbon is None
    assert facts.total.cost == facts.cost_machines == pytest.approx(1.5 * 20 / 3600)


def test_a_tariff_of_day_and_night_begins_again_after_midnight(tmp_path):
    """A day of 10 s: 0.4 from 3 s on, 0.1 from 8 s on, and so until 3 s of the next one; a kW from 0 to 25 s.

    day      3 to 8 s, 13 to 18 s, 23 to 25 s: 12 s at 0.4
    night    0 to 3 s, 8 to 13 s, 18 to 23 s: 13 s at 0.1
    """
    text = 'price = "p.csv"\nprice_every = 10\n[[kind]]\nname = "a"\nwatts = [1000, 1000]\n'
    (tmp_path / "p.csv").write_bytes(b"\xef\xbb\xbftime,value\r\n3,0.4\r\n8,0.1\r\n")  # as a spreadsheet writes it
    run = ran(tmp_path, plain((0, 30, 1)), fleet_of((1,)), text, measure_from=0.0, measure_until=25.0, interval=5.0)
    assert run.summary.energy.cost_energy == pytest.approx(1000 * (12 * 0.4 + 13 * 0.1) * KWH)
    power = pl.read_parquet(run.folder / "power.parquet")
    assert power["price"].to_list() == pytest.approx([0.22, 0.28, 0.22, 0.28, 0.22])
    assert read_energy(run.folder / "energy.toml").price_every == 10


def test_where_nothing_lasts_no_energy_is_used(tmp_path):
    run = ran(tmp_path, plain((0, 0, 1)), two_machines()[1])
    assert (run.summary.energy.total.kwh, run.summary.energy.watts_mean, run.summary.energy.finished) == (0, None, 1)
    assert pl.read_parquet(run.folder / "power.parquet").is_empty()


def test_who_is_on_no_machine_has_a_number_behind_all_of_them():
    """That of 65,536 machines takes more than two bytes."""
    machine = pl.Series(["m3", None], dtype=pl.Enum([f"m{row}" for row in range(2**16)]))
    for machines in (2**16 - 1, 2**16):
        assert _codes(pl.DataFrame({"machine": machine}), machines).tolist() == [3, machines]


def test_the_sum_over_machines_and_that_over_time_are_the_whole(tmp_path):
    run = ran(tmp_path, *two_machines(), interval=3.0)
    machines, power = (pl.read_parquet(run.folder / f"{name}.parquet") for name in ("machines", "power"))
    facts = run.summary.energy
    for column, whole in (("kwh", facts.total.kwh), ("cost_energy", facts.cost_energy), ("carbon", facts.total.carbon),
                          ("cost_machine", facts.cost_machines), ("used_hours", facts.used_hours)):
        assert machines[column].sum() == pytest.approx(whole, rel=1e-12), column
    assert machines["kind"].to_list() == ["small", "large"]
    assert power["time"].to_list() == [0, 3, 6, 9] and power["span"].to_list() == [3, 3, 3, 1]
    watts = [(150 * 3 + 100 * 2 + 400) / 3, 550, (150 * 3 + 800 + 100) / 3, 250]
    assert power["watts"].to_list() == pytest.approx(watts)
    assert power["price"].to_list() == pytest.approx([0.1, (2 * 0.1 + 0.4) / 3, 0.4, 0.4])
    assert power["carbon"].to_list() == pytest.approx([0.5] * 4)


def test_a_machine_that_is_down_draws_nothing_and_an_empty_one_is_nearly_off(tmp_path):
    """One of 4 cores: empty until 1 s, runs until it goes at 3 s; from 5 s on it is back and runs the task again."""
    fleet = fleet_of((4,), changes=[(3, 0, False, 4), (5, 0, True, 4)])
    run = ran(tmp_path, plain((1, 4, 4), (12, 1, 1)), fleet)
    assert run.tasks().collect()["start"].to_list() == [5.0, 12.0]
    facts = run.summary.energy  # measured from the first arrival, 1 s, to the end, 13 s
    expected = 400 * 2 + 400 * 4 + 10 * 3 + 75 * 1
    assert facts.total.kwh == pytest.approx(expected * KWH, rel=1e-12)
    assert facts.kinds[1].hours == pytest.approx((2 + 8) / 3600) and facts.kinds[0].machines == 0


def test_only_the_window_counts_and_a_task_that_asks_for_none_of_it_keeps_a_machine_awake(tmp_path):
    """One of 4 cores is measured from 2 to 6 s: a task of memory alone runs until 4 s, nothing after it."""
    fleet = fleet_of((4, 1), resources=TWO)
    run = ran(tmp_path, plain((0, 4, 0, 1), (3, 8, 1, 1), (6, 1, 0, 1), resources=TWO), fleet, until=6.0,
              measure_from=2.0, measure_until=6.0)
    starts = run.tasks().collect()["start"].to_list()
    assert starts == [0.0, 4.0, None]
    assert run.summary.energy.total.kwh == pytest.approx((50 * 2 + 75 * 2) * KWH, rel=1e-12)
    assert run.summary.energy.finished == 1


def test_power_follows_what_is_used_not_what_is_asked_for(tmp_path):
    """With wrong requests a machine may hold less than it uses: it draws what it uses, and no more than a full one."""
    run = ran(tmp_path, plain(*((0, 10, 2) for _ in range(12))), fleet_of((4,)), request_error=0.5, seeds=[1])
    attempts = pl.concat([run.tasks().collect().select("start", end="finish"),
                          pl.read_parquet(run.folder / "attempts.parquet").select("start", "end")])
    states, models = [[(-math.inf, 4, True)]], [([(0.0, 50), (0.5, 100), (1.0, 400)], 10)]
    end = run.summary.window.end
    rows, free = [(0, 2, *row) for row in attempts.iter_rows()], [(0, 0)]
    (joules, *_), = plain_energy(rows, states, models, free, free, 0, end)
    assert len(attempts) > 12 and run.summary.energy.total.kwh == pytest.approx(joules * KWH, rel=1e-9)


# -- against the plain twin --------------------------------------------------------------------------------------------

TIMES = [0, 0, 1, 2, 2.5, 3, 4, 6, 7.25, 9, math.inf]


@st.composite
def swept(draw):
    """Attempts, states, models and tariffs in the twin's words, and a span of time."""
    machines = draw(st.integers(1, 5))
    machine = st.integers(0, machines - 1)
    attempts = [(row, amount, *sorted((one, other)))
                for row, amount, one, other in draw(st.lists(st.tuples(
                    machine, st.integers(0, 3), st.sampled_from(TIMES), st.sampled_from(TIMES)), max_size=25))]
    states = [[(-math.inf, draw(st.integers(0, 6)), draw(st.booleans()))] for _ in range(machines)]
    for row, time, capacity, present in draw(st.lists(st.tuples(
            machine, st.sampled_from(TIMES[:-1]), st.integers(0, 6), st.booleans()), max_size=6)):
        states[row].append((time, capacity, present))
    for each in states:
        each.sort(key=lambda state: state[0])
    watts = st.sampled_from([0, 10, 25.5, 60, 200])
    kinds = draw(st.lists(st.tuples(st.lists(watts, min_size=2, max_size=4), watts), min_size=1, max_size=3))
    points = st.tuples(st.sampled_from([0, 1.5, 3, 8]), st.sampled_from([0, 0.25, 3, 8]))
    points = st.lists(points, min_size=1, max_size=4, unique_by=lambda point: point[0]).map(sorted)
    series = points.flatmap(lambda table: st.tuples(st.just(table), st.sampled_from(
        [None, *(every for every in (1.25, 2.0, 3.5, 8.5) if every > table[-1][0])])))
    begin, end = draw(st.sampled_from([(0, 10), (1, 6.5), (2, 2.5), (3, 3)]))
    of = draw(st.lists(st.integers(0, len(kinds) - 1), min_size=machines, max_size=machines))
    return attempts, states, kinds, of, draw(series), draw(series), begin, end, draw(st.sampled_from([1, 2, 1000]))


def as_presence(states, end):
    """What changes of machines, from the twin's states; all is gone at the end."""
    rows = []
    for machine, each in enumerate(states):
        last = (0, 0)
        for time, capacity, present in [*(state for state in each if state[0] < end), (math.inf, 0, False)]:
            now = (capacity * present, int(present))
            rows.append((machine, time, now[0] - last[0], now[1] - last[1]))
            last = now
    machine, time, capacity, present = map(np.array, zip(*rows, strict=True))
    return Presence(machine, time.astype(float), capacity[None, :], present)


@settings(max_examples=300, deadline=None)
@given(case=swept())
def test_the_sweep_agrees_with_the_plain_twin(case):
    attempts, states, kinds, of, price_table, carbon_table, begin, end, size = case
    price, carbon = (plain_series(*table, end) for table in (price_table, carbon_table))
    points = [list(zip(np.linspace(0, 1, len(watts)).tolist(), watts, strict=True)) for watts, _ in kinds]
    models = [(points[kind], kinds[kind][1]) for kind in of]
    expected = plain_energy(attempts, states, models, price, carbon, begin, end)
    columns = [np.array(column) for column in zip(*attempts, strict=True)] or [np.zeros(0, np.int64)] * 4
    machine, amount, start, until = columns
    edges = np.unique([begin, *np.linspace(begin, end, 4), end]) if end > begin else np.array([begin, end], float)
    found = sweep(
        Attempts(machine.astype(np.uint16), np.arange(len(attempts)), start.astype(float), until.astype(float)),
        as_presence(states, end), Kinds(np.array(of), [Curve(0, np.linspace(0, 1, len(watts)), np.array(watts), empty)
                                                       for watts, empty in kinds], 0),
        amount.astype(np.int64)[None, :], Tariff(steps_of(*price_table), steps_of(*carbon_table)), edges, size)
    for name, values in zip(("kwh", "cost", "carbon"), zip(*expected, strict=True), strict=False):
        assert getattr(found, name) * JOULES_PER_KWH == pytest.approx(values, abs=1e-9), name
    assert found.hours * 3600 == pytest.approx([there for *_, there in expected])
    assert found.binned.sum() == pytest.approx(found.kwh.sum(), abs=1e-12)
    for number, (since, to) in enumerate(pairwise(edges)):
        part = plain_energy(attempts, states, models, price, carbon, since, to)
        assert found.binned[number] * JOULES_PER_KWH == pytest.approx(sum(each[0] for each in part), abs=1e-9)


@pytest.mark.parametrize("scheduler", ["first-fit", "best-fit+backfill"])
def test_a_run_agrees_with_its_own_tables(tmp_path, scheduler):
    """Machines that leave, shrink and join under load, read from the folder by the twin."""
    random = np.random.default_rng(7)
    workload = plain(*sorted((float(random.integers(0, 60)), float(random.integers(1, 30)), int(random.integers(1, 4)))
                             for _ in range(200)))
    changes = [(10, 0, False, 4), (15, 1, True, 2), (25, 0, True, 8), (30, 3, False, 2), (70, 3, True, 2)]
    fleet = fleet_of((4,), (4,), (2,), (2,), changes=changes)
    run = ran(tmp_path, workload, fleet, scheduler=scheduler, measure_from=20.0, measure_until=100.0)
    assert run.summary.attempts_lost > 0
    tasks, lost = run.tasks().collect(), pl.read_parquet(run.folder / "attempts.parquet")
    inside = [finish for finish in tasks["finish"] if 20.0 <= finish <= run.summary.window.end]
    assert run.summary.energy.finished == len(inside) < len(tasks)
    assert tasks["finish"].min() < 20.0 and tasks["finish"].max() > run.summary.window.end
    amount = dict(enumerate(workload.requests[0].tolist()))  # a task is a job here
    attempts = [(int(machine[1:]), amount[job], start, math.inf if end is None else end)
                for table, end in ((tasks, "finish"), (lost, "end"))
                for job, machine, start, end in table.select("job", "machine", "start", end).iter_rows()
                if machine is not None]
    states = [[(-math.inf, capacity, True)] for capacity in (4, 4, 2, 2)]
    for time, machine, present, capacity in changes:
        states[machine].append((time, capacity, present))
    small, large = ([(0.0, 100), (1.0, 200)], 100), ([(0.0, 50), (0.5, 100), (1.0, 400)], 10)
    expected = plain_energy(attempts, states, [large, large, small, small], [(0, 0.1), (5, 0.4)], [(0, 0.5)], 20.0,
                            run.summary.window.end)
    machines = pl.read_parquet(run.folder / "machines.parquet")
    for number, column in enumerate(("kwh", "cost_energy", "carbon")):
        assert machines[column].to_list() == pytest.approx([row[number] * KWH for row in expected], rel=1e-9)
    assert (machines["hours"] * 3600).to_list() == pytest.approx([row[3] for row in expected])


# -- the file ----------------------------------------------------------------------------------------------------------


ALL = "[[kind]]\nname = 'a'\nwatts = [1, 2]\n"


@pytest.mark.parametrize(("text", "rule"), [
    ("", "missing required field `kind`"), ("kind = []", "kind: must be at least one"),
    ("[[kind]]\nwatts = [1, 2]", "missing required field `name`"),
    ("[[kind]]\nname = 'a'", "missing required field `watts`"),
    ("[[kind]]\nname = ' '\nwatts = [1, 2]", "kind.name: must be a name"),
    ("[[kind]]\nname = 'a'\nwatts = [1]", "kind 'a': watts must be at least two"),
    ("[[kind]]\nname = 'a'\nwatts = [1, -2]", "watts must be from 0 to 1e\\+06, not -2"),
    ("[[kind]]\nname = 'a'\nwatts = [1, nan]", "watts must be from 0 to 1e\\+06, not nan"),
    (ALL + "empty = inf", "watts must be from 0 to 1e\\+06, not inf"),
    (ALL + "idle = 3", "unknown field `idle`"),
    (ALL + "shares = [0, 0.5, 1]", "shares must be as many as watts \\(2\\), not 3"),
    (ALL + "shares = [0, 0.9]", "shares must rise from 0 to 1"),
    ("[[kind]]\nname = 'a'\nwatts = [1, 2, 3]\nshares = [0, 0, 1]", "shares must rise from 0 to 1"),
    (ALL + "per_hour = -1", "per_hour must be from 0 to 1e\\+09, not -1"),
    (ALL * 2, "kind: names must differ, 'a' occurs 2 times"),
    ("price = true\n" + ALL, "Expected `float | str | array | null`"),
    ("price = []\n" + ALL, "price: must have at least one time and value"),
    ("price = nan\n" + ALL, "price: must be from -1e\\+09 to 1e\\+09 a kWh, not nan"),
    ("carbon = -1\n" + ALL, "carbon: must be from 0 to 1e\\+09 a kWh, not -1"),
    ("price = [[0, 1], [0, 2]]\n" + ALL, "price: times must rise, 0 comes behind 0"),
    ("price = [[inf, 1]]\n" + ALL, "price: time must be a finite number of seconds, not inf"),
    ("price = 'no.csv'\n" + ALL, "no.csv: no such file"), ("price = '.'\n" + ALL, ": no such file"),
    ("price = 0.1\nprice_every = 60\n" + ALL, "price_every: needs a table as price"),
    ("carbon_every = 60\n" + ALL, "carbon_every: needs a table as carbon"),
    ("price = [[0, 1]]\nprice_every = 0\n" + ALL, "price_every: must be a finite number of seconds above 0, not 0"),
    ("price = [[0, 1]]\nprice_every = inf\n" + ALL, "price_every: must be a finite number of seconds above 0, not inf"),
    ("price = [[0, 1], [60, 2]]\nprice_every = 60\n" + ALL, "times of price must be from 0 to below it, 60 s, not 60"),
    ("carbon = [[-1, 1]]\ncarbon_every = 60\n" + ALL, "times of carbon must be from 0 to below it, 60 s, not -1"),
])
def test_a_file_that_cannot_be_is_refused_with_its_rule(tmp_path, text, rule):
    path = tmp_path / "e.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=rule) as caught:
        read_energy(path)
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("rows", "rule"), [
    ("", "the first line must be time,value, not ''"), ("time,price\n0,1", "the first line must be time,value"),
    ("time,value\n", "must have at least one row"), ("time,value\n0,1\n5", "row 3: must be two numbers"),
    ("time,value\n0,x", "row 2: must be two numbers, time and value, not '0,x'"),
    ("time,value\n0,1,2", "row 2: must be two"),
    ("time,value\n5,1\n2,1", "times must rise, 2 comes behind 5"),
    ("time,value\n0,-1", "must be from 0 to 1e\\+09 a kWh"),
    ("time,value\n0,nan", "must be from 0 to 1e\\+09 a kWh, not nan"), ("time,value\n0,\xff", "row 2: must be two"),
])
def test_a_table_that_cannot_be_is_refused_with_its_row(tmp_path, rows, rule):
    path = tmp_path / "e.toml"
    path.write_text('carbon = "c.csv"\n[[kind]]\nname = "a"\nwatts = [1, 2]\n')
    (tmp_path / "c.csv").write_text(rows)
    with pytest.raises(InputError, match=rf"c\.csv.*{rule}"):
        read_energy(path)
    (tmp_path / "c.csv").write_text("time,value\n0,1\n90,1\n")
    path.write_text("carbon_every = 60\n" + path.read_text())
    with pytest.raises(InputError, match=rf"{path}: carbon_every: times .* from 0 to below it, 60 s, not 90"):
        read_energy(path)
    (tmp_path / "c.csv").write_bytes(b"time,value\n0,\xff")
    with pytest.raises(InputError, match=r"c\.csv: cannot be read"):
        read_energy(path)


def test_the_example_of_the_reference_is_read(tmp_path):
    example, = re.findall(r"^```toml\n(.*?)^```", sys.modules[Energy.__module__].__doc__, re.MULTILINE | re.DOTALL)
    energy = read_energy(Path(written(tmp_path, example)))
    assert [kind.name for kind in energy.kind] == ["ML110 G5", "another"] and energy.carbon[1] == (3600, 0.48)
    day, hours = steps_of(energy.price, energy.price_every), np.array([0.0, 6.0, 22.0, 24.0, 30.0])
    assert np.diff(day.integral(hours * 3600)) / 3600 == pytest.approx([6 * 0.05, 16 * 0.11, 2 * 0.05, 6 * 0.05])
    keys = set(re.findall(r"^\w+", example, re.MULTILINE))
    assert keys == {*Energy.__struct_fields__, *MachineKind.__struct_fields__} - {"kind"}


def test_kinds_are_told_by_what_they_name_and_the_last_that_fits_holds():
    fleet = fleet_of((2,), (4,), (4,), (8,), attributes=[(1, "platform", "B1"), (2, "platform", "C")])
    energy = Energy(kind=[
        MachineKind(name="all", watts=[1, 2]), MachineKind(name="b", watts=[1, 2], attributes={"platform": "B*"}),
        MachineKind(name="m", watts=[1, 2], machine="m[12]", capacity={"cpu": 4.0}, cluster="?"),
        MachineKind(name="far", watts=[1, 2], cluster="d*")])
    assert kinds_of(energy, fleet).tolist() == [0, 2, 2, 0]
    energy.kind.pop(2)
    assert kinds_of(energy, fleet).tolist() == [0, 1, 0, 0]
    energy.kind.pop(0)
    with pytest.raises(InputError, match="every machine must fit one, 3 of 4 fit none, 'm0' is the first"):
        kinds_of(energy, fleet)


def refused(tmp_path, text, **options):
    """What is said of a file before a run on the shipped sample."""
    scenario = Scenario(energy=written(tmp_path, text), **options)
    refuse_unfit(scenario, [SCHEDULERS["first-fit"]], load_inputs(scenario))


@pytest.mark.parametrize(("text", "options", "rule"), [
    ("resource = 'gpu'\n" + ALL, {}, "energy: resource must be one of cpu, memory, not 'gpu'"),
    (ALL + "resource = 'gpu'", {}, "kind 'a': resource must be one of cpu, memory"),
    (ALL + "capacity = { gpu = 1 }", {}, "kind 'a', capacity: resource must be one of"),
    (ALL + "capacity = { '' = 1 }", {}, "kind 'a', capacity: resource must be one of"),
    (ALL + "attributes = { rack = 'x' }", {}, "no machine has an attribute 'rack'; there are platform"),
    (ALL + "machine = 'no'", {}, "every machine must fit one, 12,477 of 12,477"),
    ("price = [[1e6, 1], [2e6, 1]]\n" + ALL, {}, "price: must begin by the time that is measured"),
    (ALL, {"objectives": ["cost.total < 3"]}, "'cost.total < 3': the file says nothing"),
    (ALL, {"objectives": ["carbon.total < 3t"]}, "the file says nothing of it"),
])
def test_a_file_that_does_not_go_with_the_run_is_refused_before_it(tmp_path, text, options, rule):
    with pytest.raises(InputError, match=rule) as caught:
        refused(tmp_path, text, **options)
    assert str(caught.value).startswith(str(tmp_path))


def test_a_tariff_that_begins_again_may_begin_after_the_window(tmp_path):
    refused(tmp_path, "price = [[21600, 0.1], [79200, 0.05]]\nprice_every = 86400\n" + ALL)
    refused(tmp_path, "price = [[0, 0.1], [2e6, 0.05]]\n" + ALL)  # one that ends after it has begun before


def test_a_log_does_not_know_its_machines():
    with pytest.raises(InputError, match="energy: recorded does not know on which machines"):
        Scenario(energy="google2011", schedulers=["first-fit", "recorded"])


def test_the_shipped_files_go_with_their_fleets():
    assert energy_names() == ["google2011"]
    energy = read_energy(energy_file("google2011"))
    scenario = Scenario(energy="google2011", objectives=["cost.total < 1", "carbon.total < 1t", "energy.total < 1Wh"])
    refuse_unfit(scenario, [SCHEDULERS["first-fit"]], load_inputs(scenario))
    assert all(len(kind.watts) == 11 for kind in energy.kind)
    assert not any("energy" in str(path) for path in inputs_of(scenario))
    assert sample_folder().is_dir()


# -- objectives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "value", "met"), [
    ("energy.total < 2Wh", 4300 * KWH, True), ("energy.total < 0.001kWh", 4300 * KWH, False),
    ("energy.per_task < 1Wh", 4300 * KWH / 3, True), ("cost.total <= 0.0044", (1075 + 15000) * KWH, False),
    ("cost.per_used_hour < 1", (1075 + 15000) * KWH / (42 / 3600), True), ("carbon.total < 1g", 2150 * KWH, True),
    ("carbon.per_task > 1kg", 2150 * KWH / 3, False), ("carbon.total < 1e-9t", 2150 * KWH, False),
])
def test_an_objective_is_met_or_not(tmp_path, text, value, met):
    found, = ran(tmp_path, *two_machines(), objectives=[text]).summary.objectives
    assert found.value == pytest.approx(value) and found.met is met


def test_where_nothing_finished_a_task_costs_endlessly(tmp_path):
    run = ran(tmp_path, plain((0, 9, 1), (1, 9, 1)), fleet_of((1,)), until=5.0, objectives=["energy.per_task < 1MWh"])
    assert run.summary.objectives[0].value is None and not run.summary.objectives[0].met
    assert run.summary.energy.per_task.kwh is None and run.summary.energy.total.kwh > 0


@pytest.mark.parametrize(("text", "rule"), [
    ("energy.mean < 1kWh", "the statistic of energy must be total, per_task or per_used_hour, not 'mean'"),
    ("energy.total < 1", "energy takes one of the units Wh, kWh, MWh"), ("energy.total < 1s", "one of the units Wh"),
    ("cost.total < 1kWh", "cost takes no unit"), ("carbon.total < 1kg for queue=a", "takes no keys"),
    ("wait.mean < 1kWh", "wait takes one of the units us, ms"), ("energy.total < 1kWh", "needs an energy file"),
])
def test_what_is_no_objective_of_machines_is_refused(text, rule):
    with pytest.raises(InputError, match=rule):
        Scenario(objectives=[text], energy="" if "needs" in rule else "google2011")


# -- the folder, the page and the terminal -----------------------------------------------------------------------------


def test_a_run_repeats_from_its_folder_with_the_tables_that_its_file_named(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "p.csv").write_text("time,value\n0,0.1\n5,0.4\n")
    text = FILE.replace("[[0, 0.1], [5, 0.4]]", '"p.csv"')
    inputs = two_machines()
    first = ran(tmp_path / "in", *inputs, text=text)
    assert first.summary.energy == ran(tmp_path / "other", *inputs).summary.energy
    assert tmp_path / "in" / "p.csv" in inputs_of(Scenario(energy=str(tmp_path / "in" / "energy.toml")))
    for path in (tmp_path / "in").glob("*.*"):
        path.unlink()
    scenario = read_scenario(first.folder / "scenario.toml")
    again = tmp_path / "again"
    simulate_into(again, scenario, "first-fit", 1, inputs)
    for name in ("machines.parquet", "power.parquet", "energy.toml", "tasks.parquet"):
        assert (again / name).read_bytes() == (first.folder / name).read_bytes(), name


def test_the_reference_has_a_line_for_each_column_and_number(tmp_path):
    rows = pytest.importorskip("reference_pages.rows")
    run = ran(tmp_path, *two_machines())
    for name, words in (("machines", rows.MACHINE_ROWS), ("power", rows.POWER_ROWS)):
        assert pl.read_parquet(run.folder / f"{name}.parquet").columns == list(words)
    assert all(pytest.importorskip("reference_pages.tables").comments_of(EnergyFacts).values())


def test_a_run_without_a_file_says_nothing_of_energy(tmp_path):
    simulate_into(tmp_path / "run", Scenario(), "first-fit", 1, two_machines())
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["energy"] is None
    assert not (tmp_path / "run" / "power.parquet").exists()
    assert not any(row.measure.family in ("Energy", "Cost", "Carbon") and row.values != [None]
                   for row in compare(load_runs(tmp_path / "run")))


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    folder = tmp_path_factory.mktemp("energy") / "R"
    (folder / "runs").mkdir(parents=True)
    energy = written(folder.parent / "in")
    for name in ("first-fit", "worst-fit"):
        scenario = Scenario(energy=energy, measure_until=math.inf, schedulers=[name])
        simulate_into(folder / "runs" / name, scenario, name, 1, two_machines())
    return folder


def test_the_terminal_shows_each_and_judges_what_is_comparable(comparison):
    runs = load_runs(comparison)
    rows = {(row.measure.family, row.measure.title): row for row in compare(runs)}
    assert rows["Energy", "total"].texts()[0] == "1.19 Wh" and rows["Energy", "total"].best == frozenset()
    assert len(rows["Cost", "per finished task"].best) == 1
    assert rows["Carbon", "total"].texts()[0] == "0.597 g" and rows["Energy", "mean power"].texts()[0] == "430 W"
    said = Console(file=io.StringIO(), width=100)
    said.print(comparison_table(runs))
    text = said.file.getvalue()
    for word in ("Energy", "per used hour", "of machines", "Used hours are of cpu, costs in EUR."):
        assert word in text


def test_costs_in_several_currencies_are_shown_and_not_judged(tmp_path):
    folder = tmp_path / "R"
    (folder / "runs").mkdir(parents=True)
    for name, currency in (("first-fit", "EUR"), ("worst-fit", "USD")):
        energy = written(tmp_path / currency, FILE.replace("EUR", currency))
        scenario = Scenario(energy=energy, measure_until=math.inf, schedulers=[name])
        simulate_into(folder / "runs" / name, scenario, name, 1, two_machines())
    rows = {(row.measure.family, row.measure.title): row for row in compare(load_runs(folder))}
    for title in ("per finished task", "per used hour"):
        assert not rows["Cost", title].best and rows["Energy", title].best and None not in rows["Cost", title].values


def test_the_page_has_a_chart_of_power_beside_the_price_and_tables(comparison, tmp_path):
    page = write_report(comparison, tmp_path / "r.html", tables=tmp_path / "t", formats=["csv"]).read_text()
    for text in ('id="power-over-time"', "price (EUR a kWh)", "Energy and cost by kind of machine"):
        assert text in page
    assert "carbon (kg a kWh)" not in page  # it does not change
    constant = pl.Series([-0.05, -0.05000000000000001, None])
    assert not _changes(constant) and _changes(constant + pl.Series([0.0, 0.001, 0.0])) and not _changes(constant[2:])
    rows = list(csv.DictReader((tmp_path / "t" / "energy-by-kind.csv").open()))
    assert [row["Kind"] for row in rows] == ["small", "large"] * 2
    assert float(rows[1]["Energy"]) == pytest.approx(2800 * KWH)
    tidy = list(csv.DictReader((tmp_path / "t" / "comparison.csv").open()))
    of_energy = [row for row in tidy if (row["measure"], row["title"]) == ("Energy", "total")]
    assert [row["scheduler"] for row in of_energy] == ["first-fit", "worst-fit"]
    assert (of_energy[0]["unit"], float(of_energy[0]["value"])) == ("kWh", pytest.approx(4300 * KWH))
