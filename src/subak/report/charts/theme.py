"""The colours of pages and charts, for light and dark."""
from collections.abc import Mapping

from subak.json_type import Json

Spec = dict[str, Json]  # of a chart, as Vega-Lite has it

# Chosen so that any two of the first four stay 18 units (CIE Lab) apart under protanopia, deuteranopia and
# tritanopia (Machado 2009; in the dark, 13), at a contrast of 3 or more with the paper; shapes repeat the distinction.
LIGHT: Mapping[str, str] = {
    "paper": "#ffffff", "card": "#f7f8f5", "ink": "#1d2420", "quiet": "#5b665f", "line": "#dfe4de", "accent": "#2c6a4b",
    "mark": "#e4f0e6", "series-1": "#0b63b0", "series-2": "#d9622b", "series-3": "#25a080", "series-4": "#8f2472",
    "series-5": "#6b5600", "series-6": "#4e96d9", "series-7": "#3a1f8f", "series-8": "#4a4a4a",
}
DARK: Mapping[str, str] = {
    "paper": "#141816", "card": "#1b211e", "ink": "#e6ebe7", "quiet": "#9fada4", "line": "#303933", "accent": "#7fcfa2",
    "mark": "#22382b", "series-1": "#4c9be8", "series-2": "#ff9a5c", "series-3": "#2bb594", "series-4": "#f08fd0",
    "series-5": "#e8d86a", "series-6": "#a9d8ff", "series-7": "#8d7bff", "series-8": "#b9b9b9",
}
SERIES = [name for name in LIGHT if name.startswith("series-")]
VARIABLES: Mapping[str, str] = {name: f"var(--{name})" for name in LIGHT}
# Seven shapes against eight colours: the pairs repeat only after 56 schedulers.
SHAPES = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right"]


# Pixels of a legend entry: a letter, the symbol and the space around it, and the axis to the left of all.
LETTER_WIDTH, LEGEND_GAP, LEGEND_MARGIN, LETTERS_MAX = 7, 42, 60, 22


def style_variables(colours: Mapping[str, str]) -> str:
    """Return the colours as CSS custom properties."""
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def legend_columns(longest: int, width: int) -> int:
    """Return how many legend entries of up to *longest* letters fit side by side; page.js measures them."""
    return max(1, (width - LEGEND_MARGIN) // legend_entry_width(longest))


def legend_entry_width(longest: int) -> int:
    """Return the pixels that a legend entry of *longest* letters takes."""
    return LEGEND_GAP + LETTER_WIDTH * min(longest, LETTERS_MAX)


def chart_config(colours: Mapping[str, str], font: str = "sans-serif") -> dict[str, Json]:
    """Return the Vega-Lite configuration in *colours*.

    The page passes VARIABLES: its charts are SVG, so the style sheet recolours them when the scheme changes.
    """
    quiet, ink, line = colours["quiet"], colours["ink"], colours["line"]
    text = {"labelFont": font, "titleFont": font, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": None,
        "font": font,
        "view": {"stroke": None},
        "range": {"category": [colours[name] for name in SERIES], "symbol": SHAPES},
        "axis": {**text, "labelColor": quiet, "titleColor": quiet, "titleFontWeight": "normal", "titlePadding": 10,
                 "gridColor": line, "domain": False, "tickColor": line, "tickSize": 4, "labelPadding": 4,
                 "labelOverlap": "greedy", "labelSeparation": 8},
        "legend": {**text, "labelColor": ink, "title": None, "orient": "top", "symbolStrokeWidth": 2.5,
                   "symbolSize": 90, "labelLimit": 150, "columnPadding": 16, "rowPadding": 4},
        "header": {"labelFont": font, "labelColor": ink, "labelFontSize": 12},
        "title": {"font": font, "color": ink, "fontSize": 15, "subtitleFont": font, "subtitleColor": quiet,
                  "subtitleFontSize": 12, "anchor": "start", "fontWeight": 600, "offset": 14},
    }


def report_config(colours: Mapping[str, str], font: str = "sans-serif") -> dict[str, Json]:
    """Return the configuration of a report's charts, whose legends stand below each other, where all of them fit.

    It is no part of `chart_config`, since Altair refuses it as a chart's own.
    """
    config = chart_config(colours, font)
    layout = {"top": {"direction": "vertical", "margin": 6}}
    return {**config, "legend": {**config["legend"], "layout": layout}}
