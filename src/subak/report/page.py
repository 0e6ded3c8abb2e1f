"""Writes the report's page: one self-contained HTML file, readable offline, on a phone and on paper."""
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from subak.errors import InputError
from subak.measures.run_folders import load_runs
from subak.measures.runs import Run, groups, on_trace, trace_days
from subak.measures.side_by_side import differences
from subak.output.places import located, refuse_file, refuse_room
from subak.output.writing import write_file
from subak.report import tags
from subak.report.charts.energy import energy_chart_makers
from subak.report.charts.fairness import fairness_chart_makers
from subak.report.charts.gantt import gantt_makers
from subak.report.charts.group_waits import group_wait_makers
from subak.report.charts.parts import Chart
from subak.report.charts.runs import chart_makers
from subak.report.charts.theme import LIGHT, SERIES, VARIABLES, report_config
from subak.report.document import IMAGE_FORMATS, PICTURE_FORMATS, document, figure, filled, heading
from subak.report.fairness_tables import QUEUES_FOLDED, queue_table, worst_table
from subak.report.notes import difference_notes, hopeless_notes, notes, values_of
from subak.report.number_text import count_text, counted
from subak.report.pictures import IMAGE_WIDTH, Notify, picture_paths, spec_of, write_images
from subak.report.tables.differences import Compared, baseline_of, compared
from subak.report.tables.energy import energy_tables
from subak.report.tables.export import TABLE_FORMATS, table_paths, write_tables
from subak.report.tables.federation import federation_tables
from subak.report.tables.measures import key_measures, measure_table, measures_of
from subak.report.tables.outcomes import outcome_tables, run_table
from subak.report.tables.table import Table, folded, shown
from subak.report.verdict.card import card
from subak.report.verdict.facts import judged
from subak.resources import describe
from subak.version import VERSION

FONT = "system-ui, sans-serif"
PAGES = (".html", ".htm")
HINT = ("Point anywhere in a chart of lines to read all of them off. Drag to move, Ctrl and wheel (or pinch) to zoom, "
        "double-click to reset. Click a scheduler in a legend to pick it out.")
GROUPS = {"overview": "Overview", "waiting": "Waiting", "machines": "Machines", "fairness": "Fairness",
          "federation": "Federation", "details": "Details"}
# Charts by the group that shows them, by the start of their names; others are under waiting.
CHART_GROUPS = {"comparison": "overview", "queue-length": "overview", "utilisation-": "machines", "gantt-": "machines",
                "power-": "machines",
                "wait-against-": "fairness", "shortfall": "fairness", "queue-shares": "fairness",
                "allocation-": "federation", "messages-": "federation"}


def write_report(
    paths: Path | Sequence[Path], out: Path | None = None, images: Path | None = None,
    formats: Sequence[str] | None = None, notify: Notify = lambda _name, _part: None, tables: Path | None = None,
    baseline: str | None = None,
) -> Path:
    """Write the report of a run or comparison folder, and return the page's path (*out*, or PATH/report.html).

    Of several folders, the runs are shown side by side; the page then needs a place of its own.
    With *images*, each chart is also written there, with *tables* each table, in those of *formats* that suit; *notify*
    is told before each picture. Differences are from *baseline*, a scheduler, or from the first one. Raises InputError
    for what is not such a folder, format or scheduler, or may not be written, RunError when the disk refuses.
    """
    folders = [paths] if isinstance(paths, Path) else paths
    if out is None and len(folders) > 1:
        raise InputError("--out: must be given for several folders, such as --out both.html")
    out = out or folders[0] / "report.html"
    refuse_formats(formats, images, tables)
    _refuse(out, {"pictures": images, "tables": tables})
    drawn_in = [name for name in formats or IMAGE_FORMATS if name in PICTURE_FORMATS]
    listed_in = [name for name in formats or TABLE_FORMATS[:1] if name in TABLE_FORMATS]
    runs = load_runs(*folders)
    place = baseline_of(runs, baseline)
    rows = compared(runs, place)
    makers = makers_of(runs)
    for each in [*(picture_paths(makers, images, drawn_in) if images else []),
                 *(table_paths(runs, tables, listed_in) if tables else [])]:
        refuse_file(each)
    charts = {name: make() for name, make in makers.items()}
    write_file(out, page(runs, rows, charts, place))
    if tables is not None:
        write_tables(runs, rows, place, tables, listed_in)
    if images is not None:
        write_images(charts, images, drawn_in, notify)
    return out


def makers_of(runs: list[Run]) -> dict[str, Callable[[], Chart]]:
    """Return every chart of a report by its name, still to be drawn; of a trace and draws of it, those of the trace."""
    runs = on_trace(runs)
    return {**chart_makers(runs), **group_wait_makers(runs), **energy_chart_makers(runs), **gantt_makers(runs),
            **fairness_chart_makers(runs)}


def refuse_formats(formats: Sequence[str] | None, images: Path | None, tables: Path | None) -> None:
    """Raise InputError for a format that is none, or that nothing is asked for in, and for a folder without one."""
    if formats is None:
        return
    known = (*PICTURE_FORMATS, *TABLE_FORMATS)
    unknown = [name for name in formats if name not in known]
    if unknown:
        raise InputError(f"format must be {', '.join(known[:-1])} or {known[-1]}, not {', '.join(unknown)}")
    for option, suits, folder in (("--images", PICTURE_FORMATS, images), ("--tables", TABLE_FORMATS, tables)):
        named = [name for name in formats if name in suits]
        if named and folder is None:
            raise InputError(f"format {', '.join(named)}: needs a folder, {option} FOLDER")
        if folder is not None and not named:
            raise InputError(f"{option}: needs a format, {', '.join(suits[:-1])} or {suits[-1]}, besides "
                             f"{', '.join(formats)}")


def _refuse(out: Path, folders: dict[str, Path | None]) -> None:
    """Raise InputError for what cannot be written, before anything is drawn."""
    refuse_file(out)
    if out.suffix.lower() not in PAGES:
        raise InputError(f"{out}: the page's name must end in .html")
    for what, folder in folders.items():
        if folder is not None:
            refuse_room(folder)
            if located(out) in (located(folder), *located(folder).parents):
                raise InputError(f"{out}: is to be the page and {folder}, a folder of {what}; choose another name")


def page(runs: list[Run], rows: list[Compared], charts: dict[str, Chart], baseline: int = 0) -> bytes:
    """Return the whole page."""
    names, own = list(groups(runs)), on_trace(runs)
    drawn: dict[str, list[Markup]] = {}
    for name, chart in charts.items():
        drawn.setdefault(_group_of(name), []).append(_figure(name, chart))
    content = {
        "overview": [*(tags.tag("p", note, class_="warning", role="alert") for note in hopeless_notes(runs)),
                     card(judged(runs, rows, baseline)),
                     _measures("Schedulers compared" if len(names) > 1 else "In numbers", key_measures(rows), runs,
                               baseline, grouped=False),
                     *(tags.tag("p", note, class_="note") for note in
                       (*notes(runs, marks=False),
                        *difference_notes(((row.title, row.differences) for row in rows), names, trace_days(runs))))],
        **{group: [_measures("", measures_of(rows, group), runs, baseline)]
           for group in ("waiting", "machines", "fairness", "federation")},
        "details": [],
    }
    below = {"machines": _tables(energy_tables(own)), "fairness": _fairness(own),
             "federation": _tables(federation_tables(own)),
             "details": [_measures("", measures_of(rows, "details"), runs, baseline), *_details(runs)]}
    panels = {group: Markup("").join([*parts, _charts(drawn.get(group, [])), *below.get(group, [])])
              for group, parts in content.items()}
    shown_groups = {group: body for group, body in panels.items() if body}
    body = filled("page.html", title=_title(runs), version=VERSION, summary=_summary(runs), hint=HINT,
                  tabs=Markup("").join(map(_tab, shown_groups)),
                  groups=Markup("").join(tags.tag("div", each, id=group, class_="group", role="tabpanel",
                                                  aria_label=GROUPS[group]) for group, each in shown_groups.items()))
    return document(_title(runs), body, chart_config={
        "page": report_config(VARIABLES, FONT), "picture": report_config(LIGHT), "picture_width": IMAGE_WIDTH,
        "series": SERIES})


def _title(runs: list[Run]) -> str:
    workloads = _distinct(run.summary.workload.name for run in runs)
    return f"{workloads} on {_distinct(run.summary.fleet.name for run in runs)}"


def _distinct(texts: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _summary(runs: list[Run]) -> str:
    """Say in a line what was scheduled on what."""
    workload, fleets = runs[0].summary.workload, sorted({run.summary.fleet.machines for run in runs})
    schedulers, seeds = len(groups(runs)), max(len(each) for each in groups(runs).values())
    said = [f"{counted(workload.tasks, 'task')} in {counted(workload.jobs, 'job')}",
            f"{' or '.join(map(count_text, fleets))} {'machine' if fleets == [1] else 'machines'}",
            *([f"{schedulers} schedulers"] if schedulers > 1 else []), *([f"{seeds} seeds"] if seeds > 1 else [])]
    different = differences(runs)
    beware = f". Beware: the runs differ in {', '.join(different)}" if different else ""
    return ", ".join(said) + beware


def _group_of(chart: str) -> str:
    return next((group for start, group in CHART_GROUPS.items() if chart.startswith(start)), "waiting")


def _tab(group: str) -> Markup:
    return tags.tag("li", tags.tag("a", GROUPS[group], href=f"#{group}", role="tab", aria_controls=group),
                    role="presentation")


def _measures(title: str, rows: Sequence[Compared], runs: list[Run], baseline: int, grouped: bool = True) -> Markup:
    names = list(groups(runs))
    table = measure_table(title or "Measures", rows, names, baseline, grouped)
    if not table:
        return table
    seeds = max(len(group) for group in groups(runs).values())
    notes = [f"Below each value: its difference from {names[baseline]}"
             + (", with the 95 % interval." if any(found.ends for row in rows for found in row.differences) else ".")
             ] if len(names) > 1 else []
    notes += [values_of(runs) if trace_days(runs) else "Means over seeds."] if seeds > 1 else []
    notes += ["The best of a row is marked."] if len(names) > 1 else []
    return tags.tag("section", tags.tag("h2", title) if title else "", tags.tag("p", " ".join(notes), class_="note"),
                    table)


def _figure(name: str, chart: Chart) -> Markup:
    """Build a chart's section: heading, drawing, and the ways to save it."""
    spec = spec_of(chart)
    title, subtitle = heading(spec)
    return tags.tag("section", tags.tag("h3", title), tags.tag("p", subtitle, class_="subtitle"), figure(name, spec),
                    id=name)


def _charts(drawn: list[Markup]) -> Markup:
    return tags.tag("div", *drawn, class_="charts") if drawn else Markup("")


def _fairness(runs: list[Run]) -> list[Markup]:
    fair = [run for run in runs if run.summary.fairness]
    if not fair:
        return []
    note = "What each lacked of its guarantee while tasks of it waited, mean; and the longest that it held nothing."
    worst = worst_table(fair)
    if not worst.rows:
        return [tags.tag("p", "No queue held less than it was guaranteed while tasks of it waited.", class_="note")]
    return [tags.tag("section", tags.tag("h3", worst.caption), tags.tag("p", note, class_="subtitle"), shown(worst),
                     folded(f"The {QUEUES_FOLDED} that lacked the most of each run",
                            shown(queue_table(fair, QUEUES_FOLDED))))]


def _tables(tables: Sequence[Table]) -> list[Markup]:
    """Return tables that are open only to who asks for them."""
    return [tags.tag("section", *(_folded(table) for table in tables if table.rows))] if tables else []


def _folded(table: Table) -> Markup:
    rows = len(table.rows)
    return folded(f"{table.caption} ({counted(rows, 'row')})", shown(table))


def _details(runs: list[Run]) -> list[Markup]:
    facts = tags.tag("section", tags.tag("h3", "What was scheduled"), tags.facts(_head_facts(runs)))
    return [facts, *_tables([*outcome_tables(runs), run_table(runs)])]


def _head_facts(runs: list[Run]) -> Iterator[tuple[str, str]]:
    """Say what was scheduled on what, and whose data it is."""
    for workload in dict.fromkeys(run.summary.workload for run in runs):
        yield "Workload", f"{workload.name}: {counted(workload.tasks, 'task')} in {counted(workload.jobs, 'job')}"
        yield "Origin and licence", f"{workload.origin} ({workload.licence})"
    for fleet in dict.fromkeys(run.summary.fleet for run in runs):
        yield "Fleet", f"{fleet.name}: {counted(fleet.machines, 'machine')}"
    for resources in dict.fromkeys(run.summary.resources for run in runs):
        yield "Resources, in units of", describe(resources)
    yield "Runs", f"{len(runs)} of {len(groups(runs))} schedulers" if len(groups(runs)) > 1 else f"{len(runs)}"


