"""Writes every page and picture: one skeleton, one content policy, charts as data for one script.

Data reaches a page as text or as JSON, never as markup or script: `tags` escapes both. Should that ever fail, the
page's policy still runs nothing but the scripts whose hashes it names.
"""
import base64
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.resources import files
from string import Template

import altair as alt
import msgspec
import vl_convert
from markupsafe import Markup

from subak.errors import RunError
from subak.json_type import Json
from subak.kernels.files import KERNEL, DamagedError, kernel_folder, read, write
from subak.output.plain import plain
from subak.report import tags
from subak.report.charts.theme import DARK, LIGHT, Spec, style_variables
from subak.version import VERSION

IMAGE_FORMATS = ("svg", "png")  # that a page can save a chart in
PICTURE_FORMATS = (*IMAGE_FORMATS, "pdf")  # that a picture can be written in
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])  # the grammar Altair writes, such as v6.1
BUNDLE = ("import sys, vl_convert; text = vl_convert.javascript_bundle(sys.argv[1], vl_version=sys.argv[2]); "
          "sys.stdout.buffer.write(text.encode())")
AROUND = 60  # pixels that axis and legend take; kept free so that nothing jumps while charts are drawn
# Nothing is loaded, whatever the page says; styles are the page's own and those of its charts.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"


def document(title: str, *body: Markup, chart_config: Json = None) -> bytes:
    """Return a whole page. With *chart_config*, what page.js is told, the charts of `figure` are drawn on it."""
    scripts = () if chart_config is None else (_library(), _template("page.js"))
    policy = POLICY + (f"; script-src {' '.join(map(_hash, scripts))}" if scripts else "")
    data = () if chart_config is None else (tags.data(chart_config, id="chart-configs"),)
    content = Markup("\n").join([*body, *data, *(tags.tag("script", Markup(script)) for script in scripts)])
    text = filled("document.html", title=title, policy=policy, version=VERSION, body=content,
                  style=Markup(_style()))
    return text.encode("utf-8", "backslashreplace")  # names of files may hold what is no text


def filled(template: str, **values: object) -> Markup:
    """Return a template with its {names} filled in; values that are not Markup are escaped."""
    return Markup(_template(template)).format(**values)


def figure(name: str, spec: Spec) -> Markup:
    """Return a chart that page.js draws, and the ways to save it. A chart with a look of its own is on a white card."""
    panels = max(1, len(spec.get("usermeta", {}).get("facets", [])))
    least = f"min-height: {panels * spec['height'] + AROUND}px" if "height" in spec else None
    saves = (tags.tag("button", f"Save {kind.upper()}", type="button", data_format=kind) for kind in IMAGE_FORMATS)
    return tags.tag(
        "figure", tags.tag("div", class_="chart", style=least), tags.tag("div", *saves, class_="tools"),
        tags.data(drawable(spec)), data_chart=True, id=f"chart-{name}", aria_label=heading(spec)[0],
        class_="card" if "config" in spec else None)


def drawing(spec: Spec, title: str) -> Markup:
    """Return a chart as a still picture on a white card, for pages on which nothing runs."""
    return tags.tag("figure", Markup(picture(spec, "svg").decode()), aria_label=title, class_="card")


def picture(spec: Spec, kind: str) -> bytes:
    """Return a chart as an SVG, a PDF, or a PNG of twice the size, for print."""
    svg = _svg(msgspec.json.encode(drawable(spec)).decode())
    if kind == "svg":
        return svg.encode()
    return bytes(vl_convert.svg_to_pdf(svg) if kind == "pdf" else vl_convert.svg_to_png(svg, scale=2))


@lru_cache(maxsize=1)  # a chart is written in one format after the other, and is drawn once for all of them
def _svg(spec: str) -> str:
    return str(vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE))


@contextmanager
def unchecked() -> Iterator[None]:
    """Let Altair check a chart once, when it is written, and not each of its parts: that takes longer than to draw."""
    with alt.utils.schemapi.debug_mode(False):
        yield


def drawable(value: Json, name: str = "") -> Json:
    """Return a chart's specification with plain strings, which Vega can quote in the expressions that it makes.

    Of titles it makes parts of expressions as they are, but for quotation marks: there a backslash, which would hide
    one, becomes a character that looks like it.
    """
    if isinstance(value, str):
        return plain(value).replace("\\", "\u29f5") if name == "title" else plain(value)
    if isinstance(value, dict):
        return {plain(key): drawable(each, key) for key, each in value.items()}
    return [drawable(each, name) for each in value] if isinstance(value, list) else value


def heading(spec: Spec) -> tuple[str, str]:
    """Return a chart's title and subtitle."""
    title = spec["title"]
    return (title, "") if isinstance(title, str) else (title["text"], title.get("subtitle", ""))


def chart_page(spec: Spec) -> bytes:
    """Return a page of one chart, under its own title."""
    title, subtitle = heading(spec)
    head = tags.tag("header", tags.tag("h1", title), tags.tag("p", subtitle, class_="subtitle"))
    return document(title, head, tags.tag("main", figure("only", spec)), chart_config={})


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed, whose expression interpreter spares the page `eval`."""
    bundle = _kept_bundle("window.vegaEmbed = vegaEmbed;").replace("\r", "")
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _kept_bundle(snippet: str) -> str:
    """Return *snippet* with all that it needs; kept where compiled kernels are, since making it takes a second."""
    folder = kernel_folder()
    if folder is None:
        return _bundle(snippet)
    made_of = hashlib.sha256(f"{snippet} {VEGA_LITE} {version('vl-convert-python')}".encode()).hexdigest()[:16]
    path = folder / f"charts-{made_of}{KERNEL}"
    with suppress(DamagedError):  # then it is made anew
        found = read(path)
        if isinstance(found, str):
            return found
    bundle = _bundle(snippet)
    with suppress(OSError):  # a full disk: the next page makes it again
        write(path, bundle)
    return bundle


def _bundle(snippet: str) -> str:
    """Return *snippet* with all that it needs, in one script.

    It is made in a process of its own: it takes two seconds in one call, in which nobody here would hear Ctrl-C.
    """
    made = subprocess.run([sys.executable, "-P", "-c", BUNDLE, snippet, VEGA_LITE], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)
    if made.returncode:
        raise RunError("page: the script that draws charts could not be made: "
                       f"{made.stderr.decode(errors='replace') or f'exit code {made.returncode}'}")
    return made.stdout.decode()


def _style() -> str:
    return Template(_template("page.css")).substitute(light=style_variables(LIGHT), dark=style_variables(DARK))


def _template(name: str) -> str:
    return (files("subak.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return what a page's policy calls a script it may run: nothing else on the page can become one."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
