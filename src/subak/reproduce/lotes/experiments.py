"""The experiments of the LoTES paper: its tables and figures, each claim beside the result.

Tables 1 and 2 are solved as printed; Figs. 6 to 8 are runs on Google's trace and on a month of the same classes
(workload.py). What goes past the paper is in past.py, and in open_ends.py.
"""
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from subak.placement.lotes.allocation import Allocation, Problem, solve_allocation
from subak.placement.lotes.assignment import solve_assignment
from subak.placement.lotes.bins import FINE_UNITS
from subak.placement.lotes.settings import LotesSettings
from subak.reproduce.claims import Figure, Reproduction, choose_figures, judge_all
from subak.reproduce.lotes import open_ends, past
from subak.reproduce.lotes import tables as printed
from subak.reproduce.lotes.measured import TAILS, Run
from subak.reproduce.lotes.published import CLAIMS
from subak.reproduce.lotes.study import PAPER, Job, Scale, Study, job
from subak.reproduce.lotes.workload import HOUR_S

PLACES = ("trace", "month")
NONE_WAIT = 1e-9  # tasks in the mean of an interval: fewer is an empty queue


# Tables 1 and 2


def tables(study: Study) -> Figure:
    """Return what both linear programs make of the tables as printed."""
    study.notify("Tables 1 and 2", 0.0)
    solve_allocation(printed.printed_problem())  # HiGHS and the bins are loaded and compiled
    began = time.perf_counter()
    allocation = solve_allocation(printed.printed_problem())
    fitting = printed.without_misfits(printed.printed_problem())
    mine = solve_allocation(fitting)
    fine, capacity = (fitting.request * FINE_UNITS).astype(np.int64), fitting.capacity * FINE_UNITS
    assigned = solve_assignment(fitting, mine, fine, capacity, LotesSettings(bins="all"))
    seconds = time.perf_counter() - began
    every = solve_assignment(fitting, mine, fine, capacity, LotesSettings(bins="all", pairs="all", bins_max=10_000_000))
    classes, other = (mine.jobs > 0).sum(axis=1), _in_reverse(fitting)
    rows = [{"machines": int(printed.MACHINES[row]), "cores": f"{printed.CORES[row] / 100:.2f}",
             "memory": f"{printed.MEMORY[row] / 100:.2f}", "classes of the paper": int(printed.CLASSES[row]),
             "classes": int(classes[row]), "bins": int(assigned.considered[row]),
             "bins of all classes": int(every.considered[row])} for row in range(len(classes))]
    numbers = {
        "lambda": allocation.rate / printed.RATE_PER_HOUR, "reversed lambda": other.rate / mine.rate,
        "reversed classes": float(((other.jobs > 0).sum(axis=1) != classes).sum()),
        "classes alike": float((classes == printed.CLASSES).sum()),
        "classes most": float(np.sort(classes)[-2]), "bins": float(assigned.considered.sum()),
        "bins without": float(every.considered.sum()), "seconds": seconds,
        "rounding": 1 - assigned.rate_rounded / assigned.rate,
        "one job": float(1 / (assigned.rate * printed.SHARES * printed.HOURS).min()),
    }
    numbers["bins allowed"], numbers["bins as printed"] = map(float, printed.bins_allowed())
    return Figure("tables", "Tables 1 and 2: classes and bins of each configuration", pl.DataFrame(rows), numbers,
                  _rates(allocation, mine, assigned.rate, every.rate))


def _in_reverse(problem: Problem) -> Allocation:
    """Return the allocation of the same problem whose configurations and classes are listed in the opposite order.

    The program is the same, but a solver may end in another of its optimal vertices.
    """
    found = solve_allocation(Problem(problem.request[:, ::-1], problem.share[::-1], problem.rate[::-1, ::-1],
                                     problem.capacity[:, ::-1], problem.machines[::-1]))
    return found._replace(delta=found.delta[::-1, ::-1], jobs=found.jobs[::-1, ::-1])


def _rates(allocation: Allocation, mine: Allocation, rate: float, every: float) -> tuple[str, ...]:
    return (f"lambda* is {allocation.rate:,.1f} jobs an hour; {mine.rate:,.1f} where a class has no part of a machine "
            f"that cannot hold one job of it; with jobs in bins {rate:,.1f}, {every:,.1f} with bins of all classes",)


def class_jobs(_scale: Scale) -> list[Job]:
    """Return the run whose plan has the trace's classes."""
    return [job("trace", "lotes")]


def classes_of_trace(study: Study) -> Figure:
    """Return the classes that LoTES finds in the trace, beside those of Table 2, by what they ask for in all."""
    [plan] = study.run(job("trace", "lotes")).plans
    asked = plan.classes.request / plan.configurations.capacity.max(axis=1)[:, None]
    mine, theirs = np.argsort(asked.sum(axis=0)), np.argsort(printed.REQUESTS.sum(axis=0))
    pairs = {"of the tasks (share)": (plan.classes.share, printed.SHARES),
             "cores (share)": (asked[0], printed.REQUESTS[0] / 100.0),
             "memory (share)": (asked[1], printed.REQUESTS[1] / 100.0),
             "run time (s)": (plan.classes.run_time, printed.HOURS * HOUR_S)}
    rows = [{"class": place + 1, "whose": whose,
             **{what: float(both[side][order[place]]) for what, both in pairs.items()}}
            for side, (whose, order) in enumerate((("the trace", mine), ("Table 2", theirs)))
            for place in range(order.size)]
    off = {what: one[mine] / other[theirs] if mine.size == theirs.size else np.full(1, np.nan)
           for what, (one, other) in pairs.items()}
    return Figure("classes", "The trace's classes beside Table 2's, by what they ask for", pl.DataFrame(rows),
                  {what: float(np.maximum(each, 1.0 / each).max()) for what, each in off.items()})


# Figures 6 to 8


def paper_jobs(_scale: Scale) -> list[Job]:
    """Return the paper's schedulers on the trace and the month."""
    return [job(place, scheduler) for place in PLACES for scheduler in PAPER]


def _paper_runs(study: Study) -> dict[str, dict[str, Run]]:
    return {place: {scheduler: study.run(job(place, scheduler)) for scheduler in PAPER} for place in PLACES}


def figure_6(study: Study) -> Figure:
    """Return the mean wait time of the tasks that start in each day of the month, in each hour of the trace."""
    runs = _paper_runs(study)
    points = [{"place": place, "scheduler": scheduler, "interval": row, "mean wait (s)": float(mean)}
              for place, found in runs.items() for scheduler, run in found.items()
              for row, mean in enumerate(run.begun) if not np.isnan(mean)]
    rows = [{"place": place, "scheduler": scheduler, "mean wait (s)": run.mean,
             "median (s)": run.quantile["median"], "99 % (s)": run.quantile["p99"],
             "first interval (s)": float(run.begun[0]),
             "never started": run.unstarted, "unplaceable": run.unplaceable, "tasks a second": run.rate}
            for place, found in runs.items() for scheduler, run in found.items()]
    numbers: dict[str, float] = {}
    for place, found in runs.items():
        numbers |= _behind(place, {scheduler: run.mean for scheduler, run in found.items()})
        numbers |= _behind(f"{place} later", {scheduler: run.later for scheduler, run in found.items()})
        first = {scheduler: float(run.begun[0]) for scheduler, run in found.items()}
        numbers[f"{place} first greedy"] = first["greedy"] / min(first["lotes"], first["tetris"])
        numbers[f"{place} days"] = _days_ahead(found["lotes"].begun, found["tetris"].begun)
    return Figure("6", "Response time (wait time): mean over the tasks that start in a day (month) or an hour (trace)",
                  pl.DataFrame(rows), numbers, (), pl.DataFrame(points))


def _behind(place: str, mean: dict[str, float]) -> dict[str, float]:
    by_lotes = mean["tetris"] / mean["lotes"] if mean["lotes"] > 0 else float("nan")
    return {f"{place} greedy behind": mean["greedy"] - mean["lotes"], f"{place} tetris by lotes": by_lotes}


def _days_ahead(lotes: np.ndarray, tetris: np.ndarray) -> float:
    days = min(lotes.size, tetris.size)
    return float(np.mean(lotes[:days] <= tetris[:days] + NONE_WAIT))


def figure_7(study: Study) -> Figure:
    """Return the distribution of the wait times."""
    runs = _paper_runs(study)
    points = [{"place": place, "scheduler": scheduler, "wait (s)": float(TAILS[row]),
               "longer (share)": float(run.tail[row])} for place, found in runs.items()
              for scheduler, run in found.items() for row in range(1, TAILS.size) if run.tail[row] > 0]
    rows = [{"place": place, "scheduler": scheduler, "at once (share)": 1 - float(run.tail[0]),
             **{f"over {hours} h (share)": run.longer_than(hours * HOUR_S) for hours in (1, 7, 17)},
             "99 % (s)": run.quantile["p99"], "99.9 % (s)": run.quantile["p99.9"]}
            for place, found in runs.items() for scheduler, run in found.items()]
    numbers = {f"{place} {scheduler} over {hours} h": run.longer_than(hours * HOUR_S) for place, found in runs.items()
               for scheduler, run in found.items() for hours in (1, 7, 17)}
    return Figure("7", "Distribution of response times (wait times): the share that is longer", pl.DataFrame(rows),
                  numbers, (), pl.DataFrame(points))


def figure_8(study: Study) -> Figure:
    """Return how many tasks wait over time."""
    runs = _paper_runs(study)
    points = [{"place": place, "scheduler": scheduler, "time (h)": row * run.width / HOUR_S, "waiting": float(waiting)}
              for place, found in runs.items() for scheduler, run in found.items()
              for row, waiting in enumerate(run.waiting)]
    rows = [{"place": place, "scheduler": scheduler, "mean": float(run.waiting.mean()),
             "most of an interval": float(run.waiting.max()), "with a queue (share)": _queued(run)}
            for place, found in runs.items() for scheduler, run in found.items()]
    numbers = {f"{place} {scheduler} queued": _queued(run) for place, found in runs.items()
               for scheduler, run in found.items()}
    numbers |= {f"{place} lotes empty": 1 - numbers[f"{place} lotes queued"] for place in PLACES}
    numbers |= {f"{place} looked at": runs[place]["lotes"].looked_at for place in PLACES}
    return Figure("8", "Tasks that wait, over time up to the last arrival", pl.DataFrame(rows), numbers, (),
                  pl.DataFrame(points))


def _queued(run: Run) -> float:
    return float((run.waiting > NONE_WAIT).mean())


class Experiment(NamedTuple):
    """What a figure needs, and how it is made of that."""

    jobs: Callable[[Scale], list[Job]]
    make: Callable[[Study], Figure]


FIGURES = {
    "tables": Experiment(lambda _scale: [], tables), "classes": Experiment(class_jobs, classes_of_trace),
    **{key: Experiment(paper_jobs, make) for key, make in (("6", figure_6), ("7", figure_7), ("8", figure_8))},
    **{key: Experiment(*both) for key, both in {**past.FIGURES, **open_ends.FIGURES}.items()},
}
DEFAULT = ("tables", "classes", "6", "7", "8", "why", "loads")  # those of the paper, and what explains them


def chosen_figures(only: str | None, past_the_paper: bool) -> list[str]:
    """Return the keys of the figures that are wanted. Raises InputError for one that does not exist."""
    return choose_figures(only, FIGURES, FIGURES if past_the_paper else DEFAULT)


def reproduce(study: Study, keys: Iterable[str]) -> Reproduction:
    """Run the experiments behind the figures named."""
    figures = tuple(measured_figure(study, FIGURES[key]) for key in keys)
    return Reproduction(figures, judge_all(CLAIMS, figures), _notes(study))


def measured_figure(study: Study, experiment: Experiment) -> Figure:
    """Do the simulations of a figure, and return it."""
    study.run_all(experiment.jobs(study.scale))
    return experiment.make(study)


def _notes(study: Study) -> tuple[str, ...]:
    month = study.scale.month
    return (
        f"The trace is {study.trace.provenance.name} as given, with what stood there at time 0; the paper has the "
        "whole month, whose parts are not public as one",
        f"The month: {month.tasks:,} tasks in {month.days:g} days, classes, shares and requests of Table 2, requests "
        f"spread by half around their means, run times log-normal. Table 2's times would load the machines to a "
        f"hundredth: their mean is what loads the scarcer resource to {month.load:.0%}, with a daily wave of "
        f"{month.amplitude:.0%}; at time 0 tasks arrive that ask for {month.burst:.2f} of the machines",
        "Greedy, Tetris and LoTES know run times and requests exactly, as in the paper, whose response time is what is "
        "called wait time here: from ready to the first start (section 1)",
    )
