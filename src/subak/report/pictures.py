"""Writes a report's charts as picture files."""
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from subak.output.writing import write_file
from subak.report.charts.parts import Chart
from subak.report.charts.theme import LIGHT, Spec, legend_columns, report_config
from subak.report.document import picture

FILE_NAME_MAX = 50  # letters of a picture's, which may take four bytes each
IMAGE_WIDTH = 720  # pixels; a PNG has twice as many, for print
PANEL_MARGIN = 66  # pixels that the axis of a chart with panels takes; page.js leaves as many
Notify = Callable[[str, float], None]  # what is being drawn, and which part of all pictures is done


def write_images(charts: dict[str, Chart], folder: Path, formats: Sequence[str],
                 notify: Notify = lambda _name, _part: None) -> list[Path]:
    """Write each chart as ``<name>.<format>`` into *folder*, in light colours, and return the paths."""
    written: list[Path] = []
    names = file_names(charts)
    for chart, name in zip(charts.values(), names.values(), strict=True):
        spec = still(spec_of(chart))
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


def spec_of(chart: Chart) -> Spec:
    """Return a chart's specification without Altair's own look: the theme is the page's."""
    spec: dict[str, Any] = chart.to_dict()
    return {key: value for key, value in spec.items() if key != "config"}


def still(spec: Spec) -> Spec:
    """Return a chart's specification as a picture has it: of one size, on white, with a legend that fits."""
    meta = spec.get("usermeta", {})
    width = IMAGE_WIDTH - PANEL_MARGIN if "facets" in meta else IMAGE_WIDTH
    config = report_config(LIGHT)
    columns = legend_columns(max(map(len, meta.get("legend", [""]))), IMAGE_WIDTH)
    return {**spec, "width": width, "background": "white",
            "config": {**config, "legend": {**config["legend"], "columns": columns}}}
