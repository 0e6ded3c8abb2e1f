"""Shows a tuning as tables, in the terminal and on a page."""
from markupsafe import Markup
from rich.table import Table

from subak.experiment.tuning.result import (
    BETTER,
    NO_INTERVAL,
    NOT_BETTER,
    NOT_FOUND,
    UNFEASIBLE,
    WORSE,
    Tuned,
    seeds_needed,
)
from subak.measures.objective import IN_SECONDS
from subak.placement.tunable import Value
from subak.report import tags
from subak.report.console import Text
from subak.report.number_text import MINUS, number_text, ratio_text, seconds_text, share_text

TITLES = ["Parameter", "Range", "As given", "Best", "Importance"]
ENDLESS = "endless"


def title(tuned: Tuned) -> str:
    """Return what the tables are headed with."""
    return f"{tuned.scheduler}: {tuned.minimise} in {tuned.trials} trials"


def parameter_rows(tuned: Tuned) -> list[list[str]]:
    """Return a row a parameter, the most important first, as texts."""
    ranked = sorted(tuned.rows, key=lambda row: -(row.importance or 0.0))
    return [[row.name, row.range, _value(row.given), _value(row.best), share_text(row.importance)] for row in ranked]


def measure_rows(tuned: Tuned) -> list[list[str]]:
    """Return the measure, and how often objectives are kept, as given and by the best."""
    count = len(tuned.held_out)
    rows = [[f"{tuned.minimise}, seeds tuned on", _measured(tuned, tuned.tuned_given),
             _measured(tuned, tuned.tuned_best)],
            [f"{tuned.minimise}, held out", _measured(tuned, _mean(tuned.given)), _measured(tuned, _mean(tuned.best))]]
    return rows + [[f"{text}: held-out seeds", f"{given} of {count}", f"{best} of {count}"]
                   for text, (given, best) in tuned.met.items()]


def verdict(tuned: Tuned) -> str:
    """Say in a sentence or two whether what was found is better."""
    by = "" if tuned.difference is None else (
        f"{_signed(tuned.difference)}" + ("" if tuned.interval is None else (
            f" (95 % interval {_signed(tuned.interval[0])} to {_signed(tuned.interval[1])})")))
    on = f"on {len(tuned.held_out)} seeds that were not tuned on" + (
        f", of {tuned.held_out_workload}" if tuned.held_out_workload else "")
    return {
        BETTER: f"Better than the settings as given: {tuned.minimise} {by} {on}.",
        NOT_BETTER: f"The settings as given are not beaten: {tuned.minimise} {by} {on}, which may be chance.",
        WORSE: f"The settings as given are not beaten: what was found is worse, {tuned.minimise} {by} {on}.",
        NOT_FOUND: "The settings as given are not beaten: no trial was better on the seeds tuned on.",
        NO_INTERVAL: f"Whether the settings as given are beaten is not known: {tuned.minimise} {by or ENDLESS} {on}; "
                     f"an interval takes {seeds_needed()} held-out seeds (of a trace twice as many), and tasks that "
                     "all start and end.",
        UNFEASIBLE: "No trial keeps all objectives on the seeds tuned on; shown is the one that misses them least.",
    }[tuned.verdict]


def tables(tuned: Tuned) -> list[Table]:
    """Return the terminal's tables."""
    parameters = Table(title=title(tuned), title_justify="left")
    for number, name in enumerate(TITLES):
        parameters.add_column(name, justify="left" if number < 2 else "right", overflow="fold")
    for row in parameter_rows(tuned):
        parameters.add_row(*(Text(cell) for cell in row))
    measures = Table()
    for name in ("", "As given", "Best"):
        measures.add_column(name, justify="right" if name else "left", overflow="fold")
    for row in measure_rows(tuned):
        measures.add_row(*(Text(cell) for cell in row))
    return [parameters, measures]


def notes(tuned: Tuned) -> list[str]:
    """Return what is said below."""
    said = [f"Tuned on seeds {', '.join(map(str, tuned.seeds))}; trial 0 is the settings as given, the best is trial "
            f"{tuned.best_trial}."]
    if any(row.importance is None for row in tuned.rows):
        said.append("Importance is not known of so few trials.")
    else:
        said.append("Importance: the share of what tells the best tenth of the trials from the others (PED-ANOVA).")
    if tuned.failed:
        said.append(f"{tuned.failed} trials failed; trials.csv says why.")
    return said


def page_tables(tuned: Tuned) -> dict[str, Markup]:
    """Return the page's tables by their headings."""
    return {"Parameters": tags.words_table("Parameters", TITLES, list(map(list, parameter_rows(tuned)))),
            "Measures": tags.words_table("Measures", ["Measure", "As given", "Best"],
                                         list(map(list, measure_rows(tuned))))}


def _value(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, int) else f"{value:.4g}"


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _measured(tuned: Tuned, value: float | None) -> str:
    if value is None:
        return ENDLESS
    return seconds_text(value) if tuned.minimise.split(".")[0] in IN_SECONDS else ratio_text(value)


def _signed(share: float) -> str:
    sign = MINUS if share < 0 else "+"
    return f"{sign}{number_text(round(abs(share) * 100, 2))} %"
