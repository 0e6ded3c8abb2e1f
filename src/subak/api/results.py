"""The results of runs: tables as frames, measures, charts and a page."""
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

import polars as pl

from subak.api.shown import Charted, Table, as_text, measure_html
from subak.errors import InputError
from subak.measures import runs as measured
from subak.measures.run_folders import load_runs
from subak.measures.runs import Summary, groups
from subak.nearest import did_you_mean
from subak.output.places import refuse_file
from subak.output.writing import write_file
from subak.report import tags
from subak.report.charts.parts import Chart as Drawn
from subak.report.comparison import verdict
from subak.report.document import unchecked
from subak.report.notes import notes
from subak.report.page import makers_of, page
from subak.report.tables.differences import baseline_of, compared
from subak.report.tables.measures import BASE_UNITS, key_measures
from subak.report.terminal import comparison_table, run_panel

MEASURES = {"measure": pl.String, "title": pl.String, "unit": pl.String, "scheduler": pl.String, "value": pl.Float64,
            "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "of_means": pl.Float64, "p": pl.Float64,
            "best": pl.Boolean}


class Results(Charted):
    """What one run and several have in common."""

    def __init__(self, runs: Sequence[measured.Run]) -> None:
        self._runs = list(runs)

    def measures(self, baseline: str | None = None) -> pl.DataFrame:
        """Return a row a measure and scheduler: the mean over its seeds, and the difference from a scheduler's.

        Values are in seconds, shares of one and bytes. The difference is a share of *baseline*'s value (by default the
        first scheduler's) in the typical seed, *low* and *high* its 95 % interval from three seeds on, *p* how probable
        it is by chance, by Holm's rule over the row; *of_means* is the difference of the means. Raises InputError for
        an unknown scheduler.
        """
        place, names = baseline_of(self._runs, baseline), list(groups(self._runs))
        rows = [(row.measure.family, row.measure.title, BASE_UNITS.get(row.measure.text, ""), name, row.values[number],
                 found.share, *(found.ends or (None, None)), found.of_means, found.p, number in row.best)
                for row in compared(self._runs, place)
                for number, (name, found) in enumerate(zip(names, row.differences, strict=True))]
        return pl.DataFrame(rows, MEASURES, orient="row")

    def table(self, baseline: str | None = None) -> Table:
        """Return all measures as a table to be looked at, with the differences that `measures` has."""
        rows = compared(self._runs, baseline_of(self._runs, baseline))
        return Table(rows, list(groups(self._runs)), self.measures(baseline), comparison_table(self._runs))

    def report(self, path: str | Path, baseline: str | None = None) -> Path:
        """Write the page that `subak report` writes, one file that needs no network, and return its place.

        Raises InputError for what may not be written, RunError when the disk refuses.
        """
        place, number = Path(path), baseline_of(self._runs, baseline)
        refuse_file(place)
        with unchecked():
            charts = {name: make() for name, make in self._makers().items()}
            write_file(place, page(self._runs, compared(self._runs, number), charts, number))
        return place

    def _makers(self) -> dict[str, Callable[[], Drawn]]:
        return makers_of(self._runs)

    def _repr_html_(self) -> str:
        names = list(groups(self._runs))
        said = [verdict(self._runs), *notes(self._runs, marks=False)]
        return str(tags.tag("div", measure_html(key_measures(compared(self._runs)), names),
                            *(tags.tag("p", each) for each in said)))


class Run(Results):
    """One scheduler on one workload with one seed, and everything recorded of it."""

    def __init__(self, of: measured.Run) -> None:
        super().__init__([of])
        self._of = of

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read a run's folder. Raises InputError for what is none, or holds several."""
        found = load_runs(Path(folder))
        if len(found) != 1:
            raise InputError(f"{folder}: holds {len(found)} runs; read it with Comparison.read")
        return cls(found[0])

    @property
    def label(self) -> str:
        """What it is called: the scheduler, and the seed where there are several."""
        return self._of.label

    @property
    def folder(self) -> Path | None:
        """Where it is kept, None for a run in memory."""
        return None if self._of.held else self._of.folder

    @property
    def summary(self) -> Summary:
        """The run in a page of numbers, such as ``summary.wait_time.mean`` (seconds)."""
        return self._of.summary

    @property
    def tables(self) -> list[str]:
        """The names of its tables."""
        return list(self._of.held) or sorted(path.stem for path in self._of.folder.glob("*.parquet"))

    def frame(self, name: str) -> pl.DataFrame:
        """Return a table. Raises InputError for a name that `tables` does not have."""
        return self.lazy(name).collect()

    def lazy(self, name: str) -> pl.LazyFrame:
        """Return a table, unread: of a month choose few columns before `collect`.

        Raises InputError for a name that `tables` does not have.
        """
        if name not in self.tables:
            raise InputError(f"table: must be one of {', '.join(self.tables)}, not {name!r}"
                             + did_you_mean(name, self.tables))
        return self._of.table(name)

    @property
    def tasks(self) -> pl.DataFrame:
        """One row a task: when it was ready, started and finished (seconds), where, and how it stands at the end."""
        return self.frame("tasks")

    @property
    def timeline(self) -> pl.DataFrame:
        """One row an interval: tasks that arrived, started, ended, waited and ran, amounts in use."""
        return self.frame("timeline")

    def __repr__(self) -> str:
        """Return the run as `subak simulate` shows it."""
        return as_text(run_panel(self._of))


class Comparison(Results):
    """Several runs on one workload, side by side; iterating gives each `Run`, and an index the one of a label."""

    def __init__(self, runs: Sequence[measured.Run], errors: dict[str, str] | None = None) -> None:
        super().__init__(runs)
        self.errors = errors or {}
        """Why runs failed, by their labels."""

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read the folder of a comparison, or of one run. Raises InputError for what is neither."""
        return cls(load_runs(Path(folder)))

    @property
    def runs(self) -> dict[str, Run]:
        """The runs by their labels, in the order in which they were asked for."""
        return {run.label: Run(run) for run in self._runs}

    def frame(self, name: str) -> pl.DataFrame:
        """Return a table of all runs, one below the other, with the columns `scheduler` and `seed` before its own."""
        return pl.concat([
            run.frame(name).select(pl.lit(run.summary.scheduler).alias("scheduler"),
                                   pl.lit(run.summary.seed, pl.Int64).alias("seed"), pl.all())
            for run in self], how="diagonal_relaxed")

    @property
    def tasks(self) -> pl.DataFrame:
        """One row a task and run."""
        return self.frame("tasks")

    @property
    def timeline(self) -> pl.DataFrame:
        """One row an interval and run."""
        return self.frame("timeline")

    def __iter__(self) -> Iterator[Run]:
        """Give each run, in the order in which they were asked for."""
        return iter(self.runs.values())

    def __len__(self) -> int:
        """Return how many runs there are."""
        return len(self._runs)

    def __getitem__(self, label: str) -> Run:
        """Return the run of a label. Raises InputError for one that there is not."""
        found = self.runs
        if label not in found:
            raise InputError(f"run: must be one of {', '.join(found)}, not {label!r}{did_you_mean(str(label), found)}")
        return found[label]

    def __repr__(self) -> str:
        """Return the comparison as `subak compare` shows it."""
        return as_text(comparison_table(self._runs))
