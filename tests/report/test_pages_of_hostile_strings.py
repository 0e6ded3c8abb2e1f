"""Every page and picture, made of files in which every string is hostile: none becomes an element, none runs."""
import base64
import hashlib
import json
import re
import tomllib
from html.parser import HTMLParser
from xml.etree import ElementTree

import altair as alt
import polars as pl
import pytest

from hostile import EVIL, RUNS, write_hostile_run, write_policy, write_site, write_tree
from subak.cli.reproduce import reproduction
from subak.experiment.sizing.answer import Size, Sized, Sizing, value_of
from subak.report import tags
from subak.report.document import document, figure
from subak.report.page import write_report
from subak.report.sizing.page import sizing_page
from subak.reproduce.claims import Figure, Reproduction
from subak.reproduce.claims import Row as ClaimRow
from subak.toml_files import write_toml
from test_page_in_chromium import CHROMIUM, opened, root_of

# All that a page may consist of; what is drawn into it is SVG.
ELEMENTS = frozenset({
    "html", "head", "meta", "link", "title", "style", "body", "header", "nav", "main", "section", "footer", "noscript",
    "h1", "h2", "p", "ul", "li", "a", "dl", "dt", "dd", "div", "span", "table", "thead", "tbody", "tr", "th", "td",
    "button", "figure", "script", "h3", "details", "summary", "abbr", "small"})
SVG = frozenset({"svg", "g", "path", "text", "tspan", "line", "rect", "defs", "clipPath"})
HARMLESS = re.compile(r"#.*|data:,|", re.S)


class Elements(HTMLParser):
    """What a browser would make of a page: elements with their attributes, and what stands in scripts."""

    def __init__(self, page):
        super().__init__()
        self.names, self.attributes, self.scripts, self.policy = set(), [], [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.names.add(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append((attributes.get("type"), ""))
        if attributes.get("http-equiv") == "Content-Security-Policy":
            assert not self.scripts, "the policy comes before all that might run"
            self.policy = attributes["content"]

    def handle_data(self, data):
        if self.lasttag == "script" and self.cdata_elem:
            kind, written = self.scripts.pop()
            self.scripts.append((kind, written + data))


def hash_of(script):
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def assert_nothing_came_of_it(page):
    """Only known elements, no handlers, no links away; what may run is named by the policy, and runs nothing of it."""
    found = Elements(page)
    assert {name.lower() for name in found.names} <= ELEMENTS | {name.lower() for name in SVG}
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "srcdoc"]
    assert all(HARMLESS.fullmatch(value or "") for name, value in found.attributes if name in ("href", "src"))
    assert "default-src 'none'" in found.policy
    running = [written for kind, written in found.scripts if kind != "application/json"]
    assert len(running) in (0, 2)
    assert re.findall(r"'sha256-[^']+'", found.policy) == [hash_of(written) for written in running]
    assert not any(RUNS in written for written in running)
    assert ("script-src" in found.policy) == bool(running)
    assert "unsafe-eval" not in found.policy


def assert_a_still_picture(svg):
    """An SVG of its own is XML, and has neither scripts nor handlers nor links."""
    for element in ElementTree.fromstring(svg).iter():
        assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in SVG
        assert not [name for name in element.attrib if name.startswith("on") or name.endswith("href")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def site(folder):
    return write_site(folder / "W")


@pytest.fixture(scope="module")
def subak(folder):
    """Run the command line in this process; the function-scoped fixture `run` cannot serve a module's fixtures."""
    from subak.cli.main import main

    def call(*arguments):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as caught:
            patch.setattr("sys.argv", ["subak", *map(str, arguments)])
            main()
        assert not caught.value.code, arguments
    return call


@pytest.fixture(scope="module")
def pages(folder, site, subak):
    """All pages by what made them; beside them lie their pictures, in folders of their own."""
    comparison, tree, policy = folder / "C", write_tree(folder / "tree.toml"), write_policy(folder)
    simulated = comparison / "runs" / "simulated"
    subak("simulate", site, "--scheduler", f"{policy}:mine+backfill", "--out", simulated)
    written = write_hostile_run(comparison / "runs" / "written")
    scenario = tomllib.loads((simulated / "scenario.toml").read_text())  # of one workload, or they are not compared
    write_toml({**scenario, "remove": [EVIL]}, written / "scenario.toml")
    subak("report", comparison, "--out", folder / "report.html", "--images", folder / "report", "--format", "svg")
    for kind in ("html", "svg"):
        subak("inspect", site, "--chart", folder / f"workload.{kind}")
        subak("inspect", site / "fleet", "--chart", folder / f"fleet.{kind}")
        subak("fit", site, "--chart", folder / f"fit.{kind}")
    subak("fair", tree, "--out", folder / "fair")
    sizes = (Size(1, 2.0, (), EVIL), Size(2, 4.0, (value_of([3.0, 5.0]),)))
    (folder / "size.html").write_bytes(sizing_page(Sizing(
        EVIL, EVIL, ("wait.mean < 10s",), (1, 2), EVIL, None, (Sized(EVIL, 9, sizes, 2), Sized(EVIL, 9, (), None,
                                                                                         hopeless=EVIL)), 0)))
    reproduce(folder / "reproduction")
    found = {name: folder / f"{name}.html" for name in ("report", "workload", "fleet", "fit", "size")}
    return found | {name: folder / name / "index.html" for name in ("fair", "reproduction")}


def reproduce(folder):
    """Write the page of a paper in whose figures everything is hostile."""
    folder.mkdir()
    table = pl.DataFrame({EVIL: [EVIL, "b"], "value": [1.0, 2.0]})
    measured = Figure("1", EVIL, table, {}, notes=(EVIL,), points=table)
    found = Reproduction((measured,), (ClaimRow("1", EVIL, 1.0, EVIL, True, EVIL),), (EVIL,))
    paper = reproduction.Paper(EVIL, None, None, lambda figure: alt.Chart(alt.InlineData(
        values=[{"what": EVIL, "value": 1}]), title=EVIL).mark_bar().encode(
            x="value:Q", y=alt.Y("what:N", title=EVIL, sort=[EVIL]), color=alt.Color("what:N", title=EVIL)))
    reproduction._write(paper, found, reproduction.Request(None, False, folder, 1, False), folder)


def test_no_string_of_any_input_becomes_part_of_a_page(pages):
    for name, path in pages.items():
        page = path.read_text(encoding="utf-8")
        assert "owned" in page, f"{name}: the hostile strings are on it, as text"
        assert_nothing_came_of_it(page)


def test_no_string_of_any_input_becomes_part_of_a_picture(pages, folder):
    pictures = sorted(folder.rglob("*.svg"))
    assert len(pictures) > 12
    assert all(path.is_relative_to(folder) and len(path.name.encode()) < 255 for path in pictures)
    for path in pictures:
        assert_a_still_picture(path.read_text(encoding="utf-8"))


def test_pictures_of_hostile_names_stay_in_their_folder(folder, tmp_path):
    """A chart is named by its run, which may hold ../ and may be as another is, once it can be a file's name."""
    for number, label in enumerate(("../../../a", ".._.._.._a")):
        write_hostile_run(tmp_path / "C" / "runs" / str(number), label)
    write_report(tmp_path / "C", tmp_path / "page.html", tmp_path / "x" / "y" / "pictures", ["svg"])
    gantts = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("gantt*")]
    assert sorted(gantts) == ["x/y/pictures/gantt-.._.._.._a-10.svg", "x/y/pictures/gantt-.._.._.._a.svg"]


def planted_in(page, planted):
    changed, times = re.subn("<main[^>]*>", lambda found: found[0] + planted, page)
    assert times == 1
    return changed


def test_the_checks_would_notice(pages):
    """Each way that data could become more than text, planted into a page that is well."""
    page = pages["fair"].read_text(encoding="utf-8")
    for planted in (f"<script>{RUNS}</script>", "<img src=x>", "<p onclick=1>x</p>", "<a href=javascript:1>x</a>"):
        with pytest.raises(AssertionError):
            assert_nothing_came_of_it(planted_in(page, planted))
    with pytest.raises(AssertionError):
        assert_nothing_came_of_it(page.replace("http-equiv", "name"))
    for planted in ("<script/>", "<text onload='1'/>", "<a/>", "<image/>"):
        with pytest.raises(AssertionError):
            assert_a_still_picture(f'<svg xmlns="http://www.w3.org/2000/svg"><g>{planted}</g></svg>')


def test_json_in_a_script_is_itself_and_closes_nothing():
    written = str(tags.data({EVIL: [EVIL, 1, None]}))
    assert not re.search("[<>&\u2028\u2029]", written[len('<script type="application/json">'):-len("</script>")])
    assert json.loads(re.sub("<[^>]*>", "", written)) == {EVIL: [EVIL, 1, None]}


def test_names_that_are_no_text_can_be_written():
    """Names of files may hold any bytes, which Python keeps as halves of characters."""
    spec = {"title": "\udcff", "data": {"values": [{"\udcff": "\udcff"}]}, "mark": "bar"}
    assert b"<title>\\udcff</title>" in document("\udcff", figure("x", spec), chart_config={})


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")
def test_no_string_of_any_input_runs_in_a_browser(pages, tmp_path):
    for name, path in pages.items():
        shown, console = opened(path, tmp_path / "profile")
        assert "data-owned" not in root_of(shown), name
        assert "data-problems" not in root_of(shown), (name, root_of(shown))
        assert console == [], name
        if "<figure data-chart" in shown:
            assert shown.count("<figure data-chart") == shown.count('data-drawn="yes"') > 0, name


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")
def test_the_policy_alone_stops_a_script_that_got_through(pages, tmp_path):
    for name in ("workload", "fair"):
        path = tmp_path / f"{name}.html"
        planted = f"<script>{RUNS}</script><img src=x onerror=\"{RUNS}\">"
        page = planted_in(pages[name].read_text(encoding="utf-8"), planted)
        path.write_text(page, encoding="utf-8")
        assert "data-owned" not in root_of(opened(path, tmp_path / "profile")[0])
        path.write_text(page.replace("http-equiv", "name"), encoding="utf-8")
        assert 'data-owned="yes"' in root_of(opened(path, tmp_path / "profile")[0]), "the mark would be seen"
