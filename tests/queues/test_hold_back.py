"""Machines held back under fair orders for who is passed over for long; the plain twin is in test_gangs.py."""
import math
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from small import TWO, fleet_of
from subak.cli.app import app
from subak.errors import InputError
from subak.experiment.scenario import Scenario
from subak.federation.settings import Federation
from subak.measures.run_folders import load_runs
from subak.placement.schedulers import HOLD_BACK_AFTER
from subak.queues.orders import FAIR_ORDERS
from subak.queues.tree import Queue, TreeFile
from subak.simulator.engine.state import LOOP_DONE
from subak.simulator.federated.megha_setup import MEGHA
from subak.simulator.federated.simulate import open_federated
from test_gangs import in_gangs, started

CASE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "34-gang-starvation" / "w.swf"
STREAM = [(f"s{number}", number * 1.0, (1, 1), [3.5], False) for number in range(60)]  # 3 or 4 of 4 are always busy


@pytest.mark.parametrize("order", FAIR_ORDERS)
@pytest.mark.parametrize(("wide", "fleet"), [
    (("w", 5.5, (4, 4), [2.0], False), [(4, 4)]), (("w", 5.5, (1, 1), [2.0] * 4, True), [(1, 1)] * 4)])
def test_who_needs_all_starts_once_it_was_passed_over_for_so_long(order, wide, fleet):
    """From 6 s on its turns come in vain, as something ends then; from 16 s on nothing else starts, until 19.5 s."""
    made, machines = in_gangs([*STREAM, wide]), fleet_of(*fleet, resources=TWO)
    at = started(made, machines, order, hold_back_after=10.0)["w", 0]
    assert 15.5 <= at <= 20.0
    assert started(made, machines, order, hold_back_after=math.inf)["w", 0] > 59.0
    assert started(made, machines, order, hold_back_after=0.0)["w", 0] < 11.0


def test_machines_that_are_not_held_back_go_on():
    """Two machines; the wide task needs one of them, and on the other tasks of the stream start all the while."""
    made = in_gangs([*STREAM, *[(f"t{job[0]}", *job[1:]) for job in STREAM], ("w", 5.5, (4, 4), [2.0], False)])
    found = started(made, fleet_of((4, 4), (4, 4), resources=TWO), "drf", hold_back_after=10.0)
    at = found["w", 0]
    assert 15.5 <= at <= 20.0
    assert sum(at - 3.0 <= start < at for start in found.values()) >= 3


def test_each_time_in_vain_twice_as_many_machines_are_held_back():
    """On the first something runs for ever: the other is held back, too, 10 s later, and empties."""
    long = [("a", 0.0, (2, 2), [1e4], False), ("b", 0.0, (4, 4), [3.0], False)]
    stream = [(f"s{number}", 3.0 + number, (1, 1), [3.5], False) for number in range(120)]
    more = [(f"t{number}", 3.0 + number / 2, (1, 1), [2.9], False) for number in range(200)]
    made = in_gangs([*long, *stream, *more, ("w", 5.5, (4, 4), [2.0], False)])
    fleet = fleet_of((4, 4), (4, 4), resources=TWO)
    assert 25.0 <= started(made, fleet, "drf", hold_back_after=10.0)["w", 0] <= 34.0
    assert started(made, fleet, "drf", hold_back_after=math.inf)["w", 0] > 100.0


def test_a_queue_at_its_limit_has_nothing_held_back():
    """It was passed over for want of room, and then its queue runs all that it may: others have the machines."""
    made = in_gangs([*STREAM, ("w", 5.5, (1, 1), [2.0] * 3, True), ("x", 5.6, (1, 1), [1e4], False)])
    made = replace(made, jobs=made.jobs.with_columns(
        queue=pl.Series(["q" if name in {"w", "x"} else "s" for name in made.jobs["job"]])))
    queues = TreeFile(queue=[Queue(name="q", limit=0.75)])
    found, never = (started(made, fleet_of(*[(1, 1)] * 4, resources=TWO), "drf", hold_back_after=after, queues=queues)
                    for after in (10.0, math.inf))
    assert found["w", 0] == found["x", 0] + 1e4 and found == never


def test_nothing_is_held_back_for_a_gang_that_the_machines_there_could_not_hold():
    """One of four machines is away from 2 s to 50 s: others go on until then, and the gang starts soon after."""
    made = in_gangs([*STREAM, ("w", 5.5, (1, 1), [2.0] * 4, True)])
    fleet = fleet_of(*[(1, 1)] * 4, resources=TWO, changes=[(2.0, 3, False, 1, 1), (50.0, 3, True, 1, 1)])
    found, never = (started(made, fleet, "drf", hold_back_after=after) for after in (10.0, math.inf))
    early, of_never = ({task: at for task, at in each.items() if at < 50.0} for each in (found, never))
    assert early == of_never and 50.0 <= found["w", 0] <= 65.0


def test_who_could_not_be_held_for_holds_up_nobody_behind_it():
    """The gang of four waits for a machine that is away; the one of three, passed over later, has the others held."""
    made = in_gangs([*STREAM, ("w", 5.5, (1, 1), [2.0] * 4, True), ("v", 6.5, (1, 1), [2.0] * 3, True)])
    fleet = fleet_of(*[(1, 1)] * 4, resources=TWO, changes=[(2.0, 3, False, 1, 1), (200.0, 3, True, 1, 1)])
    found, never = (started(made, fleet, "drf", hold_back_after=after) for after in (10.0, math.inf))
    assert found["v", 0] <= 25.0 and never["v", 0] > 50.0 and found["w", 0] >= 200.0


def test_nothing_is_held_back_for_a_placement_that_does_not_want_it(tmp_path):
    """It takes a wide task on no machine at all: the others go on as if it were not there."""
    (tmp_path / "p.py").write_text(
        "from subak.policy import next_fitting, policy\n\n@policy\ndef small(fleet, tasks, task):\n"
        '    """The first machine, for small tasks alone."""\n'
        "    return next_fitting(fleet, tasks, task, 0) if tasks.request[0, tasks.shape[task]] < 4 else -1\n")
    fleet, wide = fleet_of((4, 4), resources=TWO), ("w", 5.5, (4, 4), [2.0], False)
    found = started(in_gangs([*STREAM, wide]), fleet, f"{tmp_path / 'p.py'}:small+drf", hold_back_after=5.0)
    assert max(found.values()) < 75.0 and ("w", 0) not in found


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(1, 9), st.booleans()), min_size=5,
                max_size=25), st.sampled_from(sorted(FAIR_ORDERS)), st.sampled_from(["", "best-fit+", "worst-fit+"]))
def test_everybody_starts_under_every_order_and_placement(jobs, order, placement):
    made = in_gangs([
        (f"j{number}", float(at), (1 if gang else width, 1), [float(seconds)] * (width if gang else 1), gang)
        for number, (at, width, seconds, gang) in enumerate(jobs)])
    found = started(made, fleet_of((4, 4), (5, 4), (4, 5), resources=TWO), placement + order, hold_back_after=2.0)
    assert len(found) == len(made.tasks)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5), st.integers(1, 9)), min_size=5, max_size=40))
def test_on_one_machine_all_placements_are_one(jobs):
    """Those that go by short lists find a machine again that was held back."""
    made = in_gangs([(f"j{number}", float(at), (width, 1), [float(seconds)], False)
                     for number, (at, width, seconds) in enumerate(jobs)])
    fleet = fleet_of((6, 9), resources=TWO)
    first, *others = (started(made, fleet, f"{name}drf", hold_back_after=2.0)
                      for name in ("", "best-fit+", "worst-fit+"))
    assert others == [first, first]


def test_what_is_asked_for_is_checked():
    with pytest.raises(InputError, match="hold_back_after: must be 0 seconds or more, or inf, not -1"):
        Scenario(schedulers=["mch"], hold_back_after=-1.0)
    with pytest.raises(InputError, match="hold_back_after: must be 0 seconds or more, or inf, not nan"):
        Scenario(schedulers=["mch"], hold_back_after=math.nan)
    with pytest.raises(InputError, match=r"hold_back_after: none of the schedulers easy, lotes\+drf has a fair order"):
        Scenario(schedulers=["easy", "lotes+drf"], hold_back_after=math.inf)


def started_in_a_federation(made, fleet, federation, hold_back_after):
    """The start of each job's first task, of a run in plain Python."""
    opened = open_federated(made, fleet, MEGHA, federation, 1, 1e6, math.inf, compiled=False,
                            hold_back_after=hold_back_after)
    while opened.step(10_000) != LOOP_DONE:
        pass
    jobs = made.jobs["job"].gather(made.stages["job"].gather(made.tasks["stage"])).to_list()
    return dict(sorted(zip(jobs, opened.simulation.progress.start.tolist(), strict=True), key=lambda pair: -pair[1]))


@pytest.mark.parametrize("masters", [1, 3])
@pytest.mark.parametrize(("wide", "fleet"), [
    (("w", 5.5, (4, 4), [2.0], False), [(4, 4)]), (("w", 5.5, (1, 1), [2.0] * 4, True), [(1, 1)] * 4)])
def test_in_a_federation_too_who_needs_all_starts_once_it_was_passed_over_for_so_long(masters, wide, fleet):
    """As above, by masters that hear of each other's tasks each second."""
    made, machines = in_gangs([*STREAM, wide]), fleet_of(*fleet, resources=TWO)
    federation = Federation(global_masters=masters, local_masters=1, heartbeat=1.0, delay=0.001, service_scale=0.0)
    assert 15.5 <= started_in_a_federation(made, machines, federation, 10.0)["w"] <= 22.0
    assert started_in_a_federation(made, machines, federation, math.inf)["w"] > 59.0


def test_a_setting_of_megha_and_central_too():
    for name in ("megha", "central"):
        assert Scenario(schedulers=[name], hold_back_after=5.0).hold_back_after == 5.0
    with pytest.raises(InputError, match=r"hold_back_after: none of the schedulers sparrow .*; nor is any megha or c"):
        Scenario(schedulers=["sparrow"], hold_back_after=5.0)


@pytest.mark.skipif(not CASE.is_file(), reason="needs ../shared")
@pytest.mark.parametrize(("asked", "until"), [((), 10.0 + HOLD_BACK_AFTER + 50.0), (("--hold-back-after", "0"), 60.0)])
def test_a_wide_gang_beside_an_endless_stream_starts(tmp_path, asked, until):
    """ROCm/spur 947, volcano 1967: it waited until the stream ended, for 3,774 s; under easy for 36 s."""
    run = CliRunner().invoke(app, ["convert", "swf", str(CASE), "--out", str(tmp_path / "W")])
    assert run.exit_code == 0, run.output
    for order in ("drf", "mch"):
        words = ["simulate", str(tmp_path / "W"), "--scheduler", order, "--out", str(tmp_path / order), *asked]
        run = CliRunner().invoke(app, words)
        assert run.exit_code == 0, run.output
        starts = load_runs(tmp_path / order)[0].tasks().collect().group_by("job").agg("start")["start"].to_list()
        gang, = (each for each in starts if len(each) == 8)
        assert len(set(gang)) == 1 and gang[0] <= until
