"""Facts of Google's 2011 cluster beyond the paper: machines, priorities, constraints."""
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet, make_fleet
from subak.tables import Provenance
from subak.workload.google_like.parameters import SHARES, Constraints, Priorities
from subak.workload.google_like.streams import Purpose, uniforms
from subak.workload.predicates import Constraint

# The last capacity of every machine id over 29 days: machines, cpu, memory (LoTES, Table 1; digits of the trace).
CONFIGURATIONS = (
    (6732, 0.5, 0.4995), (3863, 0.5, 0.2493), (1001, 0.5, 0.749), (795, 1.0, 1.0), (126, 0.25, 0.2498),
    (52, 0.5, 0.1241), (5, 0.5, 0.03085), (5, 0.5, 0.9678), (3, 1.0, 0.5), (1, 0.5, 0.06158),
)
# Events of the month by priority 0 to 11: FINISH (the paper's tasks) and KILL (its services).
FINISHED = (3626617, 1699238, 990365, 987, 11238276, 104, 499092, 0, 114106, 49190, 0, 0)
KILLED = (5386416, 923231, 164475, 62, 3361759, 0, 135559, 796, 138154, 227918, 9383, 1927)
SCHEDULING_CLASSES = (20_317_398, 3_327_283, 533_330, 49_614)  # tasks by class, Table III
# Megha's authors' tables, after Sharma et al. (SoCC 2011), in percent: tasks that ask for each of 21 attributes
# (over all their kinds of tasks), and machines that have it.
ASKED = (7.136, 6.243, 6.243, 8.917, 20.503, 17.828, 26.746, 0.884, 2.675, 0.884, 3.571, 2.675, 1.781, 0.884, 3.571,
         1.781, 8.033, 7.136, 9.802, 22.295, 25.862)
HAD = (37.61, 65.7, 15.56, 37.66, 68.28, 11.11, 28.39, 15.47, 70.28, 73.26, 48.69, 47.03, 31.69, 7.99, 69.27, 15.12,
       56.28, 27.64, 66.77, 70.04, 100.0)


def google_priorities() -> Priorities:
    """Return the month's priorities and scheduling classes, the two drawn independently.

    The papers give each by itself; their joint counts are for `subak fit` to find in a trace.
    """
    total = sum(SCHEDULING_CLASSES)

    def joint(counts: tuple[int, ...]) -> dict[str, float]:
        return {f"{priority}/{latency}": count * weight / total for priority, count in enumerate(counts) if count
                for latency, weight in enumerate(SCHEDULING_CLASSES)}

    return Priorities(joint(FINISHED), joint(KILLED))


def megha_constraints(rate: float) -> Constraints:
    """Return Megha's 21 constraints for a share *rate* of the stages; 0.857 is what its authors' tables come to."""
    choices = tuple((Constraint(f"bit{number}", "=", "1"), percent / 100) for number, percent in enumerate(ASKED))
    return Constraints(rate, choices, tuple(percent / 100 for percent in HAD))


def google_machines(seed: int = 1) -> Fleet:
    """Return LoTES's 12,583 machines in an order that depends on the *seed* alone."""
    count, cpu, memory = (np.array(column) for column in zip(*CONFIGURATIONS, strict=True))
    rows = np.repeat(np.arange(len(count)), count)
    rows = rows[np.argsort(uniforms(seed, Purpose.MACHINE_ORDER, 0, len(rows)), kind="stable")]
    table = pl.DataFrame({"machine": [f"m{number}" for number in range(len(rows))], "cluster": ["0"] * len(rows),
                          "cpu": cpu[rows], "memory": memory[rows]})
    origin = "Tran et al.: LoTES (2016), Table 1, with the digits of Google's 2011 trace"
    return make_fleet(table, SHARES, provenance=Provenance("Google's of 2011", origin, "CC-BY 4.0"))


def with_attributes(fleet: Fleet, constraints: Constraints, seed: int = 1) -> Fleet:
    """Return the *fleet* with attributes such that each constraint is met by its share ``met_by`` of the machines.

    The share is rounded to a whole number of machines; which ones is drawn for each constraint by itself, so those
    of different attributes are independent. Raises InputError where shares are missing, an attribute is there
    already, or has two constraints (which could not both have the share that is asked for).
    """
    if not constraints.met_by:
        raise InputError("constraints: met_by must give the share of the machines that meets each, to make attributes")
    names = [constraint.attribute for constraint, _ in constraints.choices]
    taken = set(fleet.attributes["attribute"].unique().to_list())
    for number, name in enumerate(names):
        if name in taken or name in names[:number]:
            raise InputError(f"constraints: attributes are made for one constraint each on machines without them; "
                             f"{name!r} is there twice or already")
    rows = [_attribute(fleet, constraint, share, Purpose.ATTRIBUTE + number, seed) for number, ((constraint, _), share)
            in enumerate(zip(constraints.choices, constraints.met_by, strict=True))]
    amounts = [pl.col(resource.name) * resource.unit for resource in fleet.resources]
    return make_fleet(fleet.machines.with_columns(amounts), fleet.resources, pl.concat([fleet.attributes, *rows]),
                      fleet.changes.with_columns(amounts), fleet.provenance, fleet.speeds)


def _attribute(fleet: Fleet, constraint: Constraint, share: float, purpose: int, seed: int) -> pl.DataFrame:
    """Rows of the attributes' table: a machine that lacks a row lacks the attribute."""
    count = len(fleet.machines)
    rank = np.argsort(np.argsort(uniforms(seed, purpose, 0, count), kind="stable"), kind="stable")
    meets = rank < round(share * count)
    met, unmet = _values(constraint)
    values = [met if holds else unmet for holds in meets]
    table = pl.DataFrame({"machine": np.arange(count, dtype=np.uint32), "attribute": [constraint.attribute] * count,
                          "value": pl.Series(values, dtype=pl.String)})
    return table.drop_nulls("value")


def _values(constraint: Constraint) -> tuple[str | None, str | None]:
    """Return what a machine has that meets the constraint, and one that does not; None is no such attribute."""
    value = constraint.value
    if constraint.operator == "=":
        return (value, None) if value else (None, "1")
    if constraint.operator == "!=":
        return (None, value) if value else ("1", None)
    bound = float(value)
    below, above = f"{bound - 1:.17g}", f"{bound + 1:.17g}"
    return {"<": (below, value), "<=": (value, above), ">": (above, value), ">=": (value, below)}[constraint.operator]
