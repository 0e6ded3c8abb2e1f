"""The page of a sizing: the answer, a curve for each objective, and the sizes tried."""
from markupsafe import Markup

from subak.experiment.sizing.answer import Sized, Sizing
from subak.report import tags
from subak.report.charts.sizes import size_chart
from subak.report.charts.theme import LIGHT, SERIES, VARIABLES, report_config
from subak.report.document import document, figure, heading
from subak.report.page import FONT
from subak.report.pictures import IMAGE_WIDTH, spec_of
from subak.report.sizing.beside_log import replay
from subak.report.sizing.notes import notes
from subak.report.sizing.words import headline, sentences, size_table
from subak.report.tables.table import shown
from subak.version import VERSION


def sizing_page(sizing: Sizing) -> bytes:
    """Return the whole page."""
    title = f"How many machines for {sizing.workload}"
    head = tags.tag("header", tags.tag("p", "Subak size", class_="eyebrow"), tags.tag("h1", title),
                    tags.tag("p", " and ".join(sizing.objectives), class_="subtitle"))
    places = [number for number in range(len(sizing.objectives)) if any(
        size.values for answer in sizing.answers for size in answer.sizes)]
    charts = tags.tag("div", *(_figure(sizing, number) for number in places), class_="charts")
    command = replay(sizing)
    again = [tags.tag("p", f"The command below, a replay of the log: {command}", class_="note")] if command else []
    said = [*again, *(tags.tag("p", note, class_="note") for note in notes(sizing))]
    foot = tags.tag("footer", tags.tag("p", f"Written by Subak {VERSION}. This page is complete in itself: "
                                            "it loads nothing and sends nothing."))
    main = tags.tag("main", *(_card(sizing, place) for place in _best_first(sizing)), charts,
                    *(_sizes(sizing, answer) for answer in sizing.answers), *said)
    return document(title, head, main, foot, chart_config={
        "page": report_config(VARIABLES, FONT), "picture": report_config(LIGHT), "picture_width": IMAGE_WIDTH,
        "series": SERIES})


def _best_first(sizing: Sizing) -> list[int]:
    return sorted(range(len(sizing.answers)), key=lambda place: place != sizing.best)


def _card(sizing: Sizing, place: int) -> Markup:
    answer = sizing.answers[place]
    several = len(sizing.answers) > 1 and place == sizing.best
    best = "The fewest" if answer.buy_price is None else "The cheapest"
    label = tags.tag("p", best, class_="label") if several else ""
    said = (tags.tag("p", sentence, class_="verdict") for sentence in sentences(sizing, answer))
    return tags.tag("section", label, tags.tag("h2", headline(sizing, answer)), *said, class_="card-verdict")


def _figure(sizing: Sizing, number: int) -> Markup:
    spec = spec_of(size_chart(sizing, number))
    title, subtitle = heading(spec)
    return tags.tag("section", tags.tag("h3", title), tags.tag("p", subtitle, class_="subtitle"),
                    figure(f"size-{number + 1}", spec))


def _sizes(sizing: Sizing, answer: Sized) -> Markup:
    table = size_table(sizing, answer)
    return tags.tag("section", tags.tag("h3", table.caption), shown(table)) if table.rows else Markup("")
