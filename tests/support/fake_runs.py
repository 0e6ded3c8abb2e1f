"""Run folders that no simulator made: lognormal waits, a daily load, and every status, in the documented form."""
import json
from pathlib import Path

import numpy as np
import polars as pl

DAY = 86_400.0
RESOURCES = [{"name": "cpu", "unit": 1e-3, "of": "cores"}, {"name": "memory", "unit": 1.0, "of": "MiB"}]
STATUSES = ["NOT_ARRIVED", "BLOCKED", "WAITING", "RUNNING", "FINISHED", "UNPLACEABLE"]
SEVERITY = {"first-fit": 1.0, "best-fit": 0.8, "tetris": 0.35, "lotes": 0.2}


def write_run(folder, label="first-fit", seed=1, tasks=4_000, days=8.0, severity=None, **changes):
    """Write one run folder and return it; *changes* overwrite keys of summary.json."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    random = np.random.default_rng([seed, len(label)])
    name = label.removesuffix(f"-s{seed}")
    table = _tasks(random, tasks, days, SEVERITY.get(name, 0.6) if severity is None else severity)
    table.write_parquet(folder / "tasks.parquet")
    timeline = _timeline(random, table, days, SEVERITY.get(name, 0.6))
    timeline.write_parquet(folder / "timeline.parquet")
    summary = {**_summary(table, timeline, label, name, seed), **changes}
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def write_comparison(folder, labels=("first-fit", "best-fit", "tetris", "tetris-s2", "lotes"), **options):
    """Write a comparison folder and return it; a label may end in its seed, as in tetris-s2."""
    for label in labels:
        name, _, seed = label.rpartition("-s")
        write_run(Path(folder) / "runs" / label, label, int(seed) if name and seed.isdigit() else 1, **options)
    return Path(folder)


def _tasks(random, count, days, severity):
    arrival = np.sort(random.uniform(0, days * DAY, count))
    run_time = random.lognormal(5, 1.6, count)
    rush = 1 + 4 * np.clip(np.sin(arrival / DAY * 2 * np.pi), 0, 1)
    wait = np.where(random.random(count) < 0.6 - 0.3 * severity, 0.0,
                    random.lognormal(2.5, 2.2, count) * severity * rush)
    status = np.full(count, "FINISHED", dtype=object)
    status[-40:] = "RUNNING"
    status[-20:] = "WAITING"
    status[::1000] = "UNPLACEABLE"
    started = np.isin(status, ["FINISHED", "RUNNING"])
    reason = {"WAITING": "no machine has 2 cores free", "UNPLACEABLE": "needs 96 cores, the largest machine has 64"}
    return pl.DataFrame({
        "job": pl.Series(np.arange(count) // 10, dtype=pl.UInt32),
        "index": pl.Series(np.arange(count) % 10, dtype=pl.UInt32),
        "queue": pl.Series(["org/batch"] * count, dtype=pl.Categorical),
        "arrival": arrival, "run_time": run_time, "ready": arrival,
        "start": arrival + wait, "wait_time": wait, "finish": arrival + wait + run_time,
        "machine": "m1", "attempts": pl.Series(started.astype(np.uint16)),
        "status": pl.Series(status.tolist(), dtype=pl.Enum(STATUSES)),
        "reason": [reason.get(value) for value in status],
    }).with_columns(
        pl.when(pl.Series(started)).then(pl.col(name)).alias(name)
        for name in ("start", "wait_time", "finish", "machine")
    )


def _timeline(random, tasks, days, severity):
    time = np.arange(0, days * DAY, 300.0)
    wave = 0.62 + 0.25 * np.sin(time / DAY * 2 * np.pi) + random.normal(0, 0.03, len(time))
    waiting = np.clip(np.exp(9 * (wave - 0.45)) * severity * 20 - 5, 0, None)
    cpu, memory = 40_000.0, 160_000.0
    return pl.DataFrame({
        "time": time, "span": 300.0, "arrivals": 10, "starts": 10, "ends": 10, "lost": 0,
        "waiting": waiting, "waiting_max": np.ceil(waiting * 1.5), "running": wave * 5000,
        "used_cpu": np.clip(wave * (1.1 - 0.2 * severity), 0, 1) * cpu, "capacity_cpu": cpu,
        "stranded_cpu": np.clip(wave - 0.6, 0, 1) * severity * cpu * 0.4,
        "used_memory": np.clip(wave * 0.7, 0, 1) * memory, "capacity_memory": memory,
        "stranded_memory": np.clip(wave - 0.7, 0, 1) * severity * memory * 0.2,
    })


def _summary(tasks, timeline, label, name, seed):
    started = tasks.drop_nulls("wait_time").with_columns(
        ((pl.col("wait_time") + pl.col("run_time")) / pl.max_horizontal("run_time", 10.0)).clip(1).alias("slowdown"))
    reasons = tasks.drop_nulls("reason").group_by("status", "reason", maintain_order=True).len("tasks")
    return {
        "scheduler": name, "label": label, "seed": seed, "options": {"window": 5},
        "workload": {"name": "Synthetic month", "origin": "tests/support/fake_runs.py", "licence": "CC0-1.0",
                     "tasks": len(tasks), "jobs": tasks["job"].n_unique()},
        "fleet": {"name": "four clusters", "machines": 640}, "resources": RESOURCES,
        "status": {status: int((tasks["status"] == status).sum()) for status in STATUSES},
        "reasons": [{**row, "status": str(row["status"])} for row in reasons.to_dicts()],
        "wait_time": spread(started["wait_time"]), "slowdown": spread(started["slowdown"]),
        "makespan": tasks["finish"].max(),
        "utilisation": {r: timeline[f"used_{r}"].sum() / timeline[f"capacity_{r}"].sum() for r in ("cpu", "memory")},
        "stranded": {r: timeline[f"stranded_{r}"].sum() / timeline[f"capacity_{r}"].sum() for r in ("cpu", "memory")},
        "waiting": {"mean": timeline["waiting"].mean(), "max": timeline["waiting_max"].max()},
        "attempts_lost": 0,
        "run_time_lost": 0.0,
        "speed": {"tasks_per_second": 1.2e6, "events": 2 * len(tasks), "seconds": 0.4, "peak_memory_bytes": 3.1e8},
        "versions": {"subak": "0.1.0", "numba": "0.61.0"},
    }


def spread(values):
    """The six numbers of a distribution."""
    points = {"median": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    return {"mean": values.mean(), "max": values.max(), **{name: values.quantile(q) for name, q in points.items()}}
