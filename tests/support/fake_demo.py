"""A comparison like the demo's, that no simulator made: hundreds of queues with long names, and hours of draining."""
import json

import numpy as np
import polars as pl

from fake_runs import write_run

DEMO = ("first-fit", "first-fit+backfill", "best-fit+backfill", "greedy", "tetris")
LAST_ARRIVAL = 5_400.0  # seconds; the runs go on for more than a day
LETTERS = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+_"))
PARTS = ("framework_queueing", "processing", "worker_queueing", "communication")


def write_demo(folder, labels=DEMO, queues=518, tasks=2_000, federated=False):
    """Write the folder and return it; a label may end in its seed."""
    names = _names(queues)
    for number, label in enumerate(labels):
        name, _, seed = label.rpartition("-s")
        run = write_run(folder / "runs" / label, label, int(seed) if name and seed.isdigit() else 1, tasks, days=1.2)
        random = np.random.default_rng(number)
        _crowd(run, names, random)
        shares = _shares(names[:40], random)
        shares.write_parquet(run / "shares.parquet")
        _queues(names, random).write_parquet(run / "queues.parquet")
        facts = json.loads((run / "summary.json").read_text())
        facts["window"] = {"begin": 0.0, "end": LAST_ARRIVAL, "why": "up to the last arrival", "tasks": tasks}
        facts["fairness"] = {"levels": [{"level": 1, "queues": queues, "jain": 0.1 + 0.05 * number, "shortfall": 900.0,
                                         "short": 55, "starved_longest": 5e4}], "queues": queues, "short": 55,
                             "shortfall": 900.0, "shortfall_mean": 0.001 * (number + 1), "demanding": 1e6,
                             "starved_longest": 5e4}
        if federated:
            facts["federation"] = _federation(names, facts["wait_time"])
        (run / "summary.json").write_text(json.dumps(facts))
    return folder


def _names(count):
    random = np.random.default_rng(7)
    return ["".join(random.choice(LETTERS, 43)) + "=" for _ in range(count)]


def _crowd(run, names, random):
    """Let all tasks arrive early, in many queues; count messages over time."""
    tasks = pl.read_parquet(run / "tasks.parquet")
    early = tasks["arrival"] * (LAST_ARRIVAL / tasks["arrival"].max())
    tasks.with_columns(early.alias("arrival"), early.alias("ready"), (early + tasks["wait_time"]).alias("start"),
                       pl.Series("queue", random.choice(names, len(tasks)))).write_parquet(run / "tasks.parquet")
    timeline = pl.read_parquet(run / "timeline.parquet")
    counted = {name: random.integers(0, 10**power, len(timeline)) for name, power in
               (("messages", 5), ("refusals", 3), ("repartitions", 3), ("preemptions", 2))}
    timeline.with_columns(**{name: pl.Series(values) for name, values in counted.items()}).write_parquet(
        run / "timeline.parquet")


def _shares(names, random):
    times = np.arange(0, LAST_ARRIVAL, 15.0)  # of the window that is measured, as a run writes them
    held = {name: np.clip(0.3 / (rank + 1) + random.normal(0, 0.01, len(times)), 0, 1)
            for rank, name in enumerate(names)}
    return pl.concat(pl.DataFrame({"time": times, "span": 15.0, "queue": name, "level": 1, "share": held[name],
                                   "guarantee": 0.002}) for name in names)


def _queues(names, random):
    lacked = np.sort(random.lognormal(2, 2, len(names)))[::-1]
    return pl.DataFrame({"queue": names, "level": 1, "leaf": True, "share_mean": 0.001, "guarantee_mean": 0.002,
                         "shortfall": lacked, "shortfall_mean": lacked / 1e5, "starved_longest": lacked * 10,
                         "demanding": 1e5})


def _federation(names, wait):
    return {"settings": {"global_masters": 10}, "service": {"LAUNCH": 1e-5}, "allocation": wait,
            "parts": {name: wait for name in PARTS}, "messages": {"LAUNCH": 10, "LAUNCHED": 9},
            "counts": {"launches": 10, "refused: not free": 1},
            "roles": {"global master": {"roles": 10, "busy": 0.1, "busy_max": 0.2, "inbox_wait": 1e-4}},
            "queues": [{"queue": name, "share": 0.1, "used": 0.1, "used_at_end": 0.0, "tasks": 5}
                       for name in names[:20]]}
