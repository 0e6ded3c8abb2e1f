"""The terminal's tables: a comparison with measures as rows, readable at 80 columns, and one run in a panel."""
from rich.console import Group
from rich.panel import Panel
from rich.table import Table

from subak.measures.runs import PlanFacts, Reason, Run, groups
from subak.report.comparison import Row, compare, recorded_note
from subak.report.console import Text
from subak.report.fairness_tables import TITLES, lacking, queue_cells
from subak.report.notes import notes, seeds_of
from subak.report.number_text import NOTHING, count_text, number_text, seconds_text
from subak.report.tables.table import Table as Words
from subak.report.tables.table import text_of

TERMINAL_WIDTH = 80  # characters; schedulers that do not fit side by side go below
TITLE_WIDTH = 20
NUMBER_WIDTH = 12
REASONS_MAX = 5
TERMINAL_QUEUES_MAX = 5
QUEUE_WIDTH = 24  # characters of a queue's name
COMPARED = {  # measures whose differences are shown
    ("Wait time", "mean"), ("Wait time", "median"), ("Wait time", "99 %"), ("Bounded slowdown", "mean"),
    ("Job completion", "mean"), ("Job completion", "99 %"), ("Queue", "mean"), ("Fairness", "mean shortfall"),
}


def comparison_table(runs: list[Run]) -> Table:
    """Return the comparison: measures as rows, schedulers as columns, the best value of a row starred and green."""
    names, rows = list(groups(runs)), [row for row in compare(runs) if any(value is not None for value in row.values)]
    table = Table.grid(padding=(1, 0, 0, 0))
    beside = _columns(names)
    for first in range(0, len(names), beside):
        table.add_row(_block(names, rows, range(first, min(first + beside, len(names)))))
    if len(names) > 1 and seeds_of(runs) > 1:
        table.add_row(_differences(names, rows))
    for note in notes(runs):
        table.add_row(Text(note, style="dim"))
    return table


def _differences(names: list[str], rows: list[Row]) -> Table:
    """Return how far each scheduler is from the first, in per cent, with 95 % intervals where there are any."""
    table = Table(title=Text(f"Against {names[0]}"), title_justify="left", title_style="bold", box=None,
                  padding=(0, 1), pad_edge=False)
    table.add_column("")
    for name in names[1:]:
        table.add_column(Text(name), justify="right", overflow="fold", header_style="bold")
    for row in rows:
        if (row.measure.family, row.measure.title) in COMPARED:
            table.add_row(Text(f"{row.measure.family}, {row.measure.title}"),
                          *(Text(_difference(row, number)) for number in range(1, len(names))))
    return table


def _difference(row: Row, number: int) -> str:
    difference, interval = row.difference(number), row.interval(number)
    if difference is None:
        return NOTHING
    ends = "" if interval is None else f" ({100 * interval[0]:+.1f} to {100 * interval[1]:+.1f})"
    return f"{100 * difference:+.1f} %{ends}"


def run_panel(run: Run) -> Panel:
    """Return one run: its measures, and why tasks are waiting or cannot be placed."""
    facts = run.summary
    origin = f"{count_text(facts.workload.tasks)} tasks of {facts.workload.name} on " \
             f"{count_text(facts.fleet.machines)} machines of {facts.fleet.name}, seed {facts.seed}"
    shown = Group(Text(origin), comparison_table([run]), *_plan(facts.plan), *_bound(facts.makespan_bound_note),
                  *_queues(run), *_reasons(facts.reasons), *_recorded(recorded_note(facts)))
    return Panel(shown, title=Text(run.label), title_align="left", border_style="dim", expand=False)


def words_table(table: Words) -> Table:
    """Return a table of words as the terminal shows it."""
    shown = Table(title=Text(table.caption), title_justify="left", title_style="bold", box=None, padding=(0, 1),
                  pad_edge=False)
    for title in table.titles:
        shown.add_column(Text(title), overflow="fold", header_style="bold")
    for row in table.rows:
        shown.add_row(*(Text(text_of(cell)) for cell in row))
    return shown


def _plan(plan: PlanFacts | None) -> list[Text]:
    """Say what a plan promised, where there is one."""
    if plan is None:
        return []
    made = "One plan" if plan.plans == 1 else f"{count_text(plan.plans)} plans"
    return [Text(""), Text(
        f"{made} in {seconds_text(plan.seconds)}; the first: {plan.classes} classes on {plan.configurations} "
        f"configurations, {number_text(3600 * plan.rate_rounded)} tasks an hour in {count_text(plan.bins)} bins, at "
        f"most {number_text(3600 * plan.rate_pooled)} with all machines of a configuration in one."),
        *(Text(f"- {note}", style="dim") for note in plan.notes)]


def _bound(note: str) -> list[Text]:
    """Say what is to be said of the lower bound on the makespan."""
    return [Text(""), Text(f"Lower bound of the makespan: {note}.", style="dim")] if note else []


def _recorded(note: str) -> list[Text]:
    """Say how the tasks that finished were recorded, where that was not always so."""
    return [Text(""), Text(note, style="dim")] if note else []


def _queues(run: Run) -> list[Table]:
    """Return the queues that lacked the most, where there are several."""
    if run.summary.fairness is None:
        return []
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for number, title in enumerate(TITLES):
        table.add_column(title, justify="right" if number else "left", header_style="bold", no_wrap=True,
                         max_width=None if number else QUEUE_WIDTH)
    for row in lacking(run, TERMINAL_QUEUES_MAX).iter_rows(named=True):
        table.add_row(*map(Text, queue_cells(row)))
    return [Table.grid(), table] if table.row_count else []


def _columns(names: list[str]) -> int:
    """Return how many schedulers fit side by side without breaking a name, if any do."""
    return max(1, (TERMINAL_WIDTH - TITLE_WIDTH) // (2 + max(NUMBER_WIDTH, *map(len, names))))


def _block(names: list[str], rows: list[Row], columns: range) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(Text(names[column]), justify="right", overflow="fold", header_style="bold")
    family = ""
    for row in rows:
        if row.measure.family != family:
            family = row.measure.family
            _add_family(table, family, titled=bool(row.measure.title))
        table.add_row(_title(row), *(_cell(row, column) for column in columns))
    return table


def _add_family(table: Table, family: str, titled: bool) -> None:
    if titled:
        table.add_row(Text(family, style="bold"))


def _title(row: Row) -> Text:
    return Text(f"  {row.measure.title}") if row.measure.title else Text(row.measure.family, style="bold")


def _cell(row: Row, column: int) -> Text:
    text = row.texts()[column]
    return Text(f"{text} *", style="bold green") if column in row.best else Text(f"{text}  ")


def _reasons(reasons: tuple[Reason, ...]) -> list[Text]:
    """List the commonest reasons first; what is left out is counted."""
    ranked = sorted(reasons, key=lambda reason: -reason.tasks)
    lines = [Text(f"{count_text(reason.tasks)} {reason.status}: {reason.reason or NOTHING}", style="yellow")
             for reason in ranked[:REASONS_MAX]]
    rest = ranked[REASONS_MAX:]
    if rest:
        lines.append(Text(f"{count_text(sum(reason.tasks for reason in rest))} more, for {len(rest)} other reasons"))
    return [Text(""), *lines] if lines else []
