"""Tables of fairness: the queues that lacked the most, on the page and in the terminal."""
from typing import Any

import polars as pl
from markupsafe import Markup

from subak.measures.runs import Run
from subak.report import tags
from subak.report.number_text import count_text, ratio_text, seconds_text, share_text

QUEUES_SHOWN = 12
TITLES = ("Queue", "Held", "Guaranteed", "Lacked", "Share-s", "Starved")


def lacking(run: Run, count: int) -> pl.DataFrame:
    """Return up to *count* queues without queues below them that lacked share-seconds, those that lacked most first."""
    return (run.queues().filter(pl.col("leaf") & (pl.col("shortfall") > 0))
            .sort(["shortfall", "queue"], descending=[True, False]).head(count).collect())


def queue_cells(row: dict[str, Any]) -> list[str]:
    """Return a row of queues.parquet in words, in the order of TITLES."""
    return [row["queue"], share_text(row["share_mean"]), share_text(row["guarantee_mean"]),
            share_text(row["shortfall_mean"]), ratio_text(row["shortfall"]), seconds_text(row["starved_longest"])]


def fairness_table(runs: list[Run]) -> Markup:
    """Return the page's table of *runs*, each of several queues."""
    rows: list[list[object]] = []
    for run in runs:
        worst = lacking(run, QUEUES_SHOWN)
        rows += [[run.label, *queue_cells(row)] for row in worst.iter_rows(named=True)]
        facts = run.summary.fairness
        left = facts.short - len(worst) if facts else 0
        if left > 0:
            rows.append([run.label, f"{count_text(left)} more queues, each less", *[""] * (len(TITLES) - 1)])
    titles = ["Run", "Queue", "Held, mean", "Guaranteed, mean", "Lacked while tasks waited, mean",
              "Lacked, share-seconds", "Longest starved"]
    return tags.words_table("Queues that lacked the most", titles, rows) if rows else tags.tag(
        "p", "No queue held less than it was guaranteed while tasks of it waited.", class_="note")
