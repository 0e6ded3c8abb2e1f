"""The experiments of the Megha paper, each claim beside the result.

A figure is a table of measurements and some named numbers of it; the claims (megha_paper.py) are bounds on those.
"""
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl

from subak.federation.messages import PROFILES
from subak.federation.settings import PREEMPTIONS_MAX, Federation
from subak.fleet.table import Fleet
from subak.reproduce import workloads as made
from subak.reproduce.claims import OF_SEVERAL, Figure, Reproduction, choose_figures, judge_all, over_seeds
from subak.reproduce.federated_runs import PARTS, Run, spread
from subak.reproduce.megha.prototype.published import CLAIMS as OF_PROTOTYPE
from subak.reproduce.megha.published import (
    CLAIMS,
    DEAR_UPDATES,
    DEMANDS,
    HERE,
    HTTP,
    LARGE_VIEWS,
    SENDING,
)
from subak.reproduce.megha.study import Study
from subak.reproduce.workloads import FOUR_QUEUES
from subak.workload.table import Workload

DISTRIBUTION_POINTS = 400
MACHINE_COSTS_US = (1.0, 10.0)  # of a whole state, for each machine in it: assumed, and as a slower master may take
MASTERS = "python"  # the profile of service times: the paper's masters were Python processes
COSTLY = PROFILES[MASTERS]
# 10 masters of each sort, heartbeat 10 s, delay 0.5 ms; updates are whole states.
PAPER = Federation(service_profile=MASTERS, updates="full", part=dict.fromkeys(COSTLY.part, MACHINE_COSTS_US[0] * 1e-6))
CHANGES = Federation(service_profile=MASTERS)  # the same, but updates carry what changed
NO_COSTS = msgspec.structs.replace(PAPER, service_scale=0.0)  # Sparrow: delays only (section V-B)
# Of Fig. 7: (service times times this, delay of a message in seconds); the first is the paper's delay with masters as
# fast as the profile says, then messages as slow as HTTP calls, then masters ten times as slow.
COSTS = ((1.0, 0.0005), (1.0, 0.005), (10.0, 0.005), (10.0, 0.0005))
PREEMPTIONS_UNLIMITED = PREEMPTIONS_MAX  # Algorithm 2 does not say how often a task may be preempted
HEARTBEATS_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0)
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
SWEEP_LOAD = 0.9
PROTOTYPE_DRAWN = 20_000  # tasks of Google's, of which the prototype runs as many short ones as make its load


# Figures 3 to 5 and 7: the cloudera-like workload


def _cloudera(study: Study) -> made.Sample:
    sample: made.Sample = study.once("cloudera", lambda: made.cloudera_like(study.seed, study.scale.cloudera,
                                                                            study.scale.workers))
    return sample


def _compared(study: Study) -> dict[str, Run]:
    """Return Megha's and Sparrow's runs of the cloudera-like workload."""
    def make() -> dict[str, Run]:
        workload, fleet = made.workload_of(_cloudera(study)), made.machines(study.scale.workers)
        return {"megha": study.run("Fig. 3: Megha", workload, fleet, "megha", PAPER),
                "sparrow": study.run("Fig. 3: Sparrow", workload, fleet, "sparrow", NO_COSTS)}
    runs: dict[str, Run] = study.once("compared", make)
    return runs


def figure_3(study: Study) -> Figure:
    """Return the distribution of the allocation times of Megha and Sparrow."""
    levels = np.linspace(0, 1, DISTRIBUTION_POINTS + 1)
    runs = _compared(study)
    table = pl.concat([pl.DataFrame({"scheduler": [name] * len(levels), "share": levels,
                                     "allocation time (s)": np.quantile(run.allocation, levels)})
                       for name, run in runs.items()])
    return Figure("3", f"Allocation times, {study.scale.workers:,} workers", table, {
        "megha max": float(runs["megha"].allocation.max()), "sparrow max": float(runs["sparrow"].allocation.max())})


def figure_4(study: Study) -> Figure:
    """Return the quantiles of Megha and Sparrow."""
    runs = _compared(study)
    table = pl.DataFrame([{"scheduler": name, **spread(run)} for name, run in runs.items()])
    megha, sparrow = (spread(runs[name]) for name in ("megha", "sparrow"))
    return Figure("4", "Quantiles of the allocation time", table, {
        "megha median": megha["median (s)"], "sparrow median": sparrow["median (s)"],
        "median ratio": megha["median (s)"] / sparrow["median (s)"],
        "p99 ratio": sparrow["p99 (s)"] / megha["p99 (s)"]})


def figure_5(study: Study) -> Figure:
    """Return the worker slots that the cloudera-like workload wants over time."""
    sample = _cloudera(study)
    time = np.sort(np.concatenate([sample.arrival + sample.run_time, sample.arrival]))
    wanted = made.demand_at_events(sample, np.ones(len(sample.arrival)))
    places = np.unique(np.linspace(0, len(time) - 1, DISTRIBUTION_POINTS).astype(np.int64))
    table = pl.DataFrame({"time (s)": time[places], "slots wanted": wanted[places].astype(np.int64)})
    return Figure("5", "Worker slots wanted by the cloudera-like workload", table, {
        "peak demand": float(wanted.max()), "peak load": float(wanted.max()) / study.scale.workers})


def figure_7(study: Study) -> Figure:
    """Return the parts of Megha's allocation time, for faster and slower masters and messages."""
    workload, fleet = made.workload_of(_cloudera(study)), made.machines(study.scale.workers)
    rows, numbers = [], {}
    for scale, delay in COSTS:
        case = f"service x {scale:g}, messages {1000 * delay:g} ms"
        settings = msgspec.structs.replace(PAPER, service_scale=scale, delay=delay)
        run = _compared(study)["megha"] if settings == PAPER else study.run(
            f"Fig. 7: {case}", workload, fleet, "megha", settings)
        medians = {name: float(np.median(run.parts[name])) for name in PARTS}
        means = {name: float(run.parts[name].mean()) for name in PARTS}
        for name in PARTS:
            rows.append({"costs": case, "part": name, "median (s)": medians[name],
                         "of the medians (share)": medians[name] / sum(medians.values()), "mean (s)": means[name],
                         "of the means (share)": means[name] / sum(means.values())})
            numbers[f"{name}, {case}"] = medians[name] / sum(medians.values())
        numbers[f"median, {case}"] = float(np.median(run.allocation))
        numbers[f"queued, {case}"] = medians["framework queueing"]
    queued = [numbers[f"queued, {case}"] for case in (HTTP, HERE)]
    numbers["queued by messages"] = queued[0] / queued[1] if queued[1] else float("nan")
    return Figure("7", "Parts of Megha's allocation time", pl.DataFrame(rows), numbers)


# Figures 6, 8 and 9: the alibaba-like workload, with constraints


def _alibaba(study: Study) -> made.Sample:
    def make() -> made.Sample:
        if study.alibaba is None:
            return made.alibaba_stand_in(study.seed, study.scale.alibaba, study.google)
        study.notify("Reading the Alibaba trace", 0.0)
        return made.alibaba_sample(study.alibaba, study.scale.alibaba)
    sample: made.Sample = study.once("alibaba", make)
    return sample


def _constrained(study: Study) -> Workload:
    def make() -> Workload:
        sample = _alibaba(study)
        return made.workload_of(sample, made.draw_constraints(len(sample.arrival), study.seed))
    workload: Workload = study.once("constrained", make)
    return workload


def _constrained_machines(study: Study, count: int, clusters: int = 10) -> Fleet:
    fleet: Fleet = study.once(f"machines {count} {clusters}", lambda: made.machines(count, clusters, study.seed))
    return fleet


def _machine_cost(settings: Federation, micro_seconds: float) -> Federation:
    return msgspec.structs.replace(settings, part=dict.fromkeys(COSTLY.part, micro_seconds * 1e-6))


def figure_6(study: Study) -> Figure:
    """Return allocation times of one global and one local master against ten of each."""
    rows: list[dict[str, Any]] = []
    numbers = {}
    for workers in study.scale.central_workers:
        for cost in MACHINE_COSTS_US:
            means = {}
            for scheduler, name in (("central", "centralized"), ("megha", "decentralized")):
                run = study.run(f"Fig. 6: {name}, {workers:,} workers", _constrained(study),
                                _constrained_machines(study, workers), scheduler, _machine_cost(PAPER, cost))
                rows.append({"workers": workers, "masters": name, "per machine of an update": f"{cost:g} µs",
                             **spread(run), "never placeable": run.unplaceable})
                means[name] = rows[-1]["mean (s)"]
                if scheduler == "central":
                    numbers[f"longer {cost:g}{OF_SEVERAL}{workers:,} workers"] = _longer_at_the_end(run)
            numbers[f"ratio {cost:g}{OF_SEVERAL}{workers:,} workers"] = means["centralized"] / means["decentralized"]
    return Figure("6", "Centralized against decentralized", pl.DataFrame(rows), numbers)


def _longer_at_the_end(run: Run) -> float:
    """Return how many times as long the last tenth of the tasks waits as the first: about 1 where a master keeps up."""
    tenth = len(run.allocation) // 10
    return float(run.allocation[-tenth:].mean() / run.allocation[:tenth].mean()) if tenth else float("nan")


def figure_8(study: Study) -> Figure:
    """Return allocation times as the data center grows and the masters do not."""
    rows, numbers = [], {}
    for updates, settings in (("full", PAPER), ("changes", CHANGES)):
        found = []
        for workers in study.scale.sizes:
            run = study.run(f"Fig. 8: {workers:,} workers, updates {updates}", _constrained(study),
                            _constrained_machines(study, workers), "megha", settings)
            found.append(spread(run))
            rows.append({"updates": updates, "workers": workers, **found[-1],
                         "inconsistent (share)": _inconsistent(run), "never placeable": run.unplaceable})
        for name, level in (("mean (s)", "growth"), ("median (s)", "median growth"), ("p99.99 (s)", "tail growth")):
            numbers[f"{level}, {updates}"] = found[-1][name] / found[1][name]
            numbers[f"whole {level}, {updates}"] = found[-1][name] / found[0][name]
    numbers["constraints"] = _cost_of_constraints(study)
    return Figure("8", "Allocation times by size, 10 global and 10 local masters", pl.DataFrame(rows), numbers)


def _cost_of_constraints(study: Study) -> float:
    """Return the mean allocation time in the smallest data center, by that of the same tasks without constraints."""
    workers = study.scale.sizes[0]
    fleet = _constrained_machines(study, workers)
    mean = [spread(study.run(f"Fig. 8: {workers:,} workers, {words}", workload, fleet, "megha", PAPER))["mean (s)"]
            for words, workload in (("updates full", _constrained(study)),
                                    ("no constraints", made.workload_of(_alibaba(study))))]
    return mean[0] / mean[1]


def _inconsistent(run: Run) -> float:
    return run.refusals / max(run.requests, 1)


def figure_9(study: Study) -> Figure:
    """Return allocation times by the numbers of masters."""
    rows, mean = [], {}
    for globals_, locals_ in study.scale.masters:
        settings = msgspec.structs.replace(PAPER, global_masters=globals_, local_masters=locals_)
        run = study.run(f"Fig. 9: {globals_} GMs, {locals_} LMs", _constrained(study),
                        _constrained_machines(study, study.scale.masters_workers), "megha", settings)
        rows.append({"global masters": globals_, "local masters": locals_, **spread(run),
                     "inconsistent (share)": _inconsistent(run)})
        mean[globals_, locals_] = rows[-1]["mean (s)"]
    pairs = [(first, second) for first in mean for second in mean]
    numbers = {
        "more global": _mean_change(mean, [(a, b) for a, b in pairs if a[1] == b[1] and a[0] < b[0] <= a[1]]),
        "more local": _mean_change(mean, [(a, b) for a, b in pairs if a[0] == b[0] and a[1] < b[1]]),
        "beyond": _mean_change(mean, [(a, b) for a, b in pairs if a[1] == b[1] == a[0] < b[0]]),
    }
    title = f"Allocation times by the numbers of masters, {study.scale.masters_workers:,} workers"
    return Figure("9", title, pl.DataFrame(rows), numbers)


def _mean_change(mean: dict[tuple[int, int], float], pairs: list[tuple[Any, Any]]) -> float:
    """Return the mean ratio of the mean allocation times, second to first, nan without pairs."""
    return float(np.mean([mean[second] / mean[first] for first, second in pairs])) if pairs else float("nan")


# Figures 10 and 11: fairness


def _fair_runs(study: Study) -> dict[tuple[str, str, int], Run]:
    """Return the runs by demand, rule and size."""
    def make() -> dict[tuple[str, str, int], Run]:
        runs = {}
        for demand, peak in zip(DEMANDS, study.scale.fair_peaks, strict=True):
            sample = made.google_sample(study.seed, study.scale.google, study.google, peak)
            constraints = made.draw_constraints(len(sample.arrival), study.seed)
            workload = made.workload_of(sample, constraints, made.deal_queues(sample, study.seed))
            for rule, most in (("paper", PREEMPTIONS_UNLIMITED), ("strict", PAPER.preemptions_max)):
                for workers in study.scale.fair_workers:
                    runs[demand, rule, workers] = study.run(
                        f"Fig. 10: {demand}, {workers:,} workers, rule {rule}", workload,
                        _constrained_machines(study, workers), "megha",
                        msgspec.structs.replace(PAPER, **FOUR_QUEUES, preemption=rule, preemptions_max=most))
        return runs
    found: dict[tuple[str, str, int], Run] = study.once("fair", make)
    return found


def figure_10(study: Study) -> Figure:
    """Return allocation times with four queues that contend."""
    runs = _fair_runs(study)
    rows = [{"demand": demand, "rule": rule, "workers": workers, **spread(run), "never placeable": run.unplaceable,
             "never started": run.unstarted} for (demand, rule, workers), run in runs.items()]
    numbers: dict[str, float] = {}
    for demand in DEMANDS:
        mean = {workers: float(runs[demand, "paper", workers].allocation.mean())
                for workers in study.scale.fair_workers}
        numbers |= _falls(f"falls, {demand}", mean)
    return Figure("10", "Allocation times with fairness", pl.DataFrame(rows), numbers)


def figure_11(study: Study) -> Figure:
    """Return what fairness took: preemptions, attempts at them, repartitions."""
    runs = _fair_runs(study)
    rows = [{"demand": demand, "rule": rule, "workers": workers, "preemptions": run.preemptions,
             "preemption attempts": run.preemption_attempts, "repartitions": run.repartitions,
             "refused (share)": _inconsistent(run), "run time lost (share)": run.wasted,
             "unfairness (share)": run.unfairness} for (demand, rule, workers), run in runs.items()]
    counts = {name: {key: float(row[name]) for key, row in zip(runs, rows, strict=True)}  # type: ignore[arg-type]
              for name in ("preemptions", "preemption attempts", "repartitions")}
    numbers: dict[str, float] = {}
    for name, count in counts.items():
        for demand in DEMANDS:
            of_size = {workers: count[demand, "paper", workers] for workers in study.scale.fair_workers}
            numbers |= _falls(f"{name}, {demand}", of_size)
    return Figure("11", "Preemptions, attempts and repartitions", pl.DataFrame(rows), numbers)


def _falls(name: str, values: dict[int, float]) -> dict[str, float]:
    """Return the ratio of each value to the next, by size: above 1 when they fall all the way."""
    return {f"{name}{OF_SEVERAL}{small:,} by {large:,} workers": first / max(second, 1e-9) if first != second else 1.0
            for (small, first), (large, second) in pairwise(values.items())}


# Past the paper


def why(study: Study) -> Figure:
    """Return Figs. 8 and 9 where masters are charged for what is free in them: what it takes for times to grow."""
    scale, rows, numbers = study.scale, [], {}
    small, large, workers, (most, locals_) = scale.sizes[1], scale.sizes[-1], scale.masters_workers, scale.masters[-1]
    slow, place = _machine_cost(PAPER, MACHINE_COSTS_US[1]), COSTLY.service["PLACE"]
    cases = {  # of each, workers, global masters and settings of a run, and of another to compare it with
        "as in Fig. 8": ((small, locals_, PAPER), (large, locals_, PAPER)),
        DEAR_UPDATES: ((small, locals_, slow), (large, locals_, slow)),
        LARGE_VIEWS: ((small, locals_, PAPER), (large, locals_, _charged("PLACE", place * large / small))),
        "as in Fig. 9": ((workers, locals_, PAPER), (workers, most, PAPER)),
        SENDING: tuple((workers, each, _charged("BEAT", each * workers / locals_ * MACHINE_COSTS_US[1] * 1e-6))
                       for each in (locals_, most)),
    }
    for case, pair in cases.items():
        found = []
        for machines, masters, settings in pair:
            chosen = msgspec.structs.replace(settings, global_masters=masters, local_masters=locals_)
            run = study.run(f"why: {case}, {machines:,} workers, {masters} GMs", _constrained(study),
                            _constrained_machines(study, machines), "megha", chosen)
            found.append(spread(run))
            rows.append({"charged": case, "workers": machines, "global masters": masters, **found[-1]})
        for name in ("mean", "median"):
            numbers[f"{name}, {case}"] = found[1][f"{name} (s)"] / found[0][f"{name} (s)"]
    return Figure("why", f"What makes times grow, {locals_} local masters", pl.DataFrame(rows), numbers)


def _charged(kind: str, seconds: float) -> Federation:
    """Return the paper's settings where a kind of message takes so long."""
    return msgspec.structs.replace(PAPER, service={kind: seconds})


def heartbeats(study: Study) -> Figure:
    """Return what the heartbeat's period changes (the paper's first item of future work)."""
    settings = msgspec.structs.replace(CHANGES, **FOUR_QUEUES, preemption="strict")
    return _sweep(study, "heartbeat", f"The heartbeat, {SWEEP_LOAD:.0%} load", [
        (f"{period:g} s", SWEEP_LOAD, msgspec.structs.replace(settings, heartbeat=period)) for period in HEARTBEATS_S])


def loads(study: Study) -> Figure:
    """Return what the load changes."""
    settings = msgspec.structs.replace(CHANGES, **FOUR_QUEUES, preemption="strict")
    return _sweep(study, "load", "The load", [(f"{load:.0%}", load, settings) for load in LOADS])


def _sweep(study: Study, key: str, title: str, cases: Iterable[tuple[str, float, Federation]]) -> Figure:
    rows = []
    scale = study.scale
    for name, load, settings in cases:
        sample = made.steady(scale.steady, scale.steady_workers, load, study.seed)
        workload = made.workload_of(sample, None, made.deal_queues(sample, study.seed))
        run = study.run(f"{key} {name}", workload, made.machines(scale.steady_workers), "megha", settings)
        rows.append({key: name, **spread(run), "inconsistent (share)": _inconsistent(run),
                     "launches refused": run.refusals, "preemptions": run.preemptions,
                     "run time lost (share)": run.wasted, "unfairness (share)": run.unfairness})
    what = f"{title}: {scale.steady:,} tasks on {scale.steady_workers:,} workers, four queues on three global masters"
    return Figure(key, what, pl.DataFrame(rows), {})


def large(study: Study) -> Figure:
    """Return the whole Google workload on Google's machines, and a million tasks on 50,000 machines."""
    rows = []
    count, workers = study.scale.large, study.scale.large_workers
    million = made.workload_of(made.steady(count, workers, 0.8, study.seed))
    clusters = max(1, workers // 1_000)
    cases = [(f"{count:,} tasks, {workers:,} workers", million, made.machines(workers, clusters), clusters)]
    if study.google_fleet is not None:
        tasks, fleet = len(study.google.tasks), study.google_fleet
        cases.insert(0, (f"Google 2011: {tasks:,} tasks, {len(fleet.machines):,} machines", study.google, fleet, 10))
    for name, workload, fleet, clusters in cases:
        settings = msgspec.structs.replace(CHANGES, local_masters=clusters)
        for scheduler, chosen in (("megha", settings), ("central", settings), ("sparrow", NO_COSTS)):
            run = study.run(f"{name}: {scheduler}", workload, fleet, scheduler, chosen)
            rows.append({"workload": name, "scheduler": scheduler, **spread(run),
                         "inconsistent (share)": _inconsistent(run), "never started": run.unplaceable + run.unstarted,
                         "tasks a second": round(run.tasks / run.seconds)})
    return Figure("large", "Whole traces and large data centers", pl.DataFrame(rows), {})


def prototype(study: Study) -> Figure:
    """Return Fig. 12: allocation times of a live federation on this machine, beside simulated ones."""
    from subak.reproduce.megha.prototype import figure  # noqa: PLC0415  (loads what is live, which an extra installs)

    samples = {"google_19": made.google_sample(study.seed, PROTOTYPE_DRAWN, study.google),
               "alibaba": _alibaba(study)}
    return figure.prototype(samples, study.scale.prototype_seconds, study.seed, study.notify)


FIGURES: dict[str, Callable[[Study], Figure]] = {
    "3": figure_3, "4": figure_4, "5": figure_5, "6": figure_6, "7": figure_7, "8": figure_8, "9": figure_9,
    "10": figure_10, "11": figure_11, "why": why, "heartbeat": heartbeats, "load": loads, "large": large,
    "prototype": prototype,
}
DEFAULT = (*(key for key in FIGURES if key.isdigit()), "why")  # those of the paper, and what explains them
WHEN_ASKED = ("prototype",)  # starts a live federation, and takes minutes of real time


def chosen_figures(only: str | None, past_the_paper: bool) -> list[str]:
    """Return the keys of the figures that are wanted. Raises InputError for one that does not exist."""
    return choose_figures(only, FIGURES, [key for key in FIGURES if key not in WHEN_ASKED] if past_the_paper
                          else DEFAULT)


def reproduce(study: Study, keys: Iterable[str]) -> Reproduction:
    """Run the experiments behind the figures named; those of the paper with several seeds."""
    studies = [study, *(study.again(study.seed + more) for more in range(1, study.scale.seeds))]
    figures = tuple(over_seeds([FIGURES[key](each) for each in studies]) if key in DEFAULT else FIGURES[key](study)
                    for key in keys)
    return Reproduction(figures, judge_all((*CLAIMS, *OF_PROTOTYPE), figures),
                        (*_notes(study), *(note for figure in figures for note in figure.notes)))


def _notes(study: Study) -> tuple[str, ...]:
    scale = study.scale
    standing = f"alibaba-like: the first {scale.alibaba:,} rows of batch_task, one task each"
    if study.alibaba is None:
        standing = ("Alibaba's trace was not given (--alibaba): tasks of Google's stand in for it, in jobs of 4 that "
                    "arrive at its rate")
    return (
        f"tables are of seed {study.seed}; what is judged is of the typical one of {scale.seeds} seeds, each with "
        "tasks, constraints and machines of its own, with a 95 % interval (Student's t of logarithms): a claim holds "
        "or differs where all of the interval does, and cannot be told where it reaches over a bound",
        f"cloudera-like: {scale.cloudera:,} tasks of a whole worker each, drawn so that the demand rises to "
        f"{made.CLOUDERA_PEAK:.0%} of the workers and falls again; the paper's sample is not public",
        standing,
        f"google_19-like: {scale.google:,} tasks of Google 2011; their amounts are scaled until "
        f"{scale.fair_peaks[0]:,.0f} (moderate) or {scale.fair_peaks[1]:,.0f} (high demand) workers are wanted at the "
        "worst instant, because the paper has contention and its sample's demand is not known; jobs are dealt to "
        "the four queues at random",
        "constraints of tasks are drawn with the authors' frequencies (85.7 % of the tasks have one); of the machines' "
        "three kinds of clusters one has the authors' frequencies, the other two are assumptions",
        f"service times are those of the profile {MASTERS}, handlers in plain Python: "
        f"{1e6 * COSTLY.service['PLACE']:g} µs to place, {1e6 * COSTLY.service['LAUNCH']:g} µs to check a launch, "
        "because the paper's masters were Python processes, behind HTTP; subak's own, compiled, take about 1 µs. "
        "Updates carry whole states, as in the paper, at 1 µs for each machine (assumed); in what goes past the paper "
        f"they carry what changed, at {1e6 * COSTLY.part['UPDATE']:g} µs for each entry",
        "Sparrow pays only network delays, as in the paper; the paper's longer delay of the launch message, a median "
        "measured there, is not given and not used",
        "repartitions count requests for machines of another master's partition, preempting ones among them; an "
        "allocation time ends at a task's first start, and only tasks that some machine could hold are counted",
        "unfairness: half the sum over queues of |share used - share entitled|, averaged over the time in which a "
        "queue wants more than it uses; entitled is weighted max-min of the dominant shares wanted",
    )
