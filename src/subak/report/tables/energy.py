"""Tables of what machines of each kind used and cost."""
from subak.measures.runs import KindFacts, Run
from subak.report.number_text import count_text, energy_text, mass_text, plain_text
from subak.report.tables.table import Cell, Table, amount


def energy_tables(runs: list[Run]) -> list[Table]:
    """Return the energy, cost and carbon of each kind of machine, for those runs that know; none where none does."""
    rows = [_row(run.label, kind) for run in runs if run.summary.energy for kind in run.summary.energy.kinds]
    titles = ["Run", "Kind", "Machines", "Machine-hours", "Energy", "Cost of energy", "Cost of machines", "Carbon"]
    return [Table("energy-by-kind", "Energy and cost by kind of machine", titles, rows)] if rows else []


def _row(label: str, kind: KindFacts) -> list[Cell]:
    return [label, kind.kind, amount(kind.machines, count_text), amount(kind.hours, plain_text),
            amount(kind.kwh, energy_text), amount(kind.cost_energy, plain_text),
            amount(kind.cost_machines, plain_text), amount(kind.carbon, mass_text)]
