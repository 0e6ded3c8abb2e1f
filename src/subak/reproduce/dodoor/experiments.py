"""The experiments of the Dodoor paper: virtual machines on four kinds of machines, against Sparrow.

The paper has 10,000 requests of Azure's packing trace on 100 machines of CloudLab, with 5 schedulers. The requests here
are drawn: sizes by how often they occur among the authors' 10,000 that run for a minute at most, run times by their
quantiles, arrivals at random. What the machines, batches and weights are is from the authors' program.
"""
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from subak.federation.messages import (
    ADD_LOAD,
    ASSIGN,
    BOUNCED,
    ENQUEUE,
    FETCH,
    LOADS,
    NOTHING_LEFT,
    PROBE,
    SET_LOAD,
)
from subak.federation.settings import Federation
from subak.fleet.table import Fleet, make_fleet
from subak.policy import find_scheduler
from subak.reproduce.claims import (
    OF_SEVERAL,
    Figure,
    Notify,
    Reproduction,
    choose_figures,
    judge_all,
    over_seeds,
)
from subak.reproduce.dodoor.published import CLAIMS
from subak.reproduce.workloads import RESOURCES, Sample, workload_of
from subak.simulator.results import finish_times
from subak.simulator.simulate import simulate
from subak.workload.table import Workload

KINDS = ((8.0, 64.0), (10.0, 64.0), (16.0, 128.0), (28.0, 128.0))  # cores, GB: m510, xl170, c6525-25g, c6620
EACH = 25  # machines of a kind
SIZES = {  # cores, GB: share of the requests
    (2.0, 4.78): 0.41, (1.0, 2.39): 0.24, (4.0, 9.56): 0.10, (4.0, 21.84): 0.08, (4.0, 19.11): 0.04,
    (1.0, 5.46): 0.04, (2.0, 21.84): 0.03, (0.42, 1.37): 0.03, (1.0, 0.51): 0.03,
}
RUN_TIME = {0.0: 1.0, 0.05: 7.0, 0.25: 34.2, 0.5: 47.1, 0.75: 55.2, 0.95: 59.2, 1.0: 60.0}  # quantiles, seconds
LOADS_TRIED = (0.5, 0.8, 0.95, 1.5)  # cores that are asked for, of those that there are, while requests arrive
TAIL = 0.95
MESSAGES = (PROBE, FETCH, ASSIGN, NOTHING_LEFT, BOUNCED, ENQUEUE, ADD_LOAD, SET_LOAD, LOADS)
SCHEDULERS: dict[str, tuple[str, dict[str, Any]]] = {  # what each is called here: its name, and what it is set to
    "dodoor": ("dodoor", {"push_ratio": 0.8}), "sparrow": ("sparrow", {"sampling": "task"}),
    "fresh": ("dodoor", {"push_ratio": 0.0, "report_tasks": 1}), "random": ("dodoor", {"push_ratio": 1000.0}),
}
FIGURES = ("azure",)


class Scale(NamedTuple):
    """How large the experiment is."""

    seeds: int = 10
    requests: int = 10_000


QUICK = Scale(seeds=3, requests=2_000)


class Bench(NamedTuple):
    """What all runs have in common."""

    scale: Scale
    seed: int
    notify: Notify


def machines() -> Fleet:
    """Return as many machines of each kind."""
    rows = [(f"m{kind}-{number}", "c", True, *size) for number in range(EACH) for kind, size in enumerate(KINDS)]
    table = pl.DataFrame(rows, schema=["machine", "cluster", "present", "cpu", "memory"], orient="row")
    return make_fleet(table, RESOURCES)


def requests(count: int, load: float, seed: int) -> Workload:
    """Return so many virtual machines, each a job, that arrive at random so that cores are asked for at this *load*."""
    drawn = np.random.default_rng(seed)
    sizes = np.array(list(SIZES))
    size = sizes[drawn.choice(len(SIZES), count, p=np.array(list(SIZES.values())) / sum(SIZES.values()))]
    run_time = np.interp(drawn.random(count), list(RUN_TIME), list(RUN_TIME.values()))
    cores = EACH * sum(cores for cores, _ in KINDS)
    arrival = np.cumsum(drawn.exponential((size[:, 0] * run_time).mean() / (load * cores), count))
    return workload_of(Sample("azure-like", "drawn to the shares and quantiles of the authors' requests", arrival,
                              run_time, size[:, 0], size[:, 1], np.arange(count)))


def azure(bench: Bench) -> Figure:
    """Return messages, throughput and latencies of each scheduler at each load, over all seeds."""
    every = [(bench.seed + number, load, name) for number in range(bench.scale.seeds) for load in LOADS_TRIED
             for name in SCHEDULERS]
    rows = []
    for place, (seed, load, name) in enumerate(every):
        bench.notify(f"load {load:g}: {name}, seed {seed}", place / len(every))
        rows.append({"seed": seed, "load (share)": load, "scheduler": name,
                     **_measured(requests(bench.scale.requests, load, seed), name, seed)})
    points = pl.DataFrame(rows)
    seeds = points["seed"].unique().sort()
    of_seed = [Figure("azure", "", points, _numbers(points.filter(seed=seed))) for seed in seeds]
    table = points.drop("seed").group_by("load (share)", "scheduler", maintain_order=True).mean()
    title = f"{bench.scale.requests:,} virtual machines on {EACH * len(KINDS)} machines of four kinds"
    return over_seeds(of_seed)._replace(title=title, table=table, points=table, notes=(
        f"Means over {bench.scale.seeds} seeds; the requests are drawn to the trace's shares and quantiles",))


def _measured(workload: Workload, name: str, seed: int) -> dict[str, float]:
    scheduler, settings = SCHEDULERS[name]
    outcome = simulate(workload, machines(), find_scheduler(scheduler), seed,
                       federation=Federation(global_masters=5, **settings))
    assert outcome.federated is not None
    end = finish_times(outcome)
    latency = end - workload.tasks["arrival"].to_numpy()
    messages = int(outcome.federated.network.handled[list(MESSAGES)].sum())
    return {"messages a task": messages / latency.size, "tasks a second": latency.size / float(end.max()),
            "mean (s)": float(latency.mean()), "95 % (s)": float(np.quantile(latency, TAIL))}


def _numbers(points: pl.DataFrame) -> dict[str, float]:
    """Return what is claimed, of one seed, at each load; of the loads `over_seeds` takes that with the least."""
    of = {name: points.filter(scheduler=name).sort("load (share)") for name in SCHEDULERS}
    ratios = {
        "messages": of["dodoor"]["messages a task"] / of["sparrow"]["messages a task"],
        "throughput": of["sparrow"]["tasks a second"] / of["dodoor"]["tasks a second"],
        "mean": of["dodoor"]["mean (s)"] / of["sparrow"]["mean (s)"],
        "tail": of["dodoor"]["95 % (s)"] / of["sparrow"]["95 % (s)"],
        "mean over fresh": of["dodoor"]["mean (s)"] / of["fresh"]["mean (s)"],
        "mean over random": of["dodoor"]["mean (s)"] / of["random"]["mean (s)"],
    }
    return {f"{name}{OF_SEVERAL}load {load:g}": float(ratio) for name, every in ratios.items()
            for load, ratio in zip(of["dodoor"]["load (share)"], every, strict=True)}


def chosen_figures(only: str | None, past_the_paper: bool) -> list[str]:
    """Return the keys of the figures that are wanted; there is nothing past the paper."""
    return choose_figures(only, FIGURES, FIGURES)


def reproduce(bench: Bench, keys: Iterable[str]) -> Reproduction:
    """Measure, and judge."""
    figures = tuple({"azure": azure}[key](bench) for key in keys)
    return Reproduction(figures, judge_all(CLAIMS, figures), ())
