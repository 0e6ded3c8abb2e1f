"""Experiments on questions that the LoTES paper leaves open: unknown mix, varying usage, locality, fairness.

All on a part of the month, and the mix and fairness on the trace too; each figure is a pair as in past.py.
"""
from typing import Any

import polars as pl

from subak.reproduce.claims import Figure
from subak.reproduce.lotes.study import Job, Pair, Scale, Study, job
from subak.reproduce.lotes.table_rows import ratio, row
from subak.reproduce.lotes.workload import HOUR_S, Month

LEAST_WORK = "lotes+least-work"
USERS, UNEVEN = 40, 1.0  # of the figure about fairness; how many tasks each has is by Zipf's law
ZONES, LOCAL_LOAD = 3, 0.75  # of the figure about locality, in which work far from its data is more work
MIXES: dict[str, dict[str, Any]] = {
    "lotes": {}, "lotes, last hour": {"mix": "last", "replan_seconds": HOUR_S, "replan_window": HOUR_S},
    "lotes+predicted": {}, "lotes, average by the hour": {"mix": "average", "replan_seconds": HOUR_S,
                                                         "replan_window": HOUR_S},
    "lotes+least-work": {}, "lotes+least-work+predicted": {},
}
FAIR = ("first-fit+backfill", "first-fit+drf", "lotes", "lotes+drf", "lotes+mch", LEAST_WORK)
LOCAL: dict[str, dict[str, Any]] = {
    "first-fit+backfill": {}, "lotes": {}, "lotes+local": {}, "lotes+local, no strays": {"fallback": "devoted"},
}


# The mix of classes


def _mix_jobs(scale: Scale) -> dict[tuple[str, str], Job]:
    places: dict[str, str | Month] = {"trace": "trace", "short month": scale.short,
                                      "month whose mix changes": scale.short._replace(mix_changes=True)}
    return {(place, name): job(at, name, given) for place, at in places.items() for name, given in MIXES.items()}


def mix(study: Study) -> Figure:
    """Return LoTES with plans for the mix of the first window, as in the paper, and of past ones."""
    found = {key: study.run(each) for key, each in _mix_jobs(study.scale).items()}
    rows = [{"place": place} | row(name, run) | {"plans": len(run.plans)} for (place, name), run in found.items()]
    numbers = {f"{place}, {name}": ratio(found[place, name], found[place, "lotes"])
               for place, name in found if name in ("lotes, last hour", "lotes+predicted")}
    return Figure("mix", "The mix of classes: known beforehand, of the last hour, the average of all that have passed",
                  pl.DataFrame(rows), numbers)


# Usage that varies


def _usage_jobs(scale: Scale) -> dict[tuple[float, str], Job]:
    found: dict[tuple[float, str], Job] = {}
    for swing in scale.swings:
        tried: dict[str, dict[str, Any]] = {"first-fit+backfill": {}, "lotes": {}, LEAST_WORK: {}, "tetris": {}}
        if swing:
            tried["lotes, bins for the mean"] = {"usage": 1 - swing / 2}
        found |= {(swing, name): job(scale.short, name, given, usage_swing=swing) for name, given in tried.items()}
    return found


def usage(study: Study) -> Figure:
    """Return schedulers when tasks use, and hold, less than they ask for during a part of their life."""
    found = {key: study.run(each) for key, each in _usage_jobs(study.scale).items()}
    rows = [{"swing (share)": swing, **row(name, run), "attempts lost": run.lost}
            for (swing, name), run in found.items()]
    most = max(study.scale.swings)
    numbers = {"gained": ratio(found[most, "lotes"], found[0.0, "lotes"]),
               "bins for the mean": ratio(found[most, "lotes, bins for the mean"], found[most, "lotes"]),
               "lost": found[most, "lotes"].lost / study.scale.short.tasks}
    return Figure("usage", "Mean wait time when tasks hold less during a part of their life", pl.DataFrame(rows),
                  numbers)


# Locality


def _local_jobs(scale: Scale) -> dict[tuple[float, str], Job]:
    month = scale.short._replace(load=LOCAL_LOAD, users=4 * ZONES, zones=ZONES, burst=0.0)
    return {(remote, name): job(month._replace(remote=remote), name, given) for remote in scale.remote
            for name, given in LOCAL.items()}


def locality(study: Study) -> Figure:
    """Return LoTES whose plans know where the data are, beside those that do not."""
    found = {key: study.run(each) for key, each in _local_jobs(study.scale).items()}
    rows = [{"run time far from the data (times)": remote, **row(name, run), "run times (times)": run.slow_down}
            for (remote, name), run in found.items()]
    most = max(study.scale.remote)
    numbers = {"wait": ratio(found[most, "lotes+local"], found[most, "lotes"]),
               "slower": found[most, "lotes"].slow_down, "slower local": found[most, "lotes+local"].slow_down}
    return Figure("locality", f"Locality: {ZONES} zones of machines, run times longer in others than the data's",
                  pl.DataFrame(rows), numbers)


# Fairness


def _fair_jobs(scale: Scale) -> dict[tuple[str, str], Job]:
    places: dict[str, str | Month] = {"trace": "trace", "short month": scale.short._replace(users=USERS, uneven=UNEVEN)}
    return {(place, name): job(at, name) for place, at in places.items() for name in FAIR}


def fairness(study: Study) -> Figure:
    """Return LoTES's bins under fair orders: means over tasks, and over users."""
    found = {key: study.run(each) for key, each in _fair_jobs(study.scale).items()}
    rows = [{"place": place} | row(name, run) | {"mean over the users (s)": run.by_queue}
            for (place, name), run in found.items()]
    numbers = {f"{place}, {what}": value for place in ("trace", "short month") for what, value in (
        ("tasks", ratio(found[place, "lotes+drf"], found[place, "lotes"])),
        ("users", _over_users(found[place, "lotes+drf"].by_queue, found[place, "lotes"].by_queue)))}
    return Figure("fairness", f"LoTES's bins under a fair order: the trace's users, and {USERS} of the month's",
                  pl.DataFrame(rows), numbers)


def _over_users(one: float, other: float) -> float:
    return one / other if other > 0 else float("nan")


FIGURES: dict[str, Pair] = {
    "mix": (lambda scale: list(_mix_jobs(scale).values()), mix),
    "usage": (lambda scale: list(_usage_jobs(scale).values()), usage),
    "locality": (lambda scale: list(_local_jobs(scale).values()), locality),
    "fairness": (lambda scale: list(_fair_jobs(scale).values()), fairness),
}
