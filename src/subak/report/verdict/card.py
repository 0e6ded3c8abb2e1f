"""Draws the verdict as the card at the top of the page."""
from markupsafe import Markup

from subak.report import tags
from subak.report.tables.measures import swatch_style
from subak.report.verdict.facts import Verdict


def card(found: Verdict) -> Markup:
    """Return the verdict as the page shows it."""
    swatch = "" if found.chosen is None else tags.tag("span", class_="swatch", style=swatch_style(found.chosen))
    label = "" if found.chosen is None else tags.tag("p", "Recommended", class_="label")
    said = (tags.tag("div", tags.tag("dt", title), *(tags.tag("dd", sentence) for sentence in sentences))
            for title, sentences in found.facts)
    facts = tags.tag("dl", *said) if found.facts else ""
    return tags.tag("section", label, tags.tag("h2", swatch, found.headline),
                    tags.tag("p", found.sentence, class_="verdict"), facts, class_="card-verdict", id="verdict")
