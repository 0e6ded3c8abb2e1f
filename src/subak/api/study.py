"""Runs a study from Python and gives its results as one table with charts."""
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Self

import polars as pl

from subak.api.progress import counted
from subak.api.shown import Charted
from subak.experiment.inputs import inputs_of
from subak.experiment.study.document import read_study, study_of
from subak.experiment.study.plan import PLAN, Plan, planned, read_plan, write_plan
from subak.experiment.study.points import points_of
from subak.experiment.study.records import Record, is_done, read_records, unpacked, write_record
from subak.experiment.study.runs import done_here
from subak.output.places import refuse_file, refuse_folder
from subak.output.workplaces import clear
from subak.output.writing import write_file
from subak.report.charts.parts import Chart as Drawn
from subak.report.document import unchecked
from subak.report.study.charts import chart_makers
from subak.report.study.columns import columns_of, refuse_measures
from subak.report.study.page import PAGE, best_table, page
from subak.report.study.results import results_of
from subak.report.study.table import run_table, write_run_table
from subak.report.tables.table import shown
from subak.threads import usable_cores


class Study(Charted):
    """All runs of a study, over the settings that it varies."""

    def __init__(self, plan: Plan, records: Mapping[str, Record]) -> None:
        self._plan, self._records, self._results = plan, records, results_of(plan, records)

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read the folder of a study. Raises InputError for what is none."""
        plan = read_plan(Path(folder))
        return cls(plan, read_records(Path(folder), plan.digests()))

    @property
    def runs(self) -> pl.DataFrame:
        """One row a run: its settings, the scheduler, the seed, and its measures in seconds, shares of one, counts."""
        return run_table(self._plan, self._records)

    @property
    def errors(self) -> dict[str, list[str]]:
        """Why runs have no result, and which ones."""
        return self._results.errors

    def report(self, path: str | Path) -> Path:
        """Write the page that `subak experiment` writes, and return its place.

        Raises InputError for what may not be written, RunError when the disk refuses.
        """
        place = Path(path)
        refuse_file(place)
        with unchecked():
            write_file(place, page(self._results, {name: make() for name, make in self._makers().items()}))
        return place

    def _makers(self) -> dict[str, Callable[[], Drawn]]:
        return chart_makers(self._results)

    def __repr__(self) -> str:
        """Return the runs as a frame shows them."""
        return f"{self._plan.title}\n{self.runs}"

    def _repr_html_(self) -> str:
        return str(shown(best_table(self._results))) or self.runs._repr_html_()


def study(
    document: str | Path | Mapping[str, object], *, out: str | Path | None = None, processes: int | None = None,
    progress: bool = True,
) -> Study:
    """Do the runs of a study, those that are not in the folder *out* already.

    *document*: a study file, or its keys as a mapping, such as ``{"workload": "W", "schedulers": ["megha"],
    "federation": {"heartbeat": [1, 5, 10]}}``; *processes*: at once, by default one a core. Runs are done in processes
    of their own, so a scheduler is named, and policies are in files. Runs that fail are in `Study.errors`. Raises
    InputError, naming the point, for what no run could mean.
    """
    asked = study_of(document, "study") if isinstance(document, Mapping) else read_study(Path(document))
    place = None if out is None else Path(out)
    if place is not None:
        clear(place)
        refuse_folder(place, PLAN, True, [path for point in points_of(asked) for path in inputs_of(point.scenario)])
    plan, work = planned(asked)
    refuse_measures(plan.measures, columns_of(list(plan.resources), plan.objectives))
    records: dict[str, Record] = {} if place is None else read_records(place, plan.digests())
    todo = {digest: each for digest, each in work.items() if not is_done(records.get(digest))}
    if place is not None:
        write_plan(place, plan)
    schedulers = list(dict.fromkeys(each.scenario.schedulers[0] for each in todo.values()))
    at_once = processes or usable_cores()
    with counted(len(todo), schedulers, progress) as count, closing(done_here(todo, at_once)) as done:
        for number, (digest, content) in enumerate(done, 1):
            records[digest] = unpacked(content)
            if place is not None:
                write_record(place, digest, content)
            count(number)
    found = Study(plan, records)
    if place is not None:
        write_run_table(place, plan, records)
        found.report(place / PAGE)
    return found
