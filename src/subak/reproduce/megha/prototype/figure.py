"""Figure 12 of the Megha paper: delays of the live prototype beside simulated ones."""
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.reproduce import workloads as made
from subak.reproduce.claims import Figure, Interval, Notify
from subak.reproduce.federated_runs import QUANTILES
from subak.reproduce.megha.prototype.federation import refuse_unable
from subak.reproduce.megha.prototype.published import KEY
from subak.reproduce.megha.prototype.run import Live, delay_alone, run_live, run_simulated, simulated_delay
from subak.reproduce.megha.prototype.work import GLOBALS, LOCALS, UNITS, Size, Work, prototype_work

TITLE = "Fig. 12: Allocation times of the prototype"
LIVE, SIMULATED = "allocation time, live", "allocation time, simulated"
DELAY, SIMULATED_DELAY = "execution delay, live", "execution delay, simulated"
POINTS = 200  # of a distribution
RESAMPLES, RESAMPLED_BY = 1000, 12


def prototype(samples: dict[str, made.Sample], seconds: float, seed: int, notify: Notify,
              size: Size | None = None) -> Figure:
    """Return the distributions of both samples, by their names in LOADS, live and simulated.

    Raises InputError where this machine cannot run it, RunError where the federation does not.
    """
    refuse_unable()
    size = Size(seconds) if size is None else size
    works = [prototype_work(name, sample, size, seed) for name, sample in samples.items()]
    alone, found = delay_alone(), []
    for work in works:
        live = run_live(work, notify)
        simulated = run_simulated(work, live, seed, notify).allocation
        found.append(Measured(work, live, simulated, simulated_delay(work, live, seed)))
    return figure_of(found, alone)


class Measured(NamedTuple):
    """A workload, what was measured of it live, and in seconds of each task what was simulated."""

    work: Work
    live: Live
    allocation: np.ndarray  # float64[task]
    delay: np.ndarray  # float64[task]


def figure_of(found: list[Measured], alone: float) -> Figure:
    """Return the figure of what was measured; *alone* is the execution delay of a task with nothing beside it."""
    rows, points, numbers = [], [], {}
    for work, live, allocation, delay in found:
        for what, values in ((LIVE, live.allocation), (SIMULATED, allocation), (DELAY, live.delay),
                             (SIMULATED_DELAY, delay)):
            rows.append({"workload": f"{work.name}-like", "what": what, "tasks": len(values), **quantiles(values)})
            points.append(pl.DataFrame({
                "workload": f"{work.name}-like", "what": what, "share": np.linspace(0, 1, POINTS + 1),
                "seconds": np.quantile(values, np.linspace(0, 1, POINTS + 1))}))
        numbers[f"higher, {work.name}"] = ratio(live.allocation, allocation)
        numbers[f"delay, {work.name}"] = resampled([live.delay], lambda median: median[0] - alone)
    delays = [each.live.delay for each in found]
    numbers["delay ratio"] = ratio(*delays)
    numbers["used"] = Interval(*[float(min(each.live.used.min() for each in found))] * 3)
    return Figure(KEY, TITLE, pl.DataFrame(rows), numbers, notes_of(found, alone), pl.concat(points))


def quantiles(values: np.ndarray) -> dict[str, float]:
    """Return the quantiles of Fig. 4, the mean and the maximum, in seconds, by the names of columns."""
    return {"mean (s)": float(values.mean()),
            **{f"{name} (s)": float(np.quantile(values, level)) for name, level in QUANTILES.items() if level <= 0.99},
            "max (s)": float(values.max())}


def ratio(first: np.ndarray, second: np.ndarray) -> Interval:
    """Return the median of the first over that of the second, with its interval."""
    return resampled([first, second], lambda medians: medians[0] / medians[1])


def resampled(samples: list[np.ndarray], number: Callable[[list[np.ndarray]], np.ndarray]) -> Interval:
    """Return a number of the samples' medians, with its 95 % interval over samples drawn anew from them."""
    random = np.random.default_rng(RESAMPLED_BY)
    medians = [np.median(sample[random.integers(0, sample.size, (RESAMPLES, sample.size))], axis=1)
               for sample in samples]
    low, high = np.quantile(number(medians), (0.025, 0.975))
    return Interval(float(number([np.median(sample) for sample in samples])), float(low), float(high))


def notes_of(found: list[Measured], alone: float) -> tuple[str, ...]:
    """Say how it was measured."""
    work, live = found[0].work, found[0].live
    workers, cpu = len(work.fleet.machines), int(work.fleet.capacity[0, 0])
    loads = " and ".join(f"{work.load:.0%} ({work.name}-like, {work.arrival.size:,} tasks)" for work, *_ in found)
    costs = "; ".join(f"{1e6 * live.of_global_master:.0f} and {1e6 * live.of_local_master:.0f} µs ({work.name}-like)"
                      for work, live, *_ in found)
    lost = sum(each.live.lost for each in found)
    again = (f"{lost} attempts were ended by masters, and begun again",) if lost else ()
    return (
        *again,
        f"prototype: {GLOBALS} global masters, {LOCALS} local masters and {workers} workers as processes of this "
        f"machine, which has {workers * cpu / UNITS:g} cores for all tasks, where the paper had a node for each; "
        "updates go from master to master, without RabbitMQ",
        "requests are scaled as in the paper, CPU by 400 and memory by 50; tasks of at most a minute are taken, and "
        f"their arrivals drawn together until they want {loads} of the workers' cores",
        "allocation times are from the submission over HTTP to the start of the process; the simulated tasks arrive "
        f"when the live ones were submitted, a message is under way for {1e6 * live.message:.0f} µs, as measured "
        "here, and "
        f"takes a global and a local master {costs}: their time over the messages that they served, what is made "
        "durable in it",
        f"an execution delay is what a task ran longer than its run time; alone it is {1e3 * alone:.0f} ms, in which "
        f"Python begins. When the runs began, {' and '.join(f'{each.live.load:.1f}' for each in found)} processes of "
        "this machine ran or waited. The simulated delays are of tasks that begin as the live ones did, and share all "
        "cores of the workers with each other alone (--interference): they ask for no more than these together, so "
        "what is longer live is what else this machine does",
    )
