"""Loads and checks a workload and its machines once, for any number of runs."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from subak.api.frames import resources_of, workload_of
from subak.errors import InputError, first_line
from subak.experiment.fleets import edited
from subak.experiment.inputs import load_fleet, load_workload
from subak.experiment.scenario import IN_MEMORY, Scenario
from subak.fleet.table import Fleet, read_fleet
from subak.quantities import Amount
from subak.report import tags
from subak.report.number_text import count_text, seconds_text
from subak.resources import Resource
from subak.workload.samples import DEFAULT_SAMPLE, workload_folder
from subak.workload.table import Workload


@dataclass(frozen=True, repr=False)
class Inputs:
    """A workload and the fleet that it is scheduled on; `load` makes one."""

    workload: Workload
    """The checked tables of jobs, stages and tasks, as their files hold them."""
    fleet: Fleet
    """The checked tables of machines, their attributes and how they change."""
    scenario: Scenario
    """What a run notes of where both came from."""

    @property
    def tasks(self) -> pl.DataFrame:
        """One row a task, in order of arrival: its job, queue, times in seconds, and what it asks for.

        Amounts are natural ones (cores, or shares of the largest machine), a column for each resource.
        """
        workload = self.workload
        stages = _natural(workload.stages, workload.resources)
        amounts = [resource.name for resource in workload.resources]
        rows = workload.tasks.select(
            job=stages["job"].gather(workload.tasks["stage"]), index="index",
            stage=stages["name"].gather(workload.tasks["stage"]))
        jobs = workload.jobs.select("job", "queue", "user")[rows["job"]]
        asked = stages.select("priority", *amounts)[workload.tasks["stage"]]
        times = workload.tasks.drop("stage", "index")
        return pl.concat([jobs, rows.drop("job"), times, asked], how="horizontal")

    @property
    def machines(self) -> pl.DataFrame:
        """One row a machine: its id, its cluster, whether it is there at the beginning, and its natural capacity."""
        return _natural(self.fleet.machines, self.fleet.resources)

    def __repr__(self) -> str:
        """Return it in a line a fact."""
        return "\n".join(f"{name}: {value}" for name, value in self._facts())

    def _repr_html_(self) -> str:
        rows = (tags.tag("tr", tags.tag("th", name, style="text-align: left"),
                         tags.tag("td", value, style="text-align: left")) for name, value in self._facts())
        return str(tags.tag("table", tags.tag("tbody", *rows)))

    def _facts(self) -> list[tuple[str, str]]:
        workload, fleet = self.workload, self.fleet
        last = workload.tasks["arrival"].max()
        arrivals = "" if last is None else f", arriving within {seconds_text(float(last))}"  # type: ignore[arg-type]
        origin = workload.provenance
        return [
            ("workload", f"{origin.name}: {count_text(len(workload.tasks))} tasks in {count_text(len(workload.jobs))} "
                         f"jobs{arrivals}"),
            ("machines", f"{count_text(len(fleet.machines))} of {fleet.provenance.name}"),
            ("resources", ", ".join(resource.name for resource in workload.resources)),
            ("origin", f"{origin.origin} ({origin.licence})"),
        ]


def load(
    workload: str | Path | Workload | pl.DataFrame = DEFAULT_SAMPLE, fleet: str | Path | Fleet | None = None, *,
    machines: int = 0, capacity: Mapping[str, Amount] | None = None, scale: float = 1.0, remove: Sequence[str] = (),
    add_machines: Sequence[str] = (),
) -> Inputs:
    """Load a workload and its machines, and check both.

    *workload*: a folder that `subak convert` or `subak generate` made, the name of a shipped sample, tables
    (`subak.workload.table.make_workload`), or a frame with a row a task: `arrival` and `run_time` in seconds, a column
    for each resource, and where they are known `job`, `queue`, `user`, `priority` and `estimate`. *fleet*: a folder or
    tables, by default the folder `fleet` in the workload's; instead of it *machines* alike ones of *capacity* each,
    such as ``machines=80, capacity={"slot": 1}``. The machines are edited as on the command line: *scale* times as many
    of the same mix, then fewer (``remove=["30%"]``), then more (``add_machines=["200:cpu=0.5,memory=0.5"]``).
    Raises InputError, which names the file, the rule and the value, for what is none or breaks a rule.
    """
    named = isinstance(workload, str | Path)
    if not named and not isinstance(workload, Workload | pl.DataFrame):
        raise InputError(f"load: the workload must be a folder, a sample, tables or a frame of polars, not "
                         f"{type(workload).__module__}.{type(workload).__name__}; polars.from_pandas makes frames of "
                         "those of pandas")
    held = not named or isinstance(fleet, Fleet)
    scenario = Scenario(
        workload=IN_MEMORY if held else str(workload), machines=machines, capacity=_amounts(capacity or {}),
        scale=scale, remove=_words("remove", remove), add_machines=_words("add_machines", add_machines),
        fleet="" if fleet is None or isinstance(fleet, Fleet) else str(fleet))
    if isinstance(fleet, Fleet) and machines:
        raise InputError(f"fleet and machines: give one of them, not both (a fleet and {machines})")
    if isinstance(workload, pl.DataFrame):
        known_fleet = read_fleet(Path(fleet)) if isinstance(fleet, str | Path) else fleet
        resources = resources_of(workload, scenario.capacity) if known_fleet is None else known_fleet.resources
        tables = workload_of(workload, resources)
    elif isinstance(workload, Workload):
        tables = workload
    else:
        tables = load_workload(Scenario(workload=str(workload)) if held else scenario)
    if fleet is None and not machines and not (named and (workload_folder(str(workload)) / "fleet").is_dir()):
        raise InputError("load: the workload has no fleet; give fleet=FOLDER, or alike machines, such as "
                         f"machines=1000, capacity={{{tables.resources[0].name!r}: 1}}")
    found = edited(fleet, scale, scenario.remove, scenario.add_machines) if isinstance(fleet, Fleet) else \
        load_fleet(scenario, tables)
    return Inputs(tables, found, scenario)


def _words(name: str, texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InputError(f"{name}: must be a list of such words, as [{texts!r}]")
    return list(texts)


def _amounts(capacity: Mapping[str, Amount]) -> dict[str, Amount]:
    try:
        return msgspec.convert(dict(capacity), dict[str, Amount])
    except msgspec.ValidationError as error:
        raise InputError(f"capacity: {first_line(error)}") from None


def _natural(table: pl.DataFrame, resources: tuple[Resource, ...]) -> pl.DataFrame:
    """Return a table with amounts in the place of units."""
    return table.with_columns(pl.col(resource.name) * resource.unit for resource in resources)
