"""Names the measures of a study as columns of its table."""
import operator
import re
from typing import NamedTuple

from subak.errors import InputError
from subak.measures.objective import read_objective
from subak.nearest import did_you_mean
from subak.report.comparison import Measure, measures, objective_measures

COST = "Simulation"  # the family of what differs each time that a run is repeated
LEVELS = 8  # of queues
PERCENTILES = {"90 %": "p90", "99 %": "p99", "99.9 %": "p999"}


class Column(NamedTuple):
    """A measure by its name in tables and in study files."""

    name: str
    measure: Measure
    less_is_better: bool | None  # None where neither less nor more is better

    @property
    def title(self) -> str:
        """What the measure is called on the page."""
        return ", ".join(filter(None, [self.measure.family, self.measure.title]))


def columns_of(resources: list[str], objectives: tuple[str, ...], levels: int = LEVELS) -> dict[str, Column]:
    """Return every measure by name; *levels* are those of queues."""
    found = [Column(text.measure.title, text.measure, read_objective(text.measure.title).sign in ("<", "<="))
             for text in (Column("", measure, None) for measure in objective_measures(objectives))]
    found += [Column(_name(measure), measure, None if measure.best is None else measure.best is operator.lt)
              for measure in measures(resources, levels) if measure.family != COST]
    return {column.name: column for column in found}


def refuse_measures(names: tuple[str, ...], known: dict[str, Column]) -> None:
    """Raise InputError for a name that is no measure's."""
    for name in names:
        if name not in known:
            raise InputError(f"measures: {name!r} is none" + (
                did_you_mean(name, known) or f"; they are called {', '.join(list(known)[:3])} and so on"))


def _name(measure: Measure) -> str:
    """Return a name such as wait_time_p99 of a family and a title."""
    title = PERCENTILES.get(measure.title, measure.title)
    return re.sub(r"\W+", "_", f"{measure.family} {title}".lower()).strip("_")
