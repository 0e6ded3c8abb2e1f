"""Reduces a run's tables to series that are small enough to draw."""
import math
from collections.abc import Iterator

import numpy as np
import polars as pl

from subak.measures.of_run import bounded_slowdown
from subak.measures.runs import Run
from subak.measures.window import cut, measured, wait_until

POINTS_MAX = 4_800  # of one chart, over all its lines
LINE_POINTS_MAX = 300  # of one line: more than a screen shows
MESSAGES_COUNTED = ("messages", "refusals", "repartitions", "preemptions")  # of a federation's timeline

DAY = 86_400.0
TIME_UNITS = ((4 * DAY, DAY, "days"), (4 * 3600.0, 3600.0, "hours"), (240.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
NICE_PERIODS = (  # seconds
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0,
    14_400.0, 21_600.0, 43_200.0, DAY,
)


def time_unit(span: float) -> tuple[float, str]:
    """Return the unit, in seconds, and the word for it, in which an axis over *span* seconds reads well."""
    return next((size, word) for least, size, word in TIME_UNITS if span >= least)


def period_of(span: float) -> float:
    """Return the period to average over: 24 h from four days on (LoTES, Fig. 6), else a round 24th of *span*."""
    if span >= 4 * DAY:
        return DAY * max(1, math.ceil(span / DAY / LINE_POINTS_MAX))
    return next((period for period in NICE_PERIODS if period >= span / 24), DAY)


def measured_tasks(run: Run) -> pl.LazyFrame:
    """Return the tasks that are measured, unread, with how long each `waited`, s: see measures/window.py."""
    window = run.summary.window
    if window is None:
        return run.tasks().with_columns(waited=pl.col("wait_time"))
    return measured(run.tasks(), window).with_columns(waited=wait_until(window.end))


def _timeline(run: Run) -> pl.LazyFrame:
    """Return the timeline within the window that is measured, unread."""
    return run.timeline() if run.summary.window is None else cut(run.timeline(), run.summary.window)


def clock(runs: list[Run]) -> tuple[float, float]:
    """Return the first instant that is measured of all runs and the seconds from there to the last."""
    ends = [
        _timeline(run).select(pl.col("time").min().alias("first"),
                              (pl.col("time") + pl.col("span")).max().alias("last")).collect().row(0)
        for run in runs
    ]
    known = [(first, last) for first, last in ends if first is not None]
    origin = min((first for first, _ in known), default=0.0)
    return origin, max((last for _, last in known), default=1.0) - origin


def wait_by_period(runs: list[Run], period: float) -> pl.DataFrame:
    """Return run, scheduler, time (the middle of the period, s), mean wait (s) and tasks, by period of arrival.

    The last period may be cut short: its time stays within the runs' span.
    """
    origin, span = clock(runs)
    number = ((pl.col("arrival") - origin) / period).floor()
    return pl.concat(
        _named(run, measured_tasks(run).filter(pl.col("waited").is_not_null(), pl.col("arrival") >= origin)
               .group_by(pl.min_horizontal((number + 0.5) * period, pl.lit(span)).alias("time"))
               .agg(pl.col("waited").mean().alias("mean"), pl.len().cast(pl.Int64).alias("tasks"))
               .sort("time").collect())
        for run in runs
    )


def wait_distribution(runs: list[Run]) -> pl.DataFrame:
    """Return run, scheduler, value (s) and the share of tasks that waited longer."""
    return _distributions(runs, pl.col("waited"))


def group_waits(runs: list[Run], kind: str, groups_max: int) -> pl.DataFrame:
    """Return scheduler, name, tasks, mean and 95th percentile of the wait (s), means over seeds, by groups of a kind.

    Of at most *groups_max* groups, those of most tasks; without those of which nothing started.
    """
    parts = [_named(run, run.table("groups").filter(pl.col("by") == kind).collect())
             for run in runs if _has_groups(run)]
    if not parts:
        return pl.DataFrame(schema={"scheduler": pl.String, "name": pl.String, "tasks": pl.Int64, "mean": pl.Float64,
                                    "p95": pl.Float64})
    table = pl.concat(part.select("scheduler", "name", "tasks", "wait_mean", "wait_p95") for part in parts)
    most = table.group_by("name").agg(pl.col("tasks").max()).sort(["tasks", "name"], descending=[True, False])
    shown = pl.col("name").is_in(most["name"].head(groups_max).to_list())
    return (table.filter(shown, pl.col("wait_mean").is_not_null())
            .group_by("scheduler", "name", maintain_order=True)
            .agg(pl.col("tasks").max(), mean=pl.col("wait_mean").mean(), p95=pl.col("wait_p95").mean()))


def _has_groups(run: Run) -> bool:
    """Whether a run has its table of groups; those of versions before do not."""
    return "groups" in run.held if run.held else (run.folder / "groups.parquet").is_file()


def slowdown_distribution(runs: list[Run]) -> pl.DataFrame:
    """Return run, scheduler, value and the share of finished tasks with a larger bounded slowdown."""
    return _distributions(runs, bounded_slowdown())


def allocation_distribution(runs: list[Run]) -> pl.DataFrame:
    """Return run, scheduler, value (s) and the share of started tasks whose allocation took longer."""
    return _distributions(runs, pl.col("start") - pl.col("ready"))


def exceedance(values: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most *points* of the values (float[n], any order) and the share of all values above each.

    Half the points lie evenly over the ranks, half thin out logarithmically from the largest: both ends stay sharp.
    """
    ordered = np.sort(values)
    if len(ordered) == 0:
        return ordered, ordered
    from_top = np.geomspace(1, len(ordered), points // 2)
    evenly = np.linspace(1, len(ordered), points - points // 2)
    ranks = np.unique(np.concatenate([from_top, evenly]).round().astype(np.int64))
    chosen = np.unique(ordered[len(ordered) - ranks])
    return chosen, (len(ordered) - np.searchsorted(ordered, chosen, side="right")) / len(ordered)


def waiting_over_time(runs: list[Run]) -> pl.DataFrame:
    """Return run, scheduler, time (s), waiting (time mean) and waiting_max."""
    columns = [_mean_over_time("waiting"), pl.col("waiting_max").max().cast(pl.Float64)]
    return pl.concat(_named(run, _coarse(run, runs, columns, lines=1)) for run in runs)


def messages_over_time(runs: list[Run]) -> pl.DataFrame:
    """Return run, scheduler, time (s), what was handled (MESSAGES_COUNTED) and how often a second; federations only."""
    counted = [(pl.col(name).sum() / pl.col("span").sum()).alias(name) for name in MESSAGES_COUNTED]
    parts = [_named(run, _coarse(run, runs, counted, lines=len(MESSAGES_COUNTED)))
             for run in runs if "messages" in run.timeline().collect_schema()]
    table = pl.concat(parts) if parts else pl.DataFrame(schema={
        "run": pl.String, "scheduler": pl.String, "time": pl.Float64, **dict.fromkeys(MESSAGES_COUNTED, pl.Float64)})
    happened = [name for name in MESSAGES_COUNTED if table[name].sum() > 0]
    return table.unpivot(happened, index=["run", "scheduler", "time"], variable_name="what", value_name="a second")


def used_over_time(runs: list[Run], resource: str) -> pl.DataFrame:
    """Return run, scheduler, time (s), used and stranded shares of capacity; runs without *resource* are left out."""
    parts = list(_used(runs, resource))
    return pl.concat(parts) if parts else pl.DataFrame(schema={
        "run": pl.String, "scheduler": pl.String, "time": pl.Float64, "used": pl.Float64, "stranded": pl.Float64})


def power_over_time(runs: list[Run]) -> pl.DataFrame:
    """Return run, scheduler, time (s), watts, and price and carbon (kg) of a kWh; only of runs that know of energy."""
    columns = [pl.when(pl.col(name).count() > 0).then(_mean_over_time(name)).alias(name)
               for name in ("watts", "price", "carbon")]
    parts = [_named(run, _coarse(run, runs, columns, lines=3, table=run.power())) for run in runs if run.summary.energy]
    return pl.concat(parts)


def shares_over_time(run: Run, level: int, queues: int) -> pl.DataFrame:
    """Return queue, time (s), share and guarantee of the largest *queues* of a level."""
    of_level = run.shares().filter(pl.col("level") == level).with_columns(pl.col("queue").cast(pl.String))
    largest = (of_level.filter(pl.col("queue").is_not_null()).group_by("queue")
               .agg((pl.col("share") * pl.col("span")).sum()).sort(["share", "queue"], descending=[True, False])
               .head(queues).collect()["queue"].to_list())
    origin, span = clock([run])
    width = max(span / max(24, min(LINE_POINTS_MAX, POINTS_MAX // (2 * queues + 1))), 1e-9)
    return (of_level.filter(pl.col("queue").is_in(largest))
            .group_by("queue", ((pl.col("time") - origin) / width + 1e-9).floor().alias("number"))
            .agg(((pl.col("time") + pl.col("span") / 2 - origin) * pl.col("span")).sum() / pl.col("span").sum(),
                 _mean_over_time("share"), _mean_over_time("guarantee"))
            .sort("queue", "number").drop("number").collect())


def _used(runs: list[Run], resource: str) -> Iterator[pl.DataFrame]:
    for run in runs:
        if any(known.name == resource for known in run.summary.resources):
            yield _named(run, _coarse(run, runs, _used_columns(run, resource), lines=2))


def _used_columns(run: Run, resource: str) -> list[pl.Expr]:
    """Shares of what was up in a period; while nothing was up there is no share."""
    capacity = _mean_over_time(f"capacity_{resource}")
    known = f"stranded_{resource}" in run.timeline().collect_schema()
    stranded = _mean_over_time(f"stranded_{resource}") / capacity if known else pl.lit(None, pl.Float64)
    shares = [(_mean_over_time(f"used_{resource}") / capacity).alias("used"), stranded.alias("stranded")]
    return [pl.when(share.is_finite()).then(share).alias(name)
            for share, name in zip(shares, ("used", "stranded"), strict=True)]


def _coarse(
    run: Run, runs: list[Run], columns: list[pl.Expr], lines: int, table: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Average a timeline, or a *table* like it, over periods so long that a chart stays under POINTS_MAX points."""
    origin, span = clock(runs)
    points = min(LINE_POINTS_MAX, max(24, POINTS_MAX // (len(runs) * lines)))
    width = max(span / points, 1e-9)
    number = ((pl.col("time") - origin) / width + 1e-9).floor()
    middle = ((pl.col("time") + pl.col("span") / 2 - origin) * pl.col("span")).sum() / pl.col("span").sum()
    return ((_timeline(run) if table is None else table).filter(pl.col("span") > 0)
            .group_by(number.alias("number")).agg(middle.alias("time"), *columns)
            .sort("number").drop("number").collect())


def _mean_over_time(column: str) -> pl.Expr:
    value = pl.col(column).cast(pl.Float64)
    return ((value * pl.col("span")).sum() / pl.col("span").sum()).alias(column)


def _distributions(runs: list[Run], value: pl.Expr) -> pl.DataFrame:
    points = min(LINE_POINTS_MAX, max(24, POINTS_MAX // len(runs)))
    return pl.concat(_named(run, _distribution(run, value, points)) for run in runs)


def _distribution(run: Run, value: pl.Expr, points: int) -> pl.DataFrame:
    values = measured_tasks(run).select(value.alias("value")).drop_nulls().collect()["value"].to_numpy()
    chosen, share = exceedance(values, points)
    return pl.DataFrame({"value": chosen, "share": share}, schema={"value": pl.Float64, "share": pl.Float64})


def _named(run: Run, table: pl.DataFrame) -> pl.DataFrame:
    return table.select(pl.lit(run.label).alias("run"), pl.lit(run.group).alias("scheduler"), pl.all())
