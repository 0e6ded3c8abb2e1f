"""Makes a month like that of LoTES's Table 2, on the machines of its Table 1, at a chosen load.

Table 2's times are 0.03 to 0.04 h. With them, the month's tasks would keep a hundredth of the machines busy: what fills
Google's is a few tasks that run for hours and days, which its classes' means do not show. So shares, requests and the
number of tasks are the paper's, and run times follow a log-normal law with the mean that gives the load.
"""
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from subak.fleet.table import Fleet
from subak.workload.google_like.generate import Length, write_generated
from subak.workload.google_like.load import loads
from subak.workload.google_like.parameters import TABLE_2, Diurnal, Makespans, Parameters, Queues, RequestClass
from subak.workload.table import Workload, read_workload

DAY_S, HOUR_S = 86_400.0, 3_600.0
TURNED = tuple(msgspec.structs.replace(TABLE_2[row], share=TABLE_2[by].share) for row, by in enumerate((0, 2, 1, 3)))
DISPARITY = 3.8  # mean over median run time (Da Costa and others, section V: tasks)
SPREAD = (0.5, 1.0, 1.5)  # of the requests within a class around its mean, each resource by itself, equally often


class Month(NamedTuple):
    """How much arrives, and when."""

    tasks: int = 25_400_000  # of Google's month (Da Costa and others, section IV)
    days: float = 29.0
    load: float = 0.8  # of the scarcer resource, in the mean
    amplitude: float = 0.0  # of a daily wave of the arrivals
    burst: float = 0.0  # asked for at time 0, by the capacity of the resource that is asked for most
    mix_changes: bool = False  # whether the second and third class exchange their shares in the second half
    users: int = 1  # each with a queue
    uneven: float = 0.0  # exponent of Zipf's law of how much they ask for
    zones: int = 0  # of the machines, where the data of a user's tasks are in one of them
    remote: float = 1.0  # run times in other zones, by those in its own


def month_of(month: Month, fleet: Fleet, seed: int) -> Workload:
    """Return the tasks of a month for *fleet*."""
    if month.mix_changes:
        halves = [month._replace(tasks=month.tasks // 2, days=month.days / 2, mix_changes=False, burst=burst)
                  for burst in (month.burst, 0.0)]
        first = month_of(halves[0], fleet, seed)
        return _then(first, _generated(parameters_of(halves[1], fleet, TURNED), halves[1].tasks, seed + 1))
    workload = _generated(parameters_of(month, fleet), month.tasks, seed)
    return _with_burst(workload, fleet, month.burst) if month.burst else workload


def _generated(parameters: Parameters, tasks: int, seed: int) -> Workload:
    with tempfile.TemporaryDirectory() as scratch:
        write_generated(Path(scratch), parameters, seed, Length(tasks, None))
        return read_workload(Path(scratch))


def _then(first: Workload, second: Workload) -> Workload:
    """Let the tasks of one workload come after those of another."""
    begin = first.tasks["arrival"][-1]
    return replace(
        first, jobs=pl.concat([first.jobs, second.jobs.with_columns(pl.col("job") + ", later")]),
        stages=pl.concat([first.stages, second.stages.with_columns(pl.col("job") + len(first.jobs))]),
        tasks=pl.concat([first.tasks, second.tasks.with_columns(
            pl.col("stage") + len(first.stages), pl.col("index") + len(first.tasks), pl.col("arrival") + begin)]),
    )


def parameters_of(month: Month, fleet: Fleet, classes: tuple[RequestClass, ...] = TABLE_2) -> Parameters:
    """Return the generator's parameters; the mean run time is what gives the load."""
    known = Parameters(
        name="lotes-month", dynamism=month.days * DAY_S / month.tasks, type=1.0, tasks=Makespans(1.0, DISPARITY),
        requests=tuple(variant for each in classes for variant in _variants(each)), priority_levels=1,
        queues=Queues(month.users, month.uneven),
        diurnal=Diurnal(month.amplitude) if month.amplitude else None,
    )
    mean = month.load / max(loads(known, fleet).values())
    return msgspec.structs.replace(known, tasks=Makespans(mean, DISPARITY))


def _variants(given: RequestClass) -> list[RequestClass]:
    """Return a class's requests around its means."""
    share = given.share / len(SPREAD) ** 2
    return [RequestClass(share, {"cpu": given.amounts["cpu"] * cpu, "memory": given.amounts["memory"] * memory})
            for cpu in SPREAD for memory in SPREAD]


def _with_burst(workload: Workload, fleet: Fleet, burst: float) -> Workload:
    """Let so many of the first tasks arrive at time 0 that they ask for *burst* of the machines, the others after."""
    asked = workload.requests[:, workload.tasks["stage"].to_numpy()].cumsum(axis=1, dtype=np.int64)
    capacity = fleet.capacity[:, fleet.machines["present"].to_numpy()].sum(axis=1, dtype=np.int64)
    count = min(int(np.searchsorted((asked / capacity[:, None]).max(axis=0), burst)), len(workload.tasks) - 1)
    begin = workload.tasks["arrival"][count]
    return replace(workload, tasks=workload.tasks.with_columns((pl.col("arrival") - begin).clip(lower_bound=0.0)))


def with_zones(month: Month, workload: Workload, fleet: Fleet) -> tuple[Workload, Fleet]:
    """Return both with the month's zones, to which users and machines are dealt in turn; without zones as they are."""
    if not month.zones:
        return workload, fleet
    numbers = {queue: row % month.zones for row, queue in enumerate(sorted(set(workload.jobs["queue"])))}
    home = np.array([numbers[queue] for queue in workload.jobs["queue"]])[workload.stages["job"].to_numpy()]
    zone = np.arange(len(fleet.machines)) % month.zones
    speeds = np.where(zone == np.arange(month.zones)[:, None], 1.0, month.remote)
    return (replace(workload, stages=workload.stages.with_columns(speed_group=pl.Series(home.astype(np.uint32)))),
            replace(fleet, speeds=speeds))
