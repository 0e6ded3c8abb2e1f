"""`subak fair`: shows what each fair order gives each queue of a tree, beside its guarantee."""
from pathlib import Path

import numpy as np
import polars as pl
from markupsafe import Markup
from rich.table import Table

from subak.errors import InputError
from subak.measures.fairness.fair_shares import EXACT, SHARED_TASKS_MAX, FairShares, fair_shares
from subak.output.writing import new_folder
from subak.queues.fair_orders import share_out
from subak.queues.tree import ROOT, read_tree, refuse_changes
from subak.report import tags
from subak.report.console import Console, Text, echo, waiting
from subak.report.number_text import share_text

TITLE = "Shares of the queues"
ROOT_NAME = "all"
BELOW = "!"  # beside a share that is below the guarantee
READ = f"Dominant shares. {BELOW}: below its guarantee by more than a task, though it could use more."


def fair(tree: Path, out: Path | None, overwrite: bool) -> None:
    """Share out the cluster of a file, show the shares, and write them, too, where *out* is given."""
    if out is None:
        found = _found(tree)
    else:
        with new_folder(out, "index.html", overwrite, [tree]) as folder:
            found = _found(tree)
            with waiting("Drawing"):
                _write(found, folder)
        echo(f"Wrote {out / 'index.html'}", err=True)
    show(found, Console())


def _found(path: Path) -> FairShares:
    file = read_tree(path)
    refuse_changes(file, "subak fair")
    try:
        with waiting("Sharing out"):
            return fair_shares(file, share_out)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


# The terminal


def show(found: FairShares, console: Console) -> None:
    """Print the table, and what was assumed."""
    table = Table(title=TITLE, title_justify="left")
    table.add_column("queue", overflow="fold")
    for name in ("weight", "guarantee", *found.ways):
        table.add_column(name, justify="right", no_wrap=True)
    for node in range(len(found.tree)):
        style = "" if not found.tree.children[node] else "bold"
        indented = "  " * int(found.tree.depth[node]) + queue_name(found, node)
        cells = [Text(_share(found, way, node), style="red" if found.violated[way][node] else "") for way in found.ways]
        table.add_row(Text(indented, style=style), f"{found.tree.weight[node]:g}", share_text(found.guarantee[node]),
                      *cells)
    console.print(table)
    for line in remarks(found):
        console.print(Text(line), soft_wrap=True)


def queue_name(found: FairShares, node: int) -> str:
    """Return what a node is called."""
    return ROOT_NAME if found.tree.names[node] == ROOT else found.tree.names[node]


def _share(found: FairShares, way: str, node: int) -> str:
    return share_text(float(found.share[way][node])) + (f" {BELOW}" if found.violated[way][node] else "")


def remarks(found: FairShares) -> list[str]:
    """Return how to read the table, a sentence or two each."""
    lines = [READ]
    if np.isfinite(found.tree.limit).any():
        lines.append(f"Limits are kept only in {EXACT!r}; guarantees are cut at them.")
    if (found.bundle > 1).any():
        lines.append(f"There would be more than {SHARED_TASKS_MAX:,} tasks: up to {found.bundle.max():,} of a queue's "
                     f"were handed out as one, except in {EXACT!r}.")
    for way in found.ways:
        names = [queue_name(found, int(node)) for node in np.flatnonzero(found.violated[way])]
        if names:
            lines.append(f"{way} leaves {', '.join(names)} below the guarantee.")
    return lines


# The page


def _write(found: FairShares, folder: Path) -> None:
    from subak.report.charts import fair_shares as charts  # noqa: PLC0415  (slow to import, and most calls draw nothing)
    from subak.report.document import unchecked  # noqa: PLC0415  (as above)
    from subak.reproduce.page import Section, drawn, page  # noqa: PLC0415  (as above)

    inner = np.array([node for node in range(1, len(found.tree)) if found.tree.children[node]], np.int64)
    with unchecked():
        made = {"leaves": charts.share_chart(found, found.tree.leaves, "Shares of the queues without children"),
                "queues": charts.share_chart(found, inner, "Shares of the queues above others"),
                "errors": charts.error_chart(found)}
    if not inner.size:
        del made["queues"]
    sections = [Section("All queues", _words(found))]
    for name, chart in made.items():
        sections.append(Section(chart.title, drawn(chart, folder, name, chart.title)))
    _frame(found).write_csv(folder / "shares.csv")
    (folder / "index.html").write_bytes(page(TITLE, _verdict(found), remarks(found), sections))


def _verdict(found: FairShares) -> str:
    off = {way: float(np.abs(found.share[way] - found.share[EXACT])[found.tree.leaves].max())
           for way in found.ways if way != EXACT}
    return "Largest distance of a leaf from its exact share: " + ", ".join(
        f"{way} {share_text(value)}" for way, value in off.items()) + "."


def _words(found: FairShares) -> Markup:
    rows: list[list[object]] = [
        [queue_name(found, node), f"{found.tree.weight[node]:g}", share_text(float(found.guarantee[node])),
         *(_share(found, way, node) for way in found.ways)] for node in range(len(found.tree))]
    return tags.words_table(TITLE, ["Queue", "Weight", "Guarantee", *found.ways], rows)


def _frame(found: FairShares) -> pl.DataFrame:
    """Return a row a node: its name, weight, limit, guarantee, and its share each way."""
    return pl.DataFrame({"queue": found.tree.names, "weight": found.tree.weight, "limit": found.tree.limit,
                         "guarantee": found.guarantee, **{way: found.share[way] for way in found.ways}})
