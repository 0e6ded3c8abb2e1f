"""The table of measures: a row per measure, a column per scheduler."""
from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from subak.report import tags
from subak.report.charts.theme import SERIES
from subak.report.number_text import bytes_text, energy_text, mass_text, power_text, seconds_text
from subak.report.tables.differences import Compared
from subak.report.tables.table import Amount, Cell, Table, folded

# Of values; those of other measures have none.
BASE_UNITS = {seconds_text: "s", bytes_text: "B", energy_text: "kWh", power_text: "W", mass_text: "kg"}
ANY = "*"  # title
# The measures of the overview, where a run has them.
KEY_MEASURES = (("Objectives", ANY), ("Wait time", "mean"), ("Wait time", "99 %"), ("Bounded slowdown", "mean"),
                ("Execution delay", "mean"), ("Locality", "node-local"),
                ("Queue", "mean"), ("Utilisation", ANY), ("Fairness", "mean shortfall"),
                ("Energy", "total"), ("Cost", "total"), ("Carbon", "total"),
                ("Tasks", "waiting at the end"), ("Federation", "messages a task"), ("Makespan", ""))
# Families by the group of the page that shows them; others are under waiting.
GROUPS = {"Utilisation": "machines", "Fragmented": "machines", "Idle while tasks wait": "machines",
          "Energy": "machines", "Cost": "machines", "Carbon": "machines", "Makespan": "machines",
          "Locality": "machines",
          "Fairness": "fairness",
          "Federation": "federation", "Allocation time": "federation", "Its parts, mean": "federation",
          "Tasks": "details", "Jobs": "details", "Simulation": "details"}


def key_measures(rows: Sequence[Compared]) -> list[Compared]:
    """Return the rows of the overview; of a measure that is zero for all there is nothing to say."""
    return [row for row in rows if any(row.values) and (
        (row.measure.family, row.measure.title) in KEY_MEASURES or (row.measure.family, ANY) in KEY_MEASURES)]


def measures_of(rows: Sequence[Compared], group: str) -> list[Compared]:
    """Return the rows of a group of the page."""
    return [row for row in rows if GROUPS.get(row.measure.family, "waiting") == group]


def measure_table(caption: str, rows: Sequence[Compared], names: Sequence[str], baseline: int,
                  grouped: bool = True) -> Markup:
    """Return the table of *rows* with their definitions below; families have lines of their own if *grouped*."""
    if not rows:
        return Markup("")
    heads = (tags.tag("th", _swatch(number), name, tags.tag("small", "baseline") if _is_baseline(
        number, baseline, names) else "", scope="col") for number, name in enumerate(names))
    body: list[Markup] = []
    for family, each in groupby(rows, key=lambda row: row.measure.family):
        lines = list(each)
        if grouped and any(row.measure.title for row in lines):
            body.append(tags.tag("tr", tags.tag("th", family, colspan=len(names) + 1, scope="colgroup"),
                                 class_="family"))
        body += (_line(row, grouped, names) for row in lines)
    table = tags.tag("table", tags.tag("thead", tags.tag("tr", tags.tag("th", "", scope="col"), *heads)),
                     tags.tag("tbody", *body), class_="measures")
    return Markup("").join([tags.scroller(caption, table), definitions(rows)])


def definitions(rows: Sequence[Compared]) -> Markup:
    """Return what the measures of a table mean, to be opened; measures of one definition stand together."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.definition:
            found.setdefault(row.definition, []).append(row.title)
    pairs = ((_together(titles), text) for text, titles in found.items())
    listed = tags.facts(pairs, class_="definitions") if found else Markup("")
    return folded("What these measures mean", listed)


def wide_table(rows: Sequence[Compared], names: Sequence[str]) -> Table:
    """Return the comparison as it is printed: a row a measure in its unit, a column a scheduler."""
    written: list[list[Cell]] = [
        [f"{row.title} ({row.unit})" if row.unit else row.title,
         *(Amount(value, " ".join(filter(None, [text, _bracketed(row, number)])))
           for number, (value, text) in enumerate(zip(row.values, row.texts, strict=True)))]
        for row in rows]
    return Table("comparison", "Schedulers compared", ["Measure", *names], written)


def tidy_table(rows: Sequence[Compared], names: Sequence[str], baseline: int) -> Table:
    """Return the comparison as programs read it: a row a measure and scheduler, in seconds, shares of one and bytes."""
    titles = ["measure", "title", "unit", "scheduler", "value", "baseline", "difference", "low", "high",
              "of_means", "p", "best"]
    written: list[list[Cell]] = []
    for row in rows:
        for number, name in enumerate(names):
            found = row.differences[number]
            numbers = (row.values[number], row.values[baseline], found.share, *(found.ends or (None, None)),
                       found.of_means, found.p, int(number in row.best))
            written.append([row.measure.family, row.measure.title, BASE_UNITS.get(row.measure.text, ""), name,
                            *(Amount(each, "") for each in numbers)])
    return Table("comparison", "Schedulers compared", titles, written)


def _line(row: Compared, grouped: bool, names: Sequence[str]) -> Markup:
    """Return a measure's row; its family is part of its title, or it is one by itself, where none stands above."""
    title = row.measure.title if grouped and row.measure.title else row.title
    unit = tags.tag("small", row.unit) if row.unit else ""
    head = tags.tag("th", tags.tag("abbr", title, title=row.definition) if row.definition else title, " ", unit,
                    scope="row")
    return tags.tag("tr", head, *(_cell(row, number, name) for number, name in enumerate(names)),
                    class_="family" if grouped and not row.measure.title else None)


def _cell(row: Compared, number: int, name: str) -> Markup:
    below = Markup(" ").join(tags.tag("small", text) for text in _against(row, number))
    return tags.tag("td", tags.tag("span", row.texts[number]), " ", below, data_name=name, style=swatch_style(number),
                    class_="best" if number in row.best else None)


def _against(row: Compared, number: int) -> list[str]:
    """Return what is said of a scheduler's difference from the baseline."""
    return [text for text in (row.difference(number), row.interval(number), row.of_means(number)) if text]


def _bracketed(row: Compared, number: int) -> str:
    inside = "; ".join(_against(row, number))
    return f"({inside})" if inside else ""


def _swatch(number: int) -> Markup:
    return tags.tag("span", class_="swatch", style=swatch_style(number))


def swatch_style(number: int) -> str:
    """Return the style that gives an element a scheduler's colour."""
    return f"--swatch: var(--{SERIES[number % len(SERIES)]})"


def _is_baseline(number: int, baseline: int, names: Sequence[str]) -> bool:
    return number == baseline and len(names) > 1


def _together(titles: list[str]) -> str:
    family = titles[0].partition(", ")[0]
    rest = [title.removeprefix(family).removeprefix(", ") for title in titles]
    return titles[0] if len(titles) == 1 else f"{family}: {', '.join(filter(None, rest))}"
