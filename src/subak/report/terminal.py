"""Prints comparisons and runs as tables as wide as the terminal."""
from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.panel import Panel
from rich.table import Table

from subak.measures.intervals import Difference
from subak.measures.runs import PlanFacts, Reason, Run, groups, trace_days
from subak.report.comparison import Row, compare, recorded_note
from subak.report.console import Text
from subak.report.fairness_tables import TITLES, lacking, queue_cells
from subak.report.notes import difference_notes, hopeless_notes, notes, seeds_of
from subak.report.number_text import NOTHING, count_text, counted, number_text, seconds_text
from subak.report.side_by_side import Line, SideBySide
from subak.report.tables.differences import STAR
from subak.report.tables.table import Table as Words
from subak.report.tables.table import text_of

PROSE_WIDTH = 100  # characters of a line of text, in whatever width there is
REASONS_MAX = 5
TERMINAL_QUEUES_MAX = 5
OF_WHOLE_RUN, WHOLE_RUN = "Tasks", ", of the whole run"  # a family of measures, and what its title says of a window
QUEUE_WIDTH = 24  # characters of a queue's name
COMPARED = {  # measures whose differences are shown
    ("Wait time", "mean"), ("Wait time", "median"), ("Wait time", "99 %"), ("Bounded slowdown", "mean"),
    ("Execution delay", "mean"), ("Job completion", "mean"), ("Job completion", "99 %"), ("Queue", "mean"),
    ("Fairness", "mean shortfall"),
}


def comparison_table(runs: list[Run]) -> Table:
    """Return the comparison: measures as rows, schedulers as columns, the best value of a row starred and green."""
    names, rows = list(groups(runs)), [row for row in compare(runs) if any(value is not None for value in row.values)]
    table = Table.grid(padding=(1, 0, 0, 0))
    for note in hopeless_notes(runs):
        table.add_row(_prose(note, "bold yellow"))
    table.add_row(SideBySide(names, list(_values(rows, _leaves_out(runs)))))
    if len(names) > 1 and seeds_of(runs) > 1:
        table.add_row(SideBySide(names[1:], _differences(rows), f"Against {names[0]}"))
    differing = ((f"{row.measure.family}, {row.measure.title}", row.differences()) for row in _compared(rows))
    for note in (*notes(runs), *difference_notes(differing, names, trace_days(runs))):
        table.add_row(_prose(note, "dim"))
    return table


def _leaves_out(runs: list[Run]) -> bool:
    """Whether the window leaves tasks out, so that rows of the whole run are of others than those of the window."""
    return any(run.summary.window is not None and run.summary.window.left_out for run in runs)


def _values(rows: list[Row], whole: bool) -> Iterator[Line]:
    """Yield the measures, under a line for each family that has several; *whole*: tasks are of more than the window."""
    for family, each in groupby(rows, key=lambda row: row.measure.family):
        lines = list(each)
        if lines[0].measure.title:
            yield Text(f"{family}{WHOLE_RUN if whole and family == OF_WHOLE_RUN else ''}", style="bold"), []
        for row in lines:
            title = Text(f"  {row.measure.title}") if row.measure.title else Text(family, style="bold")
            yield title, [_cell(row, number) for number in range(len(row.values))]


def _cell(row: Row, column: int) -> Text:
    text = row.texts()[column]
    return Text(f"{text} *", style="bold green") if column in row.best else Text(f"{text}  ")


def _differences(rows: list[Row]) -> list[Line]:
    """Return how far each scheduler is from the first, in per cent, with 95 % intervals where there are any."""
    return [(Text(f"{row.measure.family}, {row.measure.title}"),
             [Text(_difference(of)) for of in row.differences()[1:]]) for row in _compared(rows)]


def _compared(rows: list[Row]) -> list[Row]:
    return [row for row in rows if (row.measure.family, row.measure.title) in COMPARED]


def _difference(of: Difference) -> str:
    if of.share is None:
        return NOTHING
    ends = "" if of.ends is None else f" ({100 * of.ends[0]:+.1f} to {100 * of.ends[1]:+.1f})"
    return f"{100 * of.share:+.1f} %{ends}{STAR if of.is_decided else ''}"


def _prose(text: str, style: str = "") -> Constrain:
    """Return a text that stays readable where lines may be long."""
    return Constrain(Text(text, style=style), PROSE_WIDTH)


def run_panel(run: Run) -> Panel:
    """Return one run: its measures, and why tasks are waiting or cannot be placed."""
    facts = run.summary
    origin = f"{counted(facts.workload.tasks, 'task')} of {facts.workload.name} on " \
             f"{counted(facts.fleet.machines, 'machine')} of {facts.fleet.name}, seed {facts.seed}"
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


def _plan(plan: PlanFacts | None) -> list[RenderableType]:
    """Say what a plan promised, where there is one."""
    if plan is None or not plan.plans:
        return []
    made = "One plan" if plan.plans == 1 else f"{count_text(plan.plans)} plans"
    return [Text(""), _prose(
        f"{made} in {seconds_text(plan.seconds)}; the first: {plan.classes} classes on {plan.configurations} "
        f"configurations, {number_text(3600 * plan.rate_rounded)} tasks an hour in {count_text(plan.bins)} bins, at "
        f"most {number_text(3600 * plan.rate_pooled)} with all machines of a configuration in one."),
        *(_prose(f"- {note}", "dim") for note in plan.notes)]


def _bound(note: str) -> list[RenderableType]:
    """Say what is to be said of the lower bound on the makespan."""
    return [Text(""), _prose(f"Lower bound of the makespan: {note}.", "dim")] if note else []


def _recorded(note: str) -> list[RenderableType]:
    """Say how the tasks that finished were recorded, where that was not always so."""
    return [Text(""), _prose(note, "dim")] if note else []


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


def _reasons(reasons: tuple[Reason, ...]) -> list[Text]:
    """List the commonest reasons first; what is left out is counted."""
    ranked = sorted(reasons, key=lambda reason: -reason.tasks)
    lines = [Text(f"{count_text(reason.tasks)} {reason.status}: {reason.reason or NOTHING}", style="yellow")
             for reason in ranked[:REASONS_MAX]]
    rest = ranked[REASONS_MAX:]
    if rest:
        lines.append(Text(f"{count_text(sum(reason.tasks for reason in rest))} more, for {len(rest)} other reasons"))
    return [Text(""), *lines] if lines else []
