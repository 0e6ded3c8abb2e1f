"""Shows progress bars in a notebook or a terminal, and nothing elsewhere."""
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from rich.progress import BarColumn, MofNCompleteColumn

from subak.cli.progress import RunBars, compiling_notice
from subak.experiment.workers import DONE, FAILED, PROGRESS, News
from subak.report import tags
from subak.report.console import bars as terminal_bars
from subak.report.number_text import count_text, seconds_text

EVERY_S = 0.25  # between drawings in a notebook


class NotebookBars:
    """Bars for the runs named *labels*, each over *tasks* arrivals, in the output of a notebook's cell."""

    def __init__(self, labels: list[str], tasks: int, schedulers: list[str]) -> None:
        self.tasks = tasks
        self.notice = compiling_notice(schedulers)
        self.states: dict[str, tuple[int, str]] = dict.fromkeys(labels, (0, "waiting"))
        self.drawn = 0.0
        self.shown: Any = None

    def __enter__(self) -> Self:
        display = sys.modules["IPython.display"].display
        self.shown = display(self._bundle(), raw=True, display_id=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave nothing: what the cell returns is what is to be seen."""
        self.shown.update({"text/plain": "", "text/html": ""}, raw=True)

    def show(self, news: News) -> None:
        """Draw what a run said."""
        if news.kind == PROGRESS and news.progress is not None:
            said = news.progress
            self.note(news.label, said.tasks_arrived, f"{count_text(said.events)} events, {seconds_text(said.time)} "
                                                      f"simulated, {count_text(said.waiting)} waiting")
        else:
            arrived = self.tasks if news.kind == DONE else self.states[news.label][0]
            self.note(news.label, arrived, {DONE: "done", FAILED: "failed"}.get(news.kind, "starting"))

    def note(self, label: str, arrived: int, state: str) -> None:
        """Draw how far a bar is, and what is said beside it."""
        self.states[label] = arrived, state
        if time.monotonic() - self.drawn >= EVERY_S:
            self.drawn = time.monotonic()
            self.shown.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        rows = (tags.tag("tr", *(tags.tag("td", each, style="text-align: left") for each in (
            label, tags.tag("progress", value=arrived, max=max(self.tasks, 1)), state)))
            for label, (arrived, state) in self.states.items())
        page = tags.tag("div", tags.tag("p", self.notice) if self.notice else "", tags.tag("table", *rows))
        ended = sum(state in ("done", "failed") for _, state in self.states.values())
        return {"text/html": str(page), "text/plain": f"{ended} of {len(self.states)} runs done"}


class NoBars:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing."""

    def show(self, news: News) -> None:
        """Let it be."""


@contextmanager
def counted(total: int, schedulers: list[str], wanted: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how many of *total* runs are done, and draws one bar of it, if that is *wanted*."""
    if wanted and in_notebook():
        with NotebookBars(["runs"], total, schedulers) as shown:
            yield lambda number: shown.note("runs", number, f"{number} of {total}")
    elif wanted:
        with terminal_bars(BarColumn(), MofNCompleteColumn()) as console:
            bar = console.add_task("Runs", total=total)
            yield lambda number: console.update(bar, completed=number)
    else:
        yield lambda number: None


def bars(labels: list[str], tasks: int, schedulers: list[str], wanted: bool) -> NotebookBars | RunBars | NoBars:
    """Return what shows the progress of runs here, if that is *wanted*."""
    if not wanted:
        return NoBars()
    return (NotebookBars if in_notebook() else RunBars)(labels, tasks, schedulers)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
