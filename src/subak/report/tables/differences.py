"""Shows a comparison with differences from a baseline and their intervals."""
from typing import NamedTuple

from subak.errors import InputError
from subak.measures.intervals import Difference
from subak.measures.runs import Run, groups
from subak.report.comparison import Measure, Row, compare
from subak.report.number_text import difference_text, in_one_unit
from subak.report.tables.definitions import definition

STAR = " *"  # behind a difference that is decided


class Compared(NamedTuple):
    """A measure of all schedulers, in their order."""

    measure: Measure
    unit: str
    values: list[float | None]
    texts: list[str]  # in `unit`
    differences: list[Difference]  # from the baseline, judged together
    best: frozenset[int]
    definition: str

    @property
    def title(self) -> str:
        """The measure in words, with its family."""
        return f"{self.measure.family}, {self.measure.title}" if self.measure.title else self.measure.family

    def difference(self, number: int) -> str:
        """Return a scheduler's difference from the baseline in per cent, with a star where it is decided."""
        share = self.differences[number].share
        return "" if share is None else difference_text(share) + (STAR if self.differences[number].is_decided else "")

    def interval(self, number: int) -> str:
        """Return the interval of that difference."""
        ends = self.differences[number].ends
        return "" if ends is None else f"{difference_text(ends[0])} to {difference_text(ends[1])}"

    def of_means(self, number: int) -> str:
        """Return by what share a scheduler's mean is larger, where the typical seed may say another thing."""
        found = self.differences[number]
        return "" if found.of_means is None or found.ends is None else f"of means {difference_text(found.of_means)}"


def baseline_of(runs: list[Run], name: str | None) -> int:
    """Return the place of the scheduler that others are measured from: the first one, or *name*.

    Raises InputError where it is none of them.
    """
    names = list(groups(runs))
    if name is not None and name not in names:
        raise InputError(f"--baseline: must be one of {', '.join(names)}, not {name}")
    return 0 if name is None else names.index(name)


def compared(runs: list[Run], baseline: int = 0) -> list[Compared]:
    """Return the measures that any run has, with differences from the scheduler at *baseline*."""
    return [_compared(row, baseline) for row in compare(runs) if any(value is not None for value in row.values)]


def _compared(row: Row, baseline: int) -> Compared:
    unit, texts = in_one_unit(row.measure.text, row.values)
    return Compared(row.measure, unit, row.values, texts, row.differences(baseline), row.best, definition(row.measure))
