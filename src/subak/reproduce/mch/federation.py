"""MCH and H-DRF in a federation: how far shares are missed when views are stale."""
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import polars as pl

from subak.federation.choices import ROUND_ROBIN
from subak.federation.settings import Federation
from subak.fleet.table import Fleet
from subak.queues.tree import Queue, TreeFile
from subak.reproduce import workloads as made
from subak.reproduce.claims import Figure
from subak.reproduce.federated_runs import federated_run, spread
from subak.reproduce.mch.study import Bench, Scale
from subak.reproduce.workloads import FOUR_QUEUES
from subak.workload.table import Workload


def federation(bench: Bench) -> Figure:
    """Return how far shares are missed when global masters serve their queues by fair orders, on stale views."""
    scale, rows = bench.scale, []
    shares = FOUR_QUEUES["shares"]
    file = TreeFile(queue=[Queue(name=name, weight=weight) for name, weight in shares.items()])
    for varied, value, settings, load in _cases(scale):
        sample = made.steady(scale.steady, scale.workers, load, bench.seed)
        workload = made.workload_of(sample, None, made.deal_queues(sample, bench.seed))
        for fairness, turns in product(("off", "strict"), (ROUND_ROBIN, "hdrf-fast", "mch")):
            chosen = Federation(**settings, shares=shares, preemption=fairness, queue_order=turns)
            label = f"{varied} {value}, {turns}, fairness {fairness}"
            fleet = made.machines(scale.workers)
            measured = bench.once(f"{load} {chosen}", partial(_measured, bench, label, workload, fleet, chosen, file))
            rows.append({"varied": varied, "value": value, "fairness": fairness, "queue_order": turns, **measured})
    title = (f"In the federation: {scale.steady:,} tasks of four queues on {scale.workers:,} workers; unless varied: "
             "heartbeat 10 s, 3 global masters, load 95 %")
    table = pl.DataFrame(rows)
    return Figure("federation", title, table, _federation_numbers(table))


def _measured(
    bench: Bench, label: str, workload: Workload, fleet: Fleet, settings: Federation, file: TreeFile
) -> dict[str, float]:
    """Return what is asked of one run, by the names of columns."""
    run = federated_run(label, workload, fleet, "megha", settings, bench.seed, bench.notify, file)
    times = spread(run)
    return {"unfairness (share)": run.unfairness, "median (s)": times["median (s)"], "p99 (s)": times["p99 (s)"],
            "refused (share)": run.refusals / max(run.requests, 1), "preemptions": run.preemptions}


def _cases(scale: Scale) -> Iterator[tuple[str, str, dict[str, Any], float]]:
    """Yield what is varied, its value in words, the settings, and the load."""
    for period in scale.heartbeats:
        yield "heartbeat", f"{period:g} s", _masters(3) | {"heartbeat": period}, 0.95
    for count in scale.masters:
        yield "global masters", str(count), _masters(count), 0.95
    for load in scale.loads:
        yield "load", f"{load:.0%}", _masters(3), load


def _masters(count: int) -> dict[str, Any]:
    """Return so many global masters; with three, the queues belong to them as in the Megha paper, else go round."""
    if count == FOUR_QUEUES["global_masters"]:
        return {"global_masters": count, "masters_of": FOUR_QUEUES["masters_of"]}
    return {"global_masters": count, "masters_of": {name: number % count for number, name in enumerate(made.QUEUES)}}


def _federation_numbers(table: pl.DataFrame) -> dict[str, float]:
    """Return the mean unfairness of each rule and turns over all cases."""
    means = table.group_by("fairness", "queue_order").agg(pl.col("unfairness (share)").mean())
    return {f"{turns}, {fairness}": float(value) for fairness, turns, value in means.iter_rows()}
