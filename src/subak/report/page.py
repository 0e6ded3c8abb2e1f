"""The page: one HTML file with everything in it, readable offline, on a phone, in light and in dark, and on paper."""
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

import subak
from subak.errors import InputError
from subak.measures.runs import Run, Summary, groups, load_runs
from subak.output.places import located, refuse_file, refuse_room
from subak.output.writing import write_file
from subak.report import tags
from subak.report.charts.fairness import fairness_chart_makers
from subak.report.charts.gantt import gantt_makers
from subak.report.charts.parts import Chart
from subak.report.charts.runs import chart_makers
from subak.report.charts.theme import LIGHT, SERIES, VARIABLES, chart_config, legend_columns, legend_entry_width
from subak.report.comparison import Row, compare, recorded_note, verdict
from subak.report.document import IMAGE_FORMATS, document, figure, filled, heading, picture
from subak.report.fairness_tables import fairness_table
from subak.report.federation_tables import federation_tables
from subak.report.number_text import NOTHING, bytes_text, count_text, ratio_text, seconds_text
from subak.resources import describe

FILE_NAME_MAX = 50  # letters of a picture's, which may take four bytes each
IMAGE_WIDTH = 720  # pixels; a PNG has twice as many, for print
FONT = "system-ui, sans-serif"
PAGES = (".html", ".htm")
Notify = Callable[[str, float], None]  # what is being drawn, and which part of all pictures is done


def write_report(
    path: Path, out: Path | None = None, images: Path | None = None, formats: Sequence[str] = IMAGE_FORMATS,
    notify: Notify = lambda _name, _part: None,
) -> Path:
    """Write the report of a run or comparison folder, and return the page's path (*out*, or PATH/report.html).

    With *images*, each chart is also written there in every one of *formats* (svg, png); *notify* is told before each.
    Raises InputError for what is not such a folder or format, or may not be written, RunError when the disk refuses.
    """
    out = out or path / "report.html"
    _refuse(out, images, formats)
    runs = load_runs(path)
    makers = {**chart_makers(runs), **gantt_makers(runs), **fairness_chart_makers(runs)}
    if images is not None:
        for each in picture_paths(makers, images, formats):
            refuse_file(each)
    charts = {name: make() for name, make in makers.items()}
    write_file(out, page(runs, charts))
    if images is not None:
        write_images(runs, charts, images, formats, notify)
    return out


def _refuse(out: Path, images: Path | None, formats: Sequence[str]) -> None:
    """Raise InputError for what cannot be written, before anything is drawn."""
    unknown = [name for name in formats if name not in IMAGE_FORMATS]
    if unknown:
        raise InputError(f"image format must be svg or png, not {', '.join(unknown)}")
    refuse_file(out)
    if out.suffix.lower() not in PAGES:
        raise InputError(f"{out}: the page's name must end in .html")
    if images is not None:
        refuse_room(images)
        if located(out) in (located(images), *located(images).parents):
            raise InputError(f"{out}: is to be the page and {images}, a folder of pictures; choose another name")


def write_images(
    runs: list[Run], charts: dict[str, Chart], folder: Path, formats: Sequence[str] = IMAGE_FORMATS,
    notify: Notify = lambda _name, _part: None,
) -> list[Path]:
    """Write each chart as ``<name>.<format>`` into *folder*, in light colours, and return the paths."""
    written: list[Path] = []
    names = file_names(charts)
    for chart, name in zip(charts.values(), names.values(), strict=True):
        spec = {**_spec(chart), "width": IMAGE_WIDTH, "background": "white", "config": _picture_config(runs)}
        for kind in formats:
            notify(f"{name}.{kind}", len(written) / (len(names) * len(formats)))
            written.append(folder / f"{name}.{kind}")
            write_file(written[-1], picture(spec, kind))
    return written


def picture_paths(charts: Iterable[str], folder: Path, formats: Sequence[str]) -> list[Path]:
    """Return where `write_images` writes, in its order."""
    return [folder / f"{name}.{kind}" for name in file_names(charts).values() for kind in formats]


def file_names(charts: Iterable[str]) -> dict[str, str]:
    """Return for each chart, whose name may hold a run's or a resource's, what its file is called in its folder."""
    found: dict[str, str] = {}
    for name in charts:
        plain = re.sub(r"[^\w.+-]", "_", name)[:FILE_NAME_MAX]
        found[name] = plain if plain not in found.values() else f"{plain}-{len(found)}"
    return found


def page(runs: list[Run], charts: dict[str, Chart]) -> bytes:
    """Return the whole page."""
    sections = {**dict(_comparison(runs)), **dict(map(_figure, charts.items())), **dict(_facts(runs))}
    links = (tags.tag("li", tags.tag("a", _short(title), href=f"#{name}")) for name, (title, _) in sections.items())
    body = filled(
        "page.html", title=_title(runs), version=subak.__version__, verdict=verdict(runs),
        facts=tags.facts(_head_facts(runs)), links=Markup("").join(links),
        sections=Markup("").join(body for _, body in sections.values()))
    return document(_title(runs), body, chart_config={
        "page": chart_config(VARIABLES, FONT), "picture": _picture_config(runs),
        "entry_width": legend_entry_width(_longest(runs))})


def _title(runs: list[Run]) -> str:
    workloads = _distinct(run.summary.workload.name for run in runs)
    return f"{workloads} on {_distinct(run.summary.fleet.name for run in runs)}"


def _distinct(texts: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _head_facts(runs: list[Run]) -> Iterator[tuple[str, str]]:
    """Say what was scheduled on what, and whose data it is."""
    workloads = list(dict.fromkeys(run.summary.workload for run in runs))
    for workload in workloads:
        yield "Workload", f"{workload.name}: {count_text(workload.tasks)} tasks in {count_text(workload.jobs)} jobs"
        yield "Origin and licence", f"{workload.origin} ({workload.licence})"
    for fleet in dict.fromkeys(run.summary.fleet for run in runs):
        yield "Fleet", f"{fleet.name}: {count_text(fleet.machines)} machines"
    for resources in dict.fromkeys(run.summary.resources for run in runs):
        yield "Resources, in units of", describe(resources)
    yield "Runs", f"{len(runs)} of {len(groups(runs))} schedulers" if len(groups(runs)) > 1 else f"{len(runs)}"
    if len(workloads) > 1:
        yield "Beware", "the runs are of different workloads: they differ in more than the scheduler"


def _comparison(runs: list[Run]) -> Iterator[tuple[str, tuple[str, Markup]]]:
    """Build the table of all measures, a row a scheduler, sortable by any column."""
    rows = [row for row in compare(runs) if any(value is not None for value in row.values)]
    names = list(groups(runs))
    table = tags.tag("table", _comparison_head(rows), tags.tag("tbody", *(
        tags.tag("tr", _swatched(name, number), *(_value(row, number) for row in rows))
        for number, name in enumerate(names))), class_="wide")
    seeds = max(len(group) for group in groups(runs).values())
    several = len(names) > 1
    note = ("Means over seeds. " if seeds > 1 else "") + ("The best of each column is marked." if several else "")
    title = "Schedulers compared" if several else "In numbers"
    hint = tags.tag("p", "In the charts below: drag to move, Ctrl and wheel (or pinch) to zoom, double-click to reset; "
                         "click a scheduler in a legend to pick it out.", class_="note hint")
    yield "numbers", (title, _section("numbers", title, note, tags.scroller(title, table), hint))


def _comparison_head(rows: list[Row]) -> Markup:
    families = [(family, len(list(each))) for family, each in groupby(row.measure.family for row in rows)]
    spans = (tags.tag("th", family, colspan=width, scope="colgroup") for family, width in families)
    first = tags.tag("tr", _sortable("Scheduler", 0, rowspan=2), *spans)
    second = tags.tag("tr", *(_sortable(row.measure.title or "time", number)
                              for number, row in enumerate(rows, start=1)))
    return tags.tag("thead", first, second)


def _sortable(title: str, column: int, rowspan: int | None = None) -> Markup:
    button = tags.tag("button", title, type="button", data_column=column)
    return tags.tag("th", button, scope="col", aria_sort="none", rowspan=rowspan)


def _swatched(name: str, number: int) -> Markup:
    swatch = tags.tag("span", class_="swatch", style=f"--swatch: var(--{SERIES[number % len(SERIES)]})")
    return tags.tag("th", swatch, name, scope="row", data_value=name, title=name)


def _value(row: Row, number: int) -> Markup:
    value = row.values[number]
    return tags.tag("td", row.texts()[number], class_="best" if number in row.best else None,
                    data_value="" if value is None else repr(value))


def _figure(named: tuple[str, Chart]) -> tuple[str, tuple[str, Markup]]:
    """Build a chart's section: heading, drawing, and the ways to save it."""
    name, chart = named
    spec = _spec(chart)
    title, subtitle = heading(spec)
    return name, (title, _section(name, title, subtitle, figure(name, spec)))


def _facts(runs: list[Run]) -> Iterator[tuple[str, tuple[str, Markup]]]:
    fair = [run for run in runs if run.summary.fairness]
    if fair:
        yield "fairness", ("Fairness between queues", _section(
            "fairness", "Fairness between queues", "The queues that lacked the most of each run: what they held, what "
            "they were guaranteed, and how long they went without.", fairness_table(fair)))
    federated = [run for run in runs if run.summary.federation]
    if federated:
        yield "federation", ("Inside the federations", _section(
            "federation", "Inside the federations", "Messages, requests, how busy masters were, and what queues held.",
            *federation_tables(federated)))
    yield "outcomes", ("What became of the tasks", _section(
        "outcomes", "What became of the tasks", "Every task that arrived is in one of these states when a run ends.",
        _outcome_table(runs), _ending_table(runs), _recorded_table(runs), _reason_table(runs)))
    yield "runs", ("How it was made", _section(
        "runs", "How it was made", "Each run, its options, and how fast it was simulated.", _run_table(runs)))


def _outcome_table(runs: list[Run]) -> Markup:
    statuses = list(dict.fromkeys(status for run in runs for status in run.summary.status))
    titles = ["Run", *(status.replace("_", " ").lower() for status in statuses)]
    rows: list[list[object]] = [
        [run.label, *(count_text(run.summary.status.get(status)) for status in statuses)] for run in runs
    ]
    return tags.words_table("Tasks by state", titles, rows)


def _ending_table(runs: list[Run]) -> Markup:
    """Return how tasks ended in runs with a plan of failures."""
    planned = {run.label: run.summary.failures for run in runs if run.summary.failures}
    names = list(dict.fromkeys(name for facts in planned.values() for name in facts.outcomes))
    titles = ["Run", *(name.replace("_", " ").lower() for name in names), "attempts that failed or ran too long"]
    rows: list[list[object]] = [
        [label, *(count_text(facts.outcomes.get(name)) for name in names), count_text(facts.attempts_failed)]
        for label, facts in planned.items()
    ]
    return tags.words_table("Tasks that ended, by how", titles, rows) if rows else Markup("")


def _recorded_table(runs: list[Run]) -> Markup:
    """Return how the trace recorded the tasks that finished, where not all of them did there."""
    noted = {run.label: run.summary.recorded for run in runs if recorded_note(run.summary)}
    names = list(dict.fromkeys(name for recorded in noted.values() for name in recorded))
    rows: list[list[object]] = [[label, *(count_text(recorded.get(name, 0)) for name in names)]
                                for label, recorded in noted.items()]
    caption = "Tasks that finished, as the trace recorded them"
    return tags.words_table(caption, ["Run", *names], rows) if rows else Markup("")


def _reason_table(runs: list[Run]) -> Markup:
    rows: list[list[object]] = [
        [run.label, reason.status.lower(), reason.reason or NOTHING, count_text(reason.tasks)]
        for run in runs for reason in run.summary.reasons
    ]
    return tags.words_table("Reasons", ["Run", "State", "Reason", "Tasks"], rows) if rows else Markup("")


def _run_table(runs: list[Run]) -> Markup:
    titles = ["Run", "Scheduler", "Seed", "Options", "Events", "Took", "Tasks a second", "Peak memory", "Versions"]
    return tags.words_table("Runs", titles, (_run_row(run) for run in runs))


def _run_row(run: Run) -> list[object]:
    facts, speed = run.summary, run.summary.speed
    return [run.label, facts.scheduler, facts.seed, _pairs(_options(facts)), count_text(speed.events),
            seconds_text(speed.seconds), ratio_text(speed.tasks_per_second), bytes_text(speed.peak_memory_bytes),
            _pairs(facts.versions)]


def _options(facts: Summary) -> dict[str, Any]:
    """Return a run's options, and what is to be said of its lower bound."""
    return {**facts.options, **({"lower bound": facts.makespan_bound_note} if facts.makespan_bound_note else {})}


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or NOTHING


def _section(name: str, title: str, subtitle: str, *content: Markup) -> Markup:
    return tags.tag("section", tags.tag("h2", title),
                    tags.tag("p", subtitle, class_="subtitle"), *content, id=name)


def _short(title: str) -> str:
    """Return a title short enough for the row of links."""
    return {"Schedulers compared": "Numbers", "In numbers": "Numbers", "Wait time per scheduler": "Per scheduler",
            "Wait time over time": "Over time", "Distribution of wait time": "Wait time",
            "Distribution of bounded slowdown": "Slowdown", "Queue length": "Queue",
            "Parts of the allocation time": "Allocation", "Distribution of allocation time": "Allocated within",
            "Messages over time": "Messages",
            "Wait time against shortfall": "Against shortfall",
            "Wait time against Jain's index": "Against Jain",
            "Shortfall of queues": "Shortfall", "Fairness between queues": "Fairness",
            "Inside the federations": "Federation", "What became of the tasks": "Outcomes",
            "How it was made": "Runs"}.get(title, title)


def _longest(runs: list[Run]) -> int:
    return max(map(len, groups(runs)))


def _picture_config(runs: list[Run]) -> dict[str, Any]:
    config = chart_config(LIGHT)
    return {**config, "legend": {**config["legend"], "columns": legend_columns(_longest(runs), IMAGE_WIDTH)}}


def _spec(chart: Chart) -> dict[str, Any]:
    """Return a chart's specification without Altair's own look: the theme is the page's."""
    spec: dict[str, Any] = chart.to_dict()
    return {key: value for key, value in spec.items() if key != "config"}
