"""How much of machines is used, and of the least used one: against a plain account of a run's tables."""
import pytest

from small import TWO, fleet_of, plain, some_workload
from subak.measures.machine_use import use_of
from subak.measures.window import Window
from subak.policy import find_scheduler
from subak.simulator.results import attempt_table, task_table, timeline_table
from subak.simulator.simulate import simulate


def naive_use(tables, workload, fleet, window):
    """The share of each machine's amount of each resource that was held in the window: [resource][machine]."""
    tasks, attempts = tables
    number = {job_index: row for row, job_index in enumerate(tasks.select("job", "index").iter_rows())}
    rows = [*zip(range(len(tasks)), tasks["machine"], tasks["start"], tasks["finish"], strict=True),
            *((number[job, index], *rest) for job, index, *rest in attempts.iter_rows())]
    shares = []
    for resource in workload.resources:
        held = dict.fromkeys(fleet.machines["machine"], 0.0)
        for task, machine, start, end in rows:
            if machine is None:
                continue
            last = window.end if end is None else min(end, window.end)
            seconds = max(last - max(start, window.begin), 0.0)
            held[machine] += seconds * workload.stages[resource.name][workload.tasks["stage"][task]]
        there = {machine: amount * (window.end - window.begin)
                 for machine, amount in zip(fleet.machines["machine"], fleet.machines[resource.name], strict=True)}
        shares.append([held[machine] / there[machine] for machine in held if there[machine]])
    return shares


def used(workload, fleet, window, until=float("inf")):
    outcome = simulate(workload, fleet, find_scheduler("first-fit"), until=until)
    tables = task_table(outcome, workload, fleet), timeline_table(outcome, workload)
    found = use_of(outcome, tables, workload, fleet, window)
    return found, naive_use((tables[0], attempt_table(outcome, workload, fleet)), workload, fleet, window)


@pytest.mark.parametrize("seed", range(4))
def test_the_least_used_machine_is_that_of_a_plain_account(seed):
    work, fleet = some_workload(jobs=40, tasks=3, seed=seed)
    last = float(work.tasks["arrival"].max())
    found, shares = used(work, fleet, Window(last / 4, last, ""))
    assert found.least_used == pytest.approx(tuple(min(each) for each in shares))
    for row, resource in enumerate(("cpu", "memory")):
        amounts = fleet.machines[resource].to_numpy()
        assert found.all_machines[row] == pytest.approx(
            (amounts * shares[row]).sum() / amounts.sum(), rel=1e-3)  # the interval that the window cuts counts in part
    assert 0 < max(found.all_machines) < 1


def test_by_hand_with_an_attempt_that_is_lost_and_one_that_still_runs():
    """A task of 10 s on each machine; the first machine leaves at 4 s and is back at 6 s, when its task starts again.

    Until 12 s the first holds 4 + 6 s of 12 (its task ends at 16 s), the second 10 of 12; of memory there is none.
    """
    fleet = fleet_of((1, 0), (1, 0), resources=TWO, changes=[(4, 0, False, 1, 0), (6, 0, True, 1, 0)])
    work = plain((0, 10, 1, 0), (0, 10, 1, 0), resources=TWO)
    found, _ = used(work, fleet, Window(0.0, 12.0, ""), until=12.0)
    assert found.least_used == (pytest.approx(10 / 12), None)
    assert found.all_machines[1] is None


def test_the_peak_is_what_is_not_exceeded_for_95_percent_of_the_time():
    """Of two slots one is used for 94 s and both for 6 s; then one for 95 s and both for 5 s."""
    fleet = fleet_of((1,), (1,))
    for alone, share in ((94.0, 1.0), (95.0, 0.5)):
        work = plain((0.0, 100.0, 1), (alone, 100.0 - alone, 1), (100.0, 1.0, 1))
        outcome = simulate(work, fleet, find_scheduler("first-fit"), interval=1.0)
        tables = task_table(outcome, work, fleet), timeline_table(outcome, work)
        assert use_of(outcome, tables, work, fleet, Window(0.0, 100.0, "")).peak == (share,)
