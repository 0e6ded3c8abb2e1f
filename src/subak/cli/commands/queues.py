"""`subak queues` on files: prints the tree of queues of a workload or a tree file."""
import math
from pathlib import Path

import numpy as np
from rich.table import Table

from subak.errors import InputError
from subak.measures.fairness.queue_facts import QueueFacts, queue_facts
from subak.output.workplaces import is_folder
from subak.queues.tree import ROOT, QueueTree, read_tree, tree_of_file, tree_of_paths
from subak.report.console import Console, Text
from subak.report.number_text import NOTHING, count_text, counted, number_text, share_text
from subak.workload.samples import sample_names, workload_folder
from subak.workload.table import Workload, read_workload

NAME_WIDTH_MIN, COLUMN_WIDTH = 16, 13  # letters
READ = "Requested: part of all amounts x seconds. Peak: the most at any time, if every task started on arrival."


def queues(source: str, weights: Path | None, rows: int) -> None:
    """Show the queues of *source*, a workload or a file of queues; with a workload, *weights* is such a file."""
    if source.endswith(".toml"):
        if weights is not None:
            raise InputError("--queues: goes with a workload, not with a file of queues")
        show(tree_of_file(read_tree(Path(source))), None, rows, Console())
        return
    workload = _workload(source)
    file = None if weights is None else read_tree(weights)
    tree = tree_of_paths(workload.jobs["queue"].to_list(), file)
    show(tree, queue_facts(workload, tree), rows, Console())


def _workload(source: str) -> Workload:
    folder = workload_folder(source)
    if not is_folder(folder):
        raise InputError(f"{source}: no such folder, and not the name of a sample ({', '.join(sample_names())})")
    return read_workload(folder)


def show(tree: QueueTree, facts: QueueFacts | None, rows: int, console: Console) -> None:
    """Print the tree, at most *rows* queues of it, and what is asked for in them."""
    listed, guarantee = _listed(tree, facts, rows), tree.guarantee()
    columns = {"weight": [f"{weight:g}" for weight in tree.weight]}
    if np.isfinite(tree.limit).any():
        columns["limit"] = [share_text(limit) if math.isfinite(limit) else NOTHING for limit in tree.limit]
    columns["guarantee"] = [share_text(float(share)) for share in guarantee]
    if facts is not None:
        columns |= {"jobs": [count_text(jobs) for jobs in facts.jobs],
                    "tasks": [count_text(tasks) for tasks in facts.tasks]}
    title = f"{counted(len(tree) - 1, 'queue')}, {len(tree.leaves):,} without children"
    console.print(_table(title, tree, listed, columns, console.width))
    if facts is not None:
        columns = {f"{name} requested": [share_text(float(part)) for part in parts]
                   for name, parts in facts.volume.items()}
        columns |= {f"{name} peak": [number_text(float(amount)) for amount in amounts]
                    for name, amounts in facts.peak.items()}
        console.print(_table("What is asked for", tree, listed, columns, console.width))
        console.print(Text(READ), soft_wrap=True)
    if len(listed) < len(tree):
        console.print(Text(f"{len(tree) - len(listed):,} more queues; --rows lists more."))


def _table(title: str, tree: QueueTree, listed: list[int], columns: dict[str, list[str]], width: int) -> Table:
    """Return a table with a line for each listed node; *columns* hold the texts of all nodes."""
    table = Table(title=title, title_justify="left")
    name_width = max(NAME_WIDTH_MIN, width - COLUMN_WIDTH * len(columns))
    table.add_column("queue", overflow="ellipsis", no_wrap=True, max_width=name_width)
    for name in columns:
        table.add_column(name, justify="right", vertical="bottom")
    for node in listed:
        name = "  " * int(tree.depth[node]) + (tree.names[node] if tree.names[node] != ROOT else "all")
        table.add_row(Text(name, style="bold" if tree.children[node] else ""),
                      *(texts[node] for texts in columns.values()))
    return table


def _listed(tree: QueueTree, facts: QueueFacts | None, rows: int) -> list[int]:
    """Return the root and up to *rows* more nodes: those that ask for most of anything, with all above them."""
    if facts is None:
        return list(range(min(len(tree), rows + 1)))
    most = np.max(list(facts.volume.values()), axis=0)
    kept = {0}
    for node in np.argsort(-most, kind="stable").tolist():  # a queue asks for no less than those below it
        if len(kept) <= rows:
            kept.update([node, *tree.above(node)])
    return sorted(kept)
