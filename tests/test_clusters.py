"""Megha and a central queue on the Yahoo trace, against the published simulators' figures."""
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from subak.federation.settings import Federation
from subak.fleet.table import uniform_fleet
from subak.placement.schedulers import SCHEDULERS
from subak.placement.starts import FINISHED
from subak.simulator.run import simulate
from subak.workload.readers.conversion import Options
from subak.workload.readers.tr import read

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
TRACE, TRUTH = SHARED / "traces" / "tr" / "YH1_sub.tr.gz", SHARED / "truth" / "clusters.json"


@pytest.fixture(scope="module")
def yahoo():
    if not (TRACE.exists() and TRUTH.exists()):
        pytest.skip("the trace YH1_sub and the published figures are not here")
    workload = read(TRACE, Options(), lambda *_: None).workload
    published = json.loads(TRUTH.read_text())["job_completion_time_s"]
    return replace(workload, tasks=workload.tasks.with_columns(pl.col("run_time").floor())), published


def mean_completion(workload, name):
    settings = Federation(service_scale=0.0, heartbeat=30.0)
    outcome = simulate(workload, uniform_fleet(5000, {"slot": 1}, workload.resources), SCHEDULERS[name],
                       federation=settings)
    progress, tasks = outcome.simulation.progress, outcome.simulation.tasks
    assert (outcome.simulation.starts.status == FINISHED).all()
    job = workload.stages["job"].to_numpy()[workload.tasks["stage"].to_numpy()]
    finish, arrival = np.full(len(workload.jobs), -np.inf), np.full(len(workload.jobs), np.inf)
    np.maximum.at(finish, job, progress.start + tasks.run_time)
    np.minimum.at(arrival, job, tasks.arrival)
    return float((finish - arrival).mean())


def test_megha_is_within_a_tenth_of_the_published_simulator(yahoo):
    workload, published = yahoo
    figure = published["megha (10 GMs, 10 LMs, 30 s heartbeat)"]["mean"]
    assert mean_completion(workload, "megha") == pytest.approx(figure, rel=0.1)


def test_one_global_and_one_local_master_are_a_central_queue(yahoo):
    workload, published = yahoo
    figure = published["one central first-in-first-out job queue"]["mean"]
    assert mean_completion(workload, "central") == pytest.approx(figure, rel=0.001)
