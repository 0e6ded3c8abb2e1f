"""The page of a study: the best points, measures over settings, all points."""
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from markupsafe import Markup

from subak.experiment.study.document import EVERY
from subak.experiment.study.plan import Plan
from subak.experiment.study.records import Record
from subak.output.writing import write_file
from subak.report import tags
from subak.report.charts.parts import Chart
from subak.report.charts.theme import LIGHT, SERIES, VARIABLES, report_config
from subak.report.document import document, figure, filled, heading
from subak.report.notes import VALUES_OF_TRACE, stretch_of
from subak.report.number_text import NOTHING, count_text, counted, difference_text
from subak.report.page import FONT
from subak.report.pictures import IMAGE_WIDTH, spec_of
from subak.report.study.charts import chart_makers
from subak.report.study.columns import Column
from subak.report.study.facts import Best, best_by
from subak.report.study.results import SCHEDULER, Results, of_seeds, results_of
from subak.report.tables.table import Table, folded, shown
from subak.version import VERSION

PAGE = "report.html"
GROUPS = {"overview": "Overview", "settings": "Each setting", "pairs": "Two settings", "points": "All points"}
CHART_GROUPS = {"front-": "overview", "over-": "settings", "map-": "pairs"}
POINTS_LISTED = 500  # rows of the table of points; all of them are in the table of runs
FAILURES_NAMED = 5
HINT = "Point at a mark or a cell to read it off. Every run, with all measures, is a row of runs.parquet."


def write_study_page(folder: Path, plan: Plan, records: Mapping[str, Record]) -> Path:
    """Write the page into the folder of a study, and return its path."""
    results = results_of(plan, records)
    charts = {name: make() for name, make in chart_makers(results).items()}
    write_file(folder / PAGE, page(results, charts))
    return folder / PAGE


def page(results: Results, charts: Mapping[str, Chart]) -> bytes:
    """Return the whole page."""
    drawn: dict[str, list[Markup]] = {}
    for name, chart in charts.items():
        group = next(group for start, group in CHART_GROUPS.items() if name.startswith(start))
        drawn.setdefault(group, []).append(_figure(name, chart))
    above = {"overview": [_best(results), *_failures(results)]}
    below = {"overview": [_facts(results)], "points": [_points(results)]}
    panels = {group: Markup("").join([*above.get(group, []), _charts(drawn.get(group, [])), *below.get(group, [])])
              for group in GROUPS}
    there = {group: body for group, body in panels.items() if body}
    title = results.plan.title
    body = filled("page.html", title=title, version=VERSION, summary=_summary(results), hint=HINT,
                  tabs=Markup("").join(map(_tab, there)),
                  groups=Markup("").join(tags.tag("div", each, id=group, class_="group", role="tabpanel",
                                                  aria_label=GROUPS[group]) for group, each in there.items()))
    return document(title, body, chart_config={
        "page": report_config(VARIABLES, FONT), "picture": report_config(LIGHT), "picture_width": IMAGE_WIDTH,
        "series": SERIES})


def best_table(results: Results) -> Table:
    """Return the best point by each measure that is shown, and how sure that is."""
    judged = [(results.columns[name], best_by(results, name)) for name in results.shown if name in results.columns]
    several = len(results.places) > 1
    return Table("best", "The best point by each measure",
                 ["Measure", "Best point", "Value", *(["Next best", "Its difference"] if several else [])],
                 [[column.title, results.point_name(best.point), _value(column, best.value, best.interval),
                   *(_rival(results, best) if several else [])] for column, best in judged if best is not None])


def point_table(results: Results) -> Table:
    """Return the means of the measures that are shown, a row a point."""
    columns = [results.columns[name] for name in results.shown if name in results.columns]
    rows = [[results.point_name(point),
             *(_value(column, *of_seeds(results.values[column.name][point], results.redrawn([point])))
               for column in columns)]
            for point in range(min(len(results.places), POINTS_LISTED))]
    return Table("points", "All points", ["Point", *(column.title for column in columns)], [list(row) for row in rows])


def _rival(results: Results, best: Best) -> list[str]:
    if best.rival is None:
        return [NOTHING, NOTHING]
    of = best.difference
    said = []
    if of.ends is not None:
        said.append(" to ".join(map(difference_text, of.ends)))
    if of.p is not None:
        said.append("decided" if of.is_decided else "not decided")
    return [results.point_name(best.rival), NOTHING if of.share is None else
            difference_text(of.share) + (f" ({'; '.join(said)})" if said else "")]


def _value(column: Column, value: float, interval: tuple[float, float] | None) -> str:
    """Return a value in words, with its interval."""
    if not np.isfinite(value):
        return NOTHING
    text = column.measure.text
    return text(value) + (f" ({text(interval[0])} to {text(interval[1])})" if interval else "")


def _best(results: Results) -> Markup:
    table = best_table(results)
    seeds = len(results.seeds)
    traces = [days.days for days in results.days if days is not None]
    what = f"of the typical {stretch_of(traces)}" if traces else "over the seeds"
    note = (f"In brackets: 95 % intervals {what}; the next best is compared "
            f"with the best seed by seed.{f' {VALUES_OF_TRACE}' if traces else ''}"
            if seeds > 1 else "One seed: nothing says how much of a difference is chance.")
    return tags.tag("section", tags.tag("h2", table.caption), tags.tag("p", note, class_="note"),
                    shown(table)) if table.rows else Markup("")


def _points(results: Results) -> Markup:
    table = point_table(results)
    more = len(results.places) - POINTS_LISTED
    note = f"The first {POINTS_LISTED} points; {count_text(more)} more are in runs.parquet." if more > 0 else ""
    return tags.tag("section", tags.tag("h2", table.caption), tags.tag("p", note, class_="note") if note else "",
                    shown(table))


def _failures(results: Results) -> list[Markup]:
    """Say which runs there are no results of: no mean counts a point with one."""
    if not results.errors:
        return []
    rows = [[error, count_text(len(names)), ", ".join(names[:FAILURES_NAMED])
             + (f" and {count_text(len(names) - FAILURES_NAMED)} more" if len(names) > FAILURES_NAMED else "")]
            for error, names in results.errors.items()]
    count = sum(map(len, results.errors.values()))
    table = tags.words_table("Runs without a result", ["What went wrong", "Runs", "Which"], [list(row) for row in rows])
    note = (f"{count_text(count)} of {count_text(len(results.plan.rows))} runs have no result; their points are not "
            "compared.")
    return [tags.tag("section", tags.tag("p", note, class_="note"), folded("Which, and why", table))]


def _facts(results: Results) -> Markup:
    swept = [(setting.title, ", ".join(setting.names)) for setting in results.settings]
    fixed = [(key, value) for key, value in results.plan.fixed.items() if key not in EVERY]
    if SCHEDULER not in dict(swept):
        fixed = [("scheduler", ", ".join(results.plan.schedulers)), *fixed]
    return tags.tag("section", tags.tag("h3", "What was run"), tags.facts(_listed([*swept, *fixed], results)))


def _listed(settings: list[tuple[str, str]], results: Results) -> Iterator[tuple[str, str]]:
    yield "Runs", f"{count_text(len(results.plan.rows))} of {count_text(len(results.places))} points"
    first, last = results.seeds[0], results.seeds[-1]
    in_a_row = len(results.seeds) == last - first + 1 > 2
    yield "Seeds", f"{first} to {last}" if in_a_row else ", ".join(map(str, results.seeds))
    yield from settings


def _summary(results: Results) -> str:
    settings = [f"{len(setting.names)} values of {setting.title}" if setting.title != SCHEDULER else
                f"{len(setting.names)} schedulers" for setting in results.settings]
    seeds = [f"{len(results.seeds)} seeds"] if len(results.seeds) > 1 else []
    return ", ".join([counted(len(results.plan.rows), "run"), *settings, *seeds])


def _figure(name: str, chart: Chart) -> Markup:
    spec = spec_of(chart)
    title, subtitle = heading(spec)
    return tags.tag("section", tags.tag("h3", title), tags.tag("p", subtitle, class_="subtitle"), figure(name, spec))


def _charts(drawn: list[Markup]) -> Markup:
    return tags.tag("div", *drawn, class_="charts") if drawn else Markup("")


def _tab(group: str) -> Markup:
    return tags.tag("li", tags.tag("a", GROUPS[group], href=f"#{group}", role="tab", aria_controls=group),
                    role="presentation")
