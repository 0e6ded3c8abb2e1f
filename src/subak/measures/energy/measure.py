"""Measures energy, cost and carbon over the window: for the summary, and as two tables.

The power of a machine at an instant is read off its kind's curve at the share of a resource that its tasks use there,
as the workload says what they use, and integrated exactly over the window: kWh; times the price and the carbon of a kWh
at each instant, cost and kg of CO2 equivalent. A machine-hour costs what its kind does while the machine is there.
"""
import numpy as np
import polars as pl

from subak.errors import InputError
from subak.fleet.table import Fleet
from subak.measures.energy.kinds import curves_of, kinds_of, main_resource
from subak.measures.energy.series import steps_of
from subak.measures.energy.settings import SERIES_LEAST, Energy, points_of
from subak.measures.energy.sweep import JOULES_PER_KWH, Attempts, Kinds, Power, Presence, Tariff, sweep
from subak.measures.fairness.measure import timeline_edges
from subak.measures.fairness.trail import joined, rows_of_tasks, times
from subak.measures.objective import Objective
from subak.measures.runs import Amounts, EnergyFacts, KindFacts, WindowFacts
from subak.workload.table import Workload


def refuse_energy(energy: Energy, fleet: Fleet, begin: float, objectives: list[Objective]) -> None:
    """Raise InputError for what does not go with a fleet, with a window that begins then (s), or with objectives."""
    curves_of(energy, fleet)
    kinds_of(energy, fleet)
    for name in SERIES_LEAST:
        points = points_of(getattr(energy, name))
        if len(points) > 1 and points[0][0] > begin and getattr(energy, f"{name}_every") is None:
            raise InputError(f"{name}: must begin by the time that is measured, {begin:g} s, and does at "
                             f"{points[0][0]:g} s")
    known = {"energy": True, "cost": energy.costs, "carbon": energy.carbon is not None}
    for each in objectives:
        if not known.get(each.measure, True):
            raise InputError(f"objective {each.text!r}: the file says nothing of it")


class EnergyTally:
    """What every attempt held, and where; tasks come some at a time, in their order."""

    def __init__(self, energy: Energy, fleet: Fleet, window: WindowFacts) -> None:
        self.energy, self.fleet, self.window = energy, fleet, window
        self.finished = 0
        self.ran: list[Attempts] = []  # the last attempt of each task
        self.lost: list[Attempts] = []
        self.places: list[np.ndarray] = []  # int64[attempt] of each part, of lost attempts among all that were

    def add(self, tasks: pl.DataFrame, attempts: pl.DataFrame, places: np.ndarray, workload: Workload) -> None:
        """Add rows of the task table of a run, with those of their workload, and their lost attempts."""
        stage, machines = workload.tasks["stage"].to_numpy(), len(self.fleet.machines)
        inside = pl.col("finish").is_between(self.window.begin, self.window.end)
        self.finished += int(tasks.select(inside.sum()).item())
        self.ran.append(Attempts(_codes(tasks, machines), stage, times(tasks["start"]), times(tasks["finish"])))
        self.lost.append(Attempts(_codes(attempts, machines), stage[rows_of_tasks(attempts, tasks)],
                                  times(attempts["start"]), times(attempts["end"])))
        self.places.append(places)

    def use(self, timeline: pl.DataFrame, workload: Workload) -> tuple[EnergyFacts, dict[str, pl.DataFrame]]:
        """Return what the run used over its *timeline*, cut to the window, and two tables by name: machines and power.

        Raises InputError for a fleet that the energy file does not go with.
        """
        energy, fleet = self.energy, self.fleet
        kinds = Kinds(kinds_of(energy, fleet), curves_of(energy, fleet), main_resource(energy, fleet))
        tariff = Tariff(steps_of(points_of(energy.price), energy.price_every),
                        steps_of(points_of(energy.carbon), energy.carbon_every))
        edges = timeline_edges(timeline, 0.0, self.window.end)
        if edges.size == 1:  # nothing lasted
            edges = np.array([self.window.begin, self.window.begin])
        power = sweep(self._attempts(), _presence(fleet, edges[-1]), kinds, workload.requests.astype(np.int64), tariff,
                      edges)
        facts = _facts(energy, power, kinds, fleet, float(edges[-1] - edges[0]), self.finished)
        return facts, {"machines": _machine_table(energy, power, kinds, fleet),
                       "power": _power_table(power, tariff, edges)}

    def _attempts(self) -> Attempts:
        """Return the last attempt of each task that has one, then the lost ones, in the order in which they were."""
        order = np.argsort(np.concatenate(self.places), kind="stable")
        lost = (np.concatenate(column)[order] for column in zip(*self.lost, strict=True))
        ran = (column[0] if len(column) == 1 else np.concatenate(column) for column in zip(*self.ran, strict=True))
        return Attempts(*map(joined, ran, lost))


def _codes(table: pl.DataFrame, machines: int) -> np.ndarray:
    """Return the fleet's row of each machine, or how many there are, as small as can be."""
    code = table["machine"].to_physical().cast(pl.UInt32).fill_null(machines).to_numpy()
    return code.astype(np.uint16 if machines < 2**16 else np.uint32)


def _presence(fleet: Fleet, end: float) -> Presence:
    """Return what changes of each machine from its first instant to *end* (s), at which all of it is gone."""
    names = [*(resource.name for resource in fleet.resources), "present"]
    there = [(pl.col(name).cast(pl.Int64) * pl.col("present")).alias(name) for name in names]
    first = fleet.machines.with_row_index("row").select(
        pl.lit(-np.inf).alias("time"), pl.col("row").cast(pl.Int64).alias("machine"), *there)
    later = fleet.changes.filter(pl.col("time") < end).select("time", pl.col("machine").cast(pl.Int64), *there)
    last = first.select(pl.lit(np.inf).alias("time"), "machine", *(pl.lit(0, pl.Int64).alias(name) for name in names))
    changed = pl.concat([first, later, last]).with_columns(
        pl.col(name).diff().over("machine").fill_null(pl.col(name)) for name in names)
    return Presence(changed["machine"].to_numpy(), changed["time"].to_numpy(),
                    np.stack([changed[name].to_numpy() for name in names[:-1]]), changed["present"].to_numpy())


def _facts(energy: Energy, power: Power, kinds: Kinds, fleet: Fleet, seconds: float, finished: int) -> EnergyFacts:
    """Return what summary.json says."""
    of_kinds = tuple(_kind_facts(energy, number, power, kinds.kind == number) for number in range(len(energy.kind)))
    resource = fleet.resources[kinds.main]
    kwh, used_hours = float(power.kwh.sum()), float(power.held.sum()) * resource.unit
    cost_energy = None if energy.price is None else float(power.cost.sum())
    cost_machines = sum(kind.cost_machines for kind in of_kinds) if energy.costs else None
    total = Amounts(kwh, None if cost_machines is None else cost_machines + (cost_energy or 0.0),
                    None if energy.carbon is None else float(power.carbon.sum()))
    return EnergyFacts(
        resource=resource.name, currency=energy.currency, total=total, per_task=_over(total, finished),
        per_used_hour=_over(total, used_hours), cost_energy=cost_energy, cost_machines=cost_machines,
        watts_mean=kwh * JOULES_PER_KWH / seconds if seconds > 0 else None,
        finished=finished, used_hours=used_hours, kinds=of_kinds)


def _over(total: Amounts, number: float) -> Amounts:
    """Return the amounts for each of a number; none where there are none."""
    values = (total.kwh, total.cost, total.carbon)
    return Amounts(*(None if value is None or number == 0 else value / number for value in values))


def _kind_facts(energy: Energy, number: int, power: Power, of: np.ndarray) -> KindFacts:
    """Return the sums over the machines of a kind."""
    kind, hours = energy.kind[number], float(power.hours[of].sum())
    return KindFacts(
        kind=kind.name, machines=int(of.sum()), hours=hours, kwh=float(power.kwh[of].sum()),
        cost_energy=None if energy.price is None else float(power.cost[of].sum()), cost_machines=hours * kind.per_hour,
        carbon=None if energy.carbon is None else float(power.carbon[of].sum()))


def _machine_table(energy: Energy, power: Power, kinds: Kinds, fleet: Fleet) -> pl.DataFrame:
    """Return one row a machine: its kind, the hours that it was there, kWh, cost of energy and machine, and carbon."""
    names = [kind.name for kind in energy.kind]
    per_hour = np.array([kind.per_hour for kind in energy.kind])[kinds.kind]
    return pl.DataFrame([
        fleet.machines["machine"], pl.Series("kind", names, pl.Enum(names)).gather(kinds.kind),
        pl.Series("hours", power.hours), pl.Series("used_hours", power.held * fleet.resources[kinds.main].unit),
        pl.Series("kwh", power.kwh), _known("cost_energy", power.cost, energy.price is not None),
        _known("cost_machine", power.hours * per_hour, energy.costs),
        _known("carbon", power.carbon, energy.carbon is not None),
    ])


def _power_table(power: Power, tariff: Tariff, edges: np.ndarray) -> pl.DataFrame:
    """Return one row an interval that lasts: means over it of power (W), price and carbon (kg) of a kWh."""
    span = np.diff(edges)
    over = np.where(span > 0, span, np.nan)
    price, carbon = (np.full(span.size, np.nan) if steps is None else np.diff(steps.integral(edges)) / over
                     for steps in tariff)
    table = pl.DataFrame([
        pl.Series("time", edges[:-1]), pl.Series("span", span),
        pl.Series("watts", power.binned * JOULES_PER_KWH / over),
        _known("price", price, tariff.price is not None), _known("carbon", carbon, tariff.carbon is not None),
    ])
    return table.filter(pl.col("span") > 0)


def _known(name: str, values: np.ndarray, known: bool) -> pl.Series:
    """Return a column of numbers, or of nulls."""
    return pl.Series(name, values, pl.Float64) if known else pl.Series(name, [None] * values.size, pl.Float64)
