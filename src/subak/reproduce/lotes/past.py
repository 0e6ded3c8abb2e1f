"""Experiments past the LoTES paper: loads, options, and what makes the difference between schedulers.

Each figure is a pair: the simulations that it needs, and the figure made of them.
"""
from typing import Any

import numpy as np
import polars as pl

from subak.federation.choices import PLACEMENTS
from subak.reproduce.claims import Figure
from subak.reproduce.lotes.study import FEDERATION, PAPER, Job, Pair, Scale, Study, job
from subak.reproduce.lotes.table_rows import ratio, row
from subak.reproduce.lotes.workload import HOUR_S, Month

LEAST_WORK, SMALLEST = "lotes+least-work", "lotes, smallest first"
EXPLAINING: dict[str, dict[str, Any]] = {
    **{name: {} for name in (*PAPER, LEAST_WORK)}, SMALLEST: {"order": "smallest"},
    **{name: {} for name in (
        "aligned-fit+backfill", "aligned-fit+backfill+shortest-first", "best-fit+backfill",
        "first-fit+backfill+shortest-first", "first-fit+backfill", "worst-fit+backfill", "first-fit", "best-fit")},
}
ABLATIONS = (  # what is changed, the mean wait time of which scheduler, by that of which
    ("alignment", "first-fit+backfill", "aligned-fit+backfill"),
    ("order", "aligned-fit+backfill", "aligned-fit+backfill+shortest-first"),
    ("order without alignment", "first-fit+backfill", "first-fit+backfill+shortest-first"),
    ("bins", "first-fit+backfill", "lotes"), ("all that tetris knows", "aligned-fit+backfill", "tetris"),
    ("lotes's order", "lotes", LEAST_WORK), ("what lotes knows", SMALLEST, LEAST_WORK),
    ("bins in that order", "aligned-fit+backfill", LEAST_WORK))
OPTIONS: dict[str, dict[str, Any]] = {
    "lotes": {}, "lotes+deficit": {}, "lotes+sampled": {}, "lotes+replanned": {}, "lotes, pairs all": {"pairs": "all"},
    "lotes, 8 classes": {"classes": 8},
}
CHANGING: dict[str, dict[str, Any]] = {
    "lotes": {}, "lotes+replanned": {}, "first-fit+backfill": {},
    "lotes+replanned, hourly": {"replan_seconds": HOUR_S, "replan_window": 6 * HOUR_S},
}


# What makes the difference


def _why_places(scale: Scale) -> dict[str, str | Month]:
    return {"trace": "trace", "short month": scale.short}


def why_jobs(scale: Scale) -> list[Job]:
    """Return schedulers that differ in one thing each, on the trace and a part of the month."""
    return [job(at, name, given) for at in _why_places(scale).values() for name, given in EXPLAINING.items()]


def why(study: Study) -> Figure:
    """Return schedulers that differ in one thing each: what is placed next, where, and whether a queue is strict."""
    places = _why_places(study.scale)
    found = {(place, name): study.run(job(at, name, given)) for place, at in places.items()
             for name, given in EXPLAINING.items()}
    numbers = {f"{place}, {what}": ratio(found[place, one], found[place, other]) for place in places
               for what, one, other in ABLATIONS}
    for place in places:
        long, of_all = (found[place, name].longer_than(HOUR_S) for name in (LEAST_WORK, "lotes"))
        numbers[f"{place}, over 1 h in that order"] = long / of_all if of_all else float("nan")
    table = pl.DataFrame([{"place": place} | row(name, run) for (place, name), run in found.items()])
    return Figure("why", "What makes the difference: order, placement, strict queues", table, numbers)


# Loads, options, wrong requests


def load_jobs(scale: Scale) -> list[Job]:
    """Return the paper's schedulers at several loads."""
    return [job(scale.week._replace(load=load), name) for load in scale.loads for name in PAPER]


def loads(study: Study) -> Figure:
    """Return the paper's schedulers as the load of a week of the month grows."""
    loads_ = study.scale.loads
    found = {(each.place.load, each.scheduler): study.run(each) for each in load_jobs(study.scale)
             if isinstance(each.place, Month)}
    rows = [{"load (share)": load, **row(scheduler, run), "over 7 h (share)": run.longer_than(7 * HOUR_S)}
            for (load, scheduler), run in found.items()]
    numbers = {}
    for load, words in ((min(loads_), "least load"), (max(loads_), "most load")):
        numbers[f"tetris by lotes, {words}"] = ratio(found[load, "tetris"], found[load, "lotes"])
        numbers[f"tetris over 7 h, {words}"] = found[load, "tetris"].longer_than(7 * HOUR_S)
    return Figure("loads", "Mean wait time as the load of a week grows", pl.DataFrame(rows), numbers)


def _option_jobs(scale: Scale) -> dict[tuple[str, str], Job]:
    places = {"short month": (scale.short, OPTIONS),
              "month whose mix changes": (scale.short._replace(mix_changes=True), CHANGING)}
    return {(place, name): job(month, name, given) for place, (month, tried) in places.items()
            for name, given in tried.items()}


def options(study: Study) -> Figure:
    """Return what LoTES's options make of the month."""
    found = {row: study.run(each) for row, each in _option_jobs(study.scale).items()}
    rows = [{"place": place} | row(name, run) | {"plans": len(run.plans),
            "planning (s)": sum(sum(plan.seconds.values()) for plan in run.plans)}
            for (place, name), run in found.items()]
    numbers = {name.removeprefix("lotes+"): ratio(found["short month", name], found["short month", "lotes"])
               for name in OPTIONS}
    changed = [found["month whose mix changes", name] for name in ("lotes+replanned", "lotes")]
    return Figure("options", "LoTES's options on the month, and where the mix of classes changes halfway",
                  pl.DataFrame(rows), numbers | {"replanned, changed": ratio(*changed)})


def _error_jobs(scale: Scale) -> dict[tuple[float, str], Job]:
    return {(error, name): job(scale.short, name, request_error=error) for error in scale.errors for name in PAPER}


def errors(study: Study) -> Figure:
    """Return the paper's schedulers when requests are wrong and who uses more than it asked for is ended."""
    found = {row: study.run(each) for row, each in _error_jobs(study.scale).items()}
    rows = [{"error (share)": error, **row(name, run), "attempts lost": run.lost}
            for (error, name), run in found.items()]
    return Figure("errors", "Mean wait time when requests are wrong by up to a share of what is used",
                  pl.DataFrame(rows), {})


# A federation


def federation_jobs(scale: Scale) -> list[Job]:
    """Return Megha with each placement."""
    return [job(scale.federated, FEDERATION, {"placement": placement}) for placement in PLACEMENTS]


def federation(study: Study) -> Figure:
    """Return what a federation's masters make of the three placements."""
    found = dict(zip(PLACEMENTS, map(study.federated, federation_jobs(study.scale)), strict=True))
    rows = [{"placement": placement, "mean allocation time (s)": float(run.allocation.mean()),
             "99 % (s)": float(np.quantile(run.allocation, 0.99)),
             "over 1 s (share)": float((run.allocation > 1.0).mean()), "never started": run.unstarted,
             "refused (share)": run.refusals / max(run.requests, 1), "repartitions": run.repartitions,
             "tasks a second": run.tasks / run.seconds} for placement, run in found.items()]
    first = float(found["first-fit"].allocation.mean())
    numbers = {each: float(found[each].allocation.mean()) / first for each in PLACEMENTS[1:]}
    masters = study.scale.masters
    return Figure("federation", f"Megha, {masters} global and local masters: which machine of a partition is taken",
                  pl.DataFrame(rows), numbers)


FIGURES: dict[str, Pair] = {
    "why": (why_jobs, why), "loads": (load_jobs, loads),
    "options": (lambda scale: list(_option_jobs(scale).values()), options),
    "errors": (lambda scale: list(_error_jobs(scale).values()), errors),
    "federation": (federation_jobs, federation),
}
