"""The wait of what Slurm calls a job: by hand, against a plain account, and beside what sacct says."""
import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from small import fleet_of, plain, staged
from subak.experiment.run import simulate_into
from subak.experiment.scenario import Scenario
from subak.measures.run_folders import load_runs
from subak.measures.tasks.slurm_jobs import slurm_waits
from subak.report.comparison import compare
from subak.report.tables.definitions import definition
from subak.workload.table import slurm_jobs

ACCOUNTING = """JobID|User|Submit|Start|Elapsed|State|NNodes|AllocTRES
1_0|a|1700000000|1700000010|100|COMPLETED|1|cpu=1,mem=1G
1_1|a|1700000000|1700000020|100|COMPLETED|1|cpu=1,mem=1G
2|b|1700000005|1700000045|100|COMPLETED|3|cpu=3,mem=3G
3|c|1700000300|1700000300|100|COMPLETED|1|cpu=1,mem=1G
4|c|1700000300|Unknown|0|CANCELLED by 7|1|
"""


def mixed():
    """An array of three elements, a gang of two, a job of a task, which arrive at 0, 1 and 2 s."""
    made = staged([{"job": 0, "request": (1,)}, {"job": 1, "request": (1,)}, {"job": 2, "request": (1,)}],
                  [*[(0, 0, 10)] * 3, (1, 1, 4), (1, 1, 4), (2, 2, 5)])
    return replace(made, stages=made.stages.with_columns(gang=pl.Series([False, True, False])))


def ran(folder, workload, fleet, **options):
    simulate_into(folder / "run", Scenario(**options), "first-fit", 1, (workload, fleet))
    return load_runs(folder / "run")[0]


def test_an_element_of_an_array_counts_once_and_so_do_all_nodes_of_a_job(tmp_path):
    """On two slots, in strict order; the gang waits for both, and the last job for the gang.

    seconds   0        10        20    24
    slot 1    |-a 10---|-a 10----|-g 4-|-s 5
    slot 2    |-a 10---|         |-g 4-|
    """
    names = ["wait", "slurm_wait", "job_wait"]
    run = ran(tmp_path, mixed(), fleet_of((1,), (1,)), objectives=[
        *(f"{name}.mean < 1h" for name in names), "slurm_wait.median < 11s", "slurm_wait.max < 22s",
        "slurm_wait.max < 1h for queue=all, length=short"])
    assert run.tasks().collect()["start"].to_list() == [0.0, 0.0, 10.0, 20.0, 20.0, 24.0]
    found = [facts.value for facts in run.summary.objectives]
    assert found[:3] == pytest.approx([(0 + 0 + 10 + 19 + 19 + 22) / 6, (0 + 0 + 10 + 19 + 22) / 5, (0 + 19 + 22) / 3])
    assert found[3:5] == [10.0, 22.0] and [facts.met for facts in run.summary.objectives[3:5]] == [True, False]
    spread = run.summary.slurm_wait
    assert (spread.mean, spread.median, spread.max) == (pytest.approx(51 / 5), 10.0, 22.0)
    rows = [row for row in compare([run]) if row.measure.family == "Slurm job wait"]
    assert [row.measure.title for row in rows] == ["mean", "median", "95 %", "99 %", "longest"]
    assert rows[0].texts() == ["10.2 s"] and "on several nodes" in definition(rows[0].measure)


def test_what_never_starts_is_endless_and_waits_until_the_end(tmp_path):
    """Until 15 s the gang, which came at 1 s, has not started."""
    run = ran(tmp_path, mixed(), fleet_of((1,), (1,)), objectives=["slurm_wait.p60 < 1h", "slurm_wait.p61 < 1h"],
              until=15.0, measure_until=math.inf)
    assert [facts.value for facts in run.summary.objectives] == [10.0, None]
    assert run.summary.slurm_wait.max == 14.0


def test_where_no_tasks_start_together_it_is_the_wait_and_not_said_twice(tmp_path):
    run = ran(tmp_path, plain((0, 10, 1), (0, 10, 1)), fleet_of((1,)), objectives=["slurm_wait.mean < 6s"])
    assert run.summary.objectives[0].value == 5.0
    assert run.summary.slurm_wait is None


def test_a_gang_that_is_taken_apart_waits_for_its_last_task(tmp_path):
    """Sparrow starts the gang's two tasks one by one, on one slot."""
    made = staged([{"request": (1,)}], [(0, 0, 7), (0, 0, 7)])
    made = replace(made, stages=made.stages.with_columns(gang=pl.Series([True])))
    simulate_into(tmp_path / "run", Scenario(schedulers=["sparrow"], gangs="apart", objectives=["slurm_wait.max < 1s"]),
                  "sparrow", 1, (made, fleet_of((1,))))
    run = load_runs(tmp_path / "run")[0]
    starts = run.tasks().collect()["start"]
    assert starts.max() - starts.min() >= 7.0
    assert run.summary.objectives[0].value == pytest.approx(starts.max())


def naive_waits(rows, gangs):
    """The wait of each Slurm job of rows (stage, ready, wait), one after the other."""
    waits, together = [], {}
    for stage, ready, wait in rows:
        if gangs[stage]:
            together.setdefault(stage, []).append((ready, wait))
        else:
            waits.append(wait)
    for nodes in together.values():
        if any(wait is None for _, wait in nodes):
            waits.append(None)
        else:
            waits.append(max(ready + wait for ready, wait in nodes) - max(ready for ready, _ in nodes))
    return waits


@example([(0, 0, 12), (0, 10, 2), (1, 3, 4)], [True] + [False] * 5)  # both nodes start at 12 s, ready since 10 s: 2 s
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20), st.one_of(st.none(), st.integers(0, 50))), min_size=1),
       st.lists(st.booleans(), min_size=6, max_size=6))
def test_waits_are_those_of_a_plain_account(rows, gangs):
    tasks = pl.DataFrame(rows, schema={"stage": pl.UInt32, "ready": pl.Float64, "wait": pl.Float64}, orient="row")
    found = slurm_waits(tasks, np.array(gangs), "wait").to_list()
    def last(wait):
        return math.inf if wait is None else wait

    assert sorted(found, key=last) == sorted(naive_waits(rows, gangs), key=last)
    sizes = np.array([sum(row[0] == stage for row in rows) if gangs[stage] else 0 for stage in range(6)])
    assert slurm_jobs(sizes, len(rows)) == len(found)


def test_the_wait_of_the_log_is_that_of_sacct(run, tmp_path):
    """Four lines of sacct -X, which waited 10, 20, 40 and 0 s; the third is on three nodes."""
    (tmp_path / "jobs.txt").write_text(ACCOUNTING)
    _, out, _ = run("convert", "sacct", tmp_path / "jobs.txt", "--out", tmp_path / "W")
    assert re.search(r"Slurm jobs \(an element of an array, or all nodes of a job\) +│ 4 ", out)
    shown = run("inspect", tmp_path / "W")[1]
    assert re.search(r"Slurm jobs \(an element of an array, or all nodes of a job\) +│ +4 ", shown)
    assert "\nNever started, so left out: 1 job, cancelled or pending while they waited.\nWrote " in out
    objectives = ["--objective", "slurm_wait.mean < 1s", "--objective", "wait.mean < 1s"]
    code, out, said = run("size", tmp_path / "W", "--kind", "cpu=1,memory=1Gi", *objectives, "--seeds", "1",
                          "--processes", "1")
    assert code == 0, said
    text = " ".join(out.split())
    assert text.startswith("You need 5 machines of cpu=1,memory=1Gi in all (not 5 more): Slurm jobs "
                           "wait less than 1 s on ")
    assert "machines of that time: slurm_wait.mean 17.5 s; wait.mean 25 s." in text
    assert ("wait is of tasks: 3 jobs have 6, and each counts. slurm_wait counts what Slurm calls a job, an element of "
            "an array, or all nodes of a job: 4 Slurm jobs. job_wait counts a job once") in text
    _, out, _ = run("size", tmp_path / "W", "--kind", "cpu=1,memory=1Gi", *objectives[:2], "--seeds", "1",
                    "--processes", "1")
    assert ("slurm_wait counts what Slurm calls a job: an element of an array, or all nodes of a job: 4 Slurm jobs."
            ) in " ".join(out.split())
