"""Tables of fairness: the queues that lacked the most."""

import polars as pl

from subak.json_type import Json
from subak.measures.runs import Run, groups
from subak.report.number_text import ratio_text, seconds_text, share_text
from subak.report.short_names import shortened
from subak.report.tables.table import Amount, Cell, Table, amount

WORST_SHOWN = 5
QUEUES_FOLDED = 12  # of each run
TITLES = ("Queue", "Held", "Guaranteed", "Lacked", "Share-s", "Starved")
LONG_TITLES = ["Run", "Queue", "Held, mean", "Guaranteed, mean", "Lacked while tasks waited, mean",
               "Lacked, share-seconds", "Longest starved"]
COLUMNS = (("share_mean", share_text), ("guarantee_mean", share_text), ("shortfall_mean", share_text),
           ("shortfall", ratio_text), ("starved_longest", seconds_text))


def lacking(run: Run, count: int | None) -> pl.DataFrame:
    """Return up to *count* queues without queues below them that lacked share-seconds, those that lacked most first."""
    found = (run.queues().filter(pl.col("leaf") & (pl.col("shortfall") > 0))
             .sort(["shortfall", "queue"], descending=[True, False]).collect())
    return found if count is None else found.head(count)


def queue_cells(row: dict[str, Json]) -> list[str]:
    """Return a row of queues.parquet in words, in the order of TITLES."""
    return [row["queue"], *(text(row[name]) for name, text in COLUMNS)]


def queue_table(runs: list[Run], count: int | None = None) -> Table:
    """Return the queues that lacked the most of each of *runs*, which have several queues; all without *count*.

    Names are short where there is a *count*: then a page shows them.
    """
    found = {run.label: lacking(run, count) for run in runs if run.summary.fairness}
    names = [queue for table in found.values() for queue in table["queue"]]
    short = shortened(names) if count is not None else {name: name for name in names}
    rows: list[list[Cell]] = [
        [label, short[row["queue"]], *(amount(row[name], text) for name, text in COLUMNS)]
        for label, table in found.items() for row in table.iter_rows(named=True)]
    return Table("queues", "Queues that lacked the most", LONG_TITLES, rows)


def worst_table(runs: list[Run]) -> Table:
    """Return the five queues that lacked the most under any scheduler, a column a scheduler: means over its seeds."""
    fair = [run for run in runs if run.summary.fairness]
    each = pl.concat([run.queues().filter("leaf").select(
        pl.lit(run.group).alias("scheduler"), "queue", "shortfall", "shortfall_mean", "starved_longest").collect()
        for run in fair])
    means = each.group_by("scheduler", "queue").agg(pl.all().mean())
    ranked = (means.group_by("queue").agg(pl.col("shortfall").max()).filter(pl.col("shortfall") > 0)
              .sort(["shortfall", "queue"], descending=[True, False]))
    worst = ranked.head(WORST_SHOWN)["queue"].to_list()
    known = {(scheduler, queue): (lacked, starved) for scheduler, queue, lacked, starved in means.select(
        "scheduler", "queue", "shortfall_mean", "starved_longest").iter_rows()}
    short = shortened(worst)
    names = list(groups(fair))
    rows: list[list[Cell]] = [[short[queue], *(_lacked(*known.get((name, queue), (None, None))) for name in names)]
                              for queue in worst]
    return Table("worst-queues", "The queues that lacked the most", ["Queue", *names], rows)


def _lacked(share: float | None, starved: float | None) -> Amount:
    """Say what a queue lacked in the mean while its tasks waited, and the longest that it held nothing meanwhile."""
    text = share_text(share) + (f", starved {seconds_text(starved)}" if starved else "")
    return Amount(share, text)
