"""Estimates how much longer a reproduction takes from the time of the figures so far."""
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.progress import ProgressColumn, Task

from subak.report.console import Text
from subak.report.number_text import seconds_text

PART_MIN = 0.05  # of a step, less tells little


class TimeLeft:
    """The figures of one or several papers, of which one runs at a time; those to come take as long as those done."""

    def __init__(self, figures: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.figures, self.clock = tuple(figures), clock
        self.took: list[float] = []  # seconds of each figure that is done
        self.runs = False
        self.began = clock()
        self.part = 0.0  # of the present step that is done; a figure has one or several

    def each(self, keys: Iterable[str]) -> Iterator[str]:
        """Return the *keys* of figures: whoever takes one begins it."""
        for key in keys:
            self.runs, self.began, self.part = True, self.clock(), 0.0
            yield key
            self.runs = False
            self.took.append(self.clock() - self.began)

    @property
    def place(self) -> str:
        """Which figure runs, of how many."""
        return f"{len(self.took) + self.runs} of {len(self.figures)}"

    def seconds(self) -> float | None:
        """Return about how many seconds are left, None where nothing tells.

        Before a figure is done the present one tells, as if its step were all of it.
        """
        present = self.clock() - self.began if self.runs else 0.0
        if not self.took:
            if not self.runs or self.part < PART_MIN:
                return None
            whole = present / self.part
            return whole * len(self.figures) - present
        usual = sum(self.took) / len(self.took)
        to_come = len(self.figures) - len(self.took) - self.runs
        return usual * to_come + (max(usual - present, 0.0) if self.runs else 0.0)

    def words(self) -> str:
        """Say so: roughly, for it is an estimate."""
        seconds = self.seconds()
        if seconds is None:
            return ""
        if seconds < 10:
            return "seconds left"
        step = 10.0 if seconds < 90 else 60.0
        return f"about {seconds_text(step * max(round(seconds / step), 1))} left"


class TimeLeftColumn(ProgressColumn):
    """The estimate beside a bar."""

    def __init__(self, left: TimeLeft) -> None:
        super().__init__()
        self.left = left

    def render(self, task: Task) -> Text:
        """Return what is said now."""
        return Text(self.left.words())
