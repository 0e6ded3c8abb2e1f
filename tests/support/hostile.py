"""Files in which every string is hostile: it closes scripts and tags, steers terminals, and forges lines."""
import json

import numpy as np
import polars as pl

from fake_runs import write_run
from subak.fleet.table import make_fleet
from subak.resources import Resource
from subak.tables import Provenance
from subak.workload.constraints import CONSTRAINT_TYPE
from subak.workload.table import STAGE_COLUMNS, make_workload

# What runs, should any of it become markup, leaves its mark on the page; each way out of a context is tried.
RUNS = "document.documentElement.dataset.owned='yes'"
MARKUP = (f"</script><script>{RUNS}</script><img src=x onerror={RUNS}>\"'><svg onload={RUNS}></title></style>"
          f"]]>--><!--&lt;script&gt;`${{{RUNS}}}`\\\"+datum+\\")
STEERING = "\u202eright\u2066\u2028\x9b31mC1"  # what a name of a queue may hold
FORGED = "FORGED"
EVIL = f"[bold red]{MARKUP}{STEERING}\x1b[31m\x1b]0;title\x07\r\n\t{FORGED}\x7f"
NAME = f"[bold red]{MARKUP}{STEERING}"  # on one line, for names that must be
FILE = f"<img src=x onerror={RUNS}>\x1b[31m\u202e\n{FORGED}[red]"  # of a file
CPU = (Resource("cpu", 1e-3, f"cores{EVIL}"),)
JOBS, TASKS = 24, 10


def provenance():
    """Where data came from, in nothing but hostile words."""
    return Provenance(EVIL, EVIL, EVIL, {EVIL: {EVIL: EVIL}, "list": [EVIL]})


def write_site(folder):
    """Write a workload whose tasks wait for each other, with a fleet too small for it."""
    random = np.random.default_rng(3)
    constraint = [{"attribute": EVIL, "operator": "=", "value": EVIL}]
    jobs = pl.DataFrame({"job": [f"{job}{EVIL}" for job in range(JOBS)], "user": [EVIL] * JOBS,
                         "queue": [f"org{job % 2}/{NAME}/{job % 3}" for job in range(JOBS)]})
    stages = pl.DataFrame({
        "job": range(JOBS), "name": [EVIL] * JOBS, "depends_on": [[]] * JOBS, "kind": ["TASK"] * JOBS,
        "priority": [0] * JOBS, "constraints": pl.Series([constraint] * JOBS, dtype=pl.List(CONSTRAINT_TYPE)),
        "cpu": [1.0] * (JOBS - 1) + [64.0]}, schema={**STAGE_COLUMNS, "cpu": pl.Float64})
    arrival = np.sort(random.uniform(0, 100, JOBS * TASKS))
    tasks = pl.DataFrame({"stage": np.repeat(np.arange(JOBS), TASKS), "index": np.tile(np.arange(TASKS), JOBS),
                          "arrival": arrival, "run_time": random.lognormal(2, 1, JOBS * TASKS)})
    folder.mkdir(parents=True)
    (folder / "fleet").mkdir()
    make_workload(jobs, stages, tasks, CPU, provenance()).write(folder)
    machines = pl.DataFrame({"machine": [f"{number}{EVIL}" for number in range(3)], "cluster": EVIL, "cpu": 4.0})
    attributes = pl.DataFrame({"machine": range(3), "attribute": EVIL, "value": EVIL})
    make_fleet(machines, CPU, attributes, provenance=provenance()).write(folder / "fleet")
    return folder


def write_tree(path, names=(f"org0/{NAME}/0", f"org0/{NAME}/2", "org1")):
    """Write queues of hostile names, one of them above others."""
    lines = ["[capacity]", f"{json.dumps(EVIL)} = 8", "cpu = 9"]
    for name in names:
        lines += ["[[queue]]", f"name = {json.dumps(name)}", f"demand = {{ cpu = 1, {json.dumps(EVIL)} = 2 }}"]
    path.write_text("\n".join(lines).replace("\x7f", "\\u007f"), encoding="utf-8")
    return path


def write_policy(folder):
    """Write a policy into a file of a hostile name, with a hostile docstring."""
    path = folder / f"{FILE}.py"
    path.write_text("from subak.policy import next_fitting, policy\n\n\n@policy\ndef mine(fleet, tasks, task):\n"
                    f"    {json.dumps(EVIL)}\n    return next_fitting(fleet, tasks, task, 0)\n", encoding="utf-8")
    return path


def write_hostile_run(folder, label=EVIL):
    """Write a run folder in which everything that may be any word is a hostile one."""
    queue = {"queue": EVIL, "share": 0.5, "used": 0.5, "used_at_end": 0.1, "tasks": 5, "waiting_at_end": 1}
    spread = {"mean": 1.0, "median": 1.0, "p90": 1.0, "p99": 1.0, "p999": 1.0, "max": 2.0}
    write_run(
        folder, label, tasks=500, options={EVIL: EVIL}, versions={EVIL: EVIL}, scheduler=label, makespan_bound=5.0,
        workload={"name": EVIL, "origin": EVIL, "licence": EVIL, "tasks": 500, "jobs": 50},
        fleet={"name": EVIL, "machines": 3}, status={EVIL: 3, "FINISHED": 4},
        resources=[{"name": "cpu", "unit": 1.0, "of": EVIL}, {"name": "memory", "unit": 1.0, "of": EVIL}],
        reasons=[{"status": EVIL, "reason": EVIL, "tasks": 3}],
        plan={"notes": [EVIL]}, federation={
            "settings": {EVIL: EVIL}, "service": {EVIL: 1e-6}, "allocation": spread, "parts": {"processing": spread},
            "messages": {EVIL: 3}, "counts": {EVIL: 4}, "roles": {EVIL: {"roles": 2}}, "queues": [queue]})
    tasks = pl.read_parquet(folder / "tasks.parquet").with_columns(
        pl.lit(EVIL).alias("machine"), pl.lit(EVIL).alias("queue"), pl.lit(EVIL).alias("reason"),
        allocation=pl.col("wait_time"))
    tasks.write_parquet(folder / "tasks.parquet")
    stints = {"kind": ["map", "reduce"], "machine": [EVIL, EVIL], "slot": [0, 0], "job": [EVIL, f"2{EVIL}"],
              "begin": [0.0, 9.0], "end": [8.0, 9e4], "tasks": [3, 1]}
    pl.DataFrame(stints).write_parquet(folder / "stints.parquet")
    return folder
