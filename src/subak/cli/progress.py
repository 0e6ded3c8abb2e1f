"""Draws a progress bar for each run; prints nothing where there is no terminal."""
import time
from types import TracebackType

from rich.progress import BarColumn, SpinnerColumn, TaskID, TimeRemainingColumn

from subak.experiment.workers import DONE, FAILED, PROGRESS, STARTED, News
from subak.kernels.files import kernel_folder
from subak.kernels.kernel import is_compiled
from subak.policy_files import named_scheduler
from subak.report.console import Console, TextColumn, bars
from subak.report.number_text import seconds_text
from subak.simulator.engine.run_loop import Progress as RunProgress

COMPILE_TIME = "about half a minute"  # of a scheduler's kernels, at most, on two cores of 2023


class RunBars:
    """Bars for the runs named *labels*, each over *tasks* arrivals, under one of *schedulers*."""

    def __init__(self, labels: list[str], tasks: int, schedulers: list[str]) -> None:
        self.schedulers = schedulers
        self.bars = bars(SpinnerColumn(), BarColumn(), TimeRemainingColumn(), TextColumn("{task.fields[state]}"))
        self.ids: dict[str, TaskID] = {
            label: self.bars.add_task(label, total=tasks, state="waiting") for label in labels
        }
        self.began: dict[str, float] = {}

    def __enter__(self) -> "RunBars":
        notice = compiling_notice(self.schedulers)
        if notice:
            Console(stderr=True).print(notice, style="dim", soft_wrap=True)
        self.bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.bars.stop()

    def show(self, news: News) -> None:
        """Draw what a run said."""
        bar = self.ids[news.label]
        if news.kind == STARTED:
            self.begin(news.label)
        elif news.kind == PROGRESS and news.progress is not None:
            self.advance(news.label, news.progress)
        elif news.kind == DONE:
            self.bars.update(bar, completed=self.bars.tasks[bar].total, state="done")
        elif news.kind == FAILED:
            self.bars.update(bar, state="failed")

    def begin(self, label: str) -> None:
        """Say that a run is being prepared."""
        self.began[label] = time.monotonic()
        self.bars.update(self.ids[label], state="starting")

    def advance(self, label: str, progress: RunProgress) -> None:
        """Draw how far a run is."""
        rate = progress.events / max(time.monotonic() - self.began.get(label, time.monotonic()), 1e-9)
        state = (f"{progress.events:,} events, {seconds_text(progress.time)} simulated, {rate:,.0f} events/s, "
                 f"{progress.waiting:,} waiting")
        self.bars.update(self.ids[label], completed=progress.tasks_arrived, state=state)


def compiling_notice(schedulers: list[str]) -> str:
    """Return a line saying that engines must be compiled first, and how long that takes; empty if none must."""
    engines = dict.fromkeys(named_scheduler(name).kernels for name in schedulers)
    missing = [engine for engine in engines if not all(is_compiled(kernel) for kernel in engine)]
    if not missing:
        return ""
    what = "the engine" if len(missing) == 1 else f"the engine of each kind ({len(missing)})"
    kept = "; it is kept for later runs" if kernel_folder() else ""
    return (f"Compiling {what} for this machine: once, {COMPILE_TIME}"
            f"{' for the longest' if len(missing) > 1 else ''}{kept}.")
