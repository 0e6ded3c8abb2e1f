"""A slow_start: reduces that hold their slots while maps still run."""
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batches import batch, batches, machines
from invariants import Watch
from small import cases, fleet_of, plain, staged
from subak.errors import InputError
from subak.experiment.scenario import Scenario
from subak.measures.batch import bound_seconds
from subak.measures.of_run import makespan
from subak.policy import find_scheduler
from subak.simulator.results import task_table
from subak.simulator.simulate import simulate
from subak.workload.maps_and_reduces import reduce_stages
from test_engine_against_twin import engine_rows

quick = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)


def run(workload, fleet, share, name="first-fit+backfill", **options):
    outcome = simulate(workload, fleet, find_scheduler(name), check=Watch(), slow_start=share, **options)
    return task_table(outcome, workload, fleet)


def test_a_reduce_holds_its_slot_and_copies_while_maps_run():
    """Maps end at 2, 4, 6, 8. From half of them on the reduce copies for 3 s; then it waits for the last map."""
    workload = batch((4, 2, 1, 5), shuffle=3.0)
    table = run(workload, machines((1, 0), (0, 1)), 0.5)
    assert table.row(4, named=True)["start"] == 4.0
    assert table.row(4, named=True)["finish"] == 8.0 + 5.0
    assert run(workload, machines((1, 0), (0, 1)), 1.0)["finish"][4] == 8.0 + 3.0 + 5.0


def test_copying_may_outlast_the_maps():
    assert run(batch((2, 2, 1, 5), shuffle=30.0), machines((1, 0), (0, 1)), 0.5)["finish"][2] == 2.0 + 30.0 + 5.0


@pytest.mark.parametrize("share, start", [(0.0, 0.0), (0.01, 2.0), (0.25, 2.0), (0.26, 4.0), (0.75, 6.0), (1.0, 8.0)])
def test_a_share_is_of_the_tasks_that_have_ended(share, start):
    table = run(batch((4, 2, 1, 5)), machines((1, 0), (0, 1)), share)
    assert (table["start"][4], table["finish"][4]) == (start, 13.0)


def test_a_slot_that_is_held_is_not_anothers():
    """Job 0's reduce takes the slot at 0 and keeps it until 12; without a slow start job 1's goes first."""
    jobs = batch((1, 10, 1, 2), (0, 0, 1, 3, 1))
    fleet = machines((1, 0), (0, 1))
    assert run(jobs, fleet, 0.0)["finish"].to_list() == [10.0, 12.0, 15.0]
    assert run(jobs, fleet, 1.0)["finish"].to_list() == [10.0, 12.0, 4.0]


def test_an_attempt_that_waits_for_inputs_may_be_lost():
    workload = staged([{"request": (1,)}, {"request": (2,), "depends_on": [0]}], [(0, 0, 10), (1, 0, 5)])
    fleet = fleet_of((1,), (2,), (2,), changes=[(3.0, 1, False, 0.0)])
    table = run(workload, fleet, 0.0)
    assert table["machine"][1] == "m2"
    assert (table["start"][1], table["finish"][1], table["attempts"][1]) == (3.0, 15.0, 2)


def test_reduces_may_starve_their_own_maps():
    """With one slot for both, a reduce that starts first waits for ever; nothing is dropped in silence."""
    workload = staged([{"request": (1,)}, {"request": (1,), "depends_on": [0]}], [(1, 0, 5), (0, 1, 5)])
    table = run(workload, fleet_of((1,)), 0.0)
    assert table["status"].to_list() == ["RUNNING", "WAITING"]
    assert table["reason"].to_list()[1].startswith("no machine has free cpu 1")


@quick
@given(case=batches(), share=st.sampled_from([0.0, 0.3, 0.5, 0.9]), name=st.sampled_from(["fifo-pri", "hmhs", "heft"]))
def test_reduces_end_behind_their_maps_and_no_sooner_than_the_bound(case, share, name):
    workload, fleet = case
    table = run(workload, fleet, share, name)
    assert (table["status"] == "FINISHED").all()
    assert makespan(table) >= bound_seconds(workload, fleet, slow_start=True)
    reduces = pl.Series(reduce_stages(workload)[workload.tasks["stage"].to_numpy()])
    for job in table["job"].unique():
        maps, later = (table.filter((pl.col("job") == job) & kind) for kind in (~reduces, reduces))
        run_times = (later["finish"] - maps["finish"].max()).to_list() if len(maps) else []
        factor = fleet.speeds[job][[int(name[1:]) for name in later["machine"]]]
        assert all(left >= nominal * each - 1e-9
                   for left, nominal, each in zip(run_times, later["run_time"], factor, strict=False))


@quick
@given(case=cases(), share=st.sampled_from([0.0, 0.5, 0.99]), until=st.sampled_from([math.inf, 4.0]),
       name=st.sampled_from(["first-fit", "worst-fit+backfill", "greedy"]))
def test_invariants_hold_with_graphs_and_changing_fleets(case, share, until, name):
    run(*case, share, name, until=until, interval=1.0)


@quick
@given(case=cases(), name=st.sampled_from(["first-fit", "best-fit+backfill+priority"]))
def test_nearly_all_tasks_are_all_where_stages_are_small(case, name):
    """A share that rounds up to every task of each stage changes nothing."""
    whole, nearly = (simulate(*case, find_scheduler(name), slow_start=share, interval=1.0) for share in (1.0, 0.999))
    assert engine_rows(whole) == engine_rows(nearly)
    assert np.array_equal(whole.loop_result.timeline, nearly.loop_result.timeline)


def test_what_is_no_share_or_no_central_scheduler_is_refused():
    for share in (-0.1, 1.5, math.nan):
        with pytest.raises(InputError, match="slow_start: must be a share from 0 to 1, not"):
            run(plain((0, 1, 1)), fleet_of((1,)), share)
    with pytest.raises(InputError, match="slow_start: sparrow is a federation, in which tasks start when all"):
        run(plain((0, 1, 1)), fleet_of((1,)), 0.5, "sparrow")


def test_a_scenario_refuses_federations_too():
    with pytest.raises(InputError, match="slow_start: megha is a federation"):
        Scenario(schedulers=["first-fit", "megha"], slow_start=0.5)
    with pytest.raises(InputError, match="slow_start: must be a share from 0 to 1, not 2"):
        Scenario(slow_start=2.0)
